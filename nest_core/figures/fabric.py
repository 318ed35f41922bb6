"""The fabric with its devices coloured by stage."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import plotly.graph_objects as go

from nest_core.costs.plan import Plan
from nest_core.figures.grid import DeviceGrid, device_grid
from nest_core.figures.style import Picture, class_bar, frame, stepped_scale
from nest_core.layout import DeviceOrder, Layout, device_order, seats
from nest_core.network import Network
from nest_core.network.wires import IntArray

__all__ = ["IDLE", "fabric_figure", "ranks"]

_HEIGHT = 440
IDLE = "rgb(196, 199, 203)"
_LABELLED_STAGES = 8
# Viridis (van der Walt and Smith 2015), from its second to its last tenth.
_VIRIDIS = (
    (72, 40, 120), (62, 74, 137), (49, 104, 142), (38, 130, 142), (31, 158, 137), (53, 183, 121),
    (110, 206, 88), (181, 222, 43), (253, 231, 37),
)  # fmt: skip


def ranks(layout: Layout, devices: int) -> IntArray:
    """Stage, replica and tensor-parallel rank of every device, −1 where idle; (devices, 3)."""
    placed = layout.devices
    result = np.full((devices, 3), -1, dtype=np.int64)
    for axis in range(3):
        shape = [1, 1, 1]
        shape[axis] = placed.shape[axis]
        result[placed, axis] = np.arange(placed.shape[axis]).reshape(shape)
    return result


def fabric_figure(network: Network, plan: Plan | None) -> Picture:
    """Every device, or above 16,384 of them every block of devices, coloured by its stage.

    Parameters
    ----------
    network : Network
    plan : Plan or None
        None leaves every device idle.
    """
    grid = device_grid(network)
    traces = [] if plan is None else [_working(grid, plan, network)]
    idle = _idle(grid, plan, network)
    layout = frame(
        _HEIGHT,
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
        _finding(network, plan),
        _subtitle(network, grid) + ("; grey ones idle" if idle else ""),
        _reading(network),
        go.Figure(data=traces + idle, layout=layout),
    )


def _working(grid: DeviceGrid, plan: Plan, network: Network) -> dict[str, Any]:
    point = plan.point
    first = np.maximum(grid.cells, 0) * grid.size
    shown = ranks(point.layout, network.devices)[_rank_of(network, point.device_order)[first]] + 1
    works = (grid.cells >= 0) & (shown[..., 0] > 0)
    return _cells(grid) | {
        "z": np.where(works, shown[..., 0], np.nan).astype(np.float32),
        "zmin": 0.5,
        "zmax": point.pp + 0.5,
        "customdata": np.concatenate([first[..., None], shown], axis=-1).astype(np.int32),
        "colorscale": stepped_scale([_stage_colour(s, point.pp) for s in range(point.pp)]),
        "colorbar": _colour_bar(point.pp),
        "hovertemplate": f"{_who(grid)}<br>stage %{{customdata[1]}} of {point.pp}, replica "
        f"%{{customdata[2]}} of {point.dp}, tensor rank %{{customdata[3]}} of {point.tp}"
        "<extra></extra>",
    }


def _rank_of(network: Network, order: DeviceOrder) -> IntArray:
    """Rank number of every device."""
    return np.argsort(device_order(network, order))


def _idle(grid: DeviceGrid, plan: Plan | None, network: Network) -> list[dict[str, Any]]:
    """The cells that no stage uses, if there are any."""
    stage = np.full(network.devices, -1)
    if plan:
        rank = _rank_of(network, plan.point.device_order)
        stage = plan.point.layout.stage_of(network.devices)[rank]
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
    mixed = (
        round(a + (place - low) * (b - a))
        for a, b in zip(_VIRIDIS[low], _VIRIDIS[low + 1], strict=True)
    )
    return "rgb({}, {}, {})".format(*mixed)


def _colour_bar(stages: int) -> dict[str, Any]:
    shown = list(range(1, stages + 1, math.ceil(stages / _LABELLED_STAGES)))
    return class_bar(shown, [f"stage {number}" for number in shown])


def _finding(network: Network, plan: Plan | None) -> str:
    if plan is None:
        return f"All {network.devices:,} devices stand idle"
    placed = seats(network, plan.point.layout, plan.point.device_order)
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


def _reading(network: Network) -> str:
    if network.torus is not None:
        return (
            "Cells of one colour work on the same stage; neighbours in a row or column are one "
            "hop apart, and each panel is one plane of the torus."
        )
    return (
        "Cells of one colour work on the same stage; the wider the gap between two cells, the "
        "further out the level at which their devices meet."
    )
