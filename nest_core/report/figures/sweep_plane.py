"""Throughput over two parameters as a map: where memory ends, and where the plan changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import plotly.graph_objects as go

from nest_core.documents.units import humanise_bytes, percent
from nest_core.explain import quantity
from nest_core.hardware.posterior import SHARE
from nest_core.report.figures.style import LIMIT, Picture, broken, frame
from nest_core.report.figures.sweep_parts import (
    hatched,
    hover,
    label,
    parameter_axis,
    planless,
    rate_unit,
    short_plan,
    shortfall,
)
from nest_core.studies.rows import StudyRow
from nest_core.studies.sweeps import Sweep, changes

__all__ = ["plane_picture"]

_LOW, _HIGH = (226, 238, 247), (0, 114, 178)
_CHANGE = "#16202a"
_ROW, _MOST_LABELLED, _WIDEST = 66, 60, 12
_WITH_DEGREES = 7
"""Columns up to which cells have room for a plan's degrees."""
Place = tuple[int, int]


def plane_picture(sweep: Sweep) -> Picture:
    """A heat map with the out-of-memory frontier and the borders between plans.

    Points that can be clicked lie over the cells, with their place in ``sweep.points`` as
    ``customdata``.
    """
    if sweep.y is None:
        raise ValueError("a plane needs two parameters")
    wide, high = len(sweep.x.values), len(sweep.y.values)
    cells = {divmod(i, wide)[::-1]: point for i, point in enumerate(sweep.points)}
    scale, unit = rate_unit(sweep)
    columns, rows = [float(i) for i in range(wide)], [float(j) for j in range(high)]
    layout = frame(
        120 + _ROW * max(high, 3),
        (110, 16, 8, 58),
        xaxis=parameter_axis(sweep.x, columns, 0.5),
        yaxis=parameter_axis(sweep.y, rows, 0.5),
        annotations=_labels(cells, wide, scale) if wide <= _WIDEST else [],
    )
    turned = tuple(axis.key for axis in sweep.axes)
    data = [
        _heat(cells, wide, high, scale, unit),
        hatched(
            (i - 0.5, i + 0.5, j - 0.5, j + 0.5)
            for (i, j), point in cells.items()
            if not point.feasible
        ),
        _borders(
            "plan changes",
            cells,
            lambda a, b: bool(changes(a, b, turned)),
            {"color": _CHANGE, "width": 1.5},
        ),
        _borders("memory ends", cells, _runs_out, {"color": LIMIT, "width": 4}),
        _points(sweep, cells),
    ]
    legend = [("plan changes", _CHANGE)]
    if any(point.status == "memory" for point in sweep.points):
        legend.append(("memory ends", LIMIT))
    return Picture(
        _finding(sweep),
        f"Training throughput over {sweep.x.label} and {sweep.y.label}; {unit}, and memory of the "
        "fullest device",
        "Every cell is planned anew. Dark borders: the plan changes; orange: memory ends; hatched: "
        f"no plan.{_within(sweep)}",
        go.Figure(data=data, layout=layout),
        tuple(legend),
    )


def _heat(
    cells: dict[Place, StudyRow], wide: int, high: int, scale: float, unit: str
) -> dict[str, Any]:
    def rate(i: int, j: int) -> float | None:
        point = cells.get((i, j))
        return point.tokens_per_s / scale if point and point.tokens_per_s else None

    return {
        "type": "heatmap",
        "x": list(range(wide)),
        "y": list(range(high)),
        "z": [[rate(i, j) for i in range(wide)] for j in range(high)],
        "colorscale": [(0.0, _rgb(_LOW)), (1.0, _rgb(_HIGH))],
        "colorbar": {
            "thickness": 12,
            "outlinewidth": 0,
            "nticks": 5,
            "title": {"text": unit, "font": {"size": 12}},
        },
        "hoverinfo": "skip",
    }


def _rgb(colour: tuple[int, int, int]) -> str:
    return "rgb({}, {}, {})".format(*colour)


def _memory(point: StudyRow) -> str:
    """What the fullest device holds; it fits, or there would be no plan."""
    return f"{humanise_bytes(point.memory_bytes)} fits" if point.memory_bytes else ""


def _labels(cells: dict[Place, StudyRow], wide: int, scale: float) -> list[dict[str, Any]]:
    """Throughput, memory and degrees in the cells, dark on light and light on dark; where no plan
    fits, what one would need."""
    if len(cells) > _MOST_LABELLED:
        return []
    rates = [point.tokens_per_s for point in cells.values() if point.tokens_per_s]
    middle = (min(rates) + max(rates)) / 2 if rates else 0.0
    found = []
    for (i, j), point in cells.items():
        look: dict[str, Any] = {"size": 12}
        text = "<br>".join(("no plan fits", shortfall(point)))
        if point.status != "memory":
            text = shortfall(point)
        if point.tokens_per_s is not None:
            look["color"] = "#ffffff" if point.tokens_per_s > middle else _CHANGE
            lines = [f"<b>{label(point, scale)}</b>", _memory(point)]
            if wide <= _WITH_DEGREES:
                lines.append(short_plan(point).replace(" · ", " "))
            text = "<br>".join(lines)
        found.append({"text": text, "x": i, "y": j, "showarrow": False, "font": look})
    return found


def _neighbours(cells: dict[Place, StudyRow]) -> Iterator[tuple[StudyRow, StudyRow, list[float]]]:
    """Cells side by side, and the ends of the edge between them: x, x, y, y."""
    for (i, j), point in cells.items():
        if (i + 1, j) in cells:
            yield point, cells[i + 1, j], [i + 0.5, i + 0.5, j - 0.5, j + 0.5]
        if (i, j + 1) in cells:
            yield point, cells[i, j + 1], [i - 0.5, i + 0.5, j + 0.5, j + 0.5]


def _runs_out(a: StudyRow, b: StudyRow) -> bool:
    return {a.status, b.status} == {"solved", "memory"}


def _borders(
    name: str,
    cells: dict[Place, StudyRow],
    between: Callable[[StudyRow, StudyRow], bool],
    look: dict[str, Any],
) -> dict[str, Any]:
    """One trace of the edges between neighbours of which something holds."""
    edges = [ends for a, b, ends in _neighbours(cells) if between(a, b)]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        **broken((ends[:2], ends[2:]) for ends in edges),
        "hoverinfo": "skip",
        "showlegend": bool(edges),
        "line": look,
    }


def _points(sweep: Sweep, cells: dict[Place, StudyRow]) -> dict[str, Any]:
    """Unseen markers in the middle of the cells: heat maps cannot be clicked."""
    return {
        "type": "scatter",
        "mode": "markers",
        "showlegend": False,
        "x": [i for i, _ in cells],
        "y": [j for _, j in cells],
        "marker": {"size": 34, "symbol": "square", "color": "#ffffff", "opacity": 0.0},
        "selected": {"marker": {"opacity": 0.35}},
        "unselected": {"marker": {"opacity": 0.0}},
        "customdata": list(range(len(cells))),
        "hovertext": [hover(sweep, point) for point in cells.values()],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _within(sweep: Sweep) -> str:
    """How far the widest interval reaches, as a share of its throughput; empty without any."""
    reach = [
        point.span[1] / point.tokens_per_s - 1
        for point in sweep.points
        if point.span and point.tokens_per_s
    ]
    if not reach:
        return ""
    return f" Throughputs are known within {percent(max(reach))} ({SHARE:.0%} interval)."


def _finding(sweep: Sweep) -> str:
    feasible = [point for point in sweep.points if point.feasible]
    if not feasible:
        return "No plan fits at any of these points"
    best = max(feasible, key=lambda point: point.tokens_per_s or 0.0)
    rate = quantity(best.tokens_per_s or 0.0, "tokens/s")
    return f"Fastest at {sweep.named(best)}: {rate}{planless(sweep.points)}"
