"""What must be true for one design to win over another, each as a sentence with its range.

A break-even (`nest_core.studies.whole_cost`) is found once with typical prices and predicted
speeds, and again at every end: all prices low, all high, the ratio of the two speeds at either end
of the paired interval (`nest_core.studies.interval`). The range is from the least to the greatest
of these; where an end has no break-even, the range is open there. Two designs whose speeds differ
by less than the paired interval are a tie in speed, and the sentence says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nest_core.bill.ownership import Owned
from nest_core.bill.prices import PriceRange
from nest_core.documents.units import format_money, percent
from nest_core.hardware.posterior import SHARE, WIDTH
from nest_core.studies.interval import Sureness, paired_sd
from nest_core.studies.whole_cost import (
    Crossing,
    Design,
    crossing_of_hours,
    crossing_of_price,
    crossing_of_years,
    with_hours,
)

__all__ = ["BreakEven", "Weighed", "between", "of_one", "speeds_tie"]

_ENDS = ("low", "typical", "high")


@dataclass(frozen=True, slots=True)
class BreakEven:
    """One figure that decides, and what it decides.

    Parameters
    ----------
    quantity : str
        ``device_usd``, ``share_of_hours``, ``years``, ``usd_per_device_hour``, …
    value : float or None
        None where no value of the quantity changes the order.
    low, high : float or None
        Over the ends of the prices and of the paired interval; None where open.
    winner : str
        Of two designs the one that the sentence is about; empty for one design.
    sentence : str
    headline : str
        The sentence without its range, where it is about two designs.
    """

    quantity: str
    value: float | None
    low: float | None
    high: float | None
    winner: str
    sentence: str
    headline: str = ""


@dataclass(frozen=True, slots=True)
class Weighed:
    """A design with its whole bill and, where it was planned, its speed.

    Parameters
    ----------
    name : str
    owned : Owned
    tokens_per_s : float or None
    sureness : Sureness or None
    """

    name: str
    owned: Owned
    tokens_per_s: float | None = None
    sureness: Sureness | None = None

    def design(self, end: str = "typical", faster: float = 1.0) -> Design | None:
        """What there is to weigh, at an end of the prices; None without a plan."""
        if self.tokens_per_s is None:
            return None
        whole = self.owned
        return Design(
            self.tokens_per_s * faster,
            whole.devices,
            getattr(whole.besides_usd, end),
            getattr(whole.yearly_usd, end),
            whole.years,
            whole.spares,
        )


def speeds_tie(first: Weighed, second: Weighed) -> bool:
    """Whether two designs' speeds differ by less than their paired interval."""
    if first.tokens_per_s is None or second.tokens_per_s is None:
        return False
    apart = abs(math.log(first.tokens_per_s / second.tokens_per_s))
    return apart < WIDTH * _paired(first, second)


def between(
    first: Weighed, second: Weighed, device_usd: PriceRange | None, hours: float = 1.0
) -> list[BreakEven]:
    """What decides between two planned designs; empty where one has no plan.

    Parameters
    ----------
    first, second : Weighed
    device_usd : PriceRange or None
        An accelerator with its share of the server; without one only its break-even is known.
    """
    mine, other = first.design(), second.design()
    if mine is None or other is None:
        return []
    if mine.tokens_per_s * other.paid < other.tokens_per_s * mine.paid:
        first, second = second, first  # sentences are about the one whose accelerators do more
    found = [_price(first, second, hours)]
    if device_usd is not None:
        found += [_hours(first, second, device_usd), _years(first, second, device_usd, hours)]
    return found


def of_one(one: Weighed) -> list[BreakEven]:
    """What decides for a design alone: what its accelerators cost beside the rest, and rent."""
    whole = one.owned
    rest = (1 / (whole.devices * (1 + whole.spares))) * (
        whole.besides_usd + whole.years * whole.yearly_usd
    )
    without = _without(whole)
    found = [
        BreakEven(
            "device_usd",
            rest.typical,
            rest.low,
            rest.high,
            "",
            f"Network, hall and {whole.years:g} years of energy are less than half of the bill "
            f"while an accelerator with its server share costs over {format_money(rest.typical)} "
            f"({_span(rest.low, rest.high, format_money)} over the ends of the prices){without}.",
        )
    ]
    hourly = whole.usd_per_device_hour
    if hourly is not None:
        sold = (
            "all its hours" if whole.sold_share is None else f"{percent(whole.sold_share)} of them"
        )
        found.append(
            BreakEven(
                "usd_per_device_hour",
                hourly.typical,
                hourly.low,
                hourly.high,
                "",
                f"Owning costs less than renting while an accelerator-hour rents for over "
                f"{_cents(hourly.typical)} ({_span(hourly.low, hourly.high, _cents)} over the ends "
                f"of the prices), kept for {whole.years:g} years with {sold} used{without}.",
            )
        )
    return found


def _without(whole: Owned) -> str:
    missing = [line for line in whole.missing if line != whole.lines[0].name]
    return f"; without {' and '.join(missing)}, which have no source" if missing else ""


def _price(first: Weighed, second: Weighed, hours: float) -> BreakEven:
    def crossing(one: Design, other: Design, _: str) -> Crossing:
        return crossing_of_price(*(with_hours(one, other, hours) if hours < 1 else (one, other)))

    found, low, high = _ranged(first, second, crossing)
    return _sentence(
        "device_usd",
        (first, second),
        found,
        (low, high),
        "an accelerator with its server share costs",
        ("whatever an accelerator costs", "whatever an accelerator costs"),
        format_money,
    )


def _hours(first: Weighed, second: Weighed, device_usd: PriceRange) -> BreakEven:
    def crossing(one: Design, other: Design, end: str) -> Crossing:
        return crossing_of_hours(one, other, getattr(device_usd, end))

    found, low, high = _ranged(first, second, crossing)
    return _sentence(
        "share_of_hours",
        (first, second),
        found,
        (low, high),
        "it trains this model for",
        (
            "however few of its hours train this model",
            "even where all its hours train this model",
        ),
        lambda value: f"{percent(value)} of its hours",
    )


def _years(first: Weighed, second: Weighed, device_usd: PriceRange, hours: float) -> BreakEven:
    def crossing(one: Design, other: Design, end: str) -> Crossing:
        if hours < 1:
            one, other = with_hours(one, other, hours)
        return crossing_of_years(one, other, getattr(device_usd, end))

    found, low, high = _ranged(first, second, crossing)
    return _sentence(
        "years",
        (first, second),
        found,
        (low, high),
        "it is kept for",
        ("however long it is kept", "however long it is kept"),
        lambda value: f"{value:.3g} years",
    )


def _ranged(
    first: Weighed, second: Weighed, crossing: Callable[[Design, Design, str], Crossing]
) -> tuple[Crossing, float, float]:
    """The break-even, and the least and greatest over ends of prices and of the ratio."""
    width = WIDTH * _paired(first, second)
    cases = [(end, moved) for end in _ENDS for moved in (0.0, -width, width)]
    cases.sort(key=lambda case: case != ("typical", 0.0))
    found = []
    for end, moved in cases:
        mine, other = first.design(end, float(np.exp(moved))), second.design(end)
        if mine is not None and other is not None:
            found.append(crossing(mine, other, end))
    centre = found[0]
    edges = [_edge(centre, one) for one in found]
    return centre, min(edges), max(edges)


def _edge(centre: Crossing, found: Crossing) -> float:
    """Where the first comes ahead in the direction in which it does at the centre."""
    if found.always or found.never:
        return 0.0 if found.always == centre.above else math.inf
    if found.above == centre.above:
        return found.at
    return math.inf if centre.above else 0.0


def _paired(first: Weighed, second: Weighed) -> float:
    if first.sureness is None or second.sureness is None:
        return 0.0
    return paired_sd(first.sureness, second.sureness)


def _sentence(
    quantity: str,
    names: tuple[Weighed, Weighed],
    found: Crossing,
    span: tuple[float, float],
    subject: str,
    everywhere: tuple[str, str],
    words: Callable[[float], str],
) -> BreakEven:
    first, second = names
    low, high = (value if math.isfinite(value) else None for value in span)
    tie = _tie(first, second, quantity) if speeds_tie(first, second) else ""
    if found.always or found.never:
        winner, loser = (first, second) if found.always else (second, first)
        told = f"{winner.name} wins over {loser.name} {everywhere[found.never]}"
        return BreakEven(
            quantity,
            None,
            low,
            high,
            winner.name,
            f"{told}{_open(found, span, words)}{tie}.",
            told,
        )
    side = "more than" if found.above else "less than"
    told = f"{first.name} wins over {second.name} while {subject} {side} {words(found.at)}"
    return BreakEven(
        quantity,
        found.at,
        low,
        high,
        first.name,
        f"{told} ({_bounds(span, words)}){tie}.",
        told,
    )


def _tie(first: Weighed, second: Weighed, quantity: str) -> str:
    """That two speeds cannot be told apart, and then which design costs less."""
    words = f"; their speeds differ by less than the {SHARE:.0%} paired interval"
    one, other = first.design(), second.design()
    if quantity != "device_usd" or one is None or other is None or one.paid != other.paid:
        return words
    less, more = sorted((first, second), key=lambda each: _besides(each))
    saved = _besides(more) - _besides(less)
    return f"{words}, and {less.name} costs {format_money(saved)} less" if saved > 0 else words


def _besides(one: Weighed) -> float:
    """All but accelerators and their servers, over its years."""
    return one.owned.besides_usd.typical + one.owned.years * one.owned.yearly_usd.typical


def _open(found: Crossing, span: tuple[float, float], words: Callable[[float], str]) -> str:
    """What the ends of the prices and of the paired interval make of it."""
    low, high = span
    if low == high:
        return ""
    edge = high if found.at == low else low
    if edge in (0.0, math.inf):
        return " at typical prices and predicted speeds, though not at every end of their ranges"
    side = "below" if edge < found.at else "beyond"
    return f"; at one end of the ranges only {side} {words(edge)}"


def _bounds(span: tuple[float, float], words: Callable[[float], str]) -> str:
    """The range of a break-even, as far as it has ends."""
    low, high = span
    ends = f"the ends of the prices and of the {SHARE:.0%} paired interval"
    if low == 0 and math.isinf(high):
        return f"{ends} leave it open"
    if math.isinf(high):
        return f"{words(low)} or more over {ends}"
    return f"{_span(low, high, words) if low > 0 else 'up to ' + words(high)} over {ends}"


def _span(low: float, high: float, words: Callable[[float], str]) -> str:
    return words(low) if words(low) == words(high) else f"{words(low)} to {words(high)}"


def _cents(value: float) -> str:
    return f"${value:.2f}"
