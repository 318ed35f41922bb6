"""Bars of a comparison: a row per scenario, panels side by side that share the rows.

A scenario's colour is its place in the comparison. The colours are Tol's *bright* scheme (Paul
Tol, Colour Schemes, SRON/EPS/TN/09-002, 2021), safe for colour-blind readers and none of those
that mean something on the other figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from nest_core.figures.style import MUTED, frame, value_axis
from nest_core.studies.comparison import Candidate

__all__ = [
    "ROW",
    "SCENARIO_COLOURS",
    "Ends",
    "Panel",
    "axis_name",
    "bars",
    "framed",
    "plain",
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
        "xaxis": axis_name(place),
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
    x: list[float | None] = []
    y: list[float | None] = []
    for row, ends in enumerate(panel.ends):
        if ends is not None:
            x += [*ends, None]
            y += [row + 0.39, row + 0.39, None]
    return {
        "type": "scatter", "mode": "lines", "xaxis": axis_name(place), "x": x, "y": y,
        "line": {"color": MUTED, "width": 3}, "hoverinfo": "skip", "showlegend": False,
    }  # fmt: skip


def quantity_axis(place: int, panels: int, title: str, end: float) -> tuple[dict[str, Any], str]:
    width = 1 / panels
    gap = 0.04 if panels > 1 else 0.0
    axis = value_axis(title) | {
        "domain": [place * width + (gap if place else 0.0), (place + 1) * width],
        "range": [0, end],
        "anchor": "y",
    }
    return axis, axis_name(place).replace("x", "xaxis")


def axis_name(place: int) -> str:
    return "x" if place == 0 else f"x{place + 1}"


def framed(
    every: Sequence[Candidate], data: list[dict[str, Any]], axes: dict[str, Any], row: int
) -> go.Figure:
    ticks = [_tick(one.name) for one in every]
    left = 20 + 7 * max(len(tick) for tick in ticks)
    return go.Figure(
        data=data,
        layout=frame(
            50 + row * len(every),
            (left, 16, 4, 46),
            barmode="overlay",
            yaxis={
                "range": [len(every) - 0.5, -0.5],
                "tickvals": list(range(len(every))),
                "ticktext": [f"{plain(tick)} " for tick in ticks],
                "showgrid": False,
                "zeroline": False,
                "fixedrange": True,
            },
            **axes,
        ),
    )


def _tick(name: str) -> str:
    return name if len(name) <= _LONGEST_TICK else f"{name[: _LONGEST_TICK - 1]}…"


def plain(name: str) -> str:
    """A person's text without what plotly would take for a tag."""
    return name.replace("&", "&amp;").replace("<", "&lt;")
