"""``nest-studio profile``: a model's kernels, measured on the machine at hand."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_args

import typer

from nest_core.documents.errors import InputError
from nest_core.documents.files import check_writable, write_file
from nest_core.documents.schema import parameter
from nest_core.documents.text import table
from nest_studio.commands.output import JsonFlag, emit, require_torch

if TYPE_CHECKING:
    from nest_core.hardware.profiles import Profile
    from nest_core.workload.strategies import Strategy

__all__ = ["profile"]

REPEATS = {"cuda": 20, "cpu": 5}
MOST_REPEATS = 10_000
MOST_STRATEGIES = 64
SHOWN = 40


def profile(
    model: Annotated[str, typer.Argument(help="Model preset or config.json.")],
    device: Annotated[str, typer.Option(help="cuda or cpu.")] = "cuda",
    tp: Annotated[str, typer.Option(help="Tensor-parallel degrees, comma-separated.")] = "1",
    sp: Annotated[bool, typer.Option("--sp", help="With sequence parallelism.")] = False,
    ep: Annotated[int, typer.Option(help="Expert-parallel degree.")] = 1,
    micro_batch: Annotated[str, typer.Option(help="Sequences, comma-separated.")] = "1",
    sequence: Annotated[int, typer.Option(help="Tokens per sequence.")] = 2048,
    precision: Annotated[str, typer.Option(help="fp32, tf32, bf16, fp16 or fp8.")] = "bf16",
    attention: Annotated[str, typer.Option(help="flash or unfused.")] = "flash",
    repeat: Annotated[int | None, typer.Option(help="Timed runs of each kernel.")] = None,
    output: Annotated[Path | None, typer.Option(help="Profile to write (JSON).")] = None,
    append: Annotated[
        bool, typer.Option("--append", help="Add to the profile that OUTPUT already holds.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Measure the kernels of a model's layers and save them as a profile."""
    from datetime import UTC, datetime

    from nest_core.hardware.profiles import joined, load_profile, write_profile
    from nest_core.workload.model_files import load_model

    one_of("--device", device, ("cuda", "cpu"))
    presets = load_model(model, Path())
    strategies = _strategies(tp, sp, ep, micro_batch, sequence, precision, attention)
    repeats = REPEATS[device] if repeat is None else _repeats(repeat)
    plain = re.sub(r"[^a-z0-9.]+", "-", presets.name.lower()).strip("-.")
    target = output or Path(f"{plain}-{device}-{precision}.json")
    before = _held(target, append, load_profile)
    require_torch("measure kernels")

    from nest_core.hardware.profile_cases import cases, check_affordable
    from nest_core.hardware.profiling import check_device, measure

    check_device(device)
    results = cases(presets, strategies)
    check_affordable(results, device)
    new_profile = measure(
        results,
        target.stem,
        cast(Literal["cuda", "cpu"], device),
        precision,
        repeats,
        datetime.now(UTC).date().isoformat(),
        lambda line: print(line, file=sys.stderr),
    )
    measured = joined(before, new_profile) if before else new_profile
    write_file(target, write_profile(measured), "--output")
    emit(_fields(new_profile, measured, target), as_json, _as_text)


def one_of(option: str, value: str, known: Iterable[str]) -> None:
    """Refuse an option's value that is not one of the known ones."""
    if value not in known:
        raise InputError(option, "must be one of the known", value, "pick " + ", ".join(known))


def _strategies(
    tp: str, sp: bool, ep: int, micro_batch: str, sequence: int, precision: str, attention: str
) -> list[Strategy]:
    from nest_core.costs.tables import element_bytes
    from nest_core.hardware.profiles import Profiled
    from nest_core.workload.strategies import Strategy

    one_of("--precision", precision, get_args(Profiled))
    one_of("--attention", attention, ("flash", "unfused"))
    widths, batches = (
        _numbers("--tp", "search.tp", tp),
        _numbers("--micro-batch", "search.micro_batch_sequences", micro_batch),
    )
    if len(widths) * len(batches) > MOST_STRATEGIES:
        raise InputError(
            "--micro-batch",
            f"must make at most {MOST_STRATEGIES} combinations with --tp",
            len(widths) * len(batches),
            "profile fewer at a time",
        )
    return [
        Strategy(
            tp=width,
            sp=sp and width > 1,
            ep=parameter("search.ep").checked(ep, "--ep"),
            micro_batch=size,
            sequence=parameter("workload.sequence_length_tokens").checked(sequence, "--sequence"),
            width=element_bytes(precision),
            attention=cast(Literal["flash", "unfused"], attention),
        )
        for width in widths
        for size in batches
    ]


def _numbers(option: str, key: str, text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) < 10 for part in parts):
        raise InputError(option, "must be whole numbers", text, "write them like 1,2,4")
    return sorted({parameter(key).checked(int(part), option) for part in parts})


def _repeats(count: int) -> int:
    if not 1 <= count <= MOST_REPEATS:
        raise InputError(
            "--repeat", f"must lie between 1 and {MOST_REPEATS:,}", count, "give another number"
        )
    return count


def _held(target: Path, append: bool, load: Any) -> Profile | None:
    """Return the profile to add to; what would keep the new one from being written is said now."""
    if target.suffix != ".json":
        raise InputError("--output", "must end in .json", str(target), "rename it")
    if append:
        return cast("Profile", load(str(target), Path()))
    check_writable(target, "--output")
    return None


def _fields(made: Profile, whole: Profile, target: Path) -> dict[str, Any]:
    return {
        "output": str(target),
        "device": made.device,
        "backend": made.backend,
        "precision": made.precision,
        "torch": made.torch,
        "cuda": made.cuda or None,
        "date": made.date,
        "kernels": len(whole.measured),
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
            for entry in made.measured
        ],
        "skipped": [
            {
                "operators": list(entry.operators),
                "direction": entry.signature.direction,
                "reason": entry.reason,
            }
            for entry in made.skipped
        ],
    }


def _as_text(fields: Mapping[str, Any]) -> str:
    longest = sorted(fields["operators"], key=lambda entry: -entry["seconds"])
    rows = [
        [
            entry["operators"][0],
            entry["direction"],
            "x".join(f"{size:g}" for size in entry["shape"]) or f"{entry['bytes'] / 2**20:.3g} MiB",
            f"{entry['seconds'] * 1e6:.4g}",
            f"{entry['spread']:.1%}",
            entry["how"],
        ]
        for entry in longest[:SHOWN]
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
