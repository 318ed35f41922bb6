"""``nest-studio trace``: a model's operators, layer by layer, on one rank.

Presets and ``config.json`` files are evaluated from the traces that ship; a person's own
``package.module:build`` is traced with PyTorch, from here and never from the web page.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from nest_core.documents.errors import InputError
from nest_core.documents.text import table
from nest_studio.commands.output import JsonFlag, emit, require_torch

__all__ = ["trace"]


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
    write_presets: Annotated[
        bool, typer.Option("--write-presets", help="Trace every family anew (needs torch).")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show a model's layers, their work, memory and collectives."""
    if write_presets:
        return emit({"written": _write_presets(model, strategy, output)}, as_json, _as_list)
    if not model:
        raise InputError(
            "MODEL", "must be given", "missing", "name a preset or package.module:build"
        )
    if ":" in model:
        return emit(_own(model, strategy, output), as_json, _as_text)
    if output is not None:
        raise InputError(
            "--output", "must come with package.module:build", str(output), "leave it out"
        )
    from nest_core.workload.model_files import load_model
    from nest_core.workload.report import read_strategy, report_model

    preset = load_model(model, Path())
    rank = read_strategy(strategy, sequence=preset.positions or 4096)
    return emit(report_model(preset, rank), as_json, _as_text)


def _own(target: str, strategy: str, output: Path | None) -> dict[str, Any]:
    require_torch("trace a module")
    from nest_core.documents.files import write_file
    from nest_core.workload.graph import graph_of
    from nest_core.workload.report import own_sizes, read_strategy, report_layers
    from nest_core.workload.tracing.own import as_document, model_sizes, trace_own

    rank = read_strategy(strategy)
    with contextlib.redirect_stdout(sys.stderr):  # what the module prints is not the answer
        layers = trace_own(target, Path.cwd())
    if output is not None:
        nodes = {layer.kind: layer.nodes for layer in layers}
        text = as_document(output.stem, target, nodes, model_sizes(target, layers))
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


def _write_presets(*others: object) -> list[str]:
    if any(others):
        raise InputError(
            "--write-presets", "must stand alone", "beside others", "leave the others out"
        )
    require_torch("trace a module")
    from nest_core.documents.presets import preset_path
    from nest_core.workload.tracing.own import write_presets

    return [str(path) for path in write_presets(preset_path("traces"))]


def _as_list(fields: Mapping[str, Any]) -> str:
    return "\n".join(fields["written"])


def _as_text(fields: Mapping[str, Any]) -> str:
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
    text = f"{fields['model']}: {fields['parameters']:,} parameters; one rank, one micro-batch\n\n"
    text += table(columns, rows)
    if calls:
        text += "\n\n" + table(["layer", "axis", "collective", "MiB", "forward", "backward"], calls)
    return text
