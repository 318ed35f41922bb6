"""Which of several designs is to be built: one answer that pages, sheets and commands render.

`decide` puts planned designs in order by the rule of `nest_core.studies.ranking`. What is to be
small follows from the goal: the whole bill over what is trained, or the days where bills do not
have the same in them; both with failures. Where the cluster trains this model for a part of its
hours only, an accelerator is worth as much in every design for the rest of them
(`nest_core.studies.whole_bill.with_hours`, with the first design as the reference). What would
change the choice is found by moving one assumption at a time and applying the rule again.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from nest_core.bill.prices import PriceRange
from nest_core.documents import (
    Claim,
    Fact,
    InputError,
    at_most_percent,
    does,
    format_money,
    join_words,
    percent,
    require,
    signed_percent,
)
from nest_core.documents.schema.study import Goal
from nest_core.hardware.posterior import WIDTH
from nest_core.network import FloatArray
from nest_core.scenario import ScenarioValues
from nest_core.studies.break_evens import BreakEven, between
from nest_core.studies.ranking import (
    GOAL_FIGURES,
    MAX_LOSS,
    TieOrder,
    choose,
    first_change,
    ranked,
    rule_in_words,
)
from nest_core.studies.uncertainty import paired_sd
from nest_core.studies.whole_bill import DesignCost, WholeBill, device_usd_of, typical

__all__ = [
    "FAR",
    "FIGURES",
    "Assumption",
    "Decision",
    "DecisionInputs",
    "Difference",
    "check_jobs",
    "comparable_goal",
    "cost_table",
    "costs_of",
    "decide",
    "effective_rates",
    "is_priced",
    "refusal",
    "scaled_sd",
    "unpriced",
]

_MIN_HOURS = 0.05
_MAX_TIMES = 4.0
"""Of an accelerator's typical price and of counted failures, up to which a change is sought."""
FAR = 100.0
"""Times the price of an accelerator, beyond which a break-even is of no interest."""
_PROVEN = 1e-3


@dataclass(frozen=True, slots=True)
class DecisionInputs:
    """What costs are read under.

    Parameters
    ----------
    hours : float
        Share of the hours that train this model.
    max_loss : float
        Share of the throughput that the worst single failure may cost.
    device_usd : float or None
        Of every accelerator with its share of the server; None: as billed.
    years : float
        Added to those of the bill.
    network, energy : float
        From -1, the low end of the price list, over 0, typical, to 1, the high end.
    failures : float
        How often everything fails, over what was counted; the same for all designs.
    log_faster : tuple of float
        Logarithms of factors on the speeds of designs, as listed; empty: as predicted.
    """

    hours: float = 1.0
    max_loss: float = MAX_LOSS
    device_usd: float | None = None
    years: float = 0.0
    network: float = 0.0
    energy: float = 0.0
    failures: float = 1.0
    log_faster: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """How far a figure lies from that of the best design, relative, with its paired interval."""

    value: float
    low: float
    high: float

    @property
    def is_tie(self) -> bool:
        """Whether the interval holds zero; figures without one never tie."""
        return self.low < self.high and self.low <= 0.0 <= self.high


@dataclass(frozen=True, slots=True)
class _Figure:
    """A figure of a design, and which power of its speed it follows."""

    read: Callable[[WholeBill], float | None]
    speed: int = 0


FIGURES = {
    "tokens_per_s": _Figure(lambda bill: bill.tokens_per_s, 1),
    "effective_share": _Figure(
        lambda bill: bill.training.effective_share if bill.training else None
    ),
    "days": _Figure(lambda bill: bill.training.days if bill.training else None, -1),
    "usd_per_million_tokens": _Figure(lambda bill: typical(bill.usd_per_million_tokens), -1),
    "total_usd": _Figure(lambda bill: bill.owned.total_usd.typical),
    "network_usd": _Figure(lambda bill: bill.owned.network.price_usd.typical),
    "usd_per_gpu_hour": _Figure(lambda bill: typical(bill.owned.usd_per_device_hour)),
    "tokens_per_kWh": _Figure(lambda bill: bill.tokens_per_kWh, 1),
    "power_W": _Figure(lambda bill: bill.owned.power_W.typical),
    "failures_per_year": _Figure(lambda bill: bill.owned.failures_per_year.typical),
    "worst_failure": _Figure(lambda bill: bill.worst_loss[0] if bill.worst_loss else None),
}
"""By name; those that follow the speed have its paired interval."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """One thing that can be moved between two ends, all else as it is assumed.

    Parameters
    ----------
    name : str
    span : str
        The ends in words.
    centre, low, high : float
    at : callable (value) -> DecisionInputs
    words : callable (value) -> str
    """

    name: str
    span: str
    centre: float
    low: float
    high: float
    at: Callable[[float], DecisionInputs]
    words: Callable[[float], str]


@dataclass(frozen=True, eq=False)
class Decision:
    """Designs in the order of the rule, and what the order rests on.

    Parameters
    ----------
    every : tuple of WholeBill
        All, as they were listed.
    assumed : DecisionInputs
    goal : str
        What is to be small, by the names of study files.
    order : tuple of (int, int)
        Places in ``listed`` with their ranks, the best first.
    log_sd : (n, n)
        Of the logarithms of the ratios of costs.
    """

    every: tuple[WholeBill, ...]
    assumed: DecisionInputs
    goal: Goal
    order: tuple[tuple[int, int], ...]
    log_sd: FloatArray

    @cached_property
    def listed(self) -> tuple[WholeBill, ...]:
        """Those that have a plan, as they were listed."""
        return tuple(bill for bill in self.every if bill.report is not None)

    @cached_property
    def table(self) -> dict[str, FloatArray]:
        """What costs are computed from, by design as listed."""
        return cost_table(self.listed)

    def _table_under(self, assumed: DecisionInputs) -> dict[str, FloatArray]:
        """Return the same where failures are more frequent."""
        if assumed.failures == 1.0:
            return self.table
        return self.table | {"rate": effective_rates(self.listed, assumed.failures)}

    @property
    def left_out(self) -> tuple[WholeBill, ...]:
        """Those that have no plan."""
        return tuple(bill for bill in self.every if bill.report is None)

    @property
    def bills(self) -> tuple[WholeBill, ...]:
        """Designs in order, the best first."""
        return tuple(self.listed[place] for place, _ in self.order)

    @property
    def best(self) -> WholeBill:
        """The design to be built."""
        return self.bills[0]

    @property
    def rival(self) -> WholeBill | None:
        """The design that comes second; None where there is none."""
        return self.bills[1] if len(self.order) > 1 else None

    @property
    def ties(self) -> tuple[str, ...]:
        """Designs that share the first rank with the best."""
        return tuple(self.listed[place].name for place, rank in self.order[1:] if rank == 1)

    @property
    def device_usd(self) -> PriceRange | None:
        """An accelerator with its share of the server, where that decides and all have one."""
        return device_usd_of(self.listed) if self.goal == "tokens_per_usd" else None

    @property
    def figure(self) -> str:
        """What is compared, in words."""
        if self.goal != "tokens_per_usd" or self.assumed.hours == 1.0:
            return GOAL_FIGURES[self.goal]
        return f"whole bill for its work ({percent(self.assumed.hours)} of the hours on this model)"

    @property
    def rule(self) -> str:
        """The rule as it is printed."""
        return rule_in_words(self.figure, self.assumed.max_loss)

    def difference(self, bill: WholeBill, figure: str = "") -> Difference | None:
        """Return how far a figure of a design lies from the best one's.

        Parameters
        ----------
        bill : WholeBill
        figure : str
            One of `FIGURES`; empty for what decides.
        """
        if figure:
            mine, value = FIGURES[figure].read(self.best), FIGURES[figure].read(bill)
            if mine is None or value is None or mine <= 0 or bill is self.best:
                return None
            if "usd" in figure and unpriced(self.listed, "network" * (figure == "network_usd")):
                return None
            ratio, power = value / mine, FIGURES[figure].speed
        else:
            ratio, power = 1.0 + self.dearer(bill), -1
        width = math.exp(abs(power) * self.width(bill, is_cost=not figure))
        return Difference(ratio - 1.0, ratio / width - 1.0, ratio * width - 1.0)

    def width(self, bill: WholeBill, *, is_cost: bool = True) -> float:
        """Return half the paired interval of a design and the best, of the logarithm.

        Of what decides, or else of their speeds.
        """
        places = self.order[0][0], self.listed.index(bill)
        if not is_cost:
            return WIDTH * float(self.log_sd[places])
        _, follows, _ = costs_of(self._table_under(self.assumed), self.goal, self.assumed)
        return WIDTH * float(scaled_sd(self.log_sd, follows)[places])

    def dearer(self, bill: WholeBill, assumed: DecisionInputs | None = None) -> float:
        """Return how much more a design costs than the best, by what decides, as a share."""
        assumed = assumed or self.assumed
        costs, *_ = costs_of(self._table_under(assumed), self.goal, assumed)
        return float(costs[self.listed.index(bill)] / costs[self.order[0][0]] - 1.0)

    @cached_property
    def break_evens(self) -> dict[str, tuple[BreakEven, ...]]:
        """What separates the best from every other design, by the other's name."""
        if self.goal != "tokens_per_usd":
            return {}
        reference = _cost_of(self.listed[0])
        return {
            bill.name: tuple(
                between(self.best, bill, self.device_usd, self.assumed.hours, reference)
            )
            for bill in self.bills[1:]
        }

    def break_even(self, quantity: str) -> BreakEven | None:
        """Return one of those between the best and the second."""
        rows = self.break_evens.get(self.rival.name, ()) if self.rival else ()
        return next((row for row in rows if row.quantity == quantity), None)

    def best_under(self, assumed: DecisionInputs) -> int:
        """Return the place in ``listed`` of the design that the rule chooses there."""
        costs, follows, tie_orders = costs_of(self._table_under(assumed), self.goal, assumed)
        return choose(costs, scaled_sd(self.log_sd, follows), tie_orders)

    @cached_property
    def breaks_if(self) -> tuple[Claim, ...]:
        """When another design is chosen, one assumption at a time; the nearest change first."""
        return tuple(
            claim
            for assumption in self.assumptions()
            for end in (assumption.low, assumption.high)
            if (claim := self.change(assumption, end)) is not None
        )

    def change(self, assumption: Assumption, end: float) -> Claim | None:
        """Return which design is chosen instead, and from where on towards an end."""
        if end == assumption.centre:
            return None
        crossing = first_change(
            lambda at: self.best_under(assumption.at(at)), self.order[0][0], assumption.centre, end
        )
        if crossing is None:
            return None
        at, other = crossing
        return Claim(
            f"{does(self.listed[other].name, 'is')} built where {assumption.words(at)} or "
            f"{'less' if end < assumption.centre else 'more'}.",
            Fact("changes", (self.best.name, self.listed[other].name), assumption.name, at),
        )

    @property
    def unproven(self) -> tuple[Claim, ...]:
        """Plans that may be faster, and whether that would change the choice."""
        claims = []
        for bill in self.listed:
            if bill.gap > _PROVEN:
                faster = 1.0 / (1.0 - bill.gap)
                is_open = self.best_under(self._faster(bill, math.log(faster))) != self.order[0][0]
                words = (
                    f"The plan of {bill.name} is not proven and may be up to "
                    f"{at_most_percent(faster - 1)}"
                )
                fact = Fact("open" if is_open else "unproven", (bill.name,), "", faster - 1)
                claims.append(Claim(f"{words} faster.", fact))
        return tuple(claims)

    @property
    def is_open(self) -> bool:
        """Whether a better plan of a design that is not proven may change the choice."""
        return any(claim.facts[0].relation == "open" for claim in self.unproven)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Sentences on what is not known."""
        without = [bill.name for bill in self.listed if bill.worst_loss is None]
        missing = f"What a single failure costs is unknown of {join_words(without)}."
        if len(without) == len(self.listed):
            missing = "No single failure is planned so far."
        sizes = sorted({bill.owned.devices for bill in self.listed})
        size = (
            f"These designs differ in size, {sizes[0]:,} to {sizes[-1]:,} devices: throughput, "
            "bill and power are those of each as a whole."
        )
        priced = f"Bills are not compared: {unpriced(self.listed)}."
        caveats = (f"{bill.name}: {bill.caveat}" for bill in self.listed if bill.caveat)
        gone = (f"{does(bill.name, 'is')} left out: {bill.reason}." for bill in self.left_out)
        return (
            *([size] if len(sizes) > 1 else ()),
            *(() if is_priced(self.listed) else [priced]),
            *([missing] if without else ()),
            *self.unproven,
            *caveats,
            *gone,
        )

    def assumptions(self) -> Iterator[Assumption]:
        """Yield what can be moved, over all that it may be."""
        assumed, best = self.assumed, self.best.owned
        price = self.device_usd.typical if self.device_usd else None
        if price is not None:
            edges = [row.value or 0.0 for rows in self.break_evens.values() for row in rows[:1]]
            most = max([_MAX_TIMES * price, *(1.1 * at for at in edges if at < FAR * price)])
            yield self._device_usd(price, 0.0, most)
        if self.goal == "tokens_per_usd":
            yield self._hours(_MIN_HOURS)
            years = best.years
            yield self._years(min(1.0, years) - years, years)
            yield self._part("network", best.besides_usd, "network and hall", "")
            yield self._part("energy", best.yearly_usd, "energy", " a year")
        if self.rival is not None:
            yield self._speed(self.rival)
            yield self._failures()
        if any(bill.failure for bill in self.listed):
            yield Assumption(
                "worst single failure",
                "0 to 100 %",
                assumed.max_loss,
                0.0,
                1.0,
                lambda at: replace(assumed, max_loss=at),
                lambda at: f"the worst single failure may cost {signed_percent(at, 2).lstrip('+')}",
            )

    def drawn_assumptions(self) -> Iterator[Assumption]:
        """Yield the same over the spans that a chart shows; none where another goal decides."""
        rival, price = self.rival, self.device_usd
        if rival is None or self.goal != "tokens_per_usd":
            return
        best, years = self.best.owned, self.best.owned.years
        yield self._hours(min(0.5, self.assumed.hours))
        yield self._speed(rival)
        yield self._failures()
        yield self._years(max(1.0, years - 1) - years if years > 1 else 0.0, 1.0)
        if price is not None and price.high > price.low:
            yield self._device_usd(price.typical, price.low, price.high)
        yield self._part("network", best.besides_usd, "network and hall", "")
        yield self._part("energy", best.yearly_usd, "energy", " a year")

    def _device_usd(self, price: float, low: float, high: float) -> Assumption:
        return Assumption(
            "price of an accelerator",
            f"{format_money(low)} to {format_money(high)}",
            price,
            low,
            high,
            lambda at: replace(self.assumed, device_usd=at),
            lambda at: f"an accelerator with its server share costs {format_money(at)}",
        )

    def _failures(self) -> Assumption:
        return Assumption(
            "failures",
            f"none to {_MAX_TIMES:g} times",
            self.assumed.failures,
            0.0,
            _MAX_TIMES,
            lambda at: replace(self.assumed, failures=at),
            lambda at: f"everything fails {at:.3g} times as often as it was counted",
        )

    def _hours(self, low: float) -> Assumption:
        return Assumption(
            "hours on this model",
            f"{100 * low:.0f} to 100 %",
            self.assumed.hours,
            low,
            1.0,
            lambda at: replace(self.assumed, hours=at),
            lambda at: f"this model gets {percent(at)} of the hours",
        )

    def _years(self, low: float, high: float) -> Assumption:
        years = self.best.owned.years
        return Assumption(
            "years",
            f"{years + low:.3g} to {years + high:.3g}",
            0.0,
            low,
            high,
            lambda at: replace(self.assumed, years=at),
            lambda at: f"it is kept for {years + at:.3g} years",
        )

    def _part(
        self, field: Literal["network", "energy"], usd: PriceRange, name: str, per: str
    ) -> Assumption:
        ends = np.array([usd.low, usd.typical, usd.high])
        return Assumption(
            name,
            "low to high of the list",
            0.0,
            -1.0,
            1.0,
            lambda at: (
                replace(self.assumed, network=at)
                if field == "network"
                else replace(self.assumed, energy=at)
            ),
            lambda at: (
                f"{name} make {format_money(float(_at(ends, at)))}{per} of the bill of "
                f"{self.best.name}"
            ),
        )

    def _faster(self, bill: WholeBill, log: float) -> DecisionInputs:
        """Return what is assumed with one design faster, by the logarithm of a factor."""
        return replace(
            self.assumed, log_faster=tuple(log * (other is bill) for other in self.listed)
        )

    def _speed(self, rival: WholeBill) -> Assumption:
        width = self.width(rival, is_cost=False)
        ratio = (rival.tokens_per_s or 1.0) / (self.best.tokens_per_s or 1.0)
        low, high = (signed_percent(ratio * math.exp(end) - 1) for end in (-width, width))
        return Assumption(
            f"speed of {rival.name}",
            f"{low.removesuffix(' %')} to {high}",
            0.0,
            -width,
            width,
            lambda at: self._faster(rival, at),
            lambda at: (
                f"{does(rival.name, 'is')} {signed_percent(math.expm1(at), 2).lstrip('+−')} "
                f"{'slower' if at < 0 else 'faster'} than predicted beside {self.best.name}"
            ),
        )

    def to_json(self) -> dict[str, Any]:
        """Return fields of the command line; shares, dollars and SI units."""
        return {
            "best": self.best.name,
            "goal": self.goal,
            "rule": self.rule,
            "max_loss": self.assumed.max_loss,
            "hours": self.assumed.hours,
            "is_open": self.is_open,
            "ties": list(self.ties),
            "order": [
                {
                    "rank": rank,
                    "name": self.listed[place].name,
                    **{name: of.read(self.listed[place]) for name, of in FIGURES.items()},
                }
                for place, rank in self.order
            ],
            "breaks_if": [str(claim) for claim in self.breaks_if],
            "break_even": [
                asdict(row) | {"against": other}
                for other, rows in self.break_evens.items()
                for row in rows
            ],
            "intervals": {
                bill.name: {
                    figure: {
                        "value": difference.value,
                        "low": difference.low,
                        "high": difference.high,
                        "tie": difference.is_tie,
                    }
                    for figure in ("", *FIGURES)
                    if (difference := self.difference(bill, figure)) is not None
                }
                for bill in self.bills[1:]
            },
            "unknown": list(self.unknown),
        }


def decide(
    bills: Sequence[WholeBill], assumed: DecisionInputs | None = None, goal: Goal = "tokens_per_usd"
) -> Decision:
    """Return which design is to be built.

    Parameters
    ----------
    bills : sequence of WholeBill
    assumed : DecisionInputs, optional
    goal : str
        Of a study; where bills cannot be compared (`unpriced`) a goal of dollars becomes ``days``.

    Raises
    ------
    InputError
        If none of them has a plan, or they do not train the same.
    """
    listed = tuple(bill for bill in bills if bill.report is not None)
    require(
        listed,
        "designs",
        "must include one that has a plan",
        bills[0].reason if bills else "there is no design",
        "change it",
    )
    check_jobs([bill.scenario for bill in listed if bill.scenario])
    assumed = assumed or DecisionInputs()
    goal = comparable_goal(goal, listed)
    costs, follows, tie_orders = costs_of(cost_table(listed), goal, assumed)
    log_sd = np.array([[paired_sd(bill.sureness, to.sureness) for to in listed] for bill in listed])
    np.fill_diagonal(log_sd, 0.0)
    return Decision(
        tuple(bills),
        assumed,
        goal,
        tuple(ranked(costs, scaled_sd(log_sd, follows), tie_orders)),
        log_sd,
    )


def comparable_goal(goal: Goal, bills: Sequence[WholeBill]) -> Goal:
    """Return a goal, or ``days`` for one of dollars where bills cannot be compared."""
    parts = {"tokens_per_usd": "", "tokens_per_network_usd": "network"}
    return "days" if goal in parts and unpriced(bills, parts[goal]) else goal


def check_jobs(scenarios: Sequence[ScenarioValues]) -> None:
    """Refuse scenarios that do not train the same: nothing decides between them."""
    jobs = {(of.model, of.sequence, of.batch) for of in scenarios}
    require(
        len(jobs) <= 1,
        "designs",
        "must train the same model, sequence length and batch",
        f"{len(jobs)} jobs",
        "compare designs for one job",
    )


def cost_table(bills: Sequence[WholeBill]) -> dict[str, FloatArray]:
    """Return what costs are computed from, by design; prices at low, typical and high, (n, 3)."""

    def ends(*ranges: PriceRange) -> FloatArray:
        return np.array([(usd.low, usd.typical, usd.high) for usd in ranges])

    every = [bill.owned for bill in bills]
    return {
        "rate": effective_rates(bills),
        "devices": np.array([float(owned.devices) for owned in every]),
        "paid": np.array([owned.devices * (1.0 + owned.spares) for owned in every]),
        "device_usd": np.array([typical(owned.device_usd) or 0.0 for owned in every]),
        "besides_usd": ends(*(owned.besides_usd for owned in every)),
        "yearly_usd": ends(*(owned.yearly_usd for owned in every)),
        "years": np.array([owned.years for owned in every]),
        "network_usd": np.array([owned.network.price_usd.typical for owned in every]),
        "power_W": np.array([owned.power_W.typical for owned in every]),
        # What nobody knows of a failure is not taken for none.
        "lost": np.array([bill.worst_loss[0] if bill.worst_loss else np.inf for bill in bills]),
        "is_priced": np.array([float(is_priced(bills))]),
    }


def effective_rates(bills: Sequence[WholeBill], failures: float = 1.0) -> FloatArray:
    """Return what planned designs train where everything fails so often, tokens/s, (n,)."""
    runs = (bill.training for bill in bills)
    return np.array([run.effective_tokens_per_s(failures) if run else np.nan for run in runs])


def unpriced(bills: Sequence[WholeBill], part: str = "") -> str:
    """Return what keeps sums of bills from being compared; empty where nothing does.

    Parameters
    ----------
    bills : sequence of WholeBill
    part : str
        What the parts of the lines begin with that are summed up; empty for whole bills, which need
        accelerators in them.
    """
    if not part and any(bill.owned.device_usd is None for bill in bills):
        return "no source prices the accelerators of all designs"
    lacks = Counter(
        name
        for bill in bills
        for name in {
            line.name
            for line in bill.owned.lines
            if line.usd is None and line.part.startswith(part)
        }
    )
    names = sorted(name for name, count in lacks.items() if count < len(bills))
    return f"{join_words(names)} {'has' if len(names) == 1 else 'have'} no price" if names else ""


def refusal(differs: str) -> str:
    """Return why bills are not compared, to end a title; empty where nothing keeps them from it."""
    return f"; bills are not compared: {differs}" if differs else ""


def is_priced(bills: Sequence[WholeBill]) -> bool:
    """Return whether the same is in all bills, accelerators too, so that sums can be compared."""
    return not unpriced(bills)


def costs_of(
    table: Mapping[str, FloatArray], goal: Goal, inputs: DecisionInputs
) -> tuple[FloatArray, FloatArray, list[TieOrder]]:
    """Return what is to be small, how far it follows the speed, (n,), and the order of ties."""
    rate = table["rate"] * np.exp(inputs.log_faster or 0.0)
    price = table["device_usd"] if inputs.device_usd is None else inputs.device_usd
    usd = (
        _at(table["besides_usd"], inputs.network)
        + (table["years"] + inputs.years) * _at(table["yearly_usd"], inputs.energy)
        + table["paid"] * price
    )
    trained = rate / table["rate"][0] * table["devices"][0]
    work = inputs.hours * trained + (1 - inputs.hours) * table["devices"]
    costs = {
        "days": 1.0 / rate,
        "tokens_per_usd": usd / work,
        "tokens_per_network_usd": table["network_usd"] / rate,
        "tokens_per_W": table["power_W"] / rate,
    }[goal]
    rows = zip(
        (table["lost"] >= inputs.max_loss).tolist(),
        (usd * table["is_priced"]).tolist(),
        table["power_W"].tolist(),
        strict=True,
    )
    follows = inputs.hours * trained / work if goal == "tokens_per_usd" else np.ones(len(rate))
    return costs, follows, [TieOrder(*row) for row in rows]


def scaled_sd(log_sd: FloatArray, follows: FloatArray) -> FloatArray:
    """Return deviations of ratios of costs: of a part of the hours they follow the speed less."""
    return log_sd * (follows[:, None] + follows[None, :]) / 2.0


def _cost_of(bill: WholeBill) -> DesignCost:
    design = bill.cost()
    if design is None:
        raise InputError("designs", "must have a plan", bill.name, "leave it out")
    return design


def _at(usd: FloatArray, place: float) -> FloatArray:
    """Return prices between their ends, (n, 3): low at -1, typical at 0, high at 1."""
    return np.asarray(
        usd[..., 1] + abs(place) * ((usd[..., 0] if place < 0 else usd[..., 2]) - usd[..., 1])
    )
