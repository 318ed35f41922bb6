"""The members of a Pareto set in the order of the goal, with what cannot be told apart.

Two designs tie where their figures for the goal differ by less than the interval of their paired
difference (`nest_core.studies.uncertainty`): the same cluster would have to measure both. Designs
that tie with the best of a rank share it; within a rank the cheapest comes first, then the one that
the worst single failure of a switch costs least. Of a mix the paired intervals are added as if all
models erred together, which makes ties rather too wide than too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nest_core.bill.ownership import HOURS_PER_YEAR
from nest_core.documents.schema.study import Goal
from nest_core.explain.summary import quantity
from nest_core.explain.training import DAY_S
from nest_core.hardware.posterior import WIDTH
from nest_core.network import FloatArray
from nest_core.studies.design_search import Designed, Planned, tokens_of
from nest_core.studies.engine import WorkerPool
from nest_core.studies.study import Study
from nest_core.studies.uncertainty import paired_sd
from nest_core.studies.whole_bill import WholeBill, bill_of_scenario

__all__ = [
    "GOAL_UNITS",
    "Contender",
    "DesignChoice",
    "choose",
    "cost_of",
    "in_words",
    "ties_of",
    "weigh",
]

GOAL_UNITS: dict[Goal, str] = {
    "days": "days",
    "tokens_per_network_usd": "tokens/s per $ of network",
    "tokens_per_usd": "tokens per $",
    "tokens_per_W": "tokens per J",
}


@dataclass(frozen=True, slots=True)
class Contender:
    """A member of the Pareto set, in its place.

    Parameters
    ----------
    planned : Planned
    bills : tuple of WholeBill
        One for every scenario of the mix, with what failed switches cost.
    rank : int
        From 1; the same for those that tie with the best of their rank.
    value : float
        Of the goal: days, tokens/s per dollar of the network, tokens per dollar of everything, or
        tokens per joule.
    span : tuple of float
        Days between which the run will end in four cases of five.
    ties : tuple of str
        Members that it cannot be told from.
    """

    planned: Planned
    bills: tuple[WholeBill, ...]
    rank: int
    value: float
    span: tuple[float, float]
    ties: tuple[str, ...]

    @property
    def name(self) -> str:
        """Of its design."""
        return self.planned.design.name

    @property
    def worst_loss(self) -> tuple[float, str] | None:
        """Share of throughput that the worst single switch takes of any model, and which it is."""
        known = [bill.worst_loss for bill in self.bills]
        return None if None in known else max(one for one in known if one)

    @property
    def _place(self) -> tuple[float, float]:
        worst = self.worst_loss
        return self.planned.design.price_usd, worst[0] if worst else math.inf


@dataclass(frozen=True, slots=True, eq=False)
class DesignChoice:
    """What a design study answers.

    Parameters
    ----------
    goal : str
    contenders : tuple of Contender
        In order; the first is the choice.
    apart : (contenders, contenders)
        Standard deviations of the logarithms of their ratios of days.
    """

    goal: Goal
    contenders: tuple[Contender, ...]
    apart: FloatArray


def weigh(study: Study, found: Designed, pool: WorkerPool | None = None) -> DesignChoice:
    """Plan the Pareto set once more with failures and intervals, and put it in order.

    Raises
    ------
    InputError
        If a scenario of the mix cannot be planned on a member any more.
    """
    tokens, goal = tokens_of(study), study.design.goal if study.design else "days"
    with (pool or WorkerPool()).open() as executor:
        asked = [
            [
                executor.submit(
                    bill_of_scenario,
                    one.design.name,
                    replace(member.scenario, overrides=change),
                    failures=True,
                )
                for member in study.members
            ]
            for one in found.pareto
            if (change := one.design.changes)
        ]
        billed = [tuple(future.result() for future in row) for row in asked]
    pairs = [
        (one, bills)
        for one, bills in zip(found.pareto, billed, strict=True)
        if all(bill.report for bill in bills)
    ]
    weights = np.array([member.weight for member in study.members])
    apart = _apart([bills for _, bills in pairs], weights)
    contenders = [
        Contender(
            one,
            bills,
            0,
            value_of(goal, one, bills[0]),
            _span(bills, weights, tokens, one.days),
            (),
        )
        for one, bills in pairs
    ]
    costs = np.array([cost_of(goal, one.planned) for one in contenders])
    return _ordered(goal, contenders, costs, apart)


def cost_of(goal: Goal, one: Planned) -> float:
    """What the goal makes least: days, or dollars or watts over what is trained."""
    if goal == "days":
        return one.days
    return one.days * (one.design.power_W if goal == "tokens_per_W" else one.design.price_usd)


def value_of(goal: Goal, one: Planned, bill: WholeBill) -> float:
    """The goal's figure; see `Contender`."""
    if goal == "days":
        return one.days
    rate = one.tokens_per_s * one.days / cost_of(goal, one)
    whole = bill.owned
    sold_s = whole.years * HOURS_PER_YEAR * 3600.0 * (whole.sold_share or 1.0)
    return rate * sold_s if goal == "tokens_per_usd" else rate


def in_words(goal: Goal, value: float) -> str:
    """The goal's figure to be read.

    Examples
    --------
    >>> in_words("days", 41.23), in_words("tokens_per_usd", 2_817_000.0)
    ('41.2 days', '2.82 M tokens per $')
    """
    return quantity(value, GOAL_UNITS[goal])


def choose(costs: FloatArray, apart: FloatArray, places: Sequence[tuple[float, float]]) -> int:
    """Of designs that tie with the one of least cost, that of the first place.

    Parameters
    ----------
    costs : (n,)
    apart : (n, n)
    places : sequence of (price, worst loss)
    """
    return min(ties_of(costs, apart, int(costs.argmin())), key=lambda one: (places[one], one))


def ties_of(costs: FloatArray, apart: FloatArray, one: int) -> list[int]:
    """Places of those that cannot be told from one, itself among them."""
    off = np.abs(np.log(costs / costs[one]))
    return [int(n) for n in np.flatnonzero((off < WIDTH * apart[one]) | (off == 0.0))]


def _ordered(
    goal: Goal, contenders: Sequence[Contender], costs: FloatArray, apart: FloatArray
) -> DesignChoice:
    """Rank by rank: the best of those that are left, with all that tie with it."""
    left: set[int] = set(range(len(contenders)))
    order: list[int] = []
    ranks: dict[int, int] = {}
    while left:
        best = min(left, key=lambda one: (costs[one], one))
        tied = [one for one in ties_of(costs, apart, best) if one in left]
        ranks |= dict.fromkeys(tied, len(order) + 1)
        order += sorted(tied, key=lambda one: (contenders[one]._place, one))
        left -= set(tied)
    names = [one.name for one in contenders]
    placed = tuple(
        replace(
            contenders[one],
            rank=ranks[one],
            ties=tuple(names[n] for n in ties_of(costs, apart, one) if n != one),
        )
        for one in order
    )
    return DesignChoice(goal, placed, apart[np.ix_(order, order)])


def _shares(bills: Sequence[WholeBill], weights: FloatArray) -> FloatArray:
    """Of the time of a mix, what every model takes."""
    times = weights / np.array([bill.tokens_per_s for bill in bills], dtype=float)
    return np.asarray(times / times.sum())


def _apart(billed: Sequence[Sequence[WholeBill]], weights: FloatArray) -> FloatArray:
    """Standard deviations of the logarithms of ratios of days, pair by pair."""
    count = len(billed)
    found = np.zeros((count, count))
    shares = [_shares(bills, weights) for bills in billed]
    for one in range(count):
        for other in range(one):
            pairs = zip(billed[one], billed[other], strict=True)
            each = [
                paired_sd(a.sureness, b.sureness) if a.sureness and b.sureness else math.inf
                for a, b in pairs
            ]
            mean = (shares[one] + shares[other]) / 2.0
            found[one, other] = found[other, one] = float(mean @ np.array(each))
    return found


def _span(
    bills: Sequence[WholeBill], weights: FloatArray, tokens: float, days: float
) -> tuple[float, float]:
    """The ends of every model's interval, as if they came together."""
    ends = np.zeros(2)
    for bill, weight in zip(bills, weights, strict=True):
        if bill.sureness is not None and bill.tokens_per_s:
            mean = tokens * weight / bill.tokens_per_s / DAY_S
            ends += np.array(bill.sureness.interval.around(mean))
    return float(ends[0]), float(ends[1])
