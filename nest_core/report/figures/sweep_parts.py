"""What the figures of a sweep share: places on an axis, words on hovering, hatched regions."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from nest_core.costs.interval import span_in_words
from nest_core.documents.schema import Parameter
from nest_core.documents.units import format_money, humanise_bytes, percent
from nest_core.hardware.posterior import SHARE
from nest_core.report.explain import quantity
from nest_core.report.figures.style import (
    ACCENT,
    FAINT,
    MUTED,
    SILENT,
    Trace,
    axis_title,
    axis_unit,
    bare_axis,
    broken,
    curve,
)
from nest_core.studies.rows import StudyRow
from nest_core.studies.sweeps import Sweep

__all__ = [
    "band",
    "hatched",
    "hover",
    "label",
    "parameter_axis",
    "places",
    "planless",
    "rate_unit",
    "short_plan",
    "shortfall",
]

_BAND = "rgba(0, 114, 178, 0.18)"
_HATCH = {"shape": "/", "size": 6, "solidity": 0.2, "fgcolor": "rgba(128, 132, 138, 0.55)"}


def places(axis: Parameter) -> list[float]:
    """Return where the values of a parameter stand: to scale, by doublings, or in order."""
    numbers = [value for value in axis.values if isinstance(value, int | float)]
    if len(numbers) < len(axis.values):
        return [float(index) for index in range(len(axis.values))]
    return [math.log2(value) if axis.doubling else float(value) for value in numbers]


def parameter_axis(axis: Parameter, at: Sequence[float], margin: float) -> Trace:
    """Return an axis with the parameter's values on it; the scenario's own is marked."""
    return bare_axis(
        title=axis_title(axis.title, 6),
        range=[min(at) - margin, max(at) + margin],
        tickvals=list(at),
        ticktext=[
            f"<b>{axis.words(value)}</b><br>now" if value == axis.present else axis.words(value)
            for value in axis.values
        ],
        tickangle=0,
        ticks="",
    )


def rate_unit(sweep: Sweep) -> tuple[float, str]:
    """Return divisor and unit of the sweep's throughputs."""
    rates = [point.tokens_per_s or 0.0 for point in sweep.points]
    return axis_unit(max(rates or [1.0]), "tokens/s")


def label(point: StudyRow, scale: float) -> str:
    """Return a throughput with three digits, without its unit."""
    if point.tokens_per_s is None:
        return ""
    value = point.tokens_per_s / scale
    return f"{value:.0f}" if value >= 100 else f"{value:#.3g}"


def short_plan(point: StudyRow) -> str:
    """Return the degrees that differ from 1: ``tp 4 · pp 2 · dp 8``."""
    plan = point.plan or {}
    degrees = [f"{name} {plan[name]}" for name in ("tp", "pp", "dp", "cp", "ep") if plan[name] > 1]
    return " · ".join(degrees) or "one device"


def shortfall(point: StudyRow) -> str:
    """Return why a point has no plan, in two or three words."""
    if point.status == "memory":
        return f"needs {humanise_bytes(point.needed_bytes)}" if point.needed_bytes else "too large"
    return {"invalid": "cannot be", "failed": "failed"}.get(point.status, "no time")


def hover(sweep: Sweep, point: StudyRow) -> str:
    """Return what stands beside the pointer."""
    lines = [f"<b>{sweep.named(point)}</b>"]
    if not point.feasible:
        reason = point.reason.replace("<", "&lt;")
        lines += textwrap.wrap(reason, 71, break_long_words=False, break_on_hyphens=False)
        return "<br>".join(lines)
    plan = point.plan or {}
    lines.append(
        f"{quantity(point.tokens_per_s or 0.0, 'tokens/s')}, MFU {percent(point.mfu or 0)}"
    )
    if point.span is not None:
        span = span_in_words(point.span, lambda rate: quantity(rate, "tokens/s"))
        lines.append(f"{100 * SHARE:.0f} % interval {span}")
    lines += [
        short_plan(point),
        f"micro-batch {plan['micro_batch']}, ZeRO {plan['zero']}, recomputation "
        f"{plan['recompute']}",
    ]
    if point.memory_bytes is not None and point.limit_bytes is not None:
        used, limit = humanise_bytes(point.memory_bytes), humanise_bytes(point.limit_bytes)
        lines.append(f"fullest stage {used} of {limit}, bubble {percent(point.bubble or 0)}")
    if point.network_usd is not None:
        lines.append(f"network {format_money(point.network_usd)}")
    return "<br>".join([*lines, *point.realised])


def planless(points: Sequence[StudyRow]) -> str:
    """Return how many points have no plan, as the end of a title; empty where all have one."""
    count = sum(not point.feasible for point in points)
    verb = "has" if count == 1 else "have"
    return f"; {count} of {len(points)} points {verb} no plan" if count else ""


def band(
    at: Sequence[float], points: Sequence[StudyRow], scale: float, min_width: float
) -> list[Trace]:
    """Return the intervals of throughputs as one trace; nothing without intervals.

    Neighbours with a plan share a band; one that stands alone has the least width.
    """
    pieces: list[list[tuple[float, float, float]]] = [[]]
    for x, point in zip(at, points, strict=True):
        if point.span is None:
            pieces.append([])
        else:
            pieces[-1].append((x, point.span[0] / scale, point.span[1] / scale))
    outlines = []
    for piece in filter(None, pieces):
        if len(piece) == 1:
            ((x, low, high),) = piece
            piece = [(x - min_width / 2, low, high), (x + min_width / 2, low, high)]
        across = [x for x, _, _ in piece]
        up = [high for _, _, high in piece] + [low for _, low, _ in reversed(piece)]
        outlines.append(([*across, *reversed(across)], up))
    if not outlines:
        return []
    name = f"{100 * SHARE:.0f} % interval"
    return [_area(outlines, name=name, fillcolor=_BAND, line={"color": ACCENT, "width": 0})]


def hatched(boxes: Iterable[tuple[float, float, float, float]]) -> Trace:
    """Return one trace of grey hatched boxes, each (left, right, bottom, top)."""
    outlines = (
        ((x0, x1, x1, x0, x0), (bottom, bottom, top, top, bottom)) for x0, x1, bottom, top in boxes
    )
    return _area(outlines, fillcolor=FAINT, fillpattern=_HATCH, line={"color": MUTED, "width": 0})


def _area(outlines: Iterable[tuple[Sequence[float], Sequence[float]]], **look: Any) -> Trace:
    return curve(**broken(outlines), colour=ACCENT, fill="toself", **look) | SILENT
