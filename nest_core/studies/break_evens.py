"""What must be true for one design to win over another, and the order of several.

A break-even (`nest_core.studies.whole_cost`) is found once with typical prices and predicted
speeds, and again at every end: all prices low, all high, the ratio of the two speeds at either end
of the paired interval (`nest_core.studies.uncertainty`). The range is from the smallest to the
largest of these; where an end has no break-even, the range is open there. Two designs whose speeds
differ by less than the paired interval are a tie in speed, and the sentence says so.

In an order two designs tie where what tells them apart lies inside the paired interval: by days
where their speeds differ by less than it; by price, which is that of a million tokens, where the
interval about the ratio of their speeds holds the ratio of their costs; by failure where the shares
that are lost differ by less than the interval about the rest. Without plans the price is that of
the whole bill; then figures within a thousandth are a tie. Prices of the parts are the same in all
designs, so their ends make no tie.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nest_core.bill.prices import PriceRange
from nest_core.documents import format_days, format_money, percent, require
from nest_core.hardware.posterior import SHARE, WIDTH
from nest_core.studies.uncertainty import paired_sd
from nest_core.studies.whole_bill import WholeBill, device_usd_of
from nest_core.studies.whole_cost import (
    BreakEvenPoint,
    DesignCost,
    crossing_of_hours,
    crossing_of_price,
    crossing_of_years,
    with_hours,
)

__all__ = [
    "ORDERS",
    "BreakEven",
    "OrderedDesign",
    "between",
    "of_design",
    "ordered",
    "speeds_tie",
    "with_break_evens",
]

_ENDS = ("low", "typical", "high")
_ALWAYS = ("whatever an accelerator costs", "whatever an accelerator costs")
Words = Callable[[float], str]


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


def with_break_evens(bills: Sequence[WholeBill]) -> list[BreakEven]:
    """Return what decides: of the first alone, else of the first against every other."""
    first, *others = bills
    if not others:
        return of_design(first)
    return [row for other in others for row in between(first, other, device_usd_of(bills))]


def speeds_tie(first: WholeBill, second: WholeBill) -> bool:
    """Return whether two designs' speeds differ by less than their paired interval."""
    if first.tokens_per_s is None or second.tokens_per_s is None:
        return False
    difference = abs(math.log(first.tokens_per_s / second.tokens_per_s))
    return difference < WIDTH * paired_sd(first.sureness, second.sureness)


def between(
    first: WholeBill, second: WholeBill, device_usd: PriceRange | None, hours: float = 1.0
) -> list[BreakEven]:
    """Return what decides between two planned designs; nothing where one has no plan.

    Parameters
    ----------
    first, second : WholeBill
    device_usd : PriceRange or None
        An accelerator with its share of the server; without one only its break-even is known.
    hours : float
        Share of the hours for which the cluster trains this model.
    """
    mine, theirs = first.cost(), second.cost()
    if mine is None or theirs is None:
        return []
    if mine.tokens_per_s * theirs.paid < theirs.tokens_per_s * mine.paid:
        first, second = second, first  # sentences are about the one whose accelerators do more

    def shared(one: DesignCost, other: DesignCost) -> tuple[DesignCost, DesignCost]:
        return with_hours(one, other, hours) if hours < 1 else (one, other)

    rows = [
        _break_even(
            "device_usd",
            (first, second),
            lambda one, other, _: crossing_of_price(*shared(one, other)),
            "an accelerator with its server share costs",
            _ALWAYS,
            format_money,
        )
    ]
    if device_usd is not None:
        rows += [
            _break_even(
                "share_of_hours",
                (first, second),
                lambda one, other, end: crossing_of_hours(one, other, getattr(device_usd, end)),
                "it trains this model for",
                (
                    "however few of its hours train this model",
                    "even where all its hours train this model",
                ),
                lambda value: f"{percent(value)} of its hours",
            ),
            _break_even(
                "years",
                (first, second),
                lambda one, other, end: crossing_of_years(
                    *shared(one, other), getattr(device_usd, end)
                ),
                "it is kept for",
                ("however long it is kept", "however long it is kept"),
                lambda value: f"{value:.3g} years",
            ),
        ]
    return rows


def of_design(bill: WholeBill) -> list[BreakEven]:
    """Return what decides for a design alone: what the rest of it costs, and rent."""
    owned = bill.owned
    rest = (1 / (owned.devices * (1 + owned.spares))) * (
        owned.besides_usd + owned.years * owned.yearly_usd
    )
    missing = " and ".join(line for line in owned.missing if line != owned.lines[0].name)
    without = f"; without {missing}, which have no source" if missing else ""
    rows = [
        BreakEven(
            "device_usd",
            rest.typical,
            rest.low,
            rest.high,
            "",
            f"Network, hall and {owned.years:g} years of energy are less than half of the bill "
            f"while an accelerator with its server share costs over {format_money(rest.typical)} "
            f"({_span(rest.low, rest.high, format_money)} over the ends of the prices){without}.",
        )
    ]
    hourly = owned.usd_per_device_hour
    if hourly is not None:
        share = owned.sold_share
        sold = "all its hours" if share is None else f"{percent(share)} of them"
        rows.append(
            BreakEven(
                "usd_per_device_hour",
                hourly.typical,
                hourly.low,
                hourly.high,
                "",
                f"Owning costs less than renting while an accelerator-hour rents for over "
                f"${hourly.typical:.2f} ({_span(hourly.low, hourly.high, '${:.2f}'.format)} over "
                f"the ends of the prices), kept for {owned.years:g} years with {sold} used"
                f"{without}.",
            )
        )
    return rows


def _break_even(
    quantity: str,
    pair: tuple[WholeBill, WholeBill],
    crossing: Callable[[DesignCost, DesignCost, str], BreakEvenPoint],
    subject: str,
    everywhere: tuple[str, str],
    words: Words,
) -> BreakEven:
    """Return the break-even of a quantity with its range and its sentence."""
    first, second = pair
    point, low, high = _ranged(first, second, crossing)
    tie = _tie(first, second, quantity) if speeds_tie(first, second) else ""
    if point.always or point.never:
        winner, loser = (first, second) if point.always else (second, first)
        headline = f"{winner.name} wins over {loser.name} {everywhere[point.never]}"
        sentence = f"{headline}{_exception(point, low, high, words)}{tie}."
    else:
        winner, side = first, "more than" if point.above else "less than"
        headline = f"{first.name} wins over {second.name} while {subject} {side} {words(point.at)}"
        sentence = f"{headline} ({_bounds(low, high, words)}){tie}."
    return BreakEven(
        quantity,
        None if point.always or point.never else point.at,
        low if math.isfinite(low) else None,
        high if math.isfinite(high) else None,
        winner.name,
        sentence,
        headline,
    )


def _ranged(
    first: WholeBill,
    second: WholeBill,
    crossing: Callable[[DesignCost, DesignCost, str], BreakEvenPoint],
) -> tuple[BreakEvenPoint, float, float]:
    """Return the break-even, and its range over ends of prices and of the ratio of speeds."""
    width = WIDTH * paired_sd(first.sureness, second.sureness)
    cases = [("typical", 0.0), *((end, moved) for end in _ENDS for moved in (0.0, -width, width))]
    points = []
    for end, moved in cases:
        mine, theirs = first.cost(end, float(np.exp(moved))), second.cost(end)
        if mine is not None and theirs is not None:
            points.append(crossing(mine, theirs, end))
    centre = points[0]
    edges = [_edge(centre, point) for point in points]
    return centre, min(edges), max(edges)


def _edge(centre: BreakEvenPoint, point: BreakEvenPoint) -> float:
    """Return where the first comes ahead in the direction in which it does at the centre."""
    if point.always or point.never:
        return 0.0 if point.always == centre.above else math.inf
    if point.above == centre.above:
        return point.at
    return math.inf if centre.above else 0.0


def _tie(first: WholeBill, second: WholeBill, quantity: str) -> str:
    """Say that two speeds cannot be told apart, and then which design costs less."""
    words = f"; their speeds differ by less than the {SHARE:.0%} paired interval"
    mine, theirs = first.cost(), second.cost()
    if quantity != "device_usd" or mine is None or theirs is None or mine.paid != theirs.paid:
        return words
    saved = mine.besides_usd - theirs.besides_usd
    cheaper = second if saved > 0 else first
    return f"{words}, and {cheaper.name} costs {format_money(abs(saved))} less" if saved else words


def _exception(point: BreakEvenPoint, low: float, high: float, words: Words) -> str:
    """Say what the ends of the prices and of the paired interval make of it."""
    if low == high:
        return ""
    edge = high if point.at == low else low
    if edge in (0.0, math.inf):
        return " at typical prices and predicted speeds, though not at every end of their ranges"
    side = "below" if edge < point.at else "beyond"
    return f"; at one end of the ranges only {side} {words(edge)}"


def _bounds(low: float, high: float, words: Words) -> str:
    """Return the range of a break-even in words, as far as it has ends."""
    ends = f"the ends of the prices and of the {SHARE:.0%} paired interval"
    if low == 0 and math.isinf(high):
        return f"{ends} leave it open"
    if math.isinf(high):
        return f"{words(low)} or more over {ends}"
    return f"{_span(low, high, words) if low > 0 else 'up to ' + words(high)} over {ends}"


def _span(low: float, high: float, words: Words) -> str:
    return words(low) if words(low) == words(high) else f"{words(low)} to {words(high)}"


ORDERS = ("price", "days", "failure")
_SAME = 1e-3


@dataclass(frozen=True, slots=True)
class OrderedDesign:
    """A design in its place.

    Parameters
    ----------
    rank : int
        From 1; the same for designs that tie with the first of their rank.
    name : str
    value : float or None
        Dollars (per million tokens where planned), days, or share lost; None comes last.
    text : str
        The value as people read it.
    ties : tuple of str
        Designs that it cannot be told from.
    note : str
        Why there is no value, or what fails.
    """

    rank: int
    name: str
    value: float | None
    text: str
    ties: tuple[str, ...] = ()
    note: str = ""


def ordered(bills: Sequence[WholeBill], by: str = "price") -> tuple[OrderedDesign, ...]:
    """Return designs from the best to the worst.

    Parameters
    ----------
    bills : sequence of WholeBill
    by : {"price", "days", "failure"}

    Raises
    ------
    InputError
        For another order.
    """
    require(by in ORDERS, "order", "must be price, days or failure", by, "pick one")
    planned = all(bill.report is not None for bill in bills)
    values = [_value(bill, by, planned) for bill in bills]
    places = sorted(
        range(len(bills)), key=lambda place: (values[place] is None, values[place] or 0.0)
    )
    rows: list[OrderedDesign] = []
    for number, place in enumerate(places):
        bill, value = bills[place], values[place]
        ties = tuple(
            bills[other].name
            for other in places
            if other != place
            and value is not None
            and values[other] is not None
            and _order_tie(bill, bills[other], by, (value, values[other] or 0.0))
        )
        lead = next((row for row in rows if row.rank == rows[-1].rank), None)
        rank = lead.rank if lead and lead.name in ties else number + 1  # of a tie the first has it
        note = bill.worst_loss[1] if by == "failure" and bill.worst_loss else bill.reason
        rows.append(OrderedDesign(rank, bill.name, value, _text(value, by, planned), ties, note))
    return tuple(rows)


def _value(bill: WholeBill, by: str, planned: bool) -> float | None:
    if by == "days":
        return bill.training.days if bill.training else None
    if by == "failure":
        return bill.worst_loss[0] if bill.worst_loss else None
    rate, owned = bill.tokens_per_s, bill.owned
    if not planned or rate is None:
        return None if planned else owned.total_usd.typical
    hours = owned.years * 8766.0 * (owned.sold_share or 1.0)  # what has no source has it nowhere
    return owned.total_usd.typical * 1e6 / (rate * 3600.0 * hours)


def _order_tie(bill: WholeBill, other: WholeBill, by: str, values: tuple[float, float]) -> bool:
    mine, theirs = values
    if bill.sureness is None or other.sureness is None:
        return math.isclose(mine, theirs, rel_tol=_SAME)
    width = WIDTH * paired_sd(bill.sureness, other.sureness)
    if by == "failure":  # of what is left of each one's own throughput
        mine, theirs = 1.0 - mine, 1.0 - theirs
        if mine <= 0 or theirs <= 0:
            return mine <= 0 and theirs <= 0
    return abs(math.log(mine / theirs)) < width


def _text(value: float | None, by: str, planned: bool) -> str:
    if value is None:
        return "unknown"
    if by == "days":
        return format_days(value)
    if by == "failure":
        return f"{percent(value)} lost"
    return f"${value:.3g} per million tokens" if planned else format_money(value)
