"""The level matrix: at which level any two devices meet, as a heat map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from nest_core.documents.units import humanise_rate, humanise_seconds
from nest_core.network import Level, Network
from nest_core.network.groups import MAX_BLOCKS, level_blocks
from nest_core.network.link_graph import Path
from nest_core.report.figures.style import Picture, class_bar, frame, shade, stepped_scale

__all__ = ["level_figure", "ways"]

Ways = Sequence[Sequence[str]]

_HEIGHT = 440
# The upper two thirds of cividis (Nuñez, Anderton and Renslow 2018): ordered, and the same to
# colour-blind readers.
_INNER, _OUTER = (253, 231, 86), (67, 78, 108)
_LABELLED_LEVELS = 5
_LONGEST_WAY = 9


def ways(paths: Sequence[Sequence[Path | None]], names: Mapping[Any, str]) -> list[list[str]]:
    """Paths in words; of long ones the middle is left out.

    Parameters
    ----------
    paths : rows of Path or None
        As `nest_core.network.link_graph.shortest_paths` finds them.
    names : mapping
        What elements of the graph are called.
    """
    return [[_way(path, names) if path else "" for path in row] for row in paths]


def _way(path: Path, names: Mapping[Any, str]) -> str:
    # Plotly reads tags in what it shows, and people name elements as they like.
    steps = [names[element].replace("<", "&lt;") for element in path.elements]
    if len(steps) > _LONGEST_WAY:
        half = _LONGEST_WAY // 2
        steps = [*steps[:half], f"… {len(steps) - 2 * half} more …", *steps[-half:]]
    narrow = humanise_rate(path.bandwidth_Bps)
    late = humanise_seconds(path.latency_s)
    return f"{' → '.join(steps)}<br>narrowest step {narrow}, {late} in all"


def level_figure(
    network: Network, height: int = _HEIGHT, ways: Ways | None = None, limit: int = MAX_BLOCKS
) -> Picture:
    """The matrix, coloured by level; hovering names the level, its bandwidth and latency.

    Parameters
    ----------
    network : Network
    height : int
        Pixels.
    ways : sequence of sequence of str, optional
        What lies between the first devices of two blocks, shown on hovering; of the shape of
        `level_blocks` with the same limit.
    limit : int
        Most blocks.
    """
    blocks = level_blocks(network, limit)
    size, end = float(blocks.size), float(len(blocks.matrix) * blocks.size)
    labels = np.array([_described(level) for level in network.levels] + ["the same device"])
    cells = {
        "type": "heatmap",
        "x0": (size - 1) / 2,
        "dx": size,
        "y0": (size - 1) / 2,
        "dy": size,
        "z": blocks.matrix.astype(np.int16),
        "text": labels[blocks.matrix],
        "zmin": -0.5,
        "zmax": len(network.levels) - 0.5,
        "colorscale": _scale(len(network.levels)),
        "colorbar": _colour_bar(network.levels),
        "hovertemplate": "devices near %{x:.0f} and %{y:.0f} meet at<br>%{text} (per device, one "
        f"way){'' if ways is None else '%{customdata}'}<extra></extra>",
    }
    if ways is not None:
        cells["customdata"] = [[f"<br>{way}" if way else "" for way in row] for row in ways]
    axis = {
        "title": {"text": "device", "standoff": 4, "font": {"size": 12}},
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
        "constrain": "domain",
        "nticks": 6,
    }
    layout = frame(
        height,
        (52, 8, 6, 98),
        xaxis=axis | {"range": [-0.5, end - 0.5]},
        yaxis=axis | {"range": [end - 0.5, -0.5], "scaleanchor": "x"},
    )
    blocked = f", blocks of {blocks.size} devices" if blocks.size > 1 else ""
    return Picture(
        _finding(network),
        f"Level at which two devices meet{blocked}; bandwidth of one device, one way",
        "A square is a group whose devices meet at that level: the lighter, the closer."
        if network.torus is None
        else "The lighter a cell, the fewer hops lie between its two devices.",
        go.Figure(data=[cells], layout=layout),
    )


def _described(level: Level) -> str:
    return (
        f"{level.name}: {humanise_rate(level.bandwidth_Bps)}, {humanise_seconds(level.latency_s)}"
    )


def _scale(count: int) -> list[tuple[float, str]]:
    return stepped_scale(
        [shade(_INNER, _OUTER, index / max(count - 1, 1)) for index in range(count)]
    )


def _colour_bar(levels: tuple[Level, ...]) -> dict[str, Any]:
    shown = range(0, len(levels), -(-len(levels) // _LABELLED_LEVELS))
    labels = [f"{levels[i].name}<br>{humanise_rate(levels[i].bandwidth_Bps)}" for i in shown]
    return class_bar(shown, labels) | {"tickangle": 0, "tickfont": {"size": 12}}


def _finding(network: Network) -> str:
    inner, outer = network.levels[0], network.levels[-1]
    rate = humanise_rate(outer.bandwidth_Bps)
    if len(network.levels) == 1:
        return f"One level: {rate} between any two devices"
    ratio = inner.bandwidth_Bps / outer.bandwidth_Bps
    if abs(ratio - 1) < 1e-3:
        return f"Full bandwidth at every level: {rate} per device"
    if ratio < 1:
        return f"Bandwidth per device rises {1 / ratio:.3g}-fold, {inner.name} to {outer.name}"
    return f"Bandwidth per device falls {ratio:.3g}-fold, {inner.name} to {outer.name}"
