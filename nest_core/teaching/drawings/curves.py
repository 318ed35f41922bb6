"""Two algorithms of an all-reduce against message size: their times, and their ratio."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from nest_core.documents.units import humanise_bytes, humanise_seconds, percent
from nest_core.network import FloatArray
from nest_core.report.figures.collectives import size_axis, time_axis
from nest_core.report.figures.style import (
    ACCENT,
    LIMIT,
    MUTED,
    Picture,
    frame,
    note,
    ruler,
    value_axis,
)
from nest_core.teaching.lessons.collectives import SIZES, Affine, Crossing

__all__ = ["crossing_picture", "ratio_picture"]

_TICKS = range(10, 35, 6)
_HEIGHT = 330


def crossing_picture(found: Crossing) -> Picture:
    """Ring and tree, both axes logarithmic, and where they cross."""
    lines = [
        _line("ring", found.ring, ACCENT, "solid"),
        _line("tree", found.tree, MUTED, "dash"),
    ]
    low = min(found.ring.alpha_s, found.tree.alpha_s)
    high = max(float(line.seconds(float(SIZES[-1]))) for line in (found.ring, found.tree))
    shapes, notes = _mark(found)
    return Picture(
        f"Below {humanise_bytes(found.crosses_bytes)} the tree is faster, above it the ring",
        f"Time of an all-reduce among {found.devices} devices, both axes logarithmic",
        "Flat: steps set the time; rising: bytes do.",
        go.Figure(
            data=lines,
            layout=frame(
                _HEIGHT,
                (62, 24, 8, 46),
                xaxis=size_axis("message size per device", _TICKS),
                yaxis=time_axis(low, high),
                shapes=shapes,
                annotations=notes,
            ),
        ),
        (("ring", ACCENT), ("tree (double binary)", MUTED), ("crossing", LIMIT)),
    )


def ratio_picture(found: Crossing) -> Picture:
    """The tree's time over the ring's, logarithmic sizes."""
    ratio = found.tree.seconds(SIZES) / found.ring.seconds(SIZES)
    slowest = float(ratio[-1])
    shapes, _ = _mark(found)
    told = [
        f"{humanise_bytes(size)}: {value:.3g}" for size, value in zip(SIZES, ratio, strict=True)
    ]
    return Picture(
        f"The tree needs {percent(float(ratio[0]))} of the ring's time for little, "
        f"{percent(slowest)} for much",
        "Time of the tree over that of the ring; 1 is equally fast",
        "Far right the ratio nears n / (n - 1): the ring saves one byte in n.",
        go.Figure(
            data=[_curve("tree over ring", ratio, told, MUTED, "dash")],
            layout=frame(
                _HEIGHT,
                (52, 24, 8, 46),
                xaxis=size_axis("message size per device", _TICKS),
                yaxis=value_axis("tree / ring") | {"range": [0, 1.1 * max(1.0, slowest)]},
                shapes=[ruler(1, line={"color": MUTED, "width": 1}), *shapes],
            ),
        ),
        (("tree over ring", MUTED), ("crossing", LIMIT)),
    )


def _line(name: str, one: Affine, colour: str, dash: str) -> dict[str, Any]:
    seconds = one.seconds(SIZES)
    told = [
        f"{name}, {humanise_bytes(size)}: {humanise_seconds(float(time))}"
        for size, time in zip(SIZES, seconds, strict=True)
    ]
    return _curve(name, seconds, told, colour, dash)


def _curve(
    name: str, values: FloatArray, told: list[str], colour: str, dash: str
) -> dict[str, Any]:
    """A line over the sizes, and what is told where it is pointed at."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": SIZES.tolist(),
        "y": values.tolist(),
        "line": {"color": colour, "width": 2.5, "dash": dash},
        "text": told,
        "hovertemplate": "%{text}<extra></extra>",
    }


def _mark(found: Crossing) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    where = found.crosses_bytes
    if not SIZES[0] <= where <= SIZES[-1]:
        return [], []
    line = {
        "type": "line",
        "x0": where,
        "x1": where,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": {"color": LIMIT, "width": 1.5, "dash": "dot"},
    }
    ends = {"yref": "paper", "xanchor": "right", "yanchor": "top"}
    label = note(
        humanise_bytes(where),
        float(np.log10(where)),
        1,
        xshift=-6,
        font={"color": LIMIT, "size": 12},
        **ends,
    )
    return [line], [label]
