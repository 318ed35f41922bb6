"""Designs as bars: what each trains, run for run against the first, and what each costs.

One row per design, in one order, a bar from zero. Of a ratio of two speeds what both share cancels
(`nest_core.studies.interval.paired_sd`): where its interval holds zero, the row says "tie".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from nest_core.hardware.posterior import SHARE, WIDTH
from nest_core.picture.marks import Box, Drawn, Line, Mark, Words
from nest_core.picture.text import text_width
from nest_core.sheet.charts import round_step
from nest_core.sheet.weighing import Weighing
from nest_core.studies.interval import paired_sd
from nest_core.studies.whole_bill import WholeBill
from nest_core.units import format_money, percent, signed_percent

__all__ = ["PARTS", "bill_chart", "parts_of_bill", "throughput_chart"]

_SMALL = 12.0
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


def throughput_chart(found: Weighing, bills: Sequence[WholeBill], width: float = 568.0) -> Drawn:
    """Bars with intervals, each alone; beside them the difference to the choice, run for run.

    Parameters
    ----------
    found : Weighing
    bills : sequence of WholeBill
        Those that have a plan, in the order of the rows.
    width : float
    """
    left = _name_width(bills)
    split = left + 0.56 * (width - left)
    rates = [(one.tokens_per_s or 0.0) / _MILLION for one in bills]
    spans = [_span(one) for one in bills]
    most = max([*rates, *(high for _, high in spans), 1e-9])
    scale, unit = (1.0, "M tokens/s") if most >= 1 else (1e3, "k tokens/s")
    bottom = _TOP + _ROW * len(bills)

    def at(value: float) -> float:
        return left + (split - 24 - left) * value / (1.02 * most)

    marks: list[Mark] = [Words("each alone", "soft", left, 14)]
    marks += _axis(at, most, (_TOP, bottom), lambda value: f"{value * scale:g}", scale)
    marks.append(Words(unit, "soft", (left + split - 24) / 2, bottom + 34, anchor="middle"))
    for place, (one, rate, (low, high)) in enumerate(zip(bills, rates, spans, strict=True)):
        y = _TOP + place * _ROW + (_ROW - _BAR) / 2
        look = "bar good" if one is found.choice else "bar plain"
        marks.append(Box("", look, left, y, max(at(rate) - left, 1.0), _BAR))
        marks.append(Words(one.name, _bold(one, found), 0, y + 19))
        text = f"{rate * scale:.3g} {unit[0]}"
        inner = "on-ours" if one is found.choice else "on-plain"
        marks.append(Words(text, inner, left + 8, y + 19))
        middle = y + _BAR / 2
        marks += [Line("", "bracket", ((at(low), middle), (at(high), middle)), 1.4)]
        marks += [
            Line("", "bracket", ((at(end), middle - 6), (at(end), middle + 6)), 1.4)
            for end in (low, high)
        ]
    marks += _paired(found, bills, (split, width), bottom)
    subtitle = f"Best plan of each, {SHARE:.0%} intervals; what both runs share cancels in the pair"
    return Drawn(_speed_title(found, bills), subtitle, width, bottom + 40, tuple(marks))


def _span(one: WholeBill) -> tuple[float, float]:
    rate = one.tokens_per_s or 0.0
    if one.sureness is None:
        return rate / _MILLION, rate / _MILLION
    low, high = one.sureness.interval.around(rate)
    return low / _MILLION, high / _MILLION


def apart(found: Weighing, one: WholeBill) -> tuple[float, float, float]:
    """How much faster a design is than the choice, and the ends of the paired interval."""
    ratio = (one.tokens_per_s or 0.0) / (found.choice.tokens_per_s or 1.0)
    if one.sureness is None or found.choice.sureness is None:
        return ratio - 1, ratio - 1, ratio - 1
    width = math.exp(WIDTH * paired_sd(found.choice.sureness, one.sureness))
    return ratio - 1, ratio / width - 1, ratio * width - 1


def _paired(
    found: Weighing, bills: Sequence[WholeBill], ends: tuple[float, float], bottom: float
) -> list[Mark]:
    left, right = ends[0] + 20, ends[1] - 28
    moved = {one.name: apart(found, one) for one in bills if one is not found.choice}
    values = [value for row in moved.values() for value in row] + [0.0]
    room = 0.12 * ((max(values) - min(values)) or 0.02)
    low, high = min(values) - room, max(values) + room

    def at(value: float) -> float:
        return left + (right - left) * (value - low) / (high - low)

    marks: list[Mark] = [Words("paired, run for run", "soft", left, 14)]
    step = round_step((high - low) / 3)
    for number in range(math.ceil(low / step), math.floor(high / step) + 1):
        x = at(number * step)
        marks.append(Line("", "grid", ((x, _TOP), (x, bottom)), 1.0))
        if number:
            text = signed_percent(number * step, 0 if step >= 0.0099 else 1)
            marks.append(Words(text, "soft", x, bottom + 16, anchor="middle"))
    zero = at(0.0)
    marks.append(Line("", "chart ours", ((zero, _TOP), (zero, bottom)), 2.0))
    marks.append(
        Words(
            found.choice.name, "accent bold", min(zero, ends[1] - 20), bottom + 34, anchor="middle"
        )
    )
    for place, one in enumerate(bills):
        if one is found.choice:
            continue
        y = _TOP + place * _ROW + _ROW / 2
        value, least, most = moved[one.name]
        marks.append(Box("", "bar plain", at(least), y - 4, max(at(most) - at(least), 1.5), 8))
        marks.append(Line("", "bracket", ((at(value), y - 9), (at(value), y + 9)), 3.0))
        tie = least < 0 < most
        text = "tie" if tie else signed_percent(value)
        ends_said = f"{signed_percent(least).removesuffix(' %')} to {signed_percent(most)}"
        half = text_width(ends_said, _SMALL) / 2
        x = min(max(at(value), ends[0] + half), ends[1] - half)
        marks.append(Words(text, "bold", x, y - 12, anchor="middle"))
        marks.append(Box("", "plate", x - half - 2, y + 11, 2 * half + 4, 13))
        marks.append(Words(ends_said, "soft", x, y + 22, anchor="middle"))
    return marks


def _speed_title(found: Weighing, bills: Sequence[WholeBill]) -> str:
    told = []
    for one in bills:
        if one is found.choice:
            continue
        value, low, high = apart(found, one)
        if low < 0 < high:
            told.append(f"{one.name} ties with {found.choice.name}")
        else:
            told.append(
                f"{one.name} is {percent(abs(value))} {'slower' if value < 0 else 'faster'}"
            )
    if not told:
        return f"{found.choice.name} alone has a plan"
    if len(told) > 2:
        told = [*told[:2], f"{len(told) - 2} more below"]
    return ", ".join(told)


def parts_of_bill(one: WholeBill) -> tuple[float, ...]:
    """Dollars of every part of `PARTS`, typical."""
    sums = dict.fromkeys((name for name, _ in PARTS), 0.0)
    for line in one.owned.lines:
        if line.usd is not None:
            sums[_part(line.part)] += line.usd.typical
    return tuple(sums.values())


def _part(part: str) -> str:
    if part.startswith("accelerators"):
        return "accelerators and servers"
    if part.startswith("network, "):
        place = part.removeprefix("network, ")
        if place == "node":
            return "NICs"
        return place if place in ("leaf", "spine") else "links"
    return {"hall": "hall", "energy": "power"}.get(part, "other")


def bill_chart(found: Weighing, bills: Sequence[WholeBill], width: float = 568.0) -> Drawn:
    """The whole bill of every design as one stacked bar, its network and the whole beside it."""
    left = _name_width(bills)
    right = width - 158.0
    parts = [parts_of_bill(one) for one in bills]
    most = max([*(sum(row) for row in parts), 1.0]) / _MILLION
    bottom = _TOP + _ROW * len(bills)

    def at(value: float) -> float:
        return left + (right - left) * value / (1.02 * most)

    marks: list[Mark] = [
        Words("network", "soft", width - 84, 14, anchor="end"),
        Words("whole bill", "soft", width, 14, anchor="end"),
    ]
    marks += _axis(at, most, (_TOP, bottom), lambda value: f"{value:g}", 1.0)
    marks.append(Words("M$", "soft", right, bottom + 34, anchor="end"))
    marks += _legend(parts, left, bottom + 58, width)
    for place, (one, row) in enumerate(zip(bills, parts, strict=True)):
        y = _TOP + place * _ROW + (_ROW - _BAR) / 2
        marks.append(Words(one.name, _bold(one, found), 0, y + 19))
        spent = 0.0
        for (_, look), value in zip(PARTS, row, strict=True):
            if value <= 0:
                continue
            first, last = at(spent / _MILLION), at((spent + value) / _MILLION)
            marks.append(Box("", look, first, y, max(last - first - 1, 0.5), _BAR))
            text = f"{value / _MILLION:.3g}"
            if last - first > text_width(text, _SMALL) + 10:
                marks.append(Words(text, "on-plain", (first + last) / 2, y + 19, anchor="middle"))
            spent += value
        network = one.owned.network.price_usd.typical / _MILLION
        total = one.owned.total_usd.typical / _MILLION
        marks.append(Words(f"{network:.3g}", "", width - 84, y + 19, anchor="end"))
        marks.append(Words(f"{total:.3g}", "bold", width, y + 19, anchor="end"))
    rows = _legend_rows(parts, left, width)
    subtitle = f"Whole bill over {bills[0].owned.years:g} years, M$" if bills else ""
    return Drawn(_bill_title(found), subtitle, width, bottom + 64 + 18 * (rows - 1), tuple(marks))


def _bill_title(found: Weighing) -> str:
    mine, other = found.choice, found.rival
    if other is None:
        return f"{mine.name} costs {format_money(mine.owned.total_usd.typical)}"
    whole = other.owned.total_usd.typical / mine.owned.total_usd.typical - 1
    if abs(whole) < 5e-4:
        return f"{other.name} and {mine.name} cost the same"
    word = "saves" if whole < 0 else "adds"
    return f"{other.name} {word} {percent(abs(whole))} of {mine.name}'s whole bill"


def _legend(parts: Sequence[Sequence[float]], left: float, y: float, width: float) -> list[Mark]:
    marks: list[Mark] = []
    x = left
    for name, look in _shown(parts):
        need = text_width(name, _SMALL) + 34
        if x + need > width:
            x, y = left, y + 18
        marks.append(Box("", look, x, y - 10, 10, 10))
        marks.append(Words(name, "soft", x + 14, y))
        x += need
    return marks


def _legend_rows(parts: Sequence[Sequence[float]], left: float, width: float) -> int:
    x, rows = left, 1
    for name, _ in _shown(parts):
        need = text_width(name, _SMALL) + 34
        if x + need > width:
            x, rows = left, rows + 1
        x += need
    return rows


def _shown(parts: Sequence[Sequence[float]]) -> list[tuple[str, str]]:
    return [
        part for part, values in zip(PARTS, zip(*parts, strict=True), strict=True) if any(values)
    ]


def _axis(
    at: Callable[[float], float],
    most: float,
    ends: tuple[float, float],
    words: Callable[[float], str],
    scale: float,
) -> list[Mark]:
    marks: list[Mark] = []
    step = round_step(most * scale / 3) / scale
    for number in range(math.floor(most / step * 1.001) + 1):
        x = at(number * step)
        marks.append(Line("", "grid", ((x, ends[0]), (x, ends[1])), 1.0))
        marks.append(Words(words(number * step), "soft", x, ends[1] + 16, anchor="middle"))
    return marks


def _name_width(bills: Sequence[WholeBill]) -> float:
    return 12 + max((text_width(one.name, _SMALL, bold=True) for one in bills), default=0.0)


def _bold(one: WholeBill, found: Weighing) -> str:
    return "accent bold" if one is found.choice else "bold"
