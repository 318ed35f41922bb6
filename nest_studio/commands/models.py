"""Commands on models: ``trace`` and ``profile``."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nest_core.documents import (
    check_writable,
    percent_column,
    require,
    require_extra,
    table,
    write_file,
)
from nest_core.documents.schema import parameter
from nest_studio.commands.output import JsonFlag, emit

if TYPE_CHECKING:
    from nest_core.hardware.profiles import Profile

__all__ = ["profile", "trace"]


def trace(
    model: Annotated[
        str, typer.Argument(help="Model preset, config.json, or package.module:build.")
    ] = "",
    strategy: Annotated[
        str, typer.Option(help="What one rank runs: tp=8,sp=true,micro_batch=1,sequence=4096,…")
    ] = "",
    output: Annotated[
        Path | None, typer.Option(help="Save the trace of package.module:build as JSON.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show a model's layers, their work, memory and collectives."""
    require(model, "MODEL", "must be given", "missing", "name a preset or package.module:build")
    if ":" in model:
        return emit(_own(model, strategy, output), as_json, _trace_text)
    require(
        output is None,
        "--output",
        "must come with package.module:build",
        str(output),
        "leave it out",
    )
    from nest_core.workload.model_files import load_model
    from nest_core.workload.report import read_strategy, report_model

    preset = load_model(model, Path())
    return emit(
        report_model(preset, read_strategy(strategy, sequence=preset.positions or 4096)),
        as_json,
        _trace_text,
    )


def _own(target: str, strategy: str, output: Path | None) -> dict[str, Any]:
    require_extra("torch", ("torch",), "trace a module")
    from nest_core.workload.graph import graph_of
    from nest_core.workload.report import own_sizes, read_strategy, report_layers
    from nest_core.workload.tracing.own import as_document, model_sizes, trace_own

    rank = read_strategy(strategy)
    with contextlib.redirect_stdout(sys.stderr):  # what the module prints is not the answer
        layers = trace_own(target, Path.cwd())
    if output is not None:
        text = as_document(
            output.stem,
            target,
            {layer.kind: layer.nodes for layer in layers},
            model_sizes(target, layers),
        )
        write_file(output, text, "--output")
    graphs = [(graph_of(layer.kind, layer.nodes), layer) for layer in layers]
    return {
        "model": target,
        "parameters": sum(layer.count * layer.parameters for layer in layers),
        "layers": report_layers(
            [(graph, layer.count, own_sizes(graph, layer.sizes, rank)) for graph, layer in graphs],
            rank,
        ),
    }


def _trace_text(fields: Mapping[str, Any]) -> str:
    rows = [
        [
            layer["kind"],
            layer["count"],
            f"{layer['flops'] / 1e9:.4g}",
            f"{layer['parameter_bytes'] / 2**20:.4g}",
            f"{layer['activation_bytes'] / 2**20:.4g}",
            len(layer["operators"]),
            sum(call["forward"] + call["backward"] for call in layer["collectives"]),
        ]
        for layer in fields["layers"]
    ]
    columns = [
        "layer",
        "count",
        "forward, GFLOP",
        "weights, MiB",
        "kept, MiB",
        "operators",
        "collectives",
    ]
    calls = [
        [
            layer["kind"],
            call["axis"],
            call["op"],
            f"{call['bytes'] / 2**20:.4g}",
            call["forward"],
            call["backward"],
        ]
        for layer in fields["layers"]
        for call in layer["collectives"]
    ]
    text = f"{fields['model']}: {fields['parameters']:,} parameters; one rank, one micro-batch\n"
    text += f"{fields['source']}\n\n" if fields.get("source") else "\n"
    text += table(columns, rows)
    if calls:
        text += "\n\n" + table(["layer", "axis", "collective", "MiB", "forward", "backward"], calls)
    return text


REPEATS = {"cuda": 20, "cpu": 5}
MOST_STRATEGIES = 64
SHOWN = 40


def profile(
    model: Annotated[str, typer.Argument(help="Model preset or config.json.")],
    device: Annotated[Literal["cuda", "cpu"], typer.Option()] = "cuda",
    tp: Annotated[str, typer.Option(help="Tensor-parallel degrees, comma-separated.")] = "1",
    sp: Annotated[bool, typer.Option("--sp", help="With sequence parallelism.")] = False,
    ep: Annotated[int, typer.Option(help="Expert-parallel degree.")] = 1,
    micro_batch: Annotated[str, typer.Option(help="Sequences, comma-separated.")] = "1",
    sequence: Annotated[int, typer.Option(help="Tokens per sequence.")] = 2048,
    precision: Annotated[
        Literal["fp32", "tf32", "bf16", "fp16", "fp8"], typer.Option(help="Of the products.")
    ] = "bf16",
    attention: Annotated[Literal["flash", "unfused"], typer.Option()] = "flash",
    repeat: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="Timed runs of each kernel.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Profile to write (JSON).")] = None,
    append: Annotated[
        bool, typer.Option("--append", help="Add to the profile that OUTPUT already holds.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Measure the kernels of a model's layers and save them as a profile."""
    from datetime import UTC, datetime

    from nest_core.costs.tables import element_bytes
    from nest_core.hardware.profiles import joined, load_profile, write_profile
    from nest_core.workload import Strategy, load_model

    presets = load_model(model, Path())
    rank = Strategy(
        ep=parameter("search.ep").checked(ep, "--ep"),
        sequence=parameter("workload.sequence_length_tokens").checked(sequence, "--sequence"),
        width=element_bytes(precision),
        attention=attention,
    )
    widths = _numbers("--tp", "search.tp", tp)
    batches = _numbers("--micro-batch", "search.micro_batch_sequences", micro_batch)
    require(
        len(widths) * len(batches) <= MOST_STRATEGIES,
        "--micro-batch",
        f"must make at most {MOST_STRATEGIES} combinations with --tp",
        len(widths) * len(batches),
        "profile fewer at a time",
    )
    strategies = [
        replace(rank, tp=width, sp=sp and width > 1, micro_batch=size)
        for width in widths
        for size in batches
    ]
    plain = re.sub(r"[^a-z0-9.]+", "-", presets.name.lower()).strip("-.")
    target = output or Path(f"{plain}-{device}-{precision}.json")
    require(target.suffix == ".json", "--output", "must end in .json", str(target), "rename it")
    before = load_profile(str(target), Path()) if append else None
    if before is None:  # what would keep the profile from being written is said now
        check_writable(target, "--output")
    require_extra("torch", ("torch",), "measure kernels")

    from nest_core.hardware.profile_cases import cases, check_affordable
    from nest_core.hardware.profiling import check_device, measure

    check_device(device)
    results = cases(presets, strategies)
    check_affordable(results, device)
    new_profile = measure(
        results,
        target.stem,
        device,
        precision,
        repeat or REPEATS[device],
        datetime.now(UTC).date().isoformat(),
        lambda line: print(line, file=sys.stderr),
    )
    measured = joined(before, new_profile) if before else new_profile
    write_file(target, write_profile(measured), "--output")
    emit(_fields(new_profile, measured, target), as_json, _profile_text)


def _numbers(option: str, key: str, text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    require(
        all(part.isdecimal() and len(part) < 10 for part in parts),
        option,
        "must be whole numbers",
        text,
        "write them like 1,2,4",
    )
    return sorted({parameter(key).checked(int(part), option) for part in parts})


def _fields(new: Profile, merged: Profile, target: Path) -> dict[str, Any]:
    return {
        "output": str(target),
        "device": new.device,
        "backend": new.backend,
        "precision": new.precision,
        "torch": new.torch,
        "cuda": new.cuda or None,
        "date": new.date,
        "kernels": len(merged.measured),
        "operators": [
            {
                "operators": list(entry.operators),
                "op": entry.signature.op,
                "function": entry.function or None,
                "direction": entry.signature.direction,
                "unit": entry.signature.unit,
                "shape": list(entry.signature.shape),
                "flops": entry.signature.flops,
                "bytes": entry.signature.bytes,
                "seconds": entry.seconds,
                "spread": entry.spread,
                "repeats": entry.repeats,
                "how": entry.how,
            }
            for entry in new.measured
        ],
        "skipped": [
            {
                "operators": list(entry.operators),
                "direction": entry.signature.direction,
                "reason": entry.reason,
            }
            for entry in new.skipped
        ],
    }


def _profile_text(fields: Mapping[str, Any]) -> str:
    slowest = sorted(fields["operators"], key=lambda entry: -entry["seconds"])[:SHOWN]
    spread = percent_column(entry["spread"] for entry in slowest)
    rows = [
        [
            entry["operators"][0],
            entry["direction"],
            "x".join(f"{size:g}" for size in entry["shape"]) or f"{entry['bytes'] / 2**20:.3g} MiB",
            f"{entry['seconds'] * 1e6:.4g}",
            spread(entry["spread"]),
            entry["how"],
        ]
        for entry in slowest
    ]
    skipped = [
        f"left out: {entry['operators'][0]}, {entry['direction']}: {entry['reason']}"
        for entry in fields["skipped"]
    ]
    return "\n".join(
        [
            f"{fields['device']}, torch {fields['torch']}, {fields['precision']}: "
            f"{len(fields['operators'])} kernels measured, {len(skipped)} left out; "
            f"{fields['output']} holds {fields['kernels']}",
            "",
            table(["operator", "pass", "shape or size", "µs", "spread", "what ran"], rows),
            *skipped,
        ]
    )
