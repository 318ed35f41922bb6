"""The fabric with its devices coloured by their part in a plan, or by what their links carry."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from nest_core.costs import Plan
from nest_core.costs.placement import RankMapping, rank_mapping_of
from nest_core.errors import InputError
from nest_core.explain import share
from nest_core.explain.loads import Loads
from nest_core.figures.grid import DeviceGrid, device_grid
from nest_core.figures.linkload import LOAD_SCALE
from nest_core.figures.style import Picture, class_bar, frame, shade, stepped_scale
from nest_core.layout import rank_mapping
from nest_core.network import FloatArray, IntArray, Network

__all__ = ["IDLE", "PAINTS", "Paint", "fabric_figure"]

Paint = Literal["stage", "replica", "tensor group", "link load"]

PAINTS: tuple[Paint, ...] = ("stage", "replica", "tensor group", "link load")
"""What devices can be coloured by."""

_HEIGHT = 440
IDLE = "rgb(196, 199, 203)"
_LABELLED = 8
_CYCLE = (0, 5, 2, 7, 4, 1, 6, 3)  # neighbours far apart on the scale
# Viridis (van der Walt and Smith 2015), from its second to its last tenth.
_VIRIDIS = (
    (72, 40, 120), (62, 74, 137), (49, 104, 142), (38, 130, 142), (31, 158, 137), (53, 183, 121),
    (110, 206, 88), (181, 222, 43), (253, 231, 37),
)  # fmt: skip


def fabric_figure(
    network: Network,
    plan: Plan | None,
    paint: Paint = "stage",
    loads: Loads | None = None,
    *,
    height: int = _HEIGHT,
) -> Picture:
    """Every device, or above 16,384 of them the first of every block, coloured by its part.

    Parameters
    ----------
    network : Network
    plan : Plan or None
        None leaves every device idle.
    paint : {"stage", "replica", "tensor group", "link load"}
        Neighbouring tensor groups differ in colour, which repeat. Link load: how long the busiest
        link on the way of a device's traffic is busy.
    loads : Loads, optional
        Of the plan; link load needs it.
    height : int
        In pixels.

    Raises
    ------
    InputError
        If link load is to be painted without loads.
    """
    grid = device_grid(network)
    painted = None if plan is None else _painted(network, plan, paint, loads)
    traces = [] if plan is None or painted is None else [_working(grid, plan, network, painted)]
    idle = _idle(grid, plan, network)
    layout = frame(
        height,
        (8, 8, 6, 52),
        xaxis={"visible": False, "fixedrange": True, "constrain": "domain"},
        yaxis={
            "visible": False,
            "fixedrange": True,
            "autorange": "reversed",
            "constrain": "domain",
            "scaleanchor": "x" if grid.size == 1 else None,
        },
    )
    return Picture(
        painted.title if painted else _finding(network, plan),
        _subtitle(network, grid) + ("; grey ones idle" if idle else ""),
        _reading(network, painted.cells if painted else "work on the same stage"),
        go.Figure(data=traces + idle, layout=layout),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Painted:
    """What devices are coloured by.

    Parameters
    ----------
    value : float array (devices,)
    look : dict
        Colour scale, its ends and its bar.
    title : str
    cells : str
        What cells of one colour do.
    hover : str
        What pointing at a cell tells beside its ranks.
    """

    value: FloatArray
    look: dict[str, Any]
    title: str
    cells: str
    hover: str = ""


def _painted(network: Network, plan: Plan, paint: Paint, loads: Loads | None) -> _Painted:
    point, parts = plan.point, rank_mapping_of(network, plan)
    if paint == "link load":
        return _link_load(loads)
    if paint == "tensor group":
        return _tensor_groups(network, parts)
    if paint == "replica":
        return _Painted(
            _from_one(parts.dp),
            _classes(point.dp, "replica"),
            _grouped(network, parts.dp, point.dp, "replica"),
            "work on the same replica",
        )
    return _Painted(
        _from_one(parts.pp),
        _classes(point.pp, "stage"),
        _finding(network, plan),
        "work on the same stage",
    )


def _tensor_groups(network: Network, parts: RankMapping) -> _Painted:
    keys = np.stack([parts.pp, parts.dp, parts.cp])
    group = np.unique(keys, axis=1, return_inverse=True)[1].reshape(-1)
    idle = parts.pp < 0  # their key comes first
    group = np.where(idle, -1, group - idle.any())
    look = _classes(len(_CYCLE), "group") | {"showscale": False}
    look["colorscale"] = stepped_scale([_stage_colour(at, len(_CYCLE)) for at in _CYCLE])
    return _Painted(
        _from_one(group % len(_CYCLE)),
        look,
        _grouped(network, group, int(group.max()) + 1, "tensor group"),
        "that touch work on the same layers together (colours repeat)",
    )


def _link_load(loads: Loads | None) -> _Painted:
    if loads is None:
        raise InputError("loads", "must be given where they are painted", None, "count them")
    busy = loads.device_busy
    top = float(busy.max())
    return _Painted(
        busy,
        _shades(top),
        f"Links on a device's way are busy up to {share(top)} of the iteration",
        "have equally busy links on their way",
        "<br>busiest link on its way: %{z:.3p} of the iteration",
    )


def _from_one(number: IntArray) -> FloatArray:
    return np.asarray(number + 1, np.float64)


def _classes(count: int, word: str) -> dict[str, Any]:
    """So many colours from 1 on, named below."""
    return {
        "zmin": 0.5,
        "zmax": count + 0.5,
        "colorscale": stepped_scale([_stage_colour(at, count) for at in range(count)]),
        "colorbar": _colour_bar(count, word),
    }


def _shades(top: float) -> dict[str, Any]:
    """Busy shares of the iteration from 0 to the largest."""
    at = [0.0, top / 2, top]
    return {
        "zmin": 0.0,
        "zmax": top or 1.0,
        "colorscale": LOAD_SCALE,
        "colorbar": class_bar([], []) | {"tickvals": at, "ticktext": [share(v) for v in at]},
    }


def _grouped(network: Network, group: IntArray, count: int, word: str) -> str:
    """How far the groups of devices reach; −1 is none."""
    size = int(np.bincount(group[group >= 0]).max())
    if count == 1:
        return f"One {word} of {size:,} {_devices(size)}"
    if size == 1:
        return f"{count:,} {word}s of one device each"
    words = f"{count:,} {word}s of {size:,} devices"
    if network.torus is not None:
        return words
    works = np.flatnonzero(group >= 0)
    first = np.zeros(count, np.int64)
    first[group[works[::-1]]] = works[::-1]
    level = int(network.level(first[group[works]], works).max())
    name = network.levels[level].name
    if level == len(network.levels) - 1:
        return f"{words} each; they cross the {name}"
    return f"{words} each; none leaves its {name}"


def _devices(count: int) -> str:
    return "device" if count == 1 else "devices"


def _working(grid: DeviceGrid, plan: Plan, network: Network, painted: _Painted) -> dict[str, Any]:
    point, parts = plan.point, rank_mapping_of(network, plan)
    first = np.maximum(grid.cells, 0) * grid.size
    shown = np.stack([parts.pp, parts.dp, parts.tp], axis=-1)[first] + 1
    works = (grid.cells >= 0) & (shown[..., 0] > 0)
    return (
        _cells(grid)
        | painted.look
        | {
            "z": np.where(works, painted.value[first], np.nan).astype(np.float32),
            "customdata": np.concatenate([first[..., None], shown], axis=-1).astype(np.int32),
            "hovertemplate": f"{_who(grid)}<br>stage %{{customdata[1]}} of {point.pp}, replica "
            f"%{{customdata[2]}} of {point.dp}, tensor rank %{{customdata[3]}}"
            f"{'' if plan.ragged else f' of {point.tp}'}"
            f"{painted.hover}<extra></extra>",
        }
    )


def _idle(grid: DeviceGrid, plan: Plan | None, network: Network) -> list[dict[str, Any]]:
    """The cells that no stage uses, if there are any."""
    stage = np.full(network.devices, -1)
    if plan:
        stage = rank_mapping_of(network, plan).pp
    first = np.maximum(grid.cells, 0) * grid.size
    rests = (grid.cells >= 0) & (stage[first] < 0)
    if not rests.any():
        return []
    return [
        _cells(grid)
        | {
            "z": np.where(rests, 0.0, np.nan).astype(np.float32),
            "customdata": first[..., None].astype(np.int32),
            "colorscale": stepped_scale([IDLE]),
            "showscale": False,
            "hovertemplate": f"{_who(grid)}<br>idle<extra></extra>",
        }
    ]


def _cells(grid: DeviceGrid) -> dict[str, Any]:
    return {
        "type": "heatmap",
        "x": grid.x_edges,
        "y": grid.y_edges,
        "xgap": 0.6,
        "ygap": 0.6,
        "hoverongaps": False,
    }


def _who(grid: DeviceGrid) -> str:
    if grid.size == 1:
        return "device %{customdata[0]}"
    return f"{grid.size} devices from %{{customdata[0]}} on"


def _stage_colour(number: int, stages: int) -> str:
    place = (number / (stages - 1) if stages > 1 else 0.4) * (len(_VIRIDIS) - 1)
    low = min(int(place), len(_VIRIDIS) - 2)
    return shade(_VIRIDIS[low], _VIRIDIS[low + 1], place - low)


def _colour_bar(count: int, word: str) -> dict[str, Any]:
    shown = list(range(1, count + 1, math.ceil(count / _LABELLED)))
    return class_bar(shown, [f"{word} {number}" for number in shown])


def _finding(network: Network, plan: Plan | None) -> str:
    if plan is None:
        return f"All {network.devices:,} devices stand idle"
    if plan.ragged:
        narrow, wide = min(plan.widths), max(plan.widths)
        return f"{plan.point.pp} stages of {narrow} to {wide} devices per replica"
    placed = rank_mapping(network, plan.point.layout, plan.point.device_order)
    ends = {
        "tp": (placed[..., 0], placed[..., -1], placed[..., :-1], placed[..., 1:]),
        "pp": (placed[:-1], placed[1:], placed[:-1], placed[1:]),
        "dp": (placed[:, 0], placed[:, -1], placed[:, :-1], placed[:, 1:]),
    }
    reached: dict[int, list[str]] = {}
    for axis, (first, last, here, there) in ends.items():
        if getattr(plan.point, axis) > 1:
            # A nested group meets where its ends meet; on a torus neighbours exchange.
            one, other = (first, last) if network.torus is None else (here, there)
            reached.setdefault(int(network.level(one, other).max()), []).append(axis)
    if not reached:
        return "One device holds the whole model"
    return "; ".join(_told(network, level, reached[level]) for level in sorted(reached))


def _told(network: Network, level: int, axes: list[str]) -> str:
    name, who, one = network.levels[level].name, " and ".join(axes), len(axes) == 1
    if network.torus is not None:
        return f"{who} neighbours are {name} apart"
    if level == len(network.levels) - 1:
        return f"{who} {'crosses' if one else 'cross'} the {name}"
    return f"{who} {'stays' if one else 'stay'} within the {name}"


def _subtitle(network: Network, grid: DeviceGrid) -> str:
    what = "one cell per device" if grid.size == 1 else f"one cell per {grid.size} devices"
    if network.torus is not None:
        shape = " × ".join(map(str, network.torus.shape))
        return f"{network.devices:,} devices in a {shape} torus, {what}"
    names = [level.name for level in network.levels]
    return f"{network.devices:,} devices, {what}, grouped by " + ", ".join(names)


def _reading(network: Network, cells: str) -> str:
    if network.torus is not None:
        return (
            f"Cells of one colour {cells}; neighbours in a row or column are one "
            "hop apart, and each panel is one plane of the torus."
        )
    return (
        f"Cells of one colour {cells}; the wider the gap between two cells, the "
        "further out the level at which their devices meet."
    )
