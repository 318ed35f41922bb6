"""One iteration as a picture: a row per stage, its passes where they run, grey where it waits.

Bars are thick lines, one trace per part with gaps in between, so that thousands draw at once. Of
more than `MOST_PASSES` passes the first and the last ones are drawn; in between a row's height is
divided as its time is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from nest_core.costs.plan_words import schedule_words
from nest_core.costs.timeline import PARTS, Timeline
from nest_core.documents.units import humanise_seconds, percent, plural
from nest_core.network import BoolArray, FloatArray, IntArray
from nest_core.report.figures.operators import legend_traces
from nest_core.report.figures.stages import slowest as pace
from nest_core.report.figures.style import (
    MARK,
    TIME_COLOURS,
    Picture,
    axis_unit,
    empty,
    frame,
    value_axis,
)

__all__ = ["MOST_PASSES", "timeline_figure"]

MOST_PASSES = 2400

_HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 340, 64, 16, 24, 46
_ROW, _THICKEST = 0.84, 40  # of a row's height; pixels
_FORWARD = 0.6  # of a backward bar's thickness
_NUMBERED = 64  # passes per stage, with room for their numbers
_TICKS = 16
_ROUNDING = 1e-9  # of an iteration
_AGREES = 5e-4  # relative; less is the same to three digits


def timeline_figure(found: Timeline | None, why: str = "There is no plan to play back") -> Picture:
    """When every stage computes, communicates and waits.

    Parameters
    ----------
    found : Timeline or None
    why : str
        Why there is none: the title.
    """
    if found is None:
        return empty(why, "Pipeline timeline", _HEIGHT, (_LEFT, _RIGHT, _TOP, _BOTTOM))
    scale, unit = axis_unit(found.seconds, "s")
    rows = found.stages
    thick = min(_THICKEST, _ROW * (_HEIGHT - _TOP - _BOTTOM) / rows)
    drawn = _drawn(found)
    traces = [_waiting(found, drawn, scale, thick)]
    for part in PARTS:
        traces += [_bars(found, drawn, part, back, scale, thick) for back in (False, True)]
    traces += _last(found, scale, thick)
    traces += _middle(found, drawn, scale, thick * rows / (_HEIGHT - _TOP - _BOTTOM))
    if found.start_s.shape[1] <= _NUMBERED and rows <= _TICKS:
        traces.append(_numbers(found, scale))
    legend = tuple(TIME_COLOURS.items())
    point = found.report.plan.point
    layout = frame(
        _HEIGHT,
        (_LEFT, _RIGHT, _TOP, _BOTTOM),
        dragmode="zoom",
        hoverdistance=12,
        xaxis=value_axis(f"time since the iteration began, {unit}")
        | {"range": [0, found.seconds / scale], "nticks": 10, "fixedrange": False},
        yaxis=_stage_axis(found),
    )
    return Picture(
        _finding(found),
        f"Pipeline timeline of one replica, {unit}: {plural(rows, 'stage')}, "
        f"{plural(found.micro_batches, 'micro-batch', 'micro-batches')}, "
        f"{schedule_words(point.schedule, point.interleave)}",
        _reading(found, drawn),
        go.Figure(data=[*filter(None, traces), *legend_traces(legend)], layout=layout),
        legend,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Drawn:
    """Which passes are drawn one by one, shape (pp, passes), and the middle of every row."""

    passes: BoolArray
    first_s: FloatArray
    last_s: FloatArray

    @property
    def whole(self) -> bool:
        return bool(self.passes.all())


def _drawn(found: Timeline) -> _Drawn:
    start, end = found.start_s, found.end_s
    if start.size <= MOST_PASSES:
        return _Drawn(np.ones(start.shape, np.bool_), end[:, -1], end[:, -1])
    half = MOST_PASSES // 2
    early = end <= np.partition(end.reshape(-1), half)[half]
    late = start >= np.partition(start.reshape(-1), -half)[-half]
    left = ~(early | late)
    first = np.where(left, start, np.inf).min(axis=1)
    last = np.where(left, end, -np.inf).max(axis=1)
    none = ~left.any(axis=1)
    return _Drawn(~left, np.where(none, end[:, -1], first), np.where(none, end[:, -1], last))


def _waiting(found: Timeline, drawn: _Drawn, scale: float, thick: float) -> dict[str, Any]:
    """What lies between the passes, before the first and after the last."""
    ready = found.end_s[:, -1:] + (found.sync_s + found.update_s)[:, None]
    whole = np.full(ready.shape, found.seconds)
    begins = np.concatenate([np.zeros(ready.shape), found.end_s[:, :-1], ready], axis=1)
    ends = np.concatenate([found.start_s, whole], axis=1)
    shown = ends - begins > _ROUNDING * found.seconds
    shown[:, 1:-1] &= drawn.passes[:, 1:] | drawn.passes[:, :-1]
    stage = np.nonzero(shown)[0] + 1
    first, last = begins[shown], ends[shown]
    return _lines("idle", first, last, stage, scale, thick) | {"hoverinfo": "skip"}


def _begins(found: Timeline) -> FloatArray:
    """When the parts of every pass begin, drawn one after another; shape (pp, passes, 3).

    Forward: communication, compute. Backward: recomputation, compute, communication.
    """
    communication, replay, compute = np.moveaxis(found.pass_parts_s, 2, 0)
    back = found.backward
    offset = [
        np.where(back, replay + compute, 0.0),
        np.where(back, 0.0, communication),
        np.where(back, replay, communication),
    ]
    return np.asarray(found.start_s[..., None] + np.stack(offset, axis=2))


def _bars(
    found: Timeline, drawn: _Drawn, part: str, back: bool, scale: float, thick: float
) -> dict[str, Any]:
    """One part of all forward or all backward passes; empty where there is none of it."""
    place = PARTS.index(part)
    seconds = found.pass_parts_s[..., place]
    shown = drawn.passes & (found.backward == back) & (seconds > 0)
    if not shown.any():
        return {}
    first = _begins(found)[..., place][shown]
    stage = np.nonzero(shown)[0] + 1
    name = "backward" if back else "forward"
    bars = _lines(
        part, first, first + seconds[shown], stage, scale, thick * (1.0 if back else _FORWARD)
    )
    return bars | {
        "name": f"{part}, {name}",
        "customdata": np.repeat((found.micro_batch[shown] + 1).astype(np.int32), 3),
        "hovertemplate": f"stage %{{y}}, micro-batch %{{customdata}}<br>{part} of its {name} pass"
        "<extra></extra>",
    }


def _last(found: Timeline, scale: float, thick: float) -> list[dict[str, Any]]:
    """What every stage does once, after its last pass."""
    begins, rows = found.end_s[:, -1], np.arange(1, found.stages + 1)
    once = (
        ("communication", "gradient synchronisation", begins, found.sync_s),
        ("compute", "optimizer step", begins + found.sync_s, found.update_s),
    )
    return [
        _lines(
            part,
            first[seconds > 0],
            (first + seconds)[seconds > 0],
            rows[seconds > 0],
            scale,
            thick,
        )
        | {"name": words, "hovertemplate": f"stage %{{y}}<br>{words}<extra></extra>"}
        for part, words, first, seconds in once
        if seconds.any()
    ]


def _middle(found: Timeline, drawn: _Drawn, scale: float, high: float) -> list[dict[str, Any]]:
    """Passes that are not drawn one by one: a row's height divided as its time is."""
    if drawn.whole:
        return []
    span = drawn.last_s - drawn.first_s
    left = np.where(drawn.passes[..., None], 0.0, found.pass_parts_s).sum(axis=1)
    part = np.divide(left, span[:, None], out=np.zeros_like(left), where=span[:, None] > 0)
    part = np.column_stack([part, np.maximum(0.0, 1.0 - part.sum(axis=1))])
    rows = np.arange(1, found.stages + 1)
    below = rows + high / 2
    traces = []
    for place, name in enumerate((*PARTS, "idle")):
        tall = high * part[:, place]
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": f"{name}, in between",
                "showlegend": False,
                "base": drawn.first_s / scale,
                "x": span / scale,
                "y": below - tall / 2,
                "width": tall,
                "marker": {"color": TIME_COLOURS[name], "line": {"width": 0}},
                "customdata": [
                    f"stage {row}, passes in between<br>{name}: {percent(value)} of the time"
                    for row, value in zip(rows, part[:, place], strict=True)
                ],
                "hovertemplate": "%{customdata}<extra></extra>",
            }
        )
        below = below - tall
    return traces


def _lines(
    part: str, first: FloatArray, last: FloatArray, stage: IntArray, scale: float, width: float
) -> dict[str, Any]:
    """Bars as one broken line."""
    gap = np.full(len(first), np.nan)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": part,
        "x": (np.stack([first, last, gap], axis=1) / scale).reshape(-1).astype(np.float32),
        "y": np.repeat(stage.astype(np.int16), 3),
        "line": {"color": TIME_COLOURS[part], "width": round(width, 1), "simplify": False},
        "showlegend": False,
    }


def _numbers(found: Timeline, scale: float) -> dict[str, Any]:
    """Micro-batches by number, from 1, on their compute."""
    compute = PARTS.index("compute")
    middle = _begins(found)[..., compute] + found.pass_parts_s[..., compute] / 2
    return {
        "type": "scatter",
        "mode": "text",
        "name": "micro-batch",
        "x": (middle / scale).reshape(-1).astype(np.float32),
        "y": np.repeat(np.arange(1, found.stages + 1, dtype=np.int16), middle.shape[1]),
        "text": [str(number + 1) for number in found.micro_batch.reshape(-1).tolist()],
        "textfont": {"size": 12, "color": "#FFFFFF"},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _stage_axis(found: Timeline) -> dict[str, Any]:
    """Stages from the top down; the slowest carries the mark."""
    rows = found.stages
    slowest = pace(found.report) + 1
    shown = {*range(1, rows + 1, math.ceil(rows / _TICKS)), *([slowest] if slowest else [])}
    return {
        "title": {"text": "stage", "standoff": 8, "font": {"size": 12}},
        "range": [rows + 0.5, 0.5],
        "tickvals": sorted(shown),
        "ticktext": [f"{MARK} {n} " if n == slowest else f"{n} " for n in sorted(shown)],
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
    }


def _finding(found: Timeline) -> str:
    if found.stages == 1:
        return "One stage: no stage waits for another"
    spent = found.report.bubble
    slowest = pace(found.report) + 1
    where = f"; stage {slowest} sets the pace" if slowest else ""
    return f"The bubble adds {percent(spent)} to the ideal time{where}"


def _reading(found: Timeline, drawn: _Drawn) -> str:
    priced, played = found.report.iteration_s, found.seconds
    if abs(found.difference) < _AGREES:
        agreed = (
            "Pass by pass it takes as long as the closed form that prices plans, "
            f"{humanise_seconds(priced)}."
        )
    else:
        more = "longer" if found.difference > 0 else "less"
        agreed = (
            f"Pass by pass it takes {humanise_seconds(played)}, {percent(abs(found.difference))} "
            f"{more} than the closed form that prices plans, {humanise_seconds(priced)}."
        )
    between = "" if drawn.whole else " In the middle a row's height is divided as its time is."
    return (
        "Thin bars run forward, thick ones backward, a part of a pass in one piece. "
        f"{agreed}{between} Drag to zoom, double-click for all."
    )
