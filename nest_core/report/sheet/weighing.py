"""What a decision sheet says, as figures: which design, against which, and what would change it.

The choice is the cheapest to buy and keep of those that tie per token with the best
(`nest_core.studies.break_evens`); the rival is the next in that order. How much dearer a token of
the rival is follows from the algebra of `nest_core.studies.whole_cost`, so a curve crosses zero at
the break-even that the command line prints, and a bar of the sensitivity where its assumption does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from nest_core.bill.prices import PriceRange
from nest_core.documents import InputError, format_money, require, signed_percent
from nest_core.hardware.posterior import WIDTH
from nest_core.studies.break_evens import BreakEven, between, ordered, speeds_tie
from nest_core.studies.uncertainty import paired_sd
from nest_core.studies.whole_bill import WholeBill, device_usd_of
from nest_core.studies.whole_cost import DesignCost, with_hours

__all__ = [
    "DearnessCurve",
    "Moved",
    "Weighing",
    "curves",
    "dearer",
    "moved",
    "paired_difference",
    "weigh",
]

_POINTS = 60
_MIN_HOURS = 0.5
"""The least share of its hours that a cluster is taken to train this model."""


@dataclass(frozen=True, slots=True)
class Weighing:
    """Designs beside each other, and what decides.

    Parameters
    ----------
    bills : tuple of WholeBill
        Those that have a plan, as they were asked for.
    left_out : tuple of WholeBill
        Those that have none.
    choice : WholeBill
    ties : tuple of str
        Designs that cost as much per token as the choice, for all that is known.
    rival : WholeBill or None
        None where nothing stands beside the choice.
    device_usd : PriceRange or None
        An accelerator with its share of the server; None without one price for all.
    device_edge, hours_edge : BreakEven or None
        Between the choice and the rival: in the price of an accelerator, and in the share of hours.
    hours : float
        Share of the hours that train this model.
    """

    bills: tuple[WholeBill, ...]
    left_out: tuple[WholeBill, ...]
    choice: WholeBill
    ties: tuple[str, ...]
    rival: WholeBill | None
    device_usd: PriceRange | None
    device_edge: BreakEven | None
    hours_edge: BreakEven | None
    hours: float = 1.0

    @property
    def others(self) -> tuple[WholeBill, ...]:
        """Bills beside the choice, as they were asked for."""
        return tuple(bill for bill in self.bills if bill is not self.choice)

    @property
    def speeds_tie(self) -> bool:
        """Whether choice and rival train equally fast, for all that is known."""
        return self.rival is not None and speeds_tie(self.choice, self.rival)


def weigh(
    bills: Sequence[WholeBill], *, against_first: bool = False, hours: float = 1.0
) -> Weighing:
    """Return what decides between designs.

    Parameters
    ----------
    bills : sequence of WholeBill
    against_first : bool
        Whether the first that has a plan is what others are weighed against; else the one that
        costs least per token, of those that tie the one that costs least.
    hours : float
        Share of the hours that train this model.

    Raises
    ------
    InputError
        If none of them has a plan.
    """
    planned = tuple(bill for bill in bills if bill.report is not None)
    require(
        planned,
        "designs",
        "must include one that has a plan",
        bills[0].reason if bills else "there is no design",
        "change it",
    )
    order = ordered(planned, "price")
    choice = planned[0]
    if not against_first:
        level = [bill for bill in planned if bill.name in (order[0].name, *order[0].ties)]
        choice = min(level, key=lambda bill: bill.owned.total_usd.typical)
    by_name = {bill.name: bill for bill in reversed(planned)}
    rival = next((by_name[row.name] for row in order if row.name != choice.name), None)
    device_usd = device_usd_of(planned)
    edges = between(choice, rival, device_usd, hours) if rival else []
    by_quantity = {edge.quantity: edge for edge in reversed(edges)}
    return Weighing(
        planned,
        tuple(bill for bill in bills if bill.report is None),
        choice,
        next(row.ties for row in order if row.name == choice.name),
        rival,
        device_usd,
        by_quantity.get("device_usd"),
        by_quantity.get("share_of_hours"),
        hours,
    )


def dearer(choice: DesignCost, other: DesignCost, device_usd: float, hours: float = 1.0) -> float:
    """Return how much dearer a token of another design is, as a share of the choice's.

    Parameters
    ----------
    choice, other : DesignCost
    device_usd : float
    hours : float
        Share of the hours that train this model; for the rest an accelerator is worth as much in
        both designs.

    Examples
    --------
    >>> fast, cheap = DesignCost(1.02e6, 1024, 6e6), DesignCost(1e6, 1024, 4e6)
    >>> round(dearer(fast, cheap, 93_750.0), 12)
    0.0
    """
    mine, theirs = with_hours(choice, other, hours)
    cost, other_cost = choice.whole_usd(device_usd), other.whole_usd(device_usd)
    return (other_cost / theirs.tokens_per_s) / (cost / mine.tokens_per_s) - 1.0


@dataclass(frozen=True, slots=True)
class DearnessCurve:
    """How much dearer a design's tokens are than the choice's, along the accelerator's price.

    Parameters
    ----------
    name : str
    usd : tuple of float
        Of an accelerator with its share of the server.
    dearer : tuple of float
    low, high : tuple of float
        At the ends of the paired interval; empty for all but the rival.
    """

    name: str
    usd: tuple[float, ...]
    dearer: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


def paired_difference(choice: WholeBill, other: WholeBill) -> tuple[float, float, float]:
    """Return how much faster a design is than the choice, and the ends of the paired interval."""
    ratio = (other.tokens_per_s or 0.0) / (choice.tokens_per_s or 1.0)
    width = _width(choice, other)
    return ratio - 1, ratio / width - 1, ratio * width - 1


def curves(weighing: Weighing) -> tuple[DearnessCurve, ...]:
    """Return one per design beside the choice, up to a round price above all that matter."""
    mine, edge = _design(weighing.choice), weighing.device_edge
    price = weighing.device_usd.typical if weighing.device_usd else 0.0
    prices = [1.6 * price, 50e3]
    if edge is not None and edge.value and edge.value < 4 * price:
        prices.append(1.25 * edge.value)
    step = 10.0 ** math.floor(math.log10(max(prices)))
    max_usd = step * math.ceil(max(prices) / step)
    usd = tuple(max_usd * number / _POINTS for number in range(1, _POINTS + 1))
    drawn = []
    for bill in weighing.others:
        other, width = _design(bill), _width(weighing.choice, bill)
        factors = (1.0, 1 / width, width) if bill is weighing.rival else (1.0,)
        lines = (
            tuple(dearer(_faster(mine, factor), other, at, weighing.hours) for at in usd)
            for factor in factors
        )
        drawn.append(DearnessCurve(bill.name, usd, *lines))
    return tuple(drawn)


@dataclass(frozen=True, slots=True)
class Moved:
    """How much dearer the rival's tokens are while one assumption moves.

    Parameters
    ----------
    name, span : str
        The assumption, and between what it moves.
    ends : tuple of float
        How much dearer at either end of the span, in its order.
    """

    name: str
    span: str
    ends: tuple[float, float]


def moved(weighing: Weighing) -> tuple[float, tuple[Moved, ...]]:
    """Return how much dearer the rival is as everything stands, and with one assumption moved.

    The widest bar comes first. Without a rival or a price of an accelerator there is none.
    """
    choice, rival, price = weighing.choice, weighing.rival, weighing.device_usd
    if rival is None or price is None:
        return 0.0, ()
    mine, other, usd = _design(choice), _design(rival), price.typical
    present = dearer(mine, other, usd)
    width = _width(choice, rival)
    slower = mine.tokens_per_s / other.tokens_per_s
    low, high = (signed_percent(ratio - 1) for ratio in (slower / width, slower * width))
    years = (max(1.0, mine.years - 1), mine.years + 1)
    priced = Moved(
        "price of an accelerator",
        f"{format_money(price.low)} to {format_money(price.high)}",
        (dearer(mine, other, price.low), dearer(mine, other, price.high)),
    )
    rows = [
        Moved(
            "hours on this model",
            f"{100 * _MIN_HOURS:.0f} to 100 %",
            (dearer(mine, other, usd, _MIN_HOURS), present),
        ),
        Moved(
            f"speed over {rival.name}",
            f"{low.removesuffix(' %')} to {high}",
            (
                dearer(_faster(mine, 1 / width), other, usd),
                dearer(_faster(mine, width), other, usd),
            ),
        ),
        Moved(
            "years",
            f"{years[0]:g} to {years[1]:g}",
            (
                dearer(replace(mine, years=years[0]), replace(other, years=years[0]), usd),
                dearer(replace(mine, years=years[1]), replace(other, years=years[1]), usd),
            ),
        ),
        *([priced] if price.high > price.low else []),
        *(
            Moved(
                f"{name} prices",
                "low to high of the list",
                (
                    dearer(_at(choice, field, "low"), _at(rival, field, "low"), usd),
                    dearer(_at(choice, field, "high"), _at(rival, field, "high"), usd),
                ),
            )
            for name, field in (("network and hall", "network_usd"), ("energy", "yearly_usd"))
        ),
    ]
    rows.sort(key=lambda row: abs(row.ends[1] - row.ends[0]), reverse=True)
    return present, tuple(rows)


def _design(bill: WholeBill) -> DesignCost:
    design = bill.cost()
    if design is None:
        raise InputError("designs", "must have a plan", bill.name, "leave it out")
    return design


def _at(bill: WholeBill, field: str, end: str) -> DesignCost:
    """Return a design with one of its prices at an end of the list."""
    ends, design = bill.cost(end), _design(bill)
    return design if ends is None else replace(design, **{field: getattr(ends, field)})


def _faster(design: DesignCost, factor: float) -> DesignCost:
    return replace(design, tokens_per_s=design.tokens_per_s * factor)


def _width(first: WholeBill, second: WholeBill) -> float:
    """Return the factor by which a paired ratio of speeds may differ."""
    if first.sureness is None or second.sureness is None:
        return 1.0
    return math.exp(WIDTH * paired_sd(first.sureness, second.sureness))
