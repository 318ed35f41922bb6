"""Throughput over two parameters as a map: where memory ends, and where the plan changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nest_core.documents.units import humanise_bytes, percent
from nest_core.hardware.posterior import SHARE
from nest_core.report.explain import quantity
from nest_core.report.figures.style import (
    LIMIT,
    Picture,
    Trace,
    broken,
    curve,
    dots,
    hovered,
    note,
    plot,
)
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

_COLOURS = ((0.0, "rgb(226, 238, 247)"), (1.0, "rgb(0, 114, 178)"))
_CHANGE = "#16202a"
_ROW, _MAX_LABELS, _MAX_COLUMNS = 66, 60, 12
_WITH_DEGREES = 7
"""Columns up to which cells have room for a plan's degrees."""
Cells = dict[tuple[int, int], StudyRow]


def plane_picture(sweep: Sweep) -> Picture:
    """Draw a heat map with the out-of-memory frontier and the borders between plans.

    Points that can be clicked lie over the cells, with their place in ``sweep.points`` as
    ``customdata``.
    """
    if sweep.y is None:
        raise ValueError("a plane needs two parameters")
    wide, high = len(sweep.x.values), len(sweep.y.values)
    cells = {divmod(i, wide)[::-1]: point for i, point in enumerate(sweep.points)}
    scale, unit = rate_unit(sweep)
    turned = tuple(axis.name for axis in sweep.axes)

    def rate(place: tuple[int, int]) -> float | None:
        point = cells.get(place)
        return point.tokens_per_s / scale if point and point.tokens_per_s else None

    heat = {
        "type": "heatmap",
        "x": list(range(wide)),
        "y": list(range(high)),
        "z": [[rate((i, j)) for i in range(wide)] for j in range(high)],
        "colorscale": _COLOURS,
        "colorbar": {
            "thickness": 12,
            "outlinewidth": 0,
            "nticks": 5,
            "title": {"text": unit, "font": {"size": 12}},
        },
        "hoverinfo": "skip",
    }
    data = [
        heat,
        hatched(
            (i - 0.5, i + 0.5, j - 0.5, j + 0.5)
            for (i, j), point in cells.items()
            if not point.feasible
        ),
        _borders("plan changes", cells, lambda a, b: bool(changes(a, b, turned)), _CHANGE, 1.5),
        _borders(
            "memory ends",
            cells,
            lambda a, b: {a.status, b.status} == {"solved", "memory"},
            LIMIT,
            4,
        ),
        # Unseen markers in the middle of the cells: heat maps cannot be clicked.
        dots(
            [i for i, _ in cells],
            [j for _, j in cells],
            {"size": 34, "symbol": "square", "color": "#ffffff", "opacity": 0.0},
            showlegend=False,
            selected={"marker": {"opacity": 0.35}},
            unselected={"marker": {"opacity": 0.0}},
            customdata=list(range(len(cells))),
            **hovered(hover(sweep, point) for point in cells.values()),
        ),
    ]
    legend = [("plan changes", _CHANGE)]
    if any(point.status == "memory" for point in sweep.points):
        legend.append(("memory ends", LIMIT))
    columns, rows = [float(i) for i in range(wide)], [float(j) for j in range(high)]
    return Picture(
        _finding(sweep),
        f"Training throughput over {sweep.x.label} and {sweep.y.label}; {unit}, and memory of the "
        "fullest device",
        "Every cell is planned anew. Dark borders: the plan changes; orange: memory ends; hatched: "
        f"no plan.{_within(sweep)}",
        plot(
            data,
            120 + _ROW * max(high, 3),
            (110, 16, 8, 58),
            xaxis=parameter_axis(sweep.x, columns, 0.5),
            yaxis=parameter_axis(sweep.y, rows, 0.5),
            annotations=_labels(cells, wide, scale) if wide <= _MAX_COLUMNS else [],
        ),
        tuple(legend),
    )


def _labels(cells: Cells, wide: int, scale: float) -> list[Trace]:
    """Return throughput, memory and degrees of the cells, dark on light and light on dark.

    Where no plan fits, what one would need.
    """
    if len(cells) > _MAX_LABELS:
        return []
    rates = [point.tokens_per_s for point in cells.values() if point.tokens_per_s]
    middle = (min(rates) + max(rates)) / 2 if rates else 0.0
    notes = []
    for place, point in cells.items():
        if point.tokens_per_s is None:
            lines = ["no plan fits"] if point.status == "memory" else []
            notes.append(note("<br>".join([*lines, shortfall(point)]), *place))
            continue
        fits = f"{humanise_bytes(point.memory_bytes)} fits" if point.memory_bytes else ""
        lines = [f"<b>{label(point, scale)}</b>", fits]
        if wide <= _WITH_DEGREES:
            lines.append(short_plan(point).replace(" · ", " "))
        ink = "#ffffff" if point.tokens_per_s > middle else _CHANGE
        notes.append(note("<br>".join(lines), *place, font={"size": 12, "color": ink}))
    return notes


def _neighbours(cells: Cells) -> Iterator[tuple[StudyRow, StudyRow, list[float]]]:
    """Yield cells side by side, and the ends of the edge between them: x, x, y, y."""
    for (i, j), point in cells.items():
        if (i + 1, j) in cells:
            yield point, cells[i + 1, j], [i + 0.5, i + 0.5, j - 0.5, j + 0.5]
        if (i, j + 1) in cells:
            yield point, cells[i, j + 1], [i - 0.5, i + 0.5, j + 0.5, j + 0.5]


def _borders(
    name: str,
    cells: Cells,
    between: Callable[[StudyRow, StudyRow], bool],
    colour: str,
    width: float,
) -> Trace:
    """Return one trace of the edges between neighbours of which something holds."""
    edges = [ends for a, b, ends in _neighbours(cells) if between(a, b)]
    places = broken((ends[:2], ends[2:]) for ends in edges)
    return curve(
        **places, colour=colour, width=width, name=name, hoverinfo="skip", showlegend=bool(edges)
    )


def _within(sweep: Sweep) -> str:
    """Return how far the widest interval reaches, as a share; empty without any."""
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
