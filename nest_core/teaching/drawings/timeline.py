"""Pipeline schedules on a time axis, one row per stage."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from nest_core.documents.units import percent
from nest_core.report.figures.style import TIME_COLOURS, Picture, axis_names, frame, note, rows_axis
from nest_core.teaching.lessons.bubble import Bubble, Played

__all__ = ["timeline_picture"]

COMPUTE = TIME_COLOURS["compute"]
IDLE = TIME_COLOURS["idle"]
_NAMES = {"gpipe": "GPipe", "1f1b": "1F1B"}
_ROW, _HEAD = 27, 34
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 92, 4, 44
_THICK = {False: 0.55, True: 0.88}  # of a row's height: forward, backward
_NUMBERED = 16  # more stages and micro-batches together leave no room for numbers


def timeline_picture(found: Bubble) -> Picture:
    """All schedules of a pipeline above one another, on one axis."""
    first = found.schedules[0]
    parts, rows = len(found.schedules), first.timeline.stages
    high = _HEAD + _ROW * rows
    axes: dict[str, Any] = {
        "xaxis": _time_axis(max(one.timeline.seconds for one in found.schedules))
        | {"anchor": axis_names(parts - 1)[1]}
    }
    traces: list[dict[str, Any]] = []
    shapes: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    for number, one in enumerate(found.schedules):
        name = axis_names(number)[1]
        top = 1 - (number + _HEAD / high) / parts
        axes[name.replace("y", "yaxis")] = rows_axis(
            [f"stage {stage + 1}" for stage in range(rows)]
        ) | {
            "domain": [1 - (number + 1) / parts, top],
            "anchor": "x",
        }
        traces += [_bars(one, backward, name) for backward in (False, True)]
        shapes += [_whole_row(one, stage, name) for stage in range(rows)]
        notes += [_heading(one, top), *_held(one, name)]
    return Picture(
        _finding(first),
        f"{rows} stages, {first.timeline.micro_batches} micro-batches; time in forward passes of "
        "one micro-batch",
        "Thin bars are forward passes, thick ones backward; numbers are micro-batches. "
        "At the right, how many micro-batches a stage holds at its fullest.",
        go.Figure(
            data=traces,
            layout=frame(
                _TOP + parts * high + _BOTTOM,
                (_LEFT, _RIGHT, _TOP, _BOTTOM),
                barmode="overlay",
                bargap=0.12,
                shapes=shapes,
                annotations=notes,
                **axes,
            ),
        ),
        (("compute", COMPUTE), ("idle", IDLE)),
    )


def _finding(one: Played) -> str:
    extra = (one.timeline.stages - 1) / one.timeline.micro_batches
    return f"Devices stand idle {percent(one.idle)} of the time, {percent(extra)} over the ideal"


def _time_axis(end: float) -> dict[str, Any]:
    return {
        "range": [0, end],
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "title": {"text": "time, forward passes", "standoff": 6, "font": {"size": 12}},
        "ticks": "outside",
        "ticklen": 3,
    }


def _bars(one: Played, backward: bool, axis: str) -> dict[str, Any]:
    line = one.timeline
    stages, places = np.nonzero(line.backward == backward)
    begins, ends = line.start_s[stages, places], line.end_s[stages, places]
    batches = line.micro_batch[stages, places] + 1
    way = "backward" if backward else "forward"
    numbered = line.micro_batches + line.stages <= _NUMBERED
    return {
        "type": "bar",
        "orientation": "h",
        "name": f"{_NAMES[one.point.schedule]}, {way}",
        "x": (ends - begins).tolist(),
        "base": begins.tolist(),
        "y": stages.tolist(),
        "width": _THICK[backward],
        "yaxis": axis,
        "marker": {"color": COMPUTE, "line": {"width": 0.5, "color": "#FFFFFF"}},
        "text": [str(batch) if numbered else "" for batch in batches],
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textangle": 0,
        "constraintext": "none",
        "textfont": {"size": 12, "color": "#FFFFFF"},
        "customdata": [
            f"stage {stage + 1}, micro-batch {batch}, {way}<br>{begin:g} to {end:g}"
            for stage, batch, begin, end in zip(stages, batches, begins, ends, strict=True)
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _whole_row(one: Played, stage: int, axis: str) -> dict[str, Any]:
    return {
        "type": "rect",
        "layer": "below",
        "xref": "x",
        "yref": axis,
        "x0": 0,
        "x1": one.timeline.seconds,
        "y0": stage - 0.44,
        "y1": stage + 0.44,
        "fillcolor": IDLE,
        "line": {"width": 0},
    }


def _heading(one: Played, top: float) -> dict[str, Any]:
    name = _NAMES[one.point.schedule]
    return note(
        f"<b>{name}</b>  {one.timeline.seconds:g} units",
        0,
        top,
        xref="paper",
        yref="paper",
        yshift=1,
        xanchor="left",
        yanchor="bottom",
        font={"size": 13},
    )


def _held(one: Played, axis: str) -> list[dict[str, Any]]:
    return [
        note(f"holds {held}", 1, stage, xref="paper", yref=axis, xshift=6, xanchor="left")
        for stage, held in enumerate(one.held)
    ]
