"""Bars of a comparison: a row per scenario, panels side by side that share the rows.

Among them what one failed switch costs every scenario, tier by tier on one scale. A scenario's
colour is its place in the comparison. The colours are Tol's *bright* scheme (Paul Tol, Colour
Schemes, SRON/EPS/TN/09-002, 2021), safe for colour-blind readers and none of those that mean
something on the other figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from nest_core.documents.text import truncated
from nest_core.documents.units import percent
from nest_core.report.figures.style import (
    MUTED,
    Picture,
    axis_names,
    broken,
    frame,
    plain,
    rows_axis,
    value_axis,
)
from nest_core.studies.failures import Loss
from nest_core.studies.whole_bill import Candidate

__all__ = [
    "ROW",
    "SCENARIO_COLOURS",
    "Ends",
    "Panel",
    "bars",
    "framed",
    "losses_picture",
    "quantity_axis",
]

SCENARIO_COLOURS = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377")
ROW = 40
"""Pixels of a row."""

_LONGEST_TICK = 20

Ends = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Panel:
    """One quantity of every candidate, drawn from zero; ``ends`` are its low and high."""

    title: str
    values: tuple[float | None, ...]
    labels: tuple[str, ...]
    ends: tuple[Ends, ...]


def bars(every: Sequence[Candidate], panels: Sequence[Panel]) -> go.Figure:
    """A bar per candidate in every panel; panels stand side by side and share their rows."""
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {}
    for place, panel in enumerate(panels):
        known = [value for value in panel.values if value]
        largest = max([*known, *(high for _, high in filter(None, panel.ends))], default=1.0)
        x, axis = quantity_axis(place, len(panels), panel.title, 1.35 * largest or 1.0)
        layout[axis] = x
        data.append(_bar(every, panel, place))
        if any(panel.ends):
            data.append(_whiskers(panel, place))
    return framed(every, data, layout, ROW)


def _bar(every: Sequence[Candidate], panel: Panel, place: int) -> dict[str, Any]:
    rows = range(len(every))
    return {
        "type": "bar",
        "orientation": "h",
        "xaxis": axis_names(place)[0],
        "x": [value or 0.0 for value in panel.values],
        "y": list(rows),
        "width": 0.58,
        "marker": {"color": SCENARIO_COLOURS[: len(every)], "line": {"width": 0}},
        "text": list(panel.labels),
        "textposition": "outside",
        "textfont": {"size": 12},
        "cliponaxis": False,
        "customdata": [
            f"{plain(one.name)}: {label}" for one, label in zip(every, panel.labels, strict=True)
        ],
        "hovertemplate": f"%{{customdata}}<br>{panel.title}<extra></extra>",
    }


def _whiskers(panel: Panel, place: int) -> dict[str, Any]:
    """A line below each bar from low to high, so that labels stay free."""
    return {
        "type": "scatter",
        "mode": "lines",
        "xaxis": axis_names(place)[0],
        **broken((ends, (row + 0.39, row + 0.39)) for row, ends in enumerate(panel.ends) if ends),
        "line": {"color": MUTED, "width": 3},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def quantity_axis(place: int, panels: int, title: str, end: float) -> tuple[dict[str, Any], str]:
    width = 1 / panels
    gap = 0.04 if panels > 1 else 0.0
    axis = value_axis(title) | {
        "domain": [place * width + (gap if place else 0.0), (place + 1) * width],
        "range": [0, end],
        "anchor": "y",
    }
    return axis, axis_names(place)[0].replace("x", "xaxis")


def framed(
    every: Sequence[Candidate], data: list[dict[str, Any]], axes: dict[str, Any], row: int
) -> go.Figure:
    ticks = [truncated(one.name, _LONGEST_TICK) for one in every]
    left = 20 + 7 * max(len(tick) for tick in ticks)
    return go.Figure(
        data=data,
        layout=frame(
            50 + row * len(every),
            (left, 16, 4, 46),
            barmode="overlay",
            yaxis=rows_axis([f"{plain(tick)} " for tick in ticks]),
            **axes,
        ),
    )


_SAME = 0.005
_PALE = 0.45


def losses_picture(every: Sequence[Candidate]) -> Picture:
    places = range(max(len(one.losses) for one in every))
    found = [[one.losses[p] if len(one.losses) > p else None for one in every] for p in places]
    panels = []
    for losses in found:
        tier = next(loss.tier for loss in losses if loss)
        panels.append((f"without one {tier}, %", losses))
    return Picture(
        _worst_loss(every, found),
        "Throughput lost with one switch, % of that of the whole fabric",
        "Pale: the plan stays as it is; full: planned anew on what is left. A missing pale bar: "
        "too few devices are left for the plan. Hatched: not the switch's doing, as the batch does "
        "not divide over what is left and a batch cut in proportion would not lose it. Restarts "
        "are not counted.",
        _loss_bars(every, panels),
    )


def _worst_loss(every: Sequence[Candidate], found: Sequence[Sequence[Loss | None]]) -> str:
    known = [
        (loss.by_switch, every[place].name, loss.tier)
        for losses in found
        for place, loss in enumerate(losses)
        if loss is not None and loss.by_switch is not None
    ]
    if not known:
        return "No scenario has a plan without one of its switches"
    lost, name, tier = max(known, key=lambda entry: entry[0])
    idle = any(loss and loss.by_batch > _SAME for losses in found for loss in losses)
    batch = "; where the batch does not divide, devices idle" if idle else ""
    if lost < _SAME:
        return f"One failed switch costs less than 0.5 % everywhere{batch}"
    return f"One failed {tier} costs {name} most{batch}"


def _loss_bars(
    every: Sequence[Candidate], panels: Sequence[tuple[str, Sequence[Loss | None]]]
) -> go.Figure:
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {}
    shares = [
        value or 0.0
        for _, losses in panels
        for loss in losses
        for value in ((loss.kept, loss.replanned) if loss else ())
    ]
    for place, (title, losses) in enumerate(panels):
        # One scale for all panels: a leaf and a spine are compared, too.
        x, axis = quantity_axis(place, len(panels), title, 135 * max([*shares, 1e-4]))
        layout[axis] = x
        data.append(_loss_bar(every, losses, place, "kept"))
        data.append(_loss_bar(every, losses, place, "by_switch"))
        if any(loss and loss.by_batch for loss in losses):
            data.append(_batch_bar(every, losses, place))
    return framed(every, data, layout, ROW + 12)


def _loss_bar(
    every: Sequence[Candidate], losses: Sequence[Loss | None], place: int, how: str
) -> dict[str, Any]:
    kept = how == "kept"
    values = [getattr(loss, how) if loss else None for loss in losses]
    told = "same plan" if kept else "planned anew"
    labels = [
        _label(one, loss, value, kept)
        for one, loss, value in zip(every, losses, values, strict=True)
    ]
    # A hatched bar that follows carries both labels at its end.
    shown = [
        "" if loss and loss.by_batch and not kept else label
        for loss, label in zip(losses, labels, strict=True)
    ]
    return {
        "type": "bar",
        "orientation": "h",
        "xaxis": axis_names(place)[0],
        "name": told,
        "x": [_length(value) for value in values],
        "y": [row + (-0.18 if kept else 0.18) for row in range(len(every))],
        "width": 0.32,
        "marker": {
            "color": SCENARIO_COLOURS[: len(every)],
            "opacity": _PALE if kept else 1.0,
            "line": {"width": 0},
        },
        "text": shown,
        "textposition": "outside",
        "textfont": {"size": 12},
        "cliponaxis": False,
        "customdata": [
            f"{plain(one.name)}, {told}: {label}"
            + (f"<br>{loss.note}" if loss and loss.note else "")
            for one, loss, label in zip(every, losses, labels, strict=True)
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _batch_bar(
    every: Sequence[Candidate], losses: Sequence[Loss | None], place: int
) -> dict[str, Any]:
    """What the batch's divisibility adds, beyond the switch's part."""
    parts = [loss.by_batch if loss else 0.0 for loss in losses]
    words = [
        f"{percent(loss.by_switch or 0.0)} + {percent(loss.by_batch)} by the batch"
        if loss and loss.by_batch
        else ""
        for loss in losses
    ]
    return {
        "type": "bar",
        "orientation": "h",
        "xaxis": axis_names(place)[0],
        "name": "batch",
        "base": [_length(loss.by_switch if loss else None) for loss in losses],
        "x": [100 * part for part in parts],
        "y": [row + 0.18 for row in range(len(every))],
        "width": 0.32,
        "marker": {
            "color": "rgba(0, 0, 0, 0)",
            "pattern": {
                "shape": "/",
                "size": 5,
                "fgcolor": list(SCENARIO_COLOURS[: len(every)]),
                "fgopacity": 1.0,
            },
            "line": {"width": 1, "color": list(SCENARIO_COLOURS[: len(every)])},
        },
        "text": words,
        "textposition": "outside",
        "textfont": {"size": 12},
        "cliponaxis": False,
        "customdata": [
            f"{plain(one.name)}, planned anew: {told}<br>{loss.note if loss else ''}"
            for one, loss, told in zip(every, losses, words, strict=True)
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _length(value: float | None) -> float:
    return 100 * max(value or 0.0, 0.0)


def _label(one: Candidate, loss: Loss | None, value: float | None, kept: bool) -> str:
    if loss is None:
        if kept:
            return ""
        return "no such switch is listed" if one.report else "no feasible plan"
    if value is not None:
        return "0 %" if abs(value) < 5e-6 else percent(value)
    if not loss.missing:
        return "" if kept else "cannot be expressed"
    return "cannot run" if kept else "no feasible plan"
