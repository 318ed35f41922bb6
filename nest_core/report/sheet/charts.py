"""The sheet's two charts as marks: dearness along the accelerator's price, and what would break it.

Both read zero as "as dear as the choice": above or right of it the choice is the cheaper one. They
are drawn by the same marks and style sheet as fabrics (`nest_core.report.picture`), so that one
string serves the page, the sheet and print.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nest_core.documents.units import format_money, signed_percent
from nest_core.report.picture.marks import Band, Box, Drawn, Line, Mark, Point, Words
from nest_core.report.picture.text import text_width
from nest_core.report.scale import Scale
from nest_core.report.sheet.plot import SMALL, percent_ticks, vertical_grid, vertical_line
from nest_core.report.sheet.weighing import Curve, Moved, Weighing, curves, moved
from nest_core.studies.break_evens import BreakEven

__all__ = ["curve_chart", "sensitivity_chart"]

_WIDER = 1.16
"""Of a browser's own font over the one that is measured."""
_BARS = 5
"""Assumptions that are shown, the widest first."""
_FAR = 0.15
"""From so much dearer on a design is named at the edge, with its figure."""
_LINE_PX = 14.0


class _Axes(NamedTuple):
    """Prices of an accelerator across, how much dearer a design is up."""

    x: Scale
    y: Scale

    def at(self, usd: float, dearer: float) -> Point:
        return self.x(usd), self.y(dearer)


def curve_chart(found: Weighing, width: float = 340.0, height: float = 200.0) -> Drawn:
    """Return how much dearer than the choice a token is, along the accelerator's price."""
    lines = curves(found)
    title, subtitle = _curve_title(found), f"Whole bill per token against {found.choice.name}"
    if not lines:
        return Drawn(title, subtitle, width, height, ())
    low, high = _ends(lines)
    named = [found.choice.name]
    named += [one.name if low <= one.dearer[-1] <= high else f"{one.name} +00 %" for one in lines]
    right = width - 12 - _WIDER * max(text_width(name, SMALL, bold=True) for name in named)
    bottom = height - 40
    axes = _Axes(Scale(0.0, lines[0].usd[-1], 52, right), Scale(low, high, bottom, 12))
    marks: list[Mark] = [*_grid(axes), *_price_line(axes, found)]
    marks += [_band(axes, one) for one in lines if one.low]
    marks.append(Line("", "chart ours", (axes.at(0, 0.0), axes.at(axes.x.high, 0.0)), 2.0))
    for one in lines:
        rival = found.rival is not None and one.name == found.rival.name
        places = zip(one.usd, one.dearer, strict=True)
        inside = tuple(axes.at(x, y) for x, y in places if axes.y.holds(y))
        if len(inside) > 1:
            look = "chart rival" if rival else "chart"
            marks.append(Line("", look, inside, 2.0 if rival else 1.4))
    marks += [*_names(axes, lines, found), *_edge(axes, found)]
    words = "accelerator with its server share, k$"
    marks.append(Words(words, "soft", (52 + right) / 2, height - 4, anchor="middle"))
    return Drawn(title, subtitle, width, height, tuple(marks))


def _curve_title(found: Weighing) -> str:
    edge = _device_edge(found)
    if found.rival is None:
        return f"{found.choice.name} stands alone"
    if edge is None or edge.value is None:
        return f"{found.choice.name} or {found.rival.name}: no price of an accelerator decides"
    return f"{edge.winner} is the cheaper one over {format_money(edge.value)}"


def _device_edge(found: Weighing) -> BreakEven | None:
    edges = (one for one in found.break_evens if one.quantity == "device_usd")
    return next((one for one in edges if one.value is not None), None)


def _ends(lines: Sequence[Curve]) -> tuple[float, float]:
    """The part of the scale that is worth seeing: from a tenth of the prices on, what is near."""
    near = [one for one in lines if one.low or abs(one.dearer[-1]) < _FAR] or list(lines)
    values = [y for one in near for y in one.dearer[len(one.dearer) // 10 :]]
    values += [y for one in lines for end in (one.low, one.high) for y in end[len(end) // 5 :]]
    low, high = min([*values, -0.01]), max([*values, 0.01])
    return max(low, -0.5) * 1.1, min(high, 0.5) * 1.1


def _grid(axes: _Axes) -> list[Mark]:
    words, left = percent_ticks(axes.y, 4), axes.x.start
    marks: list[Mark] = []
    for value in axes.y.ticks(4):
        y = axes.y(value)
        marks.append(Line("", "grid", ((left, y), (axes.x.end, y)), 1.0))
        marks.append(Words(words(value), "soft", left - 8, y + 4, anchor="end"))
    foot = axes.y.start + 16
    return marks + [
        Words(f"{usd / 1e3:g}", "soft", axes.x(usd), foot, anchor="middle")
        for usd in axes.x.ticks(4)
    ]


def _band(axes: _Axes, one: Curve) -> Band:
    low = [axes.at(x, y) for x, y in zip(one.usd, one.low, strict=True)]
    high = [axes.at(x, y) for x, y in zip(one.usd, one.high, strict=True)]
    return Band("", "interval", (*low, *reversed(high)))


def _names(axes: _Axes, lines: Sequence[Curve], found: Weighing) -> list[Mark]:
    """Every line's name at its right end, none upon another."""
    ends = [(axes.y(0.0), found.choice.name, "accent bold")]
    for one in lines:
        last = one.dearer[-1]
        beyond = "" if axes.y.holds(last) else f" {signed_percent(last, 0)}"
        ends.append((axes.y(last), one.name + beyond, "bold"))
    ends.sort(key=lambda end: end[0])
    places: list[float] = []
    for y, _, _ in ends:
        places.append(max(y + 4, places[-1] + _LINE_PX if places else axes.y.end))
    most = axes.y.start + 4
    for number in reversed(range(len(places))):
        places[number] = min(places[number], most)
        most = places[number] - _LINE_PX
    return [
        Words(name, look, axes.x.end + 6, y)
        for (_, name, look), y in zip(ends, places, strict=True)
    ]


def _price_line(axes: _Axes, found: Weighing) -> list[Mark]:
    price = found.device_usd
    if price is None or price.typical > axes.x.high:
        return []
    x, top = axes.x(price.typical), axes.y.end
    return [
        vertical_line("dotted", x, (top, axes.y.start), 1.2),
        Words(format_money(price.typical), "soft", x + 4, top + 10),
    ]


def _edge(axes: _Axes, found: Weighing) -> list[Mark]:
    """The break-even, and its range along the lower edge."""
    edge = _device_edge(found)
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


def sensitivity_chart(found: Weighing, width: float = 340.0) -> Drawn:
    """Return how much dearer the rival is while one assumption moves at a time."""
    stands, rows = moved(found)
    title, rival = _breaks(found, rows), found.rival.name if found.rival else ""
    if not rows:
        return Drawn(title, "", width, 0.0, ())
    rows = rows[:_BARS]
    left, top, row_height = 142.0, 6.0, 27.0
    bottom = top + row_height * len(rows)
    values = [value for row in rows for value in row.ends] + [0.0, stands]
    low, high = min(values), max(values)
    room = (high - low or 0.01) * 0.08
    x = Scale(low - room, high + room, left, width - 8)
    ends = (top - 4, bottom)
    marks: list[Mark] = []
    if x.low < 0:
        marks.append(Box("", "worse", left, top - 4, x(0.0) - left, bottom - top + 4))
    marks += vertical_grid(x, ends, percent_ticks(x))
    for place, row in enumerate(rows):
        marks += _bar(row, top + place * row_height, x)
    marks += [
        vertical_line("axis", x(0.0), ends, 1.6),
        vertical_line("bracket", x(stands), ends, 1.6),
    ]
    foot = bottom + 32
    if x.low < 0 < x.high:
        marks.append(Words(f"{rival} wins", "alarm", left, foot))
    marks.append(Words(f"{found.choice.name} wins", "bold", width, foot, anchor="end"))
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


def _breaks(found: Weighing, rows: Sequence[Moved]) -> str:
    if found.rival is None or not rows:
        return "Nothing stands beside it"
    hours = next((one for one in found.break_evens if one.quantity == "share_of_hours"), None)
    broken = [row for row in rows if row.breaks]
    if not broken:
        return "No single assumption turns it"
    if hours and hours.value and hours.winner == found.choice.name:
        return f"Breaks if it trains this model under {100 * hours.value:.2g} % of its hours"
    return f"Turns on {broken[0].name}: {broken[0].span}"
