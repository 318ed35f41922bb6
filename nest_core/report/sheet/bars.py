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
from nest_core.report.sheet.plot import SMALL, Ends, percent_ticks, vertical_grid, vertical_line
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


def throughput_chart(found: Weighing, bills: Sequence[WholeBill], width: float = 568.0) -> Drawn:
    """Return bars with intervals, each alone; beside them the difference to the choice.

    Parameters
    ----------
    found : Weighing
    bills : sequence of WholeBill
        Those that have a plan, in the order of the rows.
    width : float
    """
    left, ends = _name_width(bills), (_TOP, _TOP + _ROW * len(bills))
    split = left + 0.56 * (width - left)
    spans = [_span(one) for one in bills]
    most = max([high for _, _, high in spans] + [1e-3])
    unit, scale = ("M tokens/s", 1e6) if most >= 1e6 else ("k tokens/s", 1e3)
    x = Scale(0.0, 1.02 * most, left, split - 24)
    marks: list[Mark] = [Words("each alone", "soft", left, 14)]
    marks += vertical_grid(x, ends, lambda rate: f"{rate / scale:g}")
    marks.append(Words(unit, "soft", (left + split - 24) / 2, ends[1] + 34, anchor="middle"))
    for place, (one, (rate, low, high)) in enumerate(zip(bills, spans, strict=True)):
        top, ours = _bar_top(place), one is found.choice
        middle = top + _BAR / 2
        marks += [
            Box("", "bar good" if ours else "bar plain", left, top, max(x(rate) - left, 1.0), _BAR),
            _name(one, found, top),
            Words(
                f"{rate / scale:.3g} {unit[0]}",
                "on-ours" if ours else "on-plain",
                left + 8,
                top + 19,
            ),
            Line("", "bracket", ((x(low), middle), (x(high), middle)), 1.4),
            *(
                vertical_line("bracket", x(end), (middle - 6, middle + 6), 1.4)
                for end in (low, high)
            ),
        ]
    marks += _paired(found, bills, (split + 20, width - 28), ends)
    subtitle = f"Best plan of each, {SHARE:.0%} intervals; what both runs share cancels in the pair"
    return Drawn(_speed_title(found, bills), subtitle, width, ends[1] + 40, tuple(marks))


def _span(one: WholeBill) -> tuple[float, float, float]:
    """Tokens per second, and the ends of their interval."""
    rate = one.tokens_per_s or 0.0
    return rate, *(one.sureness.interval.around(rate) if one.sureness else (rate, rate))


def _paired(found: Weighing, bills: Sequence[WholeBill], across: Ends, ends: Ends) -> list[Mark]:
    others = [(place, one) for place, one in enumerate(bills) if one is not found.choice]
    moved = {one.name: paired_difference(found.choice, one) for _, one in others}
    values = [value for row in moved.values() for value in row] + [0.0]
    room = 0.12 * ((max(values) - min(values)) or 0.02)
    x = Scale(min(values) - room, max(values) + room, *across)
    words, zero = percent_ticks(x), x(0.0)
    marks: list[Mark] = [Words("paired, run for run", "soft", across[0], 14)]
    marks += vertical_grid(x, ends, lambda value: words(value) if value else "")
    marks.append(vertical_line("chart ours", zero, ends, 2.0))
    name_x = min(zero, across[1] + 8)
    marks.append(Words(found.choice.name, "accent bold", name_x, ends[1] + 34, anchor="middle"))
    for place, one in others:
        y = _TOP + place * _ROW + _ROW / 2
        value, low, high = moved[one.name]
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


def _speed_title(found: Weighing, bills: Sequence[WholeBill]) -> str:
    told = []
    for one in bills:
        value, low, high = paired_difference(found.choice, one)
        if low < 0 < high:
            told.append(f"{one.name} ties with {found.choice.name}")
        elif one is not found.choice:
            told.append(
                f"{one.name} is {percent(abs(value))} {'slower' if value < 0 else 'faster'}"
            )
    if not told:
        return f"{found.choice.name} alone has a plan"
    if len(told) > 2:
        told = [*told[:2], f"{len(told) - 2} more below"]
    return ", ".join(told)


def parts_of_bill(one: WholeBill) -> tuple[float, ...]:
    """Return dollars of every part of `PARTS`, typical."""
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
    """Return every design's whole bill as one stacked bar, its network and the sum beside it."""
    left, ends = _name_width(bills), (_TOP, _TOP + _ROW * len(bills))
    right = width - 158.0
    parts = [parts_of_bill(one) for one in bills]
    x = Scale(0.0, 1.02 * max([*map(sum, parts), 1.0]), left, right)
    marks: list[Mark] = [
        Words("network", "soft", width - 84, 14, anchor="end"),
        Words("whole bill", "soft", width, 14, anchor="end"),
        *vertical_grid(x, ends, lambda usd: f"{usd / _MILLION:g}"),
        Words("M$", "soft", right, ends[1] + 34, anchor="end"),
    ]
    for place, (one, row) in enumerate(zip(bills, parts, strict=True)):
        top = _bar_top(place)
        marks += [_name(one, found, top), *_stack(x, row, top)]
        for look, usd, at in (
            ("", one.owned.network.price_usd.typical, width - 84),
            ("bold", one.owned.total_usd.typical, width),
        ):
            marks.append(Words(f"{usd / _MILLION:.3g}", look, at, top + 19, anchor="end"))
    legend = _legend(parts, left, ends[1] + 58, width)
    foot = max((mark.y for mark in legend if isinstance(mark, Words)), default=ends[1] + 58)
    subtitle = f"Whole bill over {bills[0].owned.years:g} years, M$" if bills else ""
    return Drawn(_bill_title(found), subtitle, width, foot + 6, (*marks, *legend))


def _stack(x: Scale, row: Sequence[float], top: float) -> list[Mark]:
    """The parts of one bill, each with its millions where they fit."""
    marks: list[Mark] = []
    spent = 0.0
    for (_, look), usd in zip(PARTS, row, strict=True):
        if usd > 0:
            first, last = x(spent), x(spent + usd)
            text = f"{usd / _MILLION:.3g}"
            marks.append(Box("", look, first, top, max(last - first - 1, 0.5), _BAR))
            if last - first > text_width(text, SMALL) + 10:
                middle = (first + last) / 2
                marks.append(Words(text, "on-plain", middle, top + 19, anchor="middle"))
            spent += usd
    return marks


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
    """What is billed anywhere, in rows as wide as the chart."""
    marks: list[Mark] = []
    x = left
    for (name, look), values in zip(PARTS, zip(*parts, strict=True), strict=True):
        if not any(values):
            continue
        need = text_width(name, SMALL) + 34
        if x + need > width:
            x, y = left, y + 18
        marks += [Box("", look, x, y - 10, 10, 10), Words(name, "soft", x + 14, y)]
        x += need
    return marks


def _bar_top(place: int) -> float:
    return _TOP + place * _ROW + (_ROW - _BAR) / 2


def _name_width(bills: Sequence[WholeBill]) -> float:
    return 12 + max((text_width(one.name, SMALL, bold=True) for one in bills), default=0.0)


def _name(one: WholeBill, found: Weighing, top: float) -> Words:
    return Words(one.name, "accent bold" if one is found.choice else "bold", 0, top + 19)
