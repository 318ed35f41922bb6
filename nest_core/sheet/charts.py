"""The sheet's two charts as marks: dearness along the accelerator's price, and what would break it.

Both read zero as "as dear as the choice": above or right of it the choice is the cheaper one. They
are drawn by the same marks and style sheet as fabrics (`nest_core.picture`), so that one string
serves the page, the sheet and print.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from nest_core.bill.prices import Range
from nest_core.picture.marks import Band, Box, Drawn, Line, Mark, Point, Words
from nest_core.picture.text import text_width
from nest_core.sheet.weighing import Curve, Moved, Weighing, curves, moved
from nest_core.units import format_money, signed_percent

__all__ = ["curve_chart", "round_step", "sensitivity_chart"]

_SMALL = 12.0
_WIDER = 1.16
"""Of a browser's own font over the one that is measured."""
_BARS = 5
"""Assumptions that are shown, the widest first."""
_FAR = 0.15
"""From so much dearer on a design is named at the edge, with its figure."""
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


def curve_chart(found: Weighing, width: float = 340.0, height: float = 200.0) -> Drawn:
    """How much dearer than the choice a token of every design is, along the accelerator's price."""
    lines = curves(found)
    title = _curve_title(found)
    subtitle = f"Whole bill per token against {found.choice.name}"
    if not lines:
        return Drawn(title, subtitle, width, height, ())
    low, high = _ends(lines)
    labels = max(
        text_width(
            one.name if low <= one.dearer[-1] <= high else f"{one.name} +00 %", _SMALL, bold=True
        )
        for one in lines
    )
    labels = _WIDER * max(labels, text_width(found.choice.name, _SMALL, bold=True))
    plot = _Plot((52, 12, width - labels - 12, height - 40), lines[0].usd[-1], _ends(lines))
    marks: list[Mark] = [*plot.grid(), *_price_lines(plot, found)]
    marks += [_band(plot, one) for one in lines if one.low]
    marks.append(Line("", "chart ours", (plot.at(0, 0.0), plot.at(plot.right, 0.0)), 2.0))
    for one in lines:
        look = "chart rival" if found.rival and one.name == found.rival.name else "chart"
        inside = [plot.at(x, y) for x, y in zip(one.usd, one.dearer, strict=True) if plot.holds(y)]
        if len(inside) > 1:
            marks.append(Line("", look, tuple(inside), 2.0 if "rival" in look else 1.4))
    marks += _names(plot, lines, found)
    marks += _edge(plot, found)
    middle = (plot.box[0] + plot.box[2]) / 2
    marks.append(
        Words("accelerator with its server share, k$", "soft", middle, height - 4, anchor="middle")
    )
    return Drawn(title, subtitle, width, height, tuple(marks))


def _curve_title(found: Weighing) -> str:
    edge = _device_edge(found)
    if found.rival is None:
        return f"{found.choice.name} stands alone"
    if edge is None:
        return f"{found.choice.name} or {found.rival.name}: no price of an accelerator decides"
    winner, value = edge
    return f"{winner} is the cheaper one over {format_money(value)}"


def _device_edge(found: Weighing) -> tuple[str, float] | None:
    for one in found.break_evens:
        if one.quantity == "device_usd" and one.value is not None:
            return one.winner, one.value
    return None


def _ends(lines: Sequence[Curve]) -> tuple[float, float]:
    """The part of the scale that is worth seeing: from a tenth of the prices on, what is near."""
    near = [one for one in lines if one.low or abs(one.dearer[-1]) < _FAR] or list(lines)
    values = [y for one in near for y in one.dearer[len(one.dearer) // 10 :]]
    values += [y for one in lines for end in (one.low, one.high) for y in end[len(end) // 5 :]]
    low, high = min([*values, -0.01]), max([*values, 0.01])
    return max(low, -0.5) * 1.1, min(high, 0.5) * 1.1


class _Plot:
    """Where figures stand: prices across from nothing to ``right``, shares up."""

    def __init__(self, box: tuple[float, float, float, float], right: float, ends: Point) -> None:
        self.box, self.right, self.ends = box, right, ends

    def at(self, x: float, y: float) -> Point:
        left, top, right, bottom = self.box
        low, high = self.ends
        across = left + (right - left) * x / self.right
        return across, bottom - (bottom - top) * (y - low) / (high - low)

    def holds(self, y: float) -> bool:
        return self.ends[0] <= y <= self.ends[1]

    def grid(self) -> list[Mark]:
        marks: list[Mark] = []
        left, _, right, bottom = self.box
        step = round_step((self.ends[1] - self.ends[0]) / 4)
        for number in range(math.ceil(self.ends[0] / step), math.floor(self.ends[1] / step) + 1):
            y = self.at(0, number * step)[1]
            marks.append(Line("", "grid", ((left, y), (right, y)), 1.0))
            digits = 0 if step >= 0.0099 else 1
            marks.append(
                Words(signed_percent(number * step, digits), "soft", left - 8, y + 4, anchor="end")
            )
        across = round_step(self.right / 4)
        for number in range(math.floor(self.right / across * 1.001) + 1):
            x = self.at(number * across, 0)[0]
            text = f"{number * across / 1e3:g}"
            marks.append(Words(text, "soft", x, bottom + 16, anchor="middle"))
        return marks


def round_step(rough: float) -> float:
    """The next round step from there on."""
    base = 10.0 ** math.floor(math.log10(rough))
    return next(base * step for step in _STEPS if base * step >= rough * 0.999)


def _band(plot: _Plot, one: Curve) -> Band:
    def held(y: float) -> float:
        return min(max(y, plot.ends[0]), plot.ends[1])

    low = [plot.at(x, held(y)) for x, y in zip(one.usd, one.low, strict=True)]
    high = [plot.at(x, held(y)) for x, y in zip(one.usd, one.high, strict=True)]
    return Band("", "interval", (*low, *reversed(high)))


def _names(plot: _Plot, lines: Sequence[Curve], found: Weighing) -> list[Mark]:
    """Every line's name at its right end, none upon another."""
    ends = [(found.choice.name, 0.0, "accent bold")]
    ends += [(_label(one, plot), _held(one.dearer[-1], plot), "bold") for one in lines]
    ends.sort(key=lambda one: -one[1])
    marks: list[Mark] = []
    least, gap = plot.box[1], 14.0
    places: list[float] = []
    for _, y, _ in ends:
        places.append(max(plot.at(0, y)[1] + 4, least))
        least = places[-1] + gap
    most = plot.box[3] + 4
    for number in range(len(places) - 1, -1, -1):
        places[number] = min(places[number], most)
        most = places[number] - gap
    for (name, _, look), y in zip(ends, places, strict=True):
        marks.append(Words(name, look, plot.box[2] + 6, y))
    return marks


def _label(one: Curve, plot: _Plot) -> str:
    """A line's name; one that ends beyond the scale says where."""
    last = one.dearer[-1]
    return one.name if plot.holds(last) else f"{one.name} {signed_percent(last, 0)}"


def _held(value: float, plot: _Plot) -> float:
    return min(max(value, plot.ends[0]), plot.ends[1])


def _price_lines(plot: _Plot, found: Weighing) -> list[Mark]:
    price: Range | None = found.device_usd
    if price is None or price.typical > plot.right:
        return []
    x = plot.at(price.typical, 0)[0]
    return [
        Line("", "dotted", ((x, plot.box[1]), (x, plot.box[3])), 1.2),
        Words(format_money(price.typical), "soft", x + 4, plot.box[1] + 10),
    ]


def _edge(plot: _Plot, found: Weighing) -> list[Mark]:
    """The break-even, and its range along the lower edge."""
    edge = next(
        (one for one in found.break_evens if one.quantity == "device_usd" and one.value), None
    )
    if edge is None or edge.value is None or edge.value > plot.right:
        return []
    x, bottom = plot.at(edge.value, 0)[0], plot.box[3]
    zero = plot.at(0, 0.0)[1]
    marks: list[Mark] = [Line("", "limit", ((x, zero), (x, bottom)), 1.6)]
    low = plot.at(max(0.0, edge.low or 0.0), 0)[0]
    high = plot.at(min(plot.right, edge.high or plot.right), 0)[0]
    if edge.low or edge.high:
        marks.append(Box("", "span", low, bottom - 2, max(high - low, 1.0), 4))
    text = f"{edge.winner} over {format_money(edge.value)}"
    fits = x + 6 + text_width(text, _SMALL, bold=True) < plot.box[2]
    marks.append(
        Words(
            text, "alarm", x + 6 if fits else x - 6, bottom - 7, anchor="start" if fits else "end"
        )
    )
    return marks


def sensitivity_chart(found: Weighing, width: float = 340.0) -> Drawn:
    """How much dearer the rival is while one assumption moves at a time."""
    stands, rows = moved(found)
    title, rival = _breaks(found, rows), found.rival.name if found.rival else ""
    subtitle = f"How much dearer {rival} is per token, by one assumption"
    if not rows:
        return Drawn(title, "", width, 0.0, ())
    rows = rows[:_BARS]
    left, top, row_height = 142.0, 6.0, 27.0
    bottom = top + row_height * len(rows)
    values = [value for row in rows for value in row.ends] + [0.0, stands]
    low, high = min(values), max(values)
    room = (high - low or 0.01) * 0.08
    low, high = low - room, high + room

    def at(value: float) -> float:
        return left + (width - 8 - left) * (value - low) / (high - low)

    marks: list[Mark] = []
    if low < 0:
        marks.append(Box("", "worse", left, top - 4, at(0.0) - left, bottom - top + 4))
    step = round_step((high - low) / 3)
    for number in range(math.ceil(low / step), math.floor(high / step) + 1):
        x = at(number * step)
        marks.append(Line("", "grid", ((x, top - 4), (x, bottom)), 1.0))
        digits = 0 if step >= 0.0099 else 1
        marks.append(
            Words(signed_percent(number * step, digits), "soft", x, bottom + 15, anchor="middle")
        )
    for place, row in enumerate(rows):
        marks += _bar(row, top + place * row_height, at)
    for value, look in ((0.0, "axis"), (stands, "bracket")):
        marks.append(Line("", look, ((at(value), top - 4), (at(value), bottom)), 1.6))
    foot = bottom + 32
    if low < 0 < high:
        marks.append(Words(f"{rival} wins", "alarm", left, foot))
    marks.append(Words(f"{found.choice.name} wins", "bold", width, foot, anchor="end"))
    return Drawn(title, subtitle, width, foot + 6, tuple(marks))


def _bar(row: Moved, y: float, place: Callable[[float], float]) -> list[Mark]:
    low, high = sorted(row.ends)
    marks: list[Mark] = [
        Words(row.name, "", 0, y + 11),
        Words(row.span, "soft", 0, y + 24),
    ]
    for first, last, look in ((low, min(high, 0.0), "bar bad"), (max(low, 0.0), high, "bar good")):
        if last > first or (low == high and look.endswith("good") == (low >= 0)):
            x = place(first)
            marks.append(Box("", look, x, y + 8, max(place(last) - x, 1.5), 12))
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
