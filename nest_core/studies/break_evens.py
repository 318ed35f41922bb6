"""What must be true for one design to cost less than another for what it trains.

A break-even (`nest_core.studies.whole_bill`) is found once with typical prices and predicted
speeds, and again at every end: all prices low, all high, the ratio of the two speeds at either end
of the paired interval (`nest_core.studies.uncertainty`). The range is from the smallest to the
largest of these; where an end has no break-even, the range is open there. A break-even compares
predictions: who is built where two designs tie says the rule of `nest_core.studies.decision`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nest_core.bill.prices import PriceRange
from nest_core.documents import agreeing, does, format_money, percent
from nest_core.hardware.posterior import WIDTH
from nest_core.studies.uncertainty import paired_sd
from nest_core.studies.whole_bill import (
    BreakEvenPoint,
    DesignCost,
    WholeBill,
    crossing_of_hours,
    crossing_of_price,
    crossing_of_years,
    with_hours,
)

__all__ = [
    "BreakEven",
    "between",
    "of_design",
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


def between(
    first: WholeBill,
    second: WholeBill,
    device_usd: PriceRange | None,
    hours: float,
    reference: DesignCost,
) -> list[BreakEven]:
    """Return what decides between two planned designs; nothing where one has no plan.

    Parameters
    ----------
    first, second : WholeBill
    device_usd : PriceRange or None
        An accelerator with its share of the server; without one only its break-even is known.
    hours : float
        Share of the hours for which the cluster trains this model.
    reference : DesignCost
        What an accelerator is worth for the rest of them; see `with_hours`.
    """
    mine, theirs = first.cost(), second.cost()
    if mine is None or theirs is None or mine == theirs:
        return []
    if mine.tokens_per_s * theirs.paid < theirs.tokens_per_s * mine.paid:
        first, second = second, first  # sentences are about the one whose accelerators do more

    def works(*designs: DesignCost) -> tuple[DesignCost, DesignCost]:
        work, other = (with_hours(design, reference, hours) for design in designs)
        return work, other

    pair, per = (first, second), "per token" if hours == 1.0 else "for its work"
    rows = [
        _break_even(
            "device_usd",
            pair,
            lambda one, other, _: crossing_of_price(*works(one, other)),
            f"{per} while an accelerator with its server share costs",
            _ALWAYS,
            format_money,
        )
    ]
    if device_usd is not None:
        rows += [
            _break_even(
                "share_of_hours",
                pair,
                lambda one, other, end: crossing_of_hours(
                    one, other, getattr(device_usd, end), reference
                ),
                "for its work while it trains this model for",
                (
                    "however few of its hours train this model",
                    "even where all its hours train this model",
                ),
                lambda value: f"{percent(value)} of its hours",
            ),
            _break_even(
                "years",
                pair,
                lambda one, other, end: crossing_of_years(
                    *works(one, other), getattr(device_usd, end)
                ),
                f"{per} while it is kept for",
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
    if point.always or point.never:
        winner, loser = (first, second) if point.always else (second, first)
        headline = f"{does(winner.name, 'costs')} less than {loser.name} {everywhere[point.never]}"
        sentence = f"At predicted speeds {headline}{_exception(point, low, high, words)}."
    else:
        winner, side = first, "more than" if point.above else "less than"
        verb = agreeing(first.name, "costs")
        headline = f"{first.name} {verb} less than {second.name} {subject} {side} {words(point.at)}"
        sentence = f"At predicted speeds {headline} ({_bounds(low, high, words)})."
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
    costs = ((first.cost(end, float(np.exp(moved))), second.cost(end), end) for end, moved in cases)
    points = [
        crossing(mine, theirs, end)
        for mine, theirs, end in costs
        if mine is not None and theirs is not None
    ]
    centre = points[0]
    edges = [_edge(centre, point) for point in points]
    return centre, min(edges), max(edges)


def _edge(centre: BreakEvenPoint, point: BreakEvenPoint) -> float:
    """Return where the first comes ahead in the direction in which it does at the centre."""
    if point.always or point.never:
        return 0.0 if point.always == centre.above else math.inf
    beyond = math.inf if centre.above else 0.0
    return point.at if point.above == centre.above else beyond


def _exception(point: BreakEvenPoint, low: float, high: float, words: Words) -> str:
    """Say what the ends of the prices and of the paired interval make of it."""
    if low == high:
        return ""
    edge = high if point.at == low else low
    if edge in (0.0, math.inf):
        return ", though not at every end of the prices and speeds"
    side = "below" if edge < point.at else "beyond"
    return f"; at one end of the ranges only {side} {words(edge)}"


def _bounds(low: float, high: float, words: Words) -> str:
    """Return the range of a break-even in words, as far as it has ends."""
    if low == 0 and math.isinf(high):
        return "range open at both ends"
    if math.isinf(high):
        return f"range {words(low)} or more"
    return f"range {_span(low, high, words) if low > 0 else 'up to ' + words(high)}"


def _span(low: float, high: float, words: Words) -> str:
    return words(low) if words(low) == words(high) else f"{words(low)} to {words(high)}"
