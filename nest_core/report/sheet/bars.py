"""Designs as bars: what each trains, run for run against the first, and what each costs.

One row per design, in one order, a bar from zero. Of a ratio of two speeds what both share cancels
(`nest_core.studies.uncertainty.paired_sd`): where its interval holds zero, the row says "tie".
"""

from __future__ import annotations

from collections.abc import Sequence

from nest_core.documents.units import format_money, percent, signed_percent
from nest_core.hardware.posterior import SHARE
from nest_core.report.picture.marks import Box, Drawn, Line, Mark, Words
from nest_core.report.picture.text import text_width
from nest_core.report.scale import Scale
from nest_core.report.sheet.charts import (
    SMALL,
    Ends,
    percent_ticks,
    vertical_grid,
    vertical_line,
)
from nest_core.report.sheet.weighing import Weighing, paired_difference
from nest_core.studies.whole_bill import WholeBill

__all__ = ["PARTS", "bill_chart", "parts_of_bill", "throughput_chart"]

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


def throughput_chart(weighing: Weighing, bills: Sequence[WholeBill], width: float = 568.0) -> Drawn:
    """Return bars with intervals, each alone; beside them the difference to the choice.

    Parameters
    ----------
    weighing : Weighing
    bills : sequence of WholeBill
        Those that have a plan, in the order of the rows.
    width : float
    """
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
        top, look = _bar_top(place), "ours" if bill is weighing.choice else "plain"
        bar_look = "bar good" if look == "ours" else "bar plain"
        middle, text = top + _BAR / 2, f"{rate / scale:.3g} {unit[0]}"
        marks += [
            Box("", bar_look, start, top, max(x(rate) - start, 1.0), _BAR),
            _name(bill, weighing, top),
            Words(text, f"on-{look}", start + 8, top + 19),
            Line("", "bracket", ((x(span[0]), middle), (x(span[1]), middle)), 1.4),
            *(vertical_line("bracket", x(end), (middle - 6, middle + 6), 1.4) for end in span),
        ]
    marks += _paired(weighing, bills, (split + 20, width - 28), ends)
    subtitle = f"Best plan of each, {SHARE:.0%} intervals; what both runs share cancels in the pair"
    return Drawn(_speed_title(weighing, bills), subtitle, width, ends[1] + 40, tuple(marks))


def _paired(weighing: Weighing, bills: Sequence[WholeBill], across: Ends, ends: Ends) -> list[Mark]:
    choice = weighing.choice
    rows = {
        place: paired_difference(choice, bill)
        for place, bill in enumerate(bills)
        if bill is not choice
    }
    values = [value for row in rows.values() for value in row] + [0.0]
    room = 0.12 * ((max(values) - min(values)) or 0.02)
    x = Scale(min(values) - room, max(values) + room, *across)
    words, zero = percent_ticks(x), x(0.0)
    name_x = min(zero, across[1] + 8)
    marks: list[Mark] = [
        Words("paired, run for run", "soft", across[0], 14),
        *vertical_grid(x, ends, lambda value: words(value) if value else ""),
        vertical_line("chart ours", zero, ends, 2.0),
        Words(choice.name, "accent bold", name_x, ends[1] + 34, anchor="middle"),
    ]
    for place, (value, low, high) in rows.items():
        y = _TOP + place * _ROW + _ROW / 2
        text = "tie" if low < 0 < high else signed_percent(value)
        span = f"{signed_percent(low).removesuffix(' %')} to {signed_percent(high)}"
        half = text_width(span, SMALL) / 2
        at = min(max(x(value), across[0] - 20 + half), across[1] + 28 - half)
        marks += [
            Box("", "bar plain", x(low), y - 4, max(x(high) - x(low), 1.5), 8),
            vertical_line("bracket", x(value), (y - 9, y + 9), 3.0),
            Words(text, "bold", at, y - 12, anchor="middle"),
            Box("", "plate", at - half - 2, y + 11, 2 * half + 4, 13),
            Words(span, "soft", at, y + 22, anchor="middle"),
        ]
    return marks


def _speed_title(weighing: Weighing, bills: Sequence[WholeBill]) -> str:
    choice = weighing.choice
    parts = []
    for bill in (bill for bill in bills if bill is not choice):
        value, low, high = paired_difference(choice, bill)
        if low < 0 < high:
            parts.append(f"{bill.name} ties with {choice.name}")
        else:
            way = "slower" if value < 0 else "faster"
            parts.append(f"{bill.name} is {percent(abs(value))} {way}")
    if len(parts) > 2:
        parts = [*parts[:2], f"{len(parts) - 2} more below"]
    return ", ".join(parts) or f"{choice.name} alone has a plan"


def parts_of_bill(bill: WholeBill) -> tuple[float, ...]:
    """Return dollars of every part of `PARTS`, typical."""
    sums = dict.fromkeys((name for name, _ in PARTS), 0.0)
    for line in bill.owned.lines:
        if line.usd is not None:
            sums[_part(line.part)] += line.usd.typical
    return tuple(sums.values())


def _part(part: str) -> str:
    if part.startswith("accelerators"):
        return "accelerators and servers"
    network, _, place = part.partition(", ")
    if network == "network" and place:
        return {"node": "NICs", "leaf": "leaf", "spine": "spine"}.get(place, "links")
    return {"hall": "hall", "energy": "power"}.get(part, "other")


def bill_chart(weighing: Weighing, bills: Sequence[WholeBill], width: float = 568.0) -> Drawn:
    """Return every design's whole bill as one stacked bar, its network and the sum beside it."""
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
            _name(bill, weighing, top),
            *_stack(x, row, top),
            Words(f"{network:.3g}", "", width - 84, top + 19, anchor="end"),
            Words(f"{total:.3g}", "bold", width, top + 19, anchor="end"),
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
    return Drawn(_bill_title(weighing), subtitle, width, foot + 6, tuple(marks))


def _stack(x: Scale, row: Sequence[float], top: float) -> list[Mark]:
    """Return the parts of one bill, each with its millions where they fit."""
    marks: list[Mark] = []
    spent = 0.0
    for (_, look), usd in zip(PARTS, row, strict=True):
        if usd > 0:
            first, last = x(spent), x(spent + usd)
            text, middle = f"{usd / _MILLION:.3g}", (first + last) / 2
            marks.append(Box("", look, first, top, max(last - first - 1, 0.5), _BAR))
            if last - first > text_width(text, SMALL) + 10:
                marks.append(Words(text, "on-plain", middle, top + 19, anchor="middle"))
            spent += usd
    return marks


def _bill_title(weighing: Weighing) -> str:
    mine, other = weighing.choice, weighing.rival
    usd = mine.owned.total_usd.typical
    if other is None:
        return f"{mine.name} costs {format_money(usd)}"
    more = other.owned.total_usd.typical / usd - 1
    if abs(more) < 5e-4:
        return f"{other.name} and {mine.name} cost the same"
    verb = "saves" if more < 0 else "adds"
    return f"{other.name} {verb} {percent(abs(more))} of {mine.name}'s whole bill"


def _bar_top(place: int) -> float:
    return _TOP + place * _ROW + (_ROW - _BAR) / 2


def _name_width(bills: Sequence[WholeBill]) -> float:
    return 12 + max((text_width(bill.name, SMALL, bold=True) for bill in bills), default=0.0)


def _name(bill: WholeBill, weighing: Weighing, top: float) -> Words:
    return Words(bill.name, "accent bold" if bill is weighing.choice else "bold", 0, top + 19)
