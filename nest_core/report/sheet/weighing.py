"""What a decision sheet says, as figures: which design, against which, and what would change it.

The choice is the cheapest to buy and keep of those that tie per token with the best
(`nest_core.studies.ordering`); the rival is the next in that order. How much dearer a token of the
rival is follows from the algebra of `nest_core.studies.whole_cost`, so a curve crosses zero at the
break-even that the command line prints, and a bar of the sensitivity where its assumption does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from nest_core.bill.prices import PriceRange
from nest_core.documents.errors import InputError
from nest_core.documents.units import format_money, signed_percent
from nest_core.hardware.posterior import WIDTH
from nest_core.studies.break_evens import BreakEven, between, speeds_tie
from nest_core.studies.ordering import OrderedDesign, ordered
from nest_core.studies.uncertainty import paired_sd
from nest_core.studies.whole_bill import WholeBill, device_usd_of
from nest_core.studies.whole_cost import DesignCost, with_hours

__all__ = ["Curve", "Moved", "Weighing", "curves", "dearer", "moved", "paired_difference", "weigh"]

_POINTS = 60
_HOURS = 0.5
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
    order : tuple of OrderedDesign
        By dollars per million tokens.
    choice : WholeBill
    rival : WholeBill or None
        None where nothing stands beside the choice.
    device_usd : PriceRange or None
        An accelerator with its share of the server; None without one price for all.
    break_evens : tuple of BreakEven
        Between the choice and the rival.
    hours : float
        Share of the hours that train this model.
    """

    bills: tuple[WholeBill, ...]
    left_out: tuple[WholeBill, ...]
    order: tuple[OrderedDesign, ...]
    choice: WholeBill
    rival: WholeBill | None
    device_usd: PriceRange | None
    break_evens: tuple[BreakEven, ...]
    hours: float = 1.0

    @property
    def ties(self) -> tuple[str, ...]:
        """Designs that cost as much per token as the choice, for all that is known."""
        row = next(row for row in self.order if row.name == self.choice.name)
        return row.ties

    @property
    def speeds_tie(self) -> bool:
        """Whether choice and rival train equally fast, for all that is known."""
        return self.rival is not None and speeds_tie(self.choice, self.rival)


def weigh(
    bills: Sequence[WholeBill], *, against_first: bool = False, hours: float = 1.0
) -> Weighing:
    """What decides between designs.

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
    planned = tuple(one for one in bills if one.report is not None)
    if not planned:
        reason = bills[0].reason if bills else "there is no design"
        raise InputError("designs", "must include one that has a plan", reason, "change it")
    order = ordered(planned, "price")
    level = {order[0].name, *order[0].ties}
    cheap = (one for one in planned if one.name in level)
    choice = (
        planned[0] if against_first else min(cheap, key=lambda one: one.owned.total_usd.typical)
    )
    others = [row.name for row in order if row.name != choice.name]
    rival = next((one for one in planned if others and one.name == others[0]), None)
    device_usd = device_usd_of(planned)
    found = between(choice, rival, device_usd, hours) if rival else []
    left_out = tuple(one for one in bills if one.report is None)
    return Weighing(planned, left_out, order, choice, rival, device_usd, tuple(found), hours)


def dearer(choice: DesignCost, other: DesignCost, device_usd: float, hours: float = 1.0) -> float:
    """How much dearer a token of another design is, as a share of the choice's.

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
class Curve:
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
    width = math.exp(WIDTH * _paired(choice, other))
    return ratio - 1, ratio / width - 1, ratio * width - 1


def curves(found: Weighing) -> tuple[Curve, ...]:
    """One per design beside the choice, up to a round price above all that matter."""
    mine = _design(found.choice)
    most = _most_usd(found)
    usd = tuple(most * step / _POINTS for step in range(1, _POINTS + 1))
    drawn = []
    for one in found.bills:
        if one is found.choice:
            continue
        other = _design(one)
        line = tuple(dearer(mine, other, at, found.hours) for at in usd)
        ends: list[tuple[float, ...]] = [(), ()]
        if one is found.rival:
            width = math.exp(WIDTH * _paired(found.choice, one))
            ends = [
                tuple(dearer(_faster(mine, by), other, at, found.hours) for at in usd)
                for by in (1 / width, width)
            ]
        drawn.append(Curve(one.name, usd, line, *ends))
    return tuple(drawn)


def _most_usd(found: Weighing) -> float:
    price = found.device_usd.typical if found.device_usd else 0.0
    edges = [one.value for one in found.break_evens if one.quantity == "device_usd" and one.value]
    wanted = max([1.6 * price, *(1.25 * edge for edge in edges if edge < 4 * price), 50e3])
    step = 10.0 ** math.floor(math.log10(wanted))
    return step * math.ceil(wanted / step)


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

    @property
    def breaks(self) -> bool:
        """Whether the rival wins somewhere on the span."""
        return min(self.ends) < 0


def moved(found: Weighing) -> tuple[float, tuple[Moved, ...]]:
    """How much dearer the rival is as everything stands, and with one assumption moved at a time.

    The widest bar comes first. Without a rival or a price of an accelerator there is none.
    """
    if found.rival is None or found.device_usd is None:
        return 0.0, ()
    mine, other, price = _design(found.choice), _design(found.rival), found.device_usd
    stands = dearer(mine, other, price.typical)
    width = math.exp(WIDTH * _paired(found.choice, found.rival))
    slower = mine.tokens_per_s / other.tokens_per_s
    rows = [
        Moved(
            "hours on this model",
            f"{100 * _HOURS:.0f} to 100 %",
            (dearer(mine, other, price.typical, _HOURS), stands),
        ),
        Moved(
            f"speed over {found.rival.name}",
            f"{signed_percent(slower / width - 1).removesuffix(' %')} to "
            f"{signed_percent(slower * width - 1)}",
            (
                dearer(_faster(mine, 1 / width), other, price.typical),
                dearer(_faster(mine, width), other, price.typical),
            ),
        ),
        _years(mine, other, price.typical),
    ]
    if price.high > price.low:
        rows.append(
            Moved(
                "price of an accelerator",
                f"{format_money(price.low)} to {format_money(price.high)}",
                (dearer(mine, other, price.low), dearer(mine, other, price.high)),
            )
        )
    for name, field in (("network and hall", "network_usd"), ("energy", "yearly_usd")):
        ends = [
            dearer(_at(found.choice, field, end), _at(found.rival, field, end), price.typical)
            for end in ("low", "high")
        ]
        rows.append(Moved(f"{name} prices", "low to high of the list", (ends[0], ends[1])))
    rows.sort(key=lambda row: abs(row.ends[1] - row.ends[0]), reverse=True)
    return stands, tuple(rows)


def _years(mine: DesignCost, other: DesignCost, usd: float) -> Moved:
    low, high = max(1.0, mine.years - 1), mine.years + 1
    ends = [dearer(replace(mine, years=y), replace(other, years=y), usd) for y in (low, high)]
    return Moved("years", f"{low:g} to {high:g}", (ends[0], ends[1]))


def _design(one: WholeBill) -> DesignCost:
    found = one.cost()
    if found is None:
        raise InputError("designs", "must have a plan", one.name, "leave it out")
    return found


def _at(one: WholeBill, field: str, end: str) -> DesignCost:
    """A design with one of its prices at an end of the list."""
    ends = one.cost(end)
    design = _design(one)
    return design if ends is None else replace(design, **{field: getattr(ends, field)})


def _faster(design: DesignCost, factor: float) -> DesignCost:
    return replace(design, tokens_per_s=design.tokens_per_s * factor)


def _paired(first: WholeBill, second: WholeBill) -> float:
    if first.sureness is None or second.sureness is None:
        return 0.0
    return paired_sd(first.sureness, second.sureness)
