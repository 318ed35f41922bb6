"""The members of a Pareto set in the order of the goal, and as arrays that can be moved.

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
from nest_core.studies.uncertainty import alikeness, paired_sd
from nest_core.studies.whole_bill import WholeBill, bill_of_scenario

__all__ = [
    "GOAL_UNITS",
    "Contender",
    "DecisionModel",
    "DesignChoice",
    "choose",
    "cost_of",
    "decision_model",
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
            _span(bills, weights, tokens),
            (),
        )
        for planned, bills in pairs
    ]
    costs = np.array([cost_of(goal, planned) for planned, _ in pairs])
    return _ordered(goal, contenders, costs, _log_sd([bills for _, bills in pairs], weights))


def cost_of(goal: Goal, planned: Planned) -> float:
    """Return what the goal makes least: days, or dollars or watts over what is trained."""
    if goal == "days":
        return planned.days
    return planned.days * (
        planned.design.power_W if goal == "tokens_per_W" else planned.design.price_usd
    )


def value_of(goal: Goal, planned: Planned, bill: WholeBill) -> float:
    """Return the goal's figure; see `Contender`."""
    if goal == "days":
        return planned.days
    rate = planned.tokens_per_s * planned.days / cost_of(goal, planned)
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


def _span(bills: Sequence[WholeBill], weights: FloatArray, tokens: float) -> tuple[float, float]:
    """Return the ends of every model's interval, as if they came together."""
    ends = np.zeros(2)
    for bill, weight in zip(bills, weights, strict=True):
        if bill.sureness is not None and bill.tokens_per_s:
            mean = tokens * weight / bill.tokens_per_s / DAY_S
            ends += np.array(bill.sureness.interval.around(mean))
    return float(ends[0]), float(ends[1])


_PARTS = {
    "nic": "NICs",
    "switch": "switches",
    "transceiver": "transceivers",
    "cable": "cables",
}
"""Lines of a network by what is counted."""


@dataclass(frozen=True, slots=True, eq=False)
class DecisionModel:
    """The contenders as arrays.

    Parameters
    ----------
    goal : str
    names : list of str
    worst_losses : list of float
        Shares that the worst failed switch takes; infinite where unknown.
    log_sd : (n, n)
        Of `DesignChoice`.
    models : list of str
    weights : (models,)
        Their parts of the tokens.
    seconds_per_token : (n, models)
        At the centre.
    power_W : (n,)
    part_usd : dict of (n, 3)
        Low, typical and high dollars of what the goal pays, part by part.
    sold_share : float
        Share of the hours that is sold.
    parameters : list of (str, str)
        Names with the device of kernels, empty for those of the network.
    slopes : (n, models, parameters)
    covariance : (parameters, parameters)
        Of their logarithms.
    run_covariance : (models, n, n)
        Of the model's errors from run to run.

    Notes
    -----
    Times are ``weights @ (seconds_per_token * exp(slopes @ theta + error))``, theta normal.
    """

    goal: Goal
    names: list[str]
    worst_losses: list[float]
    log_sd: FloatArray
    models: list[str]
    weights: FloatArray
    seconds_per_token: FloatArray
    power_W: FloatArray
    part_usd: dict[str, FloatArray]
    sold_share: float
    parameters: list[tuple[str, str]]
    slopes: FloatArray
    covariance: FloatArray
    run_covariance: FloatArray

    @property
    def price_usd(self) -> FloatArray:
        """Typical dollars of all parts, (n,)."""
        return sum((ends[:, 1] for ends in self.part_usd.values()), np.zeros(len(self.names)))

    def times(
        self, theta: FloatArray | None = None, weights: FloatArray | None = None
    ) -> FloatArray:
        """Return the seconds per token of the mix, (n,)."""
        factor = 1.0 if theta is None else np.exp(self.slopes @ theta)
        mix = self.weights if weights is None else weights
        return np.asarray((self.seconds_per_token * factor) @ mix)

    def cost(
        self, times: FloatArray, price: FloatArray | None = None, hours: float | None = None
    ) -> FloatArray:
        """Return what the goal makes smallest, (..., n); ``times`` in s per token."""
        if self.goal == "days":
            return times
        if self.goal == "tokens_per_W":
            return np.asarray(times * self.power_W)
        paid = self.price_usd if price is None else price
        if self.goal == "tokens_per_network_usd" or hours is None:
            return np.asarray(times * paid)
        work = hours * times[0] / times + (1.0 - hours)
        return np.asarray(paid / work)

    def shift_usd(self, part: str, at: FloatArray | float) -> FloatArray:
        """Return what prices move by, (..., n).

        A part's price is at places from -1, its low end, through 0, typical, to 1.
        """
        low, typical, high = self.part_usd[part].T
        place = np.asarray(at)[..., None]
        return np.asarray(np.where(place < 0, typical - low, high - typical) * place)


def decision_model(study: Study, choice: DesignChoice) -> DecisionModel:
    """Return the arrays of a choice between designs."""
    contenders = choice.contenders
    rows = [contender.bills for contender in contenders]
    losses = [contender.worst_loss for contender in contenders]
    seconds = [[1.0 / (bill.tokens_per_s or np.nan) for bill in row] for row in rows]
    parameters, slopes, covariance = _joint(choice)
    return DecisionModel(
        goal=choice.goal,
        names=[contender.name for contender in contenders],
        worst_losses=[loss[0] if loss else np.inf for loss in losses],
        log_sd=choice.log_sd,
        models=[member.name for member in study.members],
        weights=np.array([member.weight for member in study.members]),
        seconds_per_token=np.array(seconds),
        power_W=np.array([contender.planned.design.power_W for contender in contenders]),
        part_usd=_part_usd(choice),
        sold_share=rows[0][0].owned.sold_share or 1.0,
        parameters=parameters,
        slopes=slopes,
        covariance=covariance,
        run_covariance=_run_covariance(choice),
    )


def _part_usd(choice: DesignChoice) -> dict[str, FloatArray]:
    """Return low, typical and high of what the goal pays, part by part, (contenders, 3)."""
    parts: dict[str, FloatArray] = {}
    for place, contender in enumerate(choice.contenders):
        for line in contender.planned.design.owned.lines:
            network = line.part.startswith("network")
            if line.usd is None or (choice.goal == "tokens_per_network_usd" and not network):
                continue
            name = _PARTS.get(line.unit, line.part) if network else line.part
            ends = parts.setdefault(name, np.zeros((len(choice.contenders), 3)))
            ends[place] += (line.usd.low, line.usd.typical, line.usd.high)
    return parts


def _joint(choice: DesignChoice) -> tuple[list[tuple[str, str]], FloatArray, FloatArray]:
    """Return parameters with their devices, their slopes, and their covariance."""
    numbers: dict[tuple[str, str], int] = {}
    moved = []
    for place, contender in enumerate(choice.contenders):
        for model, bill in enumerate(contender.bills):
            if bill.sureness is not None and bill.scenario is not None:
                spread, family = bill.sureness.spread, bill.scenario.accelerator.name
                keys = [(name, family) for name in spread.kernels]
                keys += [(name, "") for _, name, _ in spread.network]
                at = [numbers.setdefault(key, len(numbers)) for key in keys]
                moved.append((place, model, at, bill.sureness))
    covariance = np.zeros((len(numbers), len(numbers)))
    models = max((len(contender.bills) for contender in choice.contenders), default=0)
    slopes = np.zeros((len(choice.contenders), models, len(numbers)))
    for place, model, at, sureness in moved:
        covariance[np.ix_(at, at)] = sureness.spread.joint
        slopes[place, model, at] = sureness.along
    return list(numbers), slopes, covariance


def _run_covariance(choice: DesignChoice) -> FloatArray:
    """Return the covariance of errors from run to run, (models, contenders, contenders)."""
    matrices = []
    for bills in zip(*(contender.bills for contender in choice.contenders), strict=True):
        plans = [bill.report.plan for bill in bills if bill.report]
        sd = np.array([bill.sureness.spread.run_sd for bill in bills if bill.sureness])
        matrices.append(alikeness(plans) * np.outer(sd, sd))
    return np.array(matrices)
