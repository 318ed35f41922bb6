"""The members of a Pareto set in the order of the goal, and as arrays that can be moved.

They are put in order by the rule of `nest_core.studies.ranking`. Of a mix the paired intervals are
added as if all models erred together, which makes ties rather too wide than too narrow.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nest_core.bill.ownership import HOURS_PER_YEAR
from nest_core.documents.schema.study import Goal
from nest_core.network import FloatArray
from nest_core.report.explain import quantity
from nest_core.studies.decision import (
    DecisionInputs,
    comparable_goal,
    cost_table,
    costs_of,
    effective_rates,
    scaled_sd,
    unpriced,
)
from nest_core.studies.design_search import Designed, Planned, tokens_of
from nest_core.studies.engine import WorkerPool
from nest_core.studies.ranking import (
    GOAL_FIGURES,
    MAX_LOSS,
    TieOrder,
    ranked,
    rule_in_words,
    ties_of,
)
from nest_core.studies.study import Study
from nest_core.studies.uncertainty import alikeness, paired_sd
from nest_core.studies.whole_bill import WholeBill, bill_of_scenario

__all__ = [
    "GOAL_UNITS",
    "Contender",
    "DecisionModel",
    "DesignChoice",
    "decision_model",
    "in_words",
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
    tie_order : TieOrder
        What puts it in order among those.
    """

    planned: Planned
    bills: tuple[WholeBill, ...]
    rank: int
    value: float
    span: tuple[float, float]
    ties: tuple[str, ...]
    tie_order: TieOrder

    @property
    def name(self) -> str:
        """Of its design."""
        return self.planned.design.name

    @property
    def worst_loss(self) -> tuple[float, str] | None:
        """Share of throughput that the worst single failure takes of any model, and which it is."""
        losses = [bill.worst_loss for bill in self.bills]
        return None if None in losses else max(loss for loss in losses if loss)


@dataclass(frozen=True, slots=True, eq=False)
class DesignChoice:
    """What a design study answers.

    Parameters
    ----------
    goal : str
        What decides: of dollars where bills can be compared, else days, as in a `Decision`.
    contenders : tuple of Contender
        In order; the first is the choice.
    log_sd : (contenders, contenders)
        Standard deviations of the logarithms of their ratios of days.
    max_loss : float
        Share of the throughput that the worst single failure may cost.
    differs : str
        What keeps whole bills from being compared; empty where nothing does.
    """

    goal: Goal
    contenders: tuple[Contender, ...]
    log_sd: FloatArray
    max_loss: float = MAX_LOSS
    differs: str = ""

    @property
    def rule(self) -> str:
        """The rule of the order as it is printed."""
        return rule_in_words(GOAL_FIGURES[self.goal], self.max_loss)


def weigh(study: Study, searched: Designed, pool: WorkerPool | None = None) -> DesignChoice:
    """Plan the Pareto set once more with failures and intervals, and put it in order.

    Raises
    ------
    InputError
        If a scenario of the mix cannot be planned on a member any more.
    """
    tokens = tokens_of(study)
    with (pool or WorkerPool()).open() as executor:
        futures = [
            [
                executor.submit(
                    bill_of_scenario,
                    planned.design.name,
                    replace(member.scenario, overrides=planned.design.changes),
                    tokens=tokens * member.weight,
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
    goal: Goal = study.design.goal if study.design else "days"
    weights = np.array([member.weight for member in study.members])
    max_loss = study.design.max_loss if study.design else MAX_LOSS
    if not pairs:
        return DesignChoice(goal, (), np.zeros((0, 0)), max_loss)
    bought = [bills[0] for _, bills in pairs]  # the same for all models of a mix
    goal = comparable_goal(goal, bought)
    contenders = [
        Contender(
            planned,
            bills,
            0,
            value_of(goal, planned, bills[0]),
            _span(bills),
            (),
            TieOrder(False, 0.0, 0.0),
        )
        for planned, bills in pairs
    ]
    choice = DesignChoice(
        goal,
        tuple(contenders),
        _log_sd([bills for _, bills in pairs], weights),
        max_loss,
        unpriced(bought),
    )
    lost = [(contender.worst_loss or (math.inf, ""))[0] for contender in contenders]
    table = cost_table(bought) | {
        "rate": np.array([planned.effective_tokens_per_s for planned, _ in pairs]),
        "lost": np.array(lost),
    }
    return _ordered(choice, table)


def value_of(goal: Goal, planned: Planned, bill: WholeBill) -> float:
    """Return the goal's figure; see `Contender`."""
    if goal == "days":
        return planned.days
    paid = planned.design.power_W if goal == "tokens_per_W" else planned.design.price_usd
    sold_s = bill.owned.years * HOURS_PER_YEAR * 3600.0 * (bill.owned.sold_share or 1.0)
    return planned.effective_tokens_per_s / paid * (sold_s if goal == "tokens_per_usd" else 1.0)


def in_words(goal: Goal, value: float) -> str:
    """Return the goal's figure to be read.

    Examples
    --------
    >>> in_words("days", 41.23), in_words("tokens_per_usd", 2_817_000.0)
    ('41.2 days', '2.82 M tokens per $')
    """
    return quantity(value, GOAL_UNITS[goal])


def _ordered(choice: DesignChoice, table: Mapping[str, FloatArray]) -> DesignChoice:
    """Put contenders in order by the rule."""
    contenders, log_sd = choice.contenders, choice.log_sd
    costs, _, tie_orders = costs_of(table, choice.goal, DecisionInputs(max_loss=choice.max_loss))
    order = ranked(costs, log_sd, tie_orders)
    names = [contender.name for contender in contenders]
    places = [place for place, _ in order]
    in_order = tuple(
        replace(
            contenders[place],
            rank=rank,
            ties=tuple(names[n] for n in ties_of(costs, log_sd, place) if n != place),
            tie_order=tie_orders[place],
        )
        for place, rank in order
    )
    return replace(choice, contenders=in_order, log_sd=log_sd[np.ix_(places, places)])


def _log_sd(rows: Sequence[Sequence[WholeBill]], weights: FloatArray) -> FloatArray:
    """Return the standard deviations of the logarithms of ratios of days, pair by pair."""
    sd = np.zeros((len(rows), len(rows)))
    times = [weights / effective_rates(bills) for bills in rows]
    shares = [time / time.sum() for time in times]  # of the time of the mix, of every model
    for a, b in itertools.combinations(range(len(rows)), 2):
        of_models = [
            paired_sd(b_bill.sureness, a_bill.sureness)
            for b_bill, a_bill in zip(rows[b], rows[a], strict=True)
        ]
        sd[a, b] = sd[b, a] = float(((shares[b] + shares[a]) / 2.0) @ np.array(of_models))
    return sd


def _span(bills: Sequence[WholeBill]) -> tuple[float, float]:
    """Return the ends of every model's days, as if they came together."""
    spans = np.array([bill.training.span for bill in bills if bill.training])
    low, high = spans.sum(axis=0).tolist()
    return low, high


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
    tie_orders : list of TieOrder
        At the centre.
    is_priced : bool
        Whether whole bills can be compared, so that the lower one goes first among ties.
    log_sd : (n, n)
        Of `DesignChoice`.
    models : list of str
    weights : (models,)
        Their parts of the tokens.
    seconds_per_token : (n, models)
        At the centre.
    devices, power_W : (n,)
    part_usd : dict of (n, 3)
        Low, typical and high dollars of what the goal pays, part by part.
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
    tie_orders: list[TieOrder]
    is_priced: bool
    log_sd: FloatArray
    models: list[str]
    weights: FloatArray
    seconds_per_token: FloatArray
    devices: FloatArray
    power_W: FloatArray
    part_usd: dict[str, FloatArray]
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
        return np.asarray(
            (self.seconds_per_token * factor) @ (self.weights if weights is None else weights)
        )

    def cost(
        self, times: FloatArray, price: FloatArray | None = None, hours: float | None = None
    ) -> FloatArray:
        """Return what the goal makes smallest, (..., n); ``times`` in s per token."""
        if self.goal == "days":
            return times
        if self.goal == "tokens_per_W":
            return np.asarray(times * self.power_W)
        paid = self.price_usd if price is None else price
        return (
            np.asarray(times * paid)
            if self.goal == "tokens_per_network_usd" or hours is None
            else np.asarray(paid / self._work(times, hours))
        )

    def _work(self, times: FloatArray, hours: float) -> FloatArray:
        """Return what is done as `nest_core.studies.decision` counts it, in device-hours."""
        return np.asarray(hours * times[0] / times * self.devices[0] + (1.0 - hours) * self.devices)

    def cost_sd(self, hours: float) -> FloatArray:
        """Return ``log_sd`` for costs that follow the speed for a part of the hours, (n, n)."""
        times = self.times()
        trained = hours * times[0] / times * self.devices[0]
        return scaled_sd(self.log_sd, trained / self._work(times, hours))

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
    seconds = 1.0 / np.array([effective_rates(row) for row in rows])
    parameters, slopes, covariance = _joint(choice)
    return DecisionModel(
        goal=choice.goal,
        names=[contender.name for contender in contenders],
        tie_orders=[contender.tie_order for contender in contenders],
        is_priced=not choice.differs,
        log_sd=choice.log_sd,
        models=[member.name for member in study.members],
        weights=np.array([member.weight for member in study.members]),
        seconds_per_token=seconds,
        devices=np.array([float(row[0].owned.devices) for row in rows]),
        power_W=np.array([contender.planned.design.power_W for contender in contenders]),
        part_usd=_part_usd(choice),
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
