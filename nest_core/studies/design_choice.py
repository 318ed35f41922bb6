"""The members of a Pareto set in the order of the goal, with what cannot be told apart.

Two designs tie where their figures for the goal differ by less than the interval of their paired
difference (`nest_core.studies.uncertainty`): the same cluster would have to measure both. Designs
that tie with the best of a rank share it; within a rank the cheapest comes first, then the one that
the worst single failure of a switch costs least. Of a mix the paired intervals are added as if all
models erred together, which makes ties rather too wide than too narrow.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nest_core.bill.ownership import HOURS_PER_YEAR
from nest_core.documents.schema.study import Goal
from nest_core.hardware.posterior import WIDTH
from nest_core.network import FloatArray
from nest_core.report.explain.summary import quantity
from nest_core.report.explain.training import DAY_S
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
        losses = [bill.worst_loss for bill in self.bills]
        return None if None in losses else max(loss for loss in losses if loss)

    @property
    def place(self) -> tuple[float, float]:
        """What ties are put in order by: the price, then what the worst switch takes."""
        return self.planned.design.price_usd, (self.worst_loss or (math.inf,))[0]


@dataclass(frozen=True, slots=True, eq=False)
class DesignChoice:
    """What a design study answers.

    Parameters
    ----------
    goal : str
    contenders : tuple of Contender
        In order; the first is the choice.
    log_sd : (contenders, contenders)
        Standard deviations of the logarithms of their ratios of days.
    """

    goal: Goal
    contenders: tuple[Contender, ...]
    log_sd: FloatArray


def weigh(study: Study, searched: Designed, pool: WorkerPool | None = None) -> DesignChoice:
    """Plan the Pareto set once more with failures and intervals, and put it in order.

    Raises
    ------
    InputError
        If a scenario of the mix cannot be planned on a member any more.
    """
    tokens, goal = tokens_of(study), study.design.goal if study.design else "days"
    with (pool or WorkerPool()).open() as executor:
        futures = [
            [
                executor.submit(
                    bill_of_scenario,
                    planned.design.name,
                    replace(member.scenario, overrides=planned.design.changes),
                    failures=True,
                )
                for member in study.members
            ]
            for planned in searched.pareto
        ]
        rows = [tuple(future.result() for future in row) for row in futures]
    pairs = [
        (planned, bills)
        for planned, bills in zip(searched.pareto, rows, strict=True)
        if all(bill.report for bill in bills)
    ]
    weights = np.array([member.weight for member in study.members])
    contenders = [
        Contender(
            planned,
            bills,
            0,
            value_of(goal, planned, bills[0]),
            _span(bills, weights, tokens, planned.days),
            (),
        )
        for planned, bills in pairs
    ]
    costs = np.array([cost_of(goal, planned) for planned, _ in pairs])
    return _ordered(goal, contenders, costs, _log_sd([bills for _, bills in pairs], weights))


def cost_of(goal: Goal, one: Planned) -> float:
    """Return what the goal makes least: days, or dollars or watts over what is trained."""
    if goal == "days":
        return one.days
    return one.days * (one.design.power_W if goal == "tokens_per_W" else one.design.price_usd)


def value_of(goal: Goal, one: Planned, bill: WholeBill) -> float:
    """Return the goal's figure; see `Contender`."""
    if goal == "days":
        return one.days
    rate = one.tokens_per_s * one.days / cost_of(goal, one)
    owned = bill.owned
    sold_s = owned.years * HOURS_PER_YEAR * 3600.0 * (owned.sold_share or 1.0)
    return rate * sold_s if goal == "tokens_per_usd" else rate


def in_words(goal: Goal, value: float) -> str:
    """Return the goal's figure to be read.

    Examples
    --------
    >>> in_words("days", 41.23), in_words("tokens_per_usd", 2_817_000.0)
    ('41.2 days', '2.82 M tokens per $')
    """
    return quantity(value, GOAL_UNITS[goal])


def choose(costs: FloatArray, log_sd: FloatArray, places: Sequence[tuple[float, float]]) -> int:
    """Of designs that tie with the one of least cost, that of the first place.

    Parameters
    ----------
    costs : (n,)
    log_sd : (n, n)
    places : sequence of (price, worst loss)
    """
    return min(
        ties_of(costs, log_sd, int(costs.argmin())), key=lambda place: (places[place], place)
    )


def ties_of(costs: FloatArray, log_sd: FloatArray, place: int) -> list[int]:
    """Return the places of those that cannot be told from one, itself among them."""
    off = np.abs(np.log(costs / costs[place]))
    return [int(n) for n in np.flatnonzero((off < WIDTH * log_sd[place]) | (off == 0.0))]


def _ordered(
    goal: Goal, contenders: Sequence[Contender], costs: FloatArray, log_sd: FloatArray
) -> DesignChoice:
    """Rank by rank: the best of those that have no rank yet, with all that tie with it."""
    unranked: set[int] = set(range(len(contenders)))
    order: list[int] = []
    ranks: dict[int, int] = {}
    while unranked:
        best = min(unranked, key=lambda place: (costs[place], place))
        tied = [place for place in ties_of(costs, log_sd, best) if place in unranked]
        ranks |= dict.fromkeys(tied, len(order) + 1)
        order += sorted(tied, key=lambda place: (contenders[place].place, place))
        unranked -= set(tied)
    names = [contender.name for contender in contenders]
    ranked = tuple(
        replace(
            contenders[place],
            rank=ranks[place],
            ties=tuple(names[n] for n in ties_of(costs, log_sd, place) if n != place),
        )
        for place in order
    )
    return DesignChoice(goal, ranked, log_sd[np.ix_(order, order)])


def _log_sd(rows: Sequence[Sequence[WholeBill]], weights: FloatArray) -> FloatArray:
    """Return the standard deviations of the logarithms of ratios of days, pair by pair."""
    sd = np.zeros((len(rows), len(rows)))
    times = [weights / np.array([bill.tokens_per_s for bill in bills], float) for bills in rows]
    shares = [time / time.sum() for time in times]  # of the time of the mix, of every model
    for a, b in itertools.combinations(range(len(rows)), 2):
        of_models = [
            paired_sd(b_bill.sureness, a_bill.sureness)
            if a_bill.sureness and b_bill.sureness
            else math.inf
            for b_bill, a_bill in zip(rows[b], rows[a], strict=True)
        ]
        mean = (shares[b] + shares[a]) / 2.0
        sd[a, b] = sd[b, a] = float(mean @ np.array(of_models))
    return sd


def _span(
    bills: Sequence[WholeBill], weights: FloatArray, tokens: float, days: float
) -> tuple[float, float]:
    """Return the ends of every model's interval, as if they came together."""
    ends = np.zeros(2)
    for bill, weight in zip(bills, weights, strict=True):
        if bill.sureness is not None and bill.tokens_per_s:
            mean = tokens * weight / bill.tokens_per_s / DAY_S
            ends += np.array(bill.sureness.interval.around(mean))
    return float(ends[0]), float(ends[1])
