"""What the figures of a sweep share, and throughput over two parameters as a map.

The map says where memory ends, and where the plan changes.
"""

import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from nest_core.costs.interval import span_in_words
from nest_core.documents.schema import Parameter
from nest_core.documents.units import (
    and_others,
    format_money,
    humanise_bytes,
    percent,
    signed_percent,
)
from nest_core.hardware.posterior import SHARE
from nest_core.report.explain import quantity
from nest_core.report.figures.style import (
    ACCENT,
    FAINT,
    LIMIT,
    MUTED,
    SILENT,
    Chart,
    Trace,
    axis_title,
    axis_unit,
    bare_axis,
    broken,
    curve,
    dots,
    hovered,
    note,
    plot,
)
from nest_core.studies.rows import StudyRow
from nest_core.studies.sweeps import Sweep, changes
from nest_core.studies.uncertainty import PairedRate

__all__ = [
    "against",
    "band",
    "beside",
    "hatched",
    "hover",
    "label",
    "parameter_axis",
    "places",
    "plane_picture",
    "planless",
    "rate_unit",
    "short_plan",
    "shortfall",
]

_BAND = "rgba(0, 114, 178, 0.18)"
_HATCH = {"shape": "/", "size": 6, "solidity": 0.2, "fgcolor": "rgba(128, 132, 138, 0.55)"}


def places(axis: Parameter) -> list[float]:
    """Return where the values of a parameter stand: to scale, by doublings, or in order."""
    numbers = [value for value in axis.values if isinstance(value, int | float)]
    return (
        [float(index) for index in range(len(axis.values))]
        if len(numbers) < len(axis.values)
        else [math.log2(value) if axis.doubling else float(value) for value in numbers]
    )


def parameter_axis(axis: Parameter, at: Sequence[float], margin: float) -> Trace:
    """Return an axis with the parameter's values on it; the scenario's own is marked."""
    return bare_axis(
        title=axis_title(axis.title, 6),
        range=[min(at) - margin, max(at) + margin],
        tickvals=list(at),
        ticktext=[
            f"<b>{axis.words(value)}</b><br>now" if value == axis.present else axis.words(value)
            for value in axis.values
        ],
        tickangle=0,
        ticks="",
    )


def rate_unit(sweep: Sweep) -> tuple[float, str]:
    """Return divisor and unit of the sweep's throughputs."""
    return axis_unit(
        max([point.tokens_per_s or 0.0 for point in sweep.points] or [1.0]), "tokens/s"
    )


def label(point: StudyRow, scale: float) -> str:
    """Return a throughput with three digits, without its unit."""
    if point.tokens_per_s is None:
        return ""
    value = point.tokens_per_s / scale
    return f"{value:.0f}" if value >= 100 else f"{value:#.3g}"


def short_plan(point: StudyRow) -> str:
    """Return the degrees that differ from 1: ``tp 4 · pp 2 · dp 8``."""
    plan = point.plan or {}
    return (
        " · ".join(
            f"{axis} {plan[axis]}" for axis in ("tp", "pp", "dp", "cp", "ep") if plan[axis] > 1
        )
        or "one device"
    )


def shortfall(point: StudyRow) -> str:
    """Return why a point has no plan, in two or three words."""
    if point.status == "memory":
        return f"needs {humanise_bytes(point.needed_bytes)}" if point.needed_bytes else "too large"
    return {"invalid": "cannot be", "failed": "failed"}.get(point.status, "no time")


def hover(sweep: Sweep, point: StudyRow) -> str:
    """Return what stands beside the pointer."""
    name, reason = f"<b>{sweep.named(point)}</b>", point.reason.replace("<", "&lt;")
    if not point.feasible:
        lines = textwrap.wrap(reason, 71, break_long_words=False, break_on_hyphens=False)
        return "<br>".join([name, *lines])
    plan = point.plan or {}
    lines = [
        name,
        f"{quantity(point.tokens_per_s or 0.0, 'tokens/s')}, MFU {percent(point.mfu or 0)}",
        *(
            [f"{against(point.paired)} beside {sweep.named(sweep.reference)}"]
            if point.paired is not None and sweep.reference is not None
            else []
        ),
        short_plan(point),
        f"micro-batch {plan['micro_batch']}, ZeRO {plan['zero']}, recomputation "
        f"{plan['recompute']}",
        *(
            [
                f"fullest stage {humanise_bytes(point.memory_bytes)} of "
                f"{humanise_bytes(point.limit_bytes)}, bubble {percent(point.bubble or 0)}"
            ]
            if point.memory_bytes is not None and point.limit_bytes is not None
            else []
        ),
        *([] if point.network_usd is None else [f"network {format_money(point.network_usd)}"]),
        *point.realised,
    ]
    return "<br>".join(lines)


def against(paired: PairedRate) -> str:
    """Return how far a throughput lies from the reference's, and the interval."""
    span = span_in_words(paired.span, signed_percent)
    return f"{signed_percent(paired.ratio - 1)} ({span})" if paired.sd else "reference"


def beside(sweep: Sweep) -> str:
    """Return what the interval of a difference is, and of what to what."""
    where = sweep.named(sweep.reference) if sweep.reference else "the first"
    return (
        f"the {percent(SHARE)} interval of the difference to {where} on the same cluster, where "
        "what both share cancels."
    )


def planless(points: Sequence[StudyRow]) -> str:
    """Return how many points have no plan, as the end of a title; empty where all have one."""
    count = sum(not point.feasible for point in points)
    verb = "has" if count == 1 else "have"
    return f"; {count} of {len(points)} points {verb} no plan" if count else ""


def band(
    at: Sequence[float], points: Sequence[StudyRow], scale: float, min_width: float
) -> list[Trace]:
    """Return where throughputs lie beside the reference's, as one trace; nothing without one.

    Neighbours with a plan share a band; one that stands alone has the least width.
    """
    pieces: list[list[tuple[float, float, float]]] = [[]]
    for x, point in zip(at, points, strict=True):
        if point.paired is None or point.tokens_per_s is None:
            pieces.append([])
        else:
            low, high = point.paired.around(point.tokens_per_s / scale)
            pieces[-1].append((x, low, high))
    outlines = []
    for piece in filter(None, pieces):
        if len(piece) == 1:
            ((x, low, high),) = piece
            piece = [(x - min_width / 2, low, high), (x + min_width / 2, low, high)]
        across = [x for x, _, _ in piece]
        up = [high for _, _, high in piece] + [low for _, low, _ in reversed(piece)]
        outlines.append(([*across, *reversed(across)], up))
    if not outlines:
        return []
    name = f"{100 * SHARE:.0f} % interval of the difference"
    return [_area(outlines, name=name, fillcolor=_BAND, line={"color": ACCENT, "width": 0})]


def hatched(boxes: Iterable[tuple[float, float, float, float]]) -> Trace:
    """Return one trace of grey hatched boxes, each (left, right, bottom, top)."""
    outlines = (
        ((x0, x1, x1, x0, x0), (bottom, bottom, top, top, bottom)) for x0, x1, bottom, top in boxes
    )
    return _area(outlines, fillcolor=FAINT, fillpattern=_HATCH, line={"color": MUTED, "width": 0})


def _area(outlines: Iterable[tuple[Sequence[float], Sequence[float]]], **look: Any) -> Trace:
    return curve(**broken(outlines), colour=ACCENT, fill="toself", **look) | SILENT


_COLOURS = ((0.0, "rgb(226, 238, 247)"), (1.0, "rgb(0, 114, 178)"))
_CHANGE = "#16202a"
_ROUNDING = 1e-9
_ROW, _MAX_LABELS, _MAX_COLUMNS = 66, 60, 12
_WITH_DEGREES = 7
"""Columns up to which cells have room for a plan's degrees."""
Cells = dict[tuple[int, int], StudyRow]


def plane_picture(sweep: Sweep) -> Chart:
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
    return Chart(
        _finding(sweep),
        f"Training throughput over {sweep.x.label} and {sweep.y.label}; {unit}, and memory of the "
        "fullest device",
        "Every cell is planned anew. Dark borders: the plan changes; orange: memory ends; hatched: "
        f"no plan. Percentages: {beside(sweep)}",
        plot(
            data,
            120 + _ROW * max(high, 3),
            (110, 16, 8, 58),
            xaxis=parameter_axis(sweep.x, columns, 0.5),
            yaxis=parameter_axis(sweep.y, rows, 0.5),
            annotations=list(_labels(cells, wide, scale)) if wide <= _MAX_COLUMNS else [],
        ),
        tuple(legend),
    )


def _labels(cells: Cells, wide: int, scale: float) -> Iterator[Trace]:
    """Yield throughput, memory and degrees of the cells, dark on light and light on dark.

    Where no plan fits, what one would need.
    """
    if len(cells) > _MAX_LABELS:
        return
    rates = [point.tokens_per_s for point in cells.values() if point.tokens_per_s]
    middle = (min(rates) + max(rates)) / 2 if rates else 0.0
    for place, point in cells.items():
        if point.tokens_per_s is None:
            lines = ["no plan fits"] if point.status == "memory" else []
            yield note("<br>".join([*lines, shortfall(point)]), *place)
            continue
        fits = f"{humanise_bytes(point.memory_bytes)} fits" if point.memory_bytes else ""
        lines = [f"<b>{label(point, scale)}</b>", fits]
        if point.paired and point.paired.sd:
            lines.append(span_in_words(point.paired.span, signed_percent))
        if wide <= _WITH_DEGREES:
            lines.append(short_plan(point).replace(" · ", " "))
        ink = "#ffffff" if point.tokens_per_s > middle else _CHANGE
        yield note("<br>".join(lines), *place, font={"size": 12, "color": ink})


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
    return curve(
        **broken((ends[:2], ends[2:]) for ends in edges),
        colour=colour,
        width=width,
        name=name,
        hoverinfo="skip",
        showlegend=bool(edges),
    )


def _finding(sweep: Sweep) -> str:
    feasible = [point for point in sweep.points if point.feasible]
    if not feasible:
        return "No plan fits at any of these points"
    most = max(point.tokens_per_s or 0.0 for point in feasible)
    best = [sweep.named(p) for p in feasible if (p.tokens_per_s or 0.0) >= (1 - _ROUNDING) * most]
    where = f"{and_others(best)}{' alike' if len(best) > 1 else ''}"
    return f"Fastest at {where}: {quantity(most, 'tokens/s')}{planless(sweep.points)}"
