"""Charts of a comparison as marks: what all share, dearness along the accelerator's price, and what
would break the choice.

Both charts read zero as "as dear as the choice": above or right of it the choice is the cheaper
one. They are drawn by the same marks and style sheet as fabrics (`nest_core.report.picture`), so
that one string serves the page, the sheet and print.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nest_core.documents.units import format_money, signed_percent
from nest_core.report.picture.marks import Band, Box, Drawn, Line, Mark, Point, Words
from nest_core.report.picture.text import text_width
from nest_core.report.scale import Scale
from nest_core.report.sheet.weighing import DearnessCurve, Moved, Weighing, curves, moved
from nest_core.studies.break_evens import BreakEven

__all__ = [
    "SMALL",
    "Ends",
    "curve_chart",
    "percent_ticks",
    "sensitivity_chart",
    "vertical_grid",
    "vertical_line",
]

_WIDER = 1.16
"""Of a browser's own font over the one that is measured."""
_BARS = 5
"""Assumptions that are shown, the widest first."""
_FAR = 0.15
"""From so much dearer on a design is named at the edge, with its figure."""
_LINE_PX = 14.0
SMALL = 12.0
"""Size of type."""

Ends = tuple[float, float]


def vertical_line(look: str, x: float, ends: Ends, width: float = 1.0) -> Line:
    """Return a line down from the first end to the second."""
    return Line("", look, ((x, ends[0]), (x, ends[1])), width)


def vertical_grid(
    scale: Scale, ends: Ends, words: Callable[[float], str], max_ticks: int = 3
) -> list[Mark]:
    """Return a line down at every round value, its words below."""
    marks: list[Mark] = []
    for value in scale.ticks(max_ticks):
        x = scale(value)
        marks.append(vertical_line("grid", x, ends))
        marks.append(Words(words(value), "soft", x, ends[1] + 16, anchor="middle"))
    return marks


def percent_ticks(scale: Scale, max_ticks: int = 3) -> Callable[[float], str]:
    """Return how a scale of relative differences writes its ticks, in the fewest digits."""
    digits = 0 if all(math.isclose(100 * v, round(100 * v)) for v in scale.ticks(max_ticks)) else 1
    return lambda value: signed_percent(value, digits)


class _Axes(NamedTuple):
    """Prices of an accelerator across, how much dearer a design is up."""

    x: Scale
    y: Scale

    def at(self, usd: float, dearer: float) -> Point:
        return self.x(usd), self.y(dearer)


def curve_chart(weighing: Weighing, width: float = 340.0, height: float = 200.0) -> Drawn:
    """Return how much dearer than the choice a token is, along the accelerator's price."""
    lines, choice, rival = curves(weighing), weighing.choice.name, weighing.rival
    edge = weighing.device_edge
    if edge is not None and edge.value is None:
        edge = None
    title = f"{choice} stands alone"
    if rival is not None:
        title = f"{choice} or {rival.name}: no price of an accelerator decides"
    if rival is not None and edge is not None:
        title = f"{edge.winner} is the cheaper one over {format_money(edge.value or 0.0)}"
    subtitle = f"Whole bill per token against {choice}"
    if not lines:
        return Drawn(title, subtitle, width, height, ())
    low, high = _ends(lines)
    names = [
        line.name if low <= line.dearer[-1] <= high else f"{line.name} +00 %" for line in lines
    ]
    right = width - 12 - _WIDER * max(text_width(n, SMALL, bold=True) for n in (choice, *names))
    bottom = height - 40
    axes = _Axes(Scale(0.0, lines[0].usd[-1], 52, right), Scale(low, high, bottom, 12))
    marks = _grid(axes)
    price = weighing.device_usd.typical if weighing.device_usd else math.inf
    if price <= axes.x.high:
        marks += [
            vertical_line("dotted", axes.x(price), (axes.y.end, bottom), 1.2),
            Words(format_money(price), "soft", axes.x(price) + 4, axes.y.end + 10),
        ]
    for line in lines:
        if line.low:
            upper = [axes.at(*point) for point in zip(line.usd, line.low, strict=True)]
            lower = [axes.at(*point) for point in zip(line.usd, line.high, strict=True)]
            marks.append(Band("", "interval", (*upper, *reversed(lower))))
    marks.append(Line("", "chart ours", (axes.at(0, 0.0), axes.at(axes.x.high, 0.0)), 2.0))
    for line in lines:
        points = zip(line.usd, line.dearer, strict=True)
        inside = tuple(axes.at(x, y) for x, y in points if axes.y.holds(y))
        if len(inside) > 1:
            is_rival = rival is not None and line.name == rival.name
            look, thick = ("chart rival", 2.0) if is_rival else ("chart", 1.4)
            marks.append(Line("", look, inside, thick))
    words = "accelerator with its server share, k$"
    marks += [
        *_names(axes, lines, choice),
        *_edge_marks(axes, edge),
        Words(words, "soft", (52 + right) / 2, height - 4, anchor="middle"),
    ]
    return Drawn(title, subtitle, width, height, tuple(marks))


def _ends(lines: Sequence[DearnessCurve]) -> tuple[float, float]:
    """Return the part of the scale worth seeing: from a tenth of the prices on, what is near."""
    near = [line for line in lines if line.low or abs(line.dearer[-1]) < _FAR] or list(lines)
    values = [y for line in near for y in line.dearer[len(line.dearer) // 10 :]]
    values += [y for line in lines for end in (line.low, line.high) for y in end[len(end) // 5 :]]
    low, high = min([*values, -0.01]), max([*values, 0.01])
    return max(low, -0.5) * 1.1, min(high, 0.5) * 1.1


def _grid(axes: _Axes) -> list[Mark]:
    words, start = percent_ticks(axes.y, 4), axes.x.start
    marks: list[Mark] = []
    for value in axes.y.ticks(4):
        y = axes.y(value)
        marks.append(Line("", "grid", ((start, y), (axes.x.end, y)), 1.0))
        marks.append(Words(words(value), "soft", start - 8, y + 4, anchor="end"))
    return marks + [
        Words(f"{usd / 1e3:g}", "soft", axes.x(usd), axes.y.start + 16, anchor="middle")
        for usd in axes.x.ticks(4)
    ]


def _names(axes: _Axes, lines: Sequence[DearnessCurve], choice: str) -> list[Mark]:
    """Return every line's name at its right end, none upon another."""
    ends = [(axes.y(0.0), choice, "accent bold")]
    for line in lines:
        last = line.dearer[-1]
        beyond = "" if axes.y.holds(last) else f" {signed_percent(last, 0)}"
        ends.append((axes.y(last), line.name + beyond, "bold"))
    ends.sort(key=lambda end: end[0])
    places: list[float] = []
    for y, _, _ in ends:
        places.append(max(y + 4, places[-1] + _LINE_PX if places else axes.y.end))
    lowest = axes.y.start + 4
    for number in reversed(range(len(places))):
        places[number] = min(places[number], lowest)
        lowest = places[number] - _LINE_PX
    return [
        Words(name, look, axes.x.end + 6, y)
        for (_, name, look), y in zip(ends, places, strict=True)
    ]


def _edge_marks(axes: _Axes, edge: BreakEven | None) -> list[Mark]:
    """Return the break-even, and its range along the lower edge."""
    if edge is None or not edge.value or edge.value > axes.x.high:
        return []
    x, bottom = axes.x(edge.value), axes.y.start
    marks: list[Mark] = [vertical_line("limit", x, (axes.y(0.0), bottom), 1.6)]
    if edge.low or edge.high:
        low, high = axes.x(edge.low or 0.0), axes.x(edge.high or axes.x.high)
        marks.append(Box("", "span", low, bottom - 2, max(high - low, 1.0), 4))
    text = f"{edge.winner} over {format_money(edge.value)}"
    if x + 6 + text_width(text, SMALL, bold=True) < axes.x.end:
        return [*marks, Words(text, "alarm", x + 6, bottom - 7)]
    return [*marks, Words(text, "alarm", x - 6, bottom - 7, anchor="end")]


def sensitivity_chart(weighing: Weighing, width: float = 340.0) -> Drawn:
    """Return how much dearer the rival is while one assumption moves at a time."""
    present, every = moved(weighing)
    rival = weighing.rival.name if weighing.rival else ""
    title, rows = _breaks(weighing, every), every[:_BARS]
    if not rows:
        return Drawn(title, "", width, 0.0, ())
    start, top, row_height = 142.0, 6.0, 27.0
    ends = (top - 4, top + row_height * len(rows))
    values = [value for row in rows for value in row.ends] + [0.0, present]
    low, high = min(values), max(values)
    room = (high - low or 0.01) * 0.08
    x = Scale(low - room, high + room, start, width - 8)
    marks: list[Mark] = []
    if x.low < 0:
        marks.append(Box("", "worse", start, ends[0], x(0.0) - start, ends[1] - ends[0]))
    marks += vertical_grid(x, ends, percent_ticks(x))
    for place, row in enumerate(rows):
        marks += _bar(row, top + place * row_height, x)
    marks += [
        vertical_line("axis", x(0.0), ends, 1.6),
        vertical_line("bracket", x(present), ends, 1.6),
    ]
    foot = ends[1] + 32
    if x.low < 0 < x.high:
        marks.append(Words(f"{rival} wins", "alarm", start, foot))
    marks.append(Words(f"{weighing.choice.name} wins", "bold", width, foot, anchor="end"))
    subtitle = f"How much dearer {rival} is per token, by one assumption"
    return Drawn(title, subtitle, width, foot + 6, tuple(marks))


def _bar(row: Moved, y: float, scale: Scale) -> list[Mark]:
    low, high = sorted(row.ends)
    marks: list[Mark] = [Words(row.name, "", 0, y + 11), Words(row.span, "soft", 0, y + 24)]
    for first, last, look in ((low, min(high, 0.0), "bar bad"), (max(low, 0.0), high, "bar good")):
        if last > first or (low == high and look.endswith("good") == (low >= 0)):
            x = scale(first)
            marks.append(Box("", look, x, y + 8, max(scale(last) - x, 1.5), 12))
    return marks


def _breaks(weighing: Weighing, rows: Sequence[Moved]) -> str:
    if not rows:
        return "Nothing stands beside it"
    hours = weighing.hours_edge
    broken = [row for row in rows if row.breaks]
    if not broken:
        return "No single assumption turns it"
    if hours and hours.value and hours.winner == weighing.choice.name:
        return f"Breaks if it trains this model under {100 * hours.value:.2g} % of its hours"
    return f"Turns on {broken[0].name}: {broken[0].span}"
