"""The section on memory of ``docs/validation.md``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nest_core.fidelity.memory import KINDS
from nest_core.fidelity.memory_reference import TABLE_6, compared
from nest_core.fidelity.predict import Prediction
from nest_core.units import GIB

__all__ = ["memory_section"]

FAR = 0.2

INTRODUCTION = """\
Bytes on the fullest device, compared with what a source counted: what tensors held (also where it \
does not say), what the allocator held, or what the driver showed. The latter two hold memory that \
no tensor has; the allocator's share is one constant (`nest_core.costs.memory.FRAGMENTATION`), \
the mean of what SimuMax's rows state beside the figure compared here. No other number was fitted, \
but these errors are not blind: which of a framework's buffers are counted \
(`nest_core/fidelity/memory.py`), and that unstated memory is what tensors hold, was decided with \
these rows in view. Promised: mean error 6%, worst 20%."""

RESERVED = ("reserved", "device")
"""Kinds of sources that count memory which no tensor has."""


def memory_section(predictions: Iterable[Prediction]) -> list[str]:
    """Lines of Markdown: by source, rows that are far off, closed forms, the paper's table 6."""
    rows = [
        (item, error)
        for item in predictions
        if (error := item.memory_error) is not None
    ]  # fmt: skip
    return [
        INTRODUCTION,
        "",
        *_by_source(rows),
        "",
        *_far(rows),
        "",
        *_closed_forms(),
        "",
        *_table_6(),
    ]


def _by_source(rows: Sequence[tuple[Prediction, float]]) -> list[str]:
    found: dict[tuple[str, str], list[float]] = {}
    for item, error in rows:
        key = item.run.source.partition(" sec ")[0], item.outcome.memory_kind
        found.setdefault(key, []).append(error)
    lines = [
        "| source | counted | runs | mean error | bias | worst |",
        "|---|---|---:|---:|---:|---:|",
    ]
    groups = [(source, KINDS[kind], errors) for (source, kind), errors in found.items()]
    for name, wanted in (("all that tensors held", False), ("all that was reserved", True)):
        among = [
            error
            for item, error in rows
            if (item.outcome.memory_kind in RESERVED) is wanted
        ]  # fmt: skip
        groups.append((name, "", among))
    groups.append(("all", "", [error for _, error in rows]))
    for source, counted, errors in groups:
        if errors:
            mean = sum(map(abs, errors)) / len(errors)
            bias, worst = sum(errors) / len(errors), max(errors, key=abs)
            lines.append(
                f"| {source} | {counted} | {len(errors)} | {mean:.1%} | {bias:+.1%} "
                f"| {worst:+.0%} |"
            )
    return lines


def _far(rows: Sequence[tuple[Prediction, float]]) -> list[str]:
    far = [
        f"- {item.run.id}: {item.run.model}, {item.comparable_bytes / GIB:.1f} GiB against "
        f"{(item.outcome.memory_bytes or 0.0) / GIB:.1f} GiB ({error:+.0%})"
        for item, error in rows
        if abs(error) > FAR
    ]
    return [f"Further off than {FAR:.0%}:", "", *far] if far else [f"None is {FAR:.0%} off."]


def _closed_forms() -> list[str]:
    """Of Korthikanti et al. 2022."""
    found: dict[str, list[float]] = {}
    for entry in compared():
        found.setdefault(entry.figure, []).append(entry.error)
    lines = [
        "Figures that follow from formulas, for GPTs of 22B, 175B, 530B and 1T "
        "(arXiv:2205.05198, figures 1 and 7): states at 18 bytes per parameter, activations of "
        "the first stage, and what variants keep of a layer.",
        "",
        "| figure | models | mean error | worst |",
        "|---|---:|---:|---:|",
    ]
    for figure, errors in found.items():
        mean, worst = sum(map(abs, errors)) / len(errors), max(errors, key=abs)
        lines.append(f"| {figure} | {len(errors)} | {mean:.2%} | {worst:+.2%} |")
    return lines


def _table_6() -> list[str]:
    return [
        "Table 6 of NEST's paper, shown only: it does not print the configurations behind these "
        "figures, so nothing here can be compared with them.",
        "",
        "| model | Alpa's executables, GB | the paper's estimate, GB | its error |",
        "|---|---:|---:|---:|",
        *(
            f"| {model} | {alpa:g} | {nest:g} | {nest / alpa - 1:+.0%} |"
            for model, alpa, nest in TABLE_6
        ),
    ]
