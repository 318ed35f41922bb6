"""Charts of a comparison as marks: what each trains and costs, and what would break the choice.

Bars have one row per design, in one order, from zero. Of a ratio of two speeds what both share
cancels (`nest_core.studies.uncertainty.paired_sd`): where its interval holds zero, the row says
"tie". Dearness along the accelerator's price and by assumption reads zero as "as dear as the
best": above or right of it the best one costs less. All are drawn by the same marks and
style sheet as fabrics (`nest_core.report.picture`), so that one string serves the page, the sheet
and print.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from nest_core.documents import (
    Claim,
    Fact,
    agreeing,
    capital,
    does,
    format_money,
    joined,
    percent,
    signed_percent,
    three_digits,
    truncated,
)
from nest_core.hardware.posterior import SHARE
from nest_core.report.documents import DESIGN_COLOURS
from nest_core.report.picture.aggregate import spread
from nest_core.report.picture.marks import Band, Box, Drawn, Line, Mark, Point, Words, text_width
from nest_core.report.scale import Scale
from nest_core.report.sheet.dearness import DearnessCurve, Moved, curves, moved
from nest_core.report.sheet.words import difference_words, magnitude
from nest_core.studies.break_evens import BreakEven
from nest_core.studies.decision import Decision, unpriced
from nest_core.studies.whole_bill import WholeBill

__all__ = [
    "PARTS",
    "SMALL",
    "Ends",
    "bill_chart",
    "curve_chart",
    "parts_of_bill",
    "percent_ticks",
    "sensitivity_chart",
    "short",
    "throughput_chart",
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
_LONGEST = 14
_NAMED = 2
"""Designs that a title names."""
_DARK = ("design-0", "design-2", "design-5")
"""Looks on which words are white."""
SMALL = 12.0
"""Size of type."""

Ends = tuple[float, float]


def short(name: str) -> str:
    """Return a design's name as far as a chart has room for it."""
    return truncated(name, _LONGEST)


def vertical_line(look: str, x: float, ends: Ends, width: float = 1.0) -> Line:
    """Return a line down from the first end to the second."""
    return Line("", look, ((x, ends[0]), (x, ends[1])), width)


def vertical_grid(
    scale: Scale, ends: Ends, words: Callable[[float], str], max_ticks: int = 3
) -> list[Mark]:
    """Return a line down at every round value, its words below."""
    return [
        mark
        for value in scale.ticks(max_ticks)
        for mark in (
            vertical_line("grid", scale(value), ends),
            Words(words(value), "soft", scale(value), ends[1] + 16, anchor="middle"),
        )
    ]


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


def curve_chart(decision: Decision, width: float = 340.0, height: float = 200.0) -> Drawn:
    """Return how much dearer than the choice a token is, along the accelerator's price."""
    lines, best, rival = curves(decision), decision.best.name, decision.rival
    edge = decision.break_even("device_usd")
    title = joined((difference_words(decision, bill) for bill in decision.bills[1:][:_NAMED]), ", ")
    if decision.device_usd is not None:
        title = joined([title, f"at {format_money(decision.device_usd.typical)} an accelerator"])
    subtitle = f"{capital(decision.figure)} against {best}; grey: paired interval, a tie at zero"
    if not lines:
        return Drawn(title, subtitle, width, height, ())
    low, high = _ends(lines)
    names = [
        short(line.name) + ("" if low <= line.dearer[-1] <= high else " +00 %") for line in lines
    ]
    right = (
        width - 12 - _WIDER * max(text_width(n, SMALL, bold=True) for n in [*names, short(best)])
    )
    bottom = height - 40
    axes = _Axes(Scale(0.0, lines[0].usd[-1], 52, right), Scale(low, high, bottom, 12))
    marks = _grid(axes)
    price = decision.device_usd.typical if decision.device_usd else math.inf
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
    marks.append(
        Line("", _look(decision, best, "chart"), (axes.at(0, 0.0), axes.at(axes.x.high, 0.0)), 2.0)
    )
    for line in lines:
        points = zip(line.usd, line.dearer, strict=True)
        inside = tuple(axes.at(x, y) for x, y in points if axes.y.holds(y))
        if len(inside) > 1:
            marks.append(
                Line(
                    "",
                    _look(decision, line.name, "chart"),
                    inside,
                    2.0 if rival is not None and line.name == rival.name else 1.4,
                )
            )
    middle = (52 + right) / 2
    marks += [
        *_names(axes, lines, best),
        *_edge_marks(axes, edge),
        Words("accelerator with its server share, k$", "soft", middle, height - 4, anchor="middle"),
    ]
    return Drawn(title, subtitle, width, height, tuple(marks))


def _ends(lines: Sequence[DearnessCurve]) -> tuple[float, float]:
    """Return the part of the scale worth seeing: from a tenth of the prices on, what is near."""
    near = [line for line in lines if line.low or abs(line.dearer[-1]) < _FAR] or list(lines)
    values = [
        *(y for line in near for y in line.dearer[len(line.dearer) // 10 :]),
        *(y for line in lines for end in (line.low, line.high) for y in end[len(end) // 5 :]),
    ]
    low, high = min([*values, -0.01]), max([*values, 0.01])
    return max(low, -0.5) * 1.1, min(high, 0.5) * 1.1


def _grid(axes: _Axes) -> list[Mark]:
    words, start = percent_ticks(axes.y, 4), axes.x.start
    return [
        *(
            mark
            for y, text in [(axes.y(value), words(value)) for value in axes.y.ticks(4)]
            for mark in (
                Line("", "grid", ((start, y), (axes.x.end, y)), 1.0),
                Words(text, "soft", start - 8, y + 4, anchor="end"),
            )
        ),
        *(
            Words(f"{usd / 1e3:g}", "soft", axes.x(usd), axes.y.start + 16, anchor="middle")
            for usd in axes.x.ticks(4)
        ),
    ]


def _names(axes: _Axes, lines: Sequence[DearnessCurve], best: str) -> list[Mark]:
    """Return every line's name at its right end, none upon another."""
    ends = [
        (axes.y(0.0), short(best), "bold"),
        *(
            (
                axes.y(last),
                short(line.name) + ("" if axes.y.holds(last) else f" {signed_percent(last, 0)}"),
                "bold",
            )
            for line in lines
            for last in line.dearer[-1:]
        ),
    ]
    ends.sort(key=lambda end: end[0])
    places = spread(
        [y + 4 for y, _, _ in ends], [_LINE_PX] * len(ends), axes.y.end, axes.y.start + 4 + _LINE_PX
    )
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
    text = f"level at {format_money(edge.value)}"
    if x + 6 + text_width(text, SMALL, bold=True) < axes.x.end:
        return [*marks, Words(text, "alarm", x + 6, bottom - 7)]
    return [*marks, Words(text, "alarm", x - 6, bottom - 7, anchor="end")]


def sensitivity_chart(decision: Decision, width: float = 340.0) -> Drawn:
    """Return how much dearer the rival is while one assumption moves at a time."""
    every, rival = moved(decision), decision.rival
    rows = every[:_BARS]
    changes = [claim for row in rows for claim in row.changes]
    stays = (Fact("stays", (decision.best.name,), row.name) for row in rows)
    title = changes[0] if changes else Claim("No assumption drawn here changes the choice", *stays)
    if not rows or rival is None:
        return Drawn("", "", width, 0.0, ())
    present, tie = decision.dearer(rival), decision.width(rival)
    start, top, row_height = 142.0, 6.0, 27.0
    ends = (top - 4, top + row_height * len(rows))
    values = [value for row in rows for value in row.ends] + [0.0, present]
    low, high = min(values), max(values)
    room = (high - low or 0.01) * 0.08
    x = Scale(low - room, high + room, start, width - 8)
    foot = ends[1] + 32
    tied = [min(max(end, x.low), x.high) for end in (math.expm1(-tie), math.expm1(tie))]
    worse = Box("", "worse", start, ends[0], x(tied[0]) - start, ends[1] - ends[0])
    marks = (
        *([worse] if x.low < tied[0] else []),
        Box("", "interval", x(tied[0]), ends[0], x(tied[1]) - x(tied[0]), ends[1] - ends[0]),
        *vertical_grid(x, ends, percent_ticks(x)),
        *(
            mark
            for place, row in enumerate(rows)
            for mark in _bar(row, top + place * row_height, x)
        ),
        vertical_line("axis", x(0.0), ends, 1.6),
        vertical_line("bracket", x(present), ends, 1.6),
        Words(f"{does(short(rival.name), 'costs')} less", "alarm", start, foot),
        Words(
            f"{does(short(decision.best.name), 'costs')} less",
            "bold",
            width,
            foot + 15,
            anchor="end",
        ),
    )
    subtitle = f"How much more {does(rival.name, 'costs')}, by one assumption; grey: a tie"
    return Drawn(title, subtitle, width, foot + 21, marks)


def _bar(row: Moved, y: float, scale: Scale) -> list[Mark]:
    low, high = sorted(row.ends)
    sides = (low, min(high, 0.0), "bar bad"), (max(low, 0.0), high, "bar good")
    return [
        Words(truncated(row.name, 22), "", 0, y + 11),
        Words(row.span, "soft", 0, y + 24),
        *(
            Box("", look, scale(first), y + 8, max(scale(last) - scale(first), 1.5), 12)
            for first, last, look in sides
            if last > first or (low == high and look.endswith("good") == (low >= 0))
        ),
    ]


_ROW = 54.0
_BAR = 28.0
_TOP = 28.0
_MILLION = 1e6

PARTS: tuple[tuple[str, str], ...] = (
    ("accelerators and servers", "bill-nodes"),
    ("NICs", "bill-nic"),
    ("leaf", "bill-leaf"),
    ("spine", "bill-spine"),
    ("links", "bill-links"),
    ("hall", "bill-hall"),
    ("power", "bill-power"),
    ("other", "bill-other"),
)
"""Parts of a bill as the bars stack them, and how each is painted."""


def throughput_chart(decision: Decision, width: float = 568.0) -> Drawn:
    """Return bars with intervals, each alone; beside them the difference to the choice.

    Parameters
    ----------
    decision : Weighing
    bills : sequence of WholeBill
        Those that have a plan, in the order of the rows.
    width : float
    """
    bills = decision.bills
    start, ends = _name_width(bills), (_TOP, _TOP + _ROW * len(bills))
    split = start + 0.56 * (width - start)
    rates = [bill.tokens_per_s or 0.0 for bill in bills]
    spans = [
        bill.sureness.interval.around(rate) if bill.sureness else (rate, rate)
        for bill, rate in zip(bills, rates, strict=True)
    ]
    largest = max([high for _, high in spans] + [1e-3])
    unit, scale = ("M tokens/s", 1e6) if largest >= 1e6 else ("k tokens/s", 1e3)
    x = Scale(0.0, 1.02 * largest, start, split - 24)
    marks: list[Mark] = [
        Words("each alone", "soft", start, 14),
        *vertical_grid(x, ends, lambda rate: f"{rate / scale:g}"),
        Words(unit, "soft", (start + split - 24) / 2, ends[1] + 34, anchor="middle"),
    ]
    for place, (bill, rate, span) in enumerate(zip(bills, rates, spans, strict=True)):
        top, look = _bar_top(place), _look(decision, bill.name)
        middle, text = top + _BAR / 2, f"{three_digits(rate / scale)} {unit[0]}"
        marks += [
            Box("", look, start, top, max(x(rate) - start, 1.0), _BAR),
            *_name(bill, decision, top),
            Words(text, "inverse" if look in _DARK else "on-plain", start + 8, top + 19),
            Line("", "bracket", ((x(span[0]), middle), (x(span[1]), middle)), 1.4),
            *(vertical_line("bracket", x(end), (middle - 6, middle + 6), 1.4) for end in span),
        ]
    marks += _paired(decision, (split + 20, width - 28), ends)
    subtitle = (
        f"Best plan of each, {percent(SHARE)} intervals; what both runs share cancels in the pair"
    )
    return Drawn(_speed_title(decision), subtitle, width, ends[1] + 40, tuple(marks))


def _paired(decision: Decision, across: Ends, ends: Ends) -> Iterator[Mark]:
    best = decision.best
    rows = {
        place: (difference.value, difference.low, difference.high)
        for place, bill in enumerate(decision.bills)
        if (difference := decision.difference(bill, "tokens_per_s")) is not None
    }
    values = [value for row in rows.values() for value in row] + [0.0]
    room = 0.12 * ((max(values) - min(values)) or 0.02)
    x = Scale(min(values) - room, max(values) + room, *across)
    words, zero = percent_ticks(x), x(0.0)
    yield from (
        Words("paired, run for run", "soft", across[0], 14),
        *vertical_grid(x, ends, lambda value: words(value) if value else ""),
        vertical_line(_look(decision, best.name, "chart"), zero, ends, 2.0),
        Words(short(best.name), "bold", min(zero, across[1] + 8), ends[1] + 34, anchor="middle"),
    )
    for place, (value, low, high) in rows.items():
        y = _TOP + place * _ROW + _ROW / 2
        text = "tie" if low < high and low <= 0 <= high else signed_percent(value)
        span = f"{signed_percent(low).removesuffix(' %')} to {signed_percent(high)}"
        half = text_width(span, SMALL) / 2
        at = min(max(x(value), across[0] - 20 + half), across[1] + 28 - half)
        yield from (
            Box("", "bar plain", x(low), y - 4, max(x(high) - x(low), 1.5), 8),
            vertical_line("bracket", x(value), (y - 9, y + 9), 3.0),
            Words(text, "bold", at, y - 12, anchor="middle"),
            Box("", "plate", at - half - 2, y + 11, 2 * half + 4, 13),
            Words(span, "soft", at, y + 22, anchor="middle"),
        )


def _speed_title(decision: Decision) -> Claim:
    parts, best = [], decision.best.name
    for bill in decision.bills[1:]:
        difference = decision.difference(bill, "tokens_per_s")
        if difference is None or difference.is_tie:
            fact = Fact("ties", (best, bill.name), "tokens_per_s")
            parts.append(Claim(f"{does(bill.name, 'ties')} with {best} in speed", fact))
        else:
            value = difference.value
            way, relation = ("slower", "less") if value < 0 else ("faster", "more")
            fact = Fact(relation, (bill.name, best), "tokens_per_s", value)
            parts.append(Claim(f"{does(bill.name, 'is')} {magnitude(value)} {way}", fact))
    if len(parts) > _NAMED:
        parts = [*parts[:_NAMED], Claim(f"{len(parts) - _NAMED} more below")]
    return joined(parts, ", ") if parts else Claim(f"{best} alone {agreeing(best, 'has')} a plan")


def parts_of_bill(bill: WholeBill) -> tuple[float, ...]:
    """Return dollars of every part of `PARTS`, typical."""
    billed = [
        (_part(line.part), line.usd.typical) for line in bill.owned.lines if line.usd is not None
    ]
    return tuple(sum((usd for part, usd in billed if part == name), 0.0) for name, _ in PARTS)


def _part(part: str) -> str:
    if part.startswith("accelerators"):
        return "accelerators and servers"
    network, _, place = part.partition(", ")
    return (
        {"node": "NICs", "leaf": "leaf", "spine": "spine"}.get(place, "links")
        if network == "network" and place
        else {"hall": "hall", "energy": "power"}.get(part, "other")
    )


def bill_chart(decision: Decision, width: float = 568.0) -> Drawn:
    """Return every design's whole bill as one stacked bar, its network and the sum beside it."""
    bills = decision.bills
    start, ends = _name_width(bills), (_TOP, _TOP + _ROW * len(bills))
    right = width - 158.0
    parts = [parts_of_bill(bill) for bill in bills]
    x = Scale(0.0, 1.02 * max([*map(sum, parts), 1.0]), start, right)
    marks: list[Mark] = [
        Words("network", "soft", width - 84, 14, anchor="end"),
        Words("whole bill", "soft", width, 14, anchor="end"),
        *vertical_grid(x, ends, lambda usd: f"{usd / _MILLION:g}"),
        Words("M$", "soft", right, ends[1] + 34, anchor="end"),
    ]
    for place, (bill, row) in enumerate(zip(bills, parts, strict=True)):
        top, total = _bar_top(place), bill.owned.total_usd.typical / _MILLION
        network = bill.owned.network.price_usd.typical / _MILLION
        marks += [
            *_name(bill, decision, top),
            *_stack(x, row, top),
            Words(three_digits(network), "", width - 84, top + 19, anchor="end"),
            Words(three_digits(total), "bold", width, top + 19, anchor="end"),
        ]
    foot = ends[1] + 58
    at = start  # what is billed anywhere, in rows as wide as the chart
    for (name, look), values in zip(PARTS, zip(*parts, strict=True), strict=True):
        if not any(values):
            continue
        need = text_width(name, SMALL) + 34
        if at + need > width:
            at, foot = start, foot + 18
        marks += [Box("", look, at, foot - 10, 10, 10), Words(name, "soft", at + 14, foot)]
        at += need
    subtitle = f"Whole bill over {bills[0].owned.years:g} years, M$" if bills else ""
    return Drawn(_bill_title(decision), subtitle, width, foot + 6, tuple(marks))


def _stack(x: Scale, row: Sequence[float], top: float) -> Iterator[Mark]:
    """Yield the parts of one bill, each with its millions where they fit."""
    spent = 0.0
    for (_, look), usd in zip(PARTS, row, strict=True):
        if usd > 0:
            first, last = x(spent), x(spent + usd)
            text, middle = three_digits(usd / _MILLION), (first + last) / 2
            yield Box("", look, first, top, max(last - first - 1, 0.5), _BAR)
            if last - first > text_width(text, SMALL) + 10:
                yield Words(text, "on-plain", middle, top + 19, anchor="middle")
            spent += usd


def _bill_title(decision: Decision) -> Claim:
    best, rival = decision.best, decision.rival
    usd = best.owned.total_usd.typical
    if rival is None:
        return Claim(f"{does(best.name, 'costs')} {format_money(usd)}")
    bill = decision.difference(rival, "total_usd")
    if bill is None:
        return Claim(f"Bills are not compared: {unpriced(decision.listed)}")
    more = bill.value
    if more == 0:
        words = f"The bills of {rival.name} and {best.name} are the same"
        return Claim(words, Fact("same", (rival.name, best.name)))
    way, relation = ("lower", "less") if more < 0 else ("higher", "more")
    return Claim(
        f"The bill of {rival.name} is {magnitude(more)} {way}",
        Fact(relation, (rival.name, best.name), "total_usd", more),
    )


def _bar_top(place: int) -> float:
    return _TOP + place * _ROW + (_ROW - _BAR) / 2


def _look(decision: Decision, name: str, kind: str = "") -> str:
    """Return the look of a design, whose colour is that of its place as listed."""
    names = [bill.name for bill in decision.every]
    return f"{kind} design-{names.index(name) % len(DESIGN_COLOURS)}".strip()


def _name_width(bills: Sequence[WholeBill]) -> float:
    return 26 + max((text_width(short(bill.name), SMALL, bold=True) for bill in bills), default=0.0)


def _name(bill: WholeBill, decision: Decision, top: float) -> tuple[Mark, Mark]:
    """Return a design's name beside its colour."""
    return Box("", _look(decision, bill.name), 0, top + 9, 10, 10), Words(
        short(bill.name), "bold", 14, top + 19
    )
