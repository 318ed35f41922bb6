"""NEST's level-wise cost matrices as a heat table beside the fabric's levels."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import plotly.graph_objects as go

from nest_core.documents.units import GB, MICROSECOND, capital, humanise, humanise_seconds
from nest_core.explain.cost_matrices import MATRIX_CLASSES, CostMatrices, matrix_finding
from nest_core.report.figures.linkload import LOAD_SCALE
from nest_core.report.figures.style import ACCENT, Picture, axis_unit, empty, frame, note, plain

__all__ = ["cost_matrices_figure"]

_ROW, _TOP, _BOTTOM, _LEFT = 58, 44, 10, 150
_SUBTITLE = "Level-wise cost matrices of NEST's program"


def cost_matrices_figure(found: CostMatrices | None, reason: str = "") -> Picture:
    """Seconds of an iteration by class and level, outermost level at the top.

    Parameters
    ----------
    found : CostMatrices or None
        None: there is no plan.
    reason : str
        Why there is none.
    """
    margin = (_LEFT, 8, _TOP, _BOTTOM)
    if found is None or not found.ranks:
        why = "NEST's plan sends nothing" if found else reason or "NEST's program has no plan"
        return empty(capital(why), _SUBTITLE, _TOP + 3 * _ROW + _BOTTOM, margin)
    scale, unit = axis_unit(float(np.nanmax(found.seconds)), "s")
    values = found.seconds.T[::-1] / scale
    with np.errstate(divide="ignore"):
        colours = np.log10(values)
    low, high = float(np.nanmin(colours)), float(np.nanmax(colours))
    cells = {
        "type": "heatmap",
        "x": list(range(len(found.ranks))),
        "y": list(range(len(found.levels))),
        "z": colours,
        "zmin": low,
        "zmax": max(high, low + 1.0),
        "text": [["" if np.isnan(value) else f"{value:.3g}" for value in row] for row in values],
        "texttemplate": "%{text}",
        "textfont": {"size": 14},
        "customdata": _hovers(found),
        "colorscale": LOAD_SCALE,
        "showscale": False,
        "xgap": 4,
        "ygap": 4,
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    layout = frame(
        _TOP + _ROW * len(found.levels) + _BOTTOM,
        margin,
        xaxis={
            "side": "top",
            "tickvals": list(range(len(found.ranks))),
            "ticktext": [_column(name, size) for name, size in found.ranks.items()],
            "tickangle": 0,
        }
        | _bare(),
        yaxis={
            "range": [len(found.levels) - 0.5, -0.5],
            "tickvals": list(range(len(found.levels))),
            "ticktext": [_row(found, level) for level in reversed(range(len(found.levels)))],
            "ticksuffix": " ",
        }
        | _bare(),
        shapes=[_outline(column, row) for row, column in np.argwhere(found.own.T[::-1]).tolist()],
        annotations=[
            note("–", column, row, font={"size": 14, "color": "rgba(128, 132, 138, 1)"})
            for row, column in np.argwhere(np.isnan(values)).tolist()
        ],
    )
    return Picture(
        matrix_finding(found),
        f"{_SUBTITLE}: {unit} of an iteration if a class reaches up to a level",
        f"Outlined: the program's own plan, {_plan(found)}. –: no group of that size ends there. "
        "The colour is logarithmic. Nothing hides behind compute here.",
        go.Figure(data=[cells], layout=layout),
        table=partial(_table, found),
    )


def _bare() -> dict[str, Any]:
    return {"fixedrange": True, "showgrid": False, "zeroline": False, "ticks": ""}


def _column(name: str, size: int) -> str:
    ranks = "neighbours" if name == "pp" else "ends" if name == "tied" else f"{size:,} ranks"
    return f"<b>{MATRIX_CLASSES[name][1]}</b><br>{ranks}"


def _row(found: CostMatrices, level: int) -> str:
    one = found.levels[level]
    rate, late = humanise(one.bandwidth_Bps / GB), f"{one.latency_s / MICROSECOND:.3g}"
    size = "" if one.name.endswith("devices") else f"{one.size:,} devices<br>"
    return f"<b>{plain(one.name)}</b><br>{size}{rate} GB/s, {late} µs"


def _hovers(found: CostMatrices) -> list[list[str]]:
    return [
        [_hover(found, row, level) for row in range(len(found.ranks))]
        for level in reversed(range(len(found.levels)))
    ]


def _hover(found: CostMatrices, row: int, level: int) -> str:
    name, size = list(found.ranks.items())[row]
    seconds, own = found.seconds[row, level], found.own[row, level]
    words = f"{capital(MATRIX_CLASSES[name][1])}, {plain(found.levels[level].name)}"
    if np.isnan(seconds):
        return f"{words}: no group of {size:,} ranks ends there"
    told = f"{words}: {humanise_seconds(float(seconds))}"
    return f"{told}<br>the program's own plan" if own else told


def _outline(column: int, row: int) -> dict[str, Any]:
    return {
        "type": "rect",
        "x0": column - 0.5,
        "x1": column + 0.5,
        "y0": row - 0.5,
        "y1": row + 0.5,
        "line": {"color": ACCENT, "width": 3},
    }


def _plan(found: CostMatrices) -> str:
    point = found.plan.point
    degrees = [
        f"{axis} {getattr(point, axis)}"
        for axis in ("dp", "tp", "cp", "ep", "pp")
        if getattr(point, axis) > 1
    ]
    return ", ".join([*degrees, f"micro-batch {point.micro_batch}"])


def _table(found: CostMatrices) -> list[dict[str, Any]]:
    return [
        {
            "class": MATRIX_CLASSES[name][1],
            "ranks": size,
            "level": level.name,
            "GB/s per device": level.bandwidth_Bps / GB,
            "latency, µs": level.latency_s / MICROSECOND,
            "seconds of an iteration": None if np.isnan(seconds) else float(seconds),
            "own plan": bool(own),
        }
        for (name, size), line, mine in zip(
            found.ranks.items(), found.seconds, found.own, strict=True
        )
        for level, seconds, own in zip(found.levels, line, mine, strict=True)
    ]
