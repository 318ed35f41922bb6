"""Level matrices of several fabrics side by side on one colour scale: bandwidth per device.

Levels of different fabrics have nothing in common but what they give a device, so the colour is
the bandwidth at the level where two devices meet, on a logarithmic scale that all share.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from nest_core.documents.units import humanise_rate
from nest_core.report.figures.style import Picture, axis_names, frame, note, plain
from nest_core.studies.whole_bill import Candidate

__all__ = ["levels_picture"]

_PER_ROW = 3
_ROW = 300
_TICKS = 6
_SIDE = 36  # pixels: half of a rate below the ends of the scale, a device number beside a matrix
_LONGEST_TITLE = 40  # characters over a third of the page
_CLOSE = 0.12  # decades between two ticks at least
# The upper two thirds of cividis, as in `nest_core.report.figures.levels`: the lighter, the closer.
_SCALE = ((0.0, "rgb(67, 78, 108)"), (1.0, "rgb(253, 231, 86)"))


def levels_picture(every: Sequence[Candidate]) -> Picture:
    """One matrix per candidate in their order, three in a row."""
    columns = min(_PER_ROW, len(every))
    rows = math.ceil(len(every) / columns)
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {}
    titles: list[dict[str, Any]] = []
    for place, one in enumerate(every):
        data.append(_matrix(one, place))
        across, down = place % columns, place // columns
        x = [(across + 0.06) / columns, (across + 0.94) / columns]
        y = [1 - (down + 0.88) / rows, 1 - (down + 0.09) / rows]
        layout |= _axes(place, x, y, one.scenario.fabric.devices)
        titles.append(_title(one.name, x[0], y[1]))
    rates = [level.bandwidth_Bps for one in every for level in one.levels]
    return Picture(
        _finding(every),
        "Bandwidth of one device to another, one way; device numbers on both axes",
        "A square is a group whose devices meet at that level; one colour scale for all. The "
        "lighter, the more bandwidth.",
        go.Figure(
            data=data,
            layout=frame(
                rows * _ROW + 60,
                (_SIDE, _SIDE, 4, 60),
                coloraxis=_colours(rates),
                annotations=titles,
                **layout,
            ),
        ),
    )


def _matrix(one: Candidate, place: int) -> dict[str, Any]:
    blocks = one.blocks
    rates = np.array([level.bandwidth_Bps for level in one.levels] + [np.nan])
    each = rates[blocks.matrix].astype(np.float32)
    across, up = axis_names(place)
    return {
        "type": "heatmap",
        "xaxis": across,
        "yaxis": up,
        "x0": (blocks.size - 1) / 2,
        "dx": float(blocks.size),
        "y0": (blocks.size - 1) / 2,
        "dy": float(blocks.size),
        "z": np.log10(each),
        "customdata": each,
        "coloraxis": "coloraxis",
        "hovertemplate": "devices near %{x:.0f} and %{y:.0f}: %{customdata:.3s}B/s per device, one "
        "way<extra></extra>",
    }


def _axes(place: int, x: list[float], y: list[float], devices: int) -> dict[str, Any]:
    across, up = axis_names(place)
    shared = {
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "constrain": "domain",
        "nticks": 4,
    }
    return {
        across.replace("x", "xaxis"): shared
        | {
            "domain": x,
            "range": [-0.5, devices - 0.5],
            "anchor": up,
            "constraintoward": "left",
        },
        up.replace("y", "yaxis"): shared
        | {
            "domain": y,
            "range": [devices - 0.5, -0.5],
            "anchor": across,
            "scaleanchor": across,
            "constraintoward": "top",
        },
    }


def _title(name: str, x: float, y: float) -> dict[str, Any]:
    short = textwrap.shorten(name, _LONGEST_TITLE, placeholder=" …")
    ends = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
    return note(plain(short), x, y, **ends)


def _colours(rates: Sequence[float]) -> dict[str, Any]:
    low, high = math.log10(min(rates)), math.log10(max(rates))
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    ticks: list[float] = []
    for rate in sorted({float(f"{rate:.3g}") for rate in rates}, reverse=True):
        if all(abs(math.log10(rate) - tick) >= _CLOSE * max(1.0, high - low) for tick in ticks):
            ticks.append(math.log10(rate))
    return {
        "cmin": low,
        "cmax": high,
        "colorscale": [list(stop) for stop in _SCALE],
        "colorbar": {
            "orientation": "h",
            "thickness": 12,
            "outlinewidth": 0,
            "len": 1.0,
            "yref": "container",
            "y": 0.02,
            "yanchor": "bottom",
            "ypad": 0,
            "ticks": "",
            "tickvals": ticks[:_TICKS],
            "ticktext": [humanise_rate(10**tick) for tick in ticks],
            "tickfont": {"size": 12},
            "ticklabeloverflow": "allow",
        },
    }


def _finding(every: Sequence[Candidate]) -> str:
    outer = [(one.levels[-1].bandwidth_Bps, one.name) for one in every]
    (low, least), (high, most) = (pick(outer, key=lambda pair: pair[0]) for pick in (min, max))
    if high / low < 1.005:
        return f"The farthest devices have {humanise_rate(high)} between them in all"
    return (
        f"The farthest devices have {high / low:.3g} times as much between them in {most} "
        f"({humanise_rate(high)}) as in {least} ({humanise_rate(low)})"
    )
