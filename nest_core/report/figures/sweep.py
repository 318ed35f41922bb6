"""The figures of a sweep: throughput, memory, scaling, and what the network costs for it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go

from nest_core.calibration.fabric import UNMEASURED_RATIO
from nest_core.documents.units import humanise_bytes, percent
from nest_core.explain import quantity
from nest_core.hardware.posterior import SHARE
from nest_core.report.figures.style import ACCENT, FAINT, LIMIT, MUTED, Picture, axis_unit, frame
from nest_core.report.figures.style import value_axis as from_zero
from nest_core.report.figures.sweep_cost import pareto_picture, scaling_picture
from nest_core.report.figures.sweep_parts import (
    band,
    hatched,
    hover,
    label,
    parameter_axis,
    places,
    planless,
    rate_unit,
    shortfall,
)
from nest_core.report.figures.sweep_plane import plane_picture
from nest_core.studies.rows import StudyRow
from nest_core.studies.sweeps import Sweep, changes

__all__ = ["memory_picture", "pictures", "throughput_picture"]

_HEIGHT = 380
_MOST_LABELLED = 14
_MOST_CHANGES = 4
_STEADY = 0.005
_LIMIT = {"color": LIMIT, "dash": "dash"}
_HELD = {
    "mode": "lines+markers",
    "line": {"color": ACCENT, "width": 2},
    "marker": {"size": 8, "color": ACCENT},
}
_NEEDED = {
    "mode": "markers",
    "marker": {"size": 9, "color": LIMIT, "symbol": "circle-open", "line": {"width": 2}},
}


def pictures(sweep: Sweep) -> tuple[Picture, ...]:
    """All figures that a sweep has something for; the first is the one to point at.

    Its points carry their place in ``sweep.points`` as ``customdata``.
    """
    if not sweep.points:
        return ()
    first = throughput_picture(sweep) if sweep.y is None else plane_picture(sweep)
    beside = [memory_picture(sweep)] if sweep.y is None else []
    rest = (scaling_picture(sweep), pareto_picture(sweep))
    every = (first, *beside, *(picture for picture in rest if picture is not None))
    return tuple(replace(picture, table=sweep.rows) for picture in every)


def throughput_picture(sweep: Sweep) -> Picture:
    """Throughput against one parameter, with the points where the plan changes."""
    scale, unit = rate_unit(sweep)
    at = places(sweep.x)[: len(sweep.points)]
    gap = _gap(places(sweep.x))
    rates = [point.tokens_per_s and point.tokens_per_s / scale for point in sweep.points]
    turns = _turns(sweep)
    # What changes stands above the line, so there must be room for it.
    ends = [point.span[1] / scale for point in sweep.points if point.span]
    top = 1.1 * max([rate or 0.0 for rate in rates] + ends + [1e-9]) / (1 - 0.05 * _lines(turns))
    layout = frame(
        _HEIGHT,
        (62, 16, 14, 58),
        xaxis=parameter_axis(sweep.x, places(sweep.x), 0.6 * gap),
        yaxis=from_zero(f"throughput, {unit}") | {"range": [0, top]},
        shapes=[_upright((at[i] + at[j]) / 2, 1 - 0.05 * len(said)) for i, j, said in turns],
        annotations=[
            *(_turned((at[i] + at[j]) / 2, said) for i, j, said in turns),
            *_values(sweep, at, rates, scale),
            *_reasons(sweep, at, top),
        ],
    )
    boxes = [
        (at[i] - gap / 2, at[i] + gap / 2, 0.0, top)
        for i, point in enumerate(sweep.points)
        if not point.feasible
    ]
    data = [
        hatched(boxes),
        *band(at, sweep.points, scale, 0.15 * gap),
        _line(sweep, at, rates, connect=True),
        _line(sweep, at, rates),
        _crosses(sweep, at),
    ]
    reading = (
        f"Every point is planned anew. Dashed uprights: the plan changes. Band: the {SHARE:.0%} "
        "interval, which all points share in large part, being of one software."
    )
    if sweep.x.key.startswith("oversubscription."):
        reading += f" {UNMEASURED_RATIO}"
    return Picture(
        _finding(sweep, len(turns)),
        f"Training throughput against {sweep.x.title}; {unit}",
        reading,
        go.Figure(data=data, layout=layout),
    )


def memory_picture(sweep: Sweep) -> Picture:
    """Memory of the fullest stage against one parameter, beside what a device has."""
    limits = [point.limit_bytes for point in sweep.points]
    held = [point.memory_bytes for point in sweep.points]
    needed = [point.needed_bytes or None for point in sweep.points]
    known = [size for size in (*limits, *held, *needed) if size]
    scale, unit = axis_unit(max(known, default=1.0), "B")
    at = places(sweep.x)[: len(sweep.points)]
    layout = frame(
        _HEIGHT,
        (62, 16, 14, 58),
        xaxis=parameter_axis(sweep.x, places(sweep.x), 0.6 * _gap(places(sweep.x))),
        yaxis=from_zero(f"memory per device, {unit}")
        | {"range": [0, 1.12 * max(known, default=1.0) / scale]},
    )
    said = [hover(sweep, point) for point in sweep.points]
    data = [
        _sizes("what a device has", at, limits, scale, {"mode": "lines", "line": _LIMIT}),
        _sizes("fullest stage", at, held, scale, {"hovertext": said, **_HELD}),
        _sizes("enough for some plan", at, needed, scale, {"hovertext": said, **_NEEDED}),
    ]
    legend = [("fullest stage", ACCENT), ("what a device has", LIMIT)]
    if any(needed):
        legend[1] = ("what a device has; circle: enough for some plan", LIMIT)
    return Picture(
        _memory_finding(sweep),
        f"Memory of the fullest stage, {unit}",
        "The search takes what memory there is where that makes it faster.",
        go.Figure(data=data, layout=layout),
        tuple(legend),
    )


def _gap(at: Sequence[float]) -> float:
    """The least distance between neighbours."""
    return min((b - a for a, b in itertools.pairwise(at)), default=1.0)


def _turns(sweep: Sweep) -> list[tuple[int, int, tuple[str, ...]]]:
    """Neighbouring points with plans that differ, and in what."""
    feasible = [i for i, point in enumerate(sweep.points) if point.feasible]
    found = []
    for i, j in itertools.pairwise(feasible):
        said = changes(sweep.points[i], sweep.points[j], (sweep.x.key,))
        if said:
            found.append((i, j, said))
    return found


def _lines(turns: list[tuple[int, int, tuple[str, ...]]]) -> int:
    return max((min(len(said), _MOST_CHANGES) for _, _, said in turns), default=0)


def _upright(x: float, height: float) -> dict[str, Any]:
    return {
        "type": "line",
        "xref": "x",
        "yref": "paper",
        "x0": x,
        "x1": x,
        "y0": 0,
        "y1": height,
        "line": {"color": MUTED, "width": 1, "dash": "dash"},
    }


def _turned(x: float, said: tuple[str, ...]) -> dict[str, Any]:
    shown = said if len(said) <= _MOST_CHANGES else (*said[: _MOST_CHANGES - 1], "…")
    return {
        "text": "<br>".join(part.replace(" → ", "→") for part in shown),
        "x": x,
        "y": 1,
        "xref": "x",
        "yref": "paper",
        "yanchor": "top",
        "showarrow": False,
        "align": "center",
        "font": {"size": 12},
        "hovertext": "<br>".join(said),
    }


def _values(
    sweep: Sweep, at: Sequence[float], rates: Sequence[float | None], scale: float
) -> list[dict[str, Any]]:
    """Throughputs beside their points, where there is room."""
    if len(at) > _MOST_LABELLED:
        return []
    return [
        {"text": label(point, scale), "x": x, "y": rate, "yshift": 14, "showarrow": False}
        for x, rate, point in zip(at, rates, sweep.points, strict=True)
        if rate
    ]


def _reasons(sweep: Sweep, at: Sequence[float], top: float) -> list[dict[str, Any]]:
    """Why points have no plan, upright within their hatched boxes."""
    return [
        {
            "text": shortfall(point),
            "x": x,
            "y": top / 2,
            "textangle": -90,
            "showarrow": False,
            "font": {"size": 12},
        }
        for x, point in zip(at, sweep.points, strict=True)
        if not point.feasible
    ]


def _line(
    sweep: Sweep, at: Sequence[float], rates: Sequence[float | None], *, connect: bool = False
) -> dict[str, Any]:
    """The points; or, with ``connect``, the faint line between them across what has no plan."""
    if connect:
        return {
            "type": "scatter",
            "mode": "lines",
            "x": list(at),
            "y": list(rates),
            "connectgaps": True,
            "showlegend": False,
            "hoverinfo": "skip",
            "line": {"color": FAINT, "width": 2},
        }
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": list(at),
        "y": list(rates),
        "line": {"color": ACCENT, "width": 2},
        "marker": {"size": 10, "color": ACCENT},
        "unselected": {"marker": {"opacity": 0.45}},
        "customdata": list(range(len(sweep.points))),
        "hovertext": [hover(sweep, point) for point in sweep.points],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _crosses(sweep: Sweep, at: Sequence[float]) -> dict[str, Any]:
    """Something to point at where there is no plan."""
    bare = [i for i, point in enumerate(sweep.points) if not point.feasible]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [at[i] for i in bare],
        "y": [0.0] * len(bare),
        "cliponaxis": False,
        "marker": {"size": 10, "symbol": "x-thin-open", "color": MUTED, "line": {"width": 2}},
        "customdata": bare,
        "hovertext": [hover(sweep, sweep.points[i]) for i in bare],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _sizes(
    name: str,
    at: Sequence[float],
    sizes: Sequence[float | None],
    scale: float,
    look: dict[str, Any],
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "name": name,
        "showlegend": any(sizes),
        "x": list(at),
        "y": [size and size / scale for size in sizes],
        "hovertemplate": "%{hovertext}<extra></extra>" if "hovertext" in look else None,
        "hoverinfo": None if "hovertext" in look else "skip",
        **look,
    }


def _finding(sweep: Sweep, turns: int) -> str:
    feasible = [point for point in sweep.points if point.feasible]
    if not feasible:
        return "No plan fits at any of these points"
    if len(sweep.points) == 1:
        return (
            f"{quantity(feasible[0].tokens_per_s or 0.0, 'tokens/s')} at {_at(sweep, feasible[0])}"
        )
    times = {1: "once", 2: "twice"}.get(turns, f"{turns} times")
    ending = (f"; the plan changes {times}" if turns else "; the plan stays") + planless(
        sweep.points
    )
    return _trend(sweep, feasible) + (ending if len(feasible) > 1 else planless(sweep.points))


def _trend(sweep: Sweep, feasible: list[StudyRow]) -> str:
    rates = [point.tokens_per_s or 0.0 for point in feasible]
    best = max(range(len(rates)), key=rates.__getitem__)
    if len(feasible) == 1:
        return f"Only {_at(sweep, feasible[0])} has a plan"
    spread = 1 - min(rates) / max(rates)
    if spread < _STEADY:
        return f"The {sweep.x.label} hardly matters: throughput stays within {percent(spread)}"
    first, last = _at(sweep, feasible[0]), _at(sweep, feasible[-1])
    if best == 0:
        return f"Throughput falls {percent(1 - rates[-1] / rates[0])} from {first} to {last}"
    if best == len(rates) - 1:
        times = rates[-1] / rates[0]
        more = f"{times:.3g}-fold" if times >= 2 else percent(times - 1)
        return f"Throughput rises {more} from {first} to {last}"
    return f"Fastest at {_at(sweep, feasible[best])}"


def _at(sweep: Sweep, point: StudyRow) -> str:
    """A value in a title, with its unit where that says something."""
    shown = sweep.x.words(point.values[0])
    if sweep.x.key == "recompute":
        return f"recomputation {shown}"
    plain = sweep.x.unit in ("", "down : up")
    unit = "" if plain and sweep.x.key != "devices" else f" {sweep.x.unit or sweep.x.label}"
    return f"{shown}{unit}"


def _memory_finding(sweep: Sweep) -> str:
    held = [
        (point.memory_bytes / point.limit_bytes, point)
        for point in sweep.points
        if point.memory_bytes and point.limit_bytes
    ]
    if held:
        part, point = max(held, key=lambda pair: pair[0])
        return f"Fullest at {_at(sweep, point)}: {percent(part)} of a device's memory"
    needed = [point.needed_bytes for point in sweep.points if point.needed_bytes]
    if needed:
        return f"{humanise_bytes(min(needed))} per device would be enough for some plan"
    return "No point has a plan"
