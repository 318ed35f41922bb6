"""The whole bill of a scenario or a fabric: lines, figures per token and hour, break-evens.

A scenario is planned, so that what it costs is read over what it trains: dollars per million
tokens, tokens per kWh, days and dollars of a training run. A fabric alone is billed. Beside others
(ratios of the same fabric, other fabrics) every pair with the first has its break-evens
(`nest_core.studies.break_evens`). A candidate of a comparison is a bill with more to compare.
What a person sets is the price list: a file, tables in the scenario (``[prices]``), dotted keys
that start with ``prices.``.

What designs train per dollar, and where the winner changes: a design trains R tokens/s, failures
counted, on D accelerators, spares counted; beside them N dollars are paid once, for the network and
its hall, and E a year, for energy and staff, over Y years. With x dollars for an accelerator and
its share of the server, its whole cost is ``C = N + E Y + D x`` and it trains ``R Y / C`` per
dollar. Of two designs the first is ahead exactly where ``R_1 C_2 - R_2 C_1 > 0``. That is affine in
x: ``x (R_1 D_2 - R_2 D_1) > R_2 (N_1 + E_1 Y) - R_1 (N_2 + E_2 Y)``, where the left factor says
whose accelerators do more, the right side who trains more per dollar of the rest. It is affine in Y
as well, and in the share y of its hours for which a cluster trains this model while accelerators
are worth the same in all designs for the rest of them: there R becomes ``y R_i D_0 / R_0 + (1 - y)
D_i`` with a design 0 as the reference. So in each of the three there is one break-even at most, or
one of them is ahead everywhere (docs/decisions/break-even.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nest_core.bill.bill import Bill
from nest_core.bill.ownership import HOURS_PER_YEAR, Owned, owned
from nest_core.bill.prices import PriceRange, Prices, prices_of
from nest_core.costs import Interval, Problem, Report, Span
from nest_core.documents.errors import require
from nest_core.documents.schema import StudyTable, parameter
from nest_core.network import Level, LevelBlocks, without_detours
from nest_core.planner.baselines import Baseline
from nest_core.report.explain.training import Training, training
from nest_core.scenario import OF_PRICES, Scenario, ScenarioValues, expanded
from nest_core.studies.equal_budget import AtBudget
from nest_core.studies.failures import Failure, worst_failure
from nest_core.studies.solving import Stop, solve
from nest_core.studies.uncertainty import Sureness, sureness_of

__all__ = [
    "DEVICE_USD",
    "BreakEvenPoint",
    "Candidate",
    "DesignCost",
    "WholeBill",
    "bill_of_scenario",
    "crossing_of_hours",
    "crossing_of_price",
    "crossing_of_years",
    "device_usd_of",
    "scenario_prices",
    "spare_nodes",
    "typical",
    "with_hours",
]

DEVICE_USD = parameter("device_usd", StudyTable)
"""No accelerator costs more than its bound: a break-even from there on is none."""


@dataclass(frozen=True, slots=True)
class DesignCost:
    """What a design trains, on how many accelerators, and what the rest of it costs.

    Parameters
    ----------
    tokens_per_s : float
        Above 0.
    devices : int
    network_usd : float
        The network, and what else is bought once beside accelerators: the hall, storage.
    yearly_usd : float
        Energy and staff.
    years : float
        For which it is kept.
    spares : float
        Spare accelerators for one that computes.
    """

    tokens_per_s: float
    devices: int
    network_usd: float
    yearly_usd: float = 0.0
    years: float = 0.0
    spares: float = 0.0

    @property
    def besides_usd(self) -> float:
        """All but accelerators and their servers."""
        return self.network_usd + self.years * self.yearly_usd

    @property
    def paid(self) -> float:
        """Accelerators that are paid for."""
        return self.devices * (1.0 + self.spares)

    def whole_usd(self, device_usd: float) -> float:
        """Return what everything costs over its years."""
        return self.besides_usd + self.paid * device_usd


@dataclass(frozen=True, slots=True)
class BreakEvenPoint:
    """Where the first of two designs is ahead.

    Parameters
    ----------
    at : float
        From 0 to infinity.
    above : bool
        Whether it is ahead above it, else below. Ahead everywhere: above 0, or below infinity.
    """

    at: float
    above: bool

    @property
    def always(self) -> bool:
        """Whether the first is ahead everywhere."""
        return self.at == (0.0 if self.above else float("inf"))

    @property
    def never(self) -> bool:
        """Whether the second is ahead, or level, everywhere."""
        return self.at == (float("inf") if self.above else 0.0)


def with_hours(design: DesignCost, reference: DesignCost, hours: float) -> DesignCost:
    """Return a design by its work where this model gets a share of the hours.

    For the rest of them an accelerator is worth as much in every design: what one of the reference
    trains. With all hours the work is what the design trains, up to a factor that all share.
    """
    trained = design.tokens_per_s / reference.tokens_per_s * reference.devices
    return replace(design, tokens_per_s=hours * trained + (1 - hours) * design.devices)


def crossing_of_price(first: DesignCost, second: DesignCost) -> BreakEvenPoint:
    """Return prices of an accelerator at which the first trains more per dollar.

    Examples
    --------
    >>> fast, cheap = DesignCost(1.02e6, 1024, 6e6), DesignCost(1e6, 1024, 4e6)
    >>> crossing_of_price(fast, cheap)
    BreakEvenPoint(at=93750.0, above=True)
    """
    slope = first.tokens_per_s * second.paid - second.tokens_per_s * first.paid
    rest = second.tokens_per_s * first.besides_usd - first.tokens_per_s * second.besides_usd
    return _crossing(-rest, slope, DEVICE_USD.high or float("inf"))


def crossing_of_years(first: DesignCost, second: DesignCost, device_usd: float) -> BreakEvenPoint:
    """Years for which the first must be kept to train more per dollar."""
    first_usd, second_usd = (
        design.network_usd + design.paid * device_usd for design in (first, second)
    )
    return _crossing(
        first.tokens_per_s * second_usd - second.tokens_per_s * first_usd,
        first.tokens_per_s * second.yearly_usd - second.tokens_per_s * first.yearly_usd,
        float("inf"),
    )


def crossing_of_hours(
    first: DesignCost, second: DesignCost, device_usd: float, reference: DesignCost
) -> BreakEvenPoint:
    """Return shares of its hours that it must train this model for the first to do more per dollar.

    For the rest of them an accelerator is worth as much in both; see `with_hours`.
    """
    first_usd, second_usd = first.whole_usd(device_usd), second.whole_usd(device_usd)
    rate = reference.devices / reference.tokens_per_s
    idle = first.devices * second_usd - second.devices * first_usd
    trained = rate * (first.tokens_per_s * second_usd - second.tokens_per_s * first_usd)
    return _crossing(idle, trained - idle, 1.0)


def _crossing(offset: float, slope: float, max_at: float) -> BreakEvenPoint:
    """Solve ``offset + slope t > 0`` for t from 0 to ``max_at``."""
    if slope == 0:
        return BreakEvenPoint(0.0 if offset > 0 else float("inf"), True)
    at = -offset / slope
    return BreakEvenPoint(max(0.0, at) if at < max_at else float("inf"), slope > 0)


@dataclass(frozen=True, slots=True)
class WholeBill:
    """A design's whole bill and what follows from it.

    Parameters
    ----------
    name : str
    owned : Owned
    scenario : ScenarioValues or None
        None for a fabric alone.
    report : Report or None
        The best plan.
    reason : str
        Why there is none; empty where there is one or none was asked for.
    sureness : Sureness or None
        Of the plan.
    training : Training or None
        Of the tokens that were asked for, with failures.
    failure : Failure or None
        The worst single one; None where that was not asked for.
    at_budget : AtBudget or None
        As much of it as a network's budget buys; None where no budget was given.
    gap : float
        How far the plan may be from the best, relative; 0 where it is proven.
    points : int
        Plans that were considered.
    """

    name: str
    owned: Owned
    scenario: ScenarioValues | None = None
    report: Report | None = None
    reason: str = ""
    sureness: Sureness | None = field(default=None, compare=False)
    training: Training | None = None
    failure: Failure | None = None
    at_budget: AtBudget | None = None
    gap: float = 0.0
    points: int = 0

    @property
    def worst_loss(self) -> tuple[float, str] | None:
        """Share of throughput that the worst single failure takes, planned anew, and of what."""
        return (self.failure.least_loss, self.failure.words) if self.failure else None

    @property
    def tokens_per_s(self) -> float | None:
        """Of the whole cluster."""
        return (
            None
            if self.report is None or self.scenario is None
            else self.report.samples_per_s * self.scenario.sequence
        )

    @property
    def effective_tokens_per_s(self) -> float | None:
        """Of the whole cluster, over the whole time: failures, saves and restarts are in it."""
        return self.training.effective_tokens_per_s() if self.training else None

    @property
    def caveat(self) -> str:
        """What its speed does not know about its fabric; empty without a plan."""
        return without_detours(self.scenario.fabric) if self.report and self.scenario else ""

    def cost(self, end: str = "typical", faster: float = 1.0) -> DesignCost | None:
        """Return what is weighed, at an end of the prices; None without a plan."""
        rate = self.effective_tokens_per_s
        if rate is None:
            return None
        owned = self.owned
        return DesignCost(
            rate * faster,
            owned.devices,
            getattr(owned.besides_usd, end),
            getattr(owned.yearly_usd, end),
            owned.years,
            owned.spares,
        )

    @property
    def usd_per_million_tokens(self) -> PriceRange | None:
        """At the share of the hours that is sold; None without a plan or a price."""
        hourly, rate = self.owned.usd_per_device_hour, self.effective_tokens_per_s
        return (
            None
            if hourly is None or rate is None
            else (self.owned.devices * 1e6 / (3600.0 * rate)) * hourly
        )

    @property
    def tokens_per_kWh(self) -> float | None:
        """At the meter where the PUE is known, all drawing what energy is billed for."""
        energy = self.owned.of("energy")
        rate = self.effective_tokens_per_s
        return (
            None
            if rate is None or not energy or not energy[0].count
            else rate * 3600.0 * self.owned.years * HOURS_PER_YEAR / energy[0].count
        )

    @property
    def training_usd(self) -> PriceRange | None:
        """Of the training run: its hours of every accelerator."""
        hourly = self.owned.usd_per_device_hour
        return (
            None
            if hourly is None or self.training is None
            else (24.0 * self.training.device_days) * hourly
        )

    @property
    def spares_worth(self) -> list[dict[str, float | None]]:
        """What spare nodes are worth and cost: none, few, half of those billed, and these.

        Each has ``hosts``, ``days`` of the training run, and ``usd``.
        """
        run, line = self.training, self.owned.of("spares")
        if run is None or not line or not run.spares:
            return []
        unit_usd = line[0].usd.typical / run.spares if line[0].usd else None
        return [
            {"hosts": hosts, "days": run.days_with(hosts), "usd": unit_usd and hosts * unit_usd}
            for hosts in sorted({0, 1, 2, run.spares // 2, run.spares})
            if hosts <= run.spares
        ]

    def to_json(self) -> dict[str, Any]:
        """Return fields of the command line."""
        owned = self.owned
        run = self.training
        return {
            "name": self.name,
            "prices": owned.prices,
            "devices": owned.devices,
            "years": owned.years,
            "lines": [
                {
                    "part": line.part,
                    "name": line.name,
                    "count": line.count,
                    "unit": line.unit,
                    "unit_usd": _ends(line.unit_usd),
                    "source": line.source,
                    "usd": typical(line.usd),
                    "usd_range": _ends(line.usd),
                    "power_w": typical(line.power_W),
                    "failures_per_year": typical(line.failures),
                    "failures_source": line.failures_source,
                }
                for line in owned.lines
            ],
            "total_usd": owned.total_usd.typical,
            "total_usd_range": _ends(owned.total_usd),
            "missing": list(owned.missing),
            "power_w": owned.power_W.typical,
            "failures_per_year": owned.failures_per_year.typical,
            "sold_share": owned.sold_share,
            "usd_per_gpu_hour": typical(owned.usd_per_device_hour),
            "usd_per_gpu_hour_range": _ends(owned.usd_per_device_hour),
            "device_usd": typical(owned.device_usd),
            "tokens_per_s": self.tokens_per_s,
            "effective_share": run and run.effective_share,
            "usd_per_million_tokens": typical(self.usd_per_million_tokens),
            "usd_per_million_tokens_range": _ends(self.usd_per_million_tokens),
            "tokens_per_kwh": self.tokens_per_kWh,
            "training": None
            if run is None
            else {
                "tokens": run.tokens,
                "days": run.days,
                "days_range": list(run.span),
                "days_without_failures": run.days_without_failures,
                "days_by_part": dict(run.parts),
                "failures": run.goodput.file.name,
                "spares": self.spares_worth,
                "usd": typical(self.training_usd),
                "usd_range": _ends(self.training_usd),
            },
            "worst_failure": None
            if self.worst_loss is None
            else {"lost": self.worst_loss[0], "what": self.worst_loss[1]},
            "gap": self.gap if self.report else None,
            "reason": self.reason,
            "assumed": list(owned.assumed),
            "caveat": self.caveat,
            "checks": list(owned.checks),
        }


def scenario_prices(scenario: Scenario, amounts: Mapping[str, Any] | None = None) -> Prices:
    """Return the price list of a scenario: its ``prices``, then keys that start with ``prices.``.

    Parameters
    ----------
    scenario : Scenario
    amounts : mapping, optional
        Dotted keys of the price list to values, over it.

    Raises
    ------
    InputError
        If it names no price list.
    """
    merged, changes = expanded(scenario.document, scenario.overrides, scenario.folder)
    listed = changes.get("prices", merged.get("prices"))
    require(
        listed is None or isinstance(listed, str | Mapping),
        "prices",
        "must be a list's name or a table",
        listed,
        "name a price list",
    )
    price_keys = {
        key.removeprefix(OF_PRICES): value
        for key, value in changes.items()
        if key.startswith(OF_PRICES)
    }
    return prices_of(listed, {**price_keys, **(amounts or {})}, scenario.folder)


def spare_nodes(scenario: Scenario) -> int:
    """Return how many nodes stand by in a scenario's bill."""
    values, prices = scenario.values, scenario_prices(scenario)
    name = values.accelerator.name
    return owned(values.fabric, prices, name, failures=values.failures).spare_nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate(WholeBill):
    """One scenario of a comparison: its whole bill, and where it is built and known of.

    Parameters
    ----------
    source : Scenario
        What was planned; its price list is what prices are changed over.
    levels : tuple of Level
        Of its network, innermost first.
    blocks : LevelBlocks
        Where its devices meet.
    settings : tuple of (str, str)
        Keys of the scenario that are not the same in all candidates, with this one's values.
    nest : Baseline or None
        NEST's level-wise program, where it was asked for.
    """

    scenario: ScenarioValues
    source: Scenario = field(compare=False)
    levels: tuple[Level, ...]
    blocks: LevelBlocks = field(compare=False)
    settings: tuple[tuple[str, str], ...] = ()
    nest: Baseline | None = None

    @property
    def bill(self) -> Bill:
        """Of its network."""
        return self.owned.network

    @property
    def interval(self) -> Interval | None:
        """Where the plan's time will lie."""
        return self.sureness.interval if self.sureness else None

    @property
    def tokens_per_s_span(self) -> Span | None:
        """Between which throughputs the plan would be measured; None where that is unknown."""
        rate = self.tokens_per_s
        return self.interval.around(rate) if self.interval and rate else None

    @property
    def tokens_per_s_per_W(self) -> float | None:
        """Throughput over the network's typical power, tokens/s per W."""
        rate, power = self.tokens_per_s, self.bill.power_W.typical
        return rate / power if rate is not None and power > 0 else None

    @property
    def all_power_W(self) -> float | None:
        """Network and accelerators at design power; None where the vendor publishes none."""
        fabric, device = self.scenario.fabric, self.scenario.accelerator.power_w
        return None if device is None else self.bill.power_W.typical + device * fabric.devices


def bill_of_scenario(
    name: str,
    scenario: Scenario,
    *,
    prices: Prices | None = None,
    problem: Problem | None = None,
    tokens: float | None = None,
    failures: bool = False,
    stop: Stop | None = None,
) -> WholeBill:
    """Return a scenario's whole bill, planned.

    Parameters
    ----------
    name : str
    scenario : Scenario
        Keys of its overrides that start with ``prices.`` are the price list's.
    prices : Prices, optional
        In place of the scenario's.
    problem : Problem, optional
        The scenario's, where it is at hand.
    tokens : float, optional
        Of the training run; 20 per parameter without.
    failures : bool
        Whether the worst single failure is sought, which takes searches of its own.
    stop : callable, optional
        See `search`.
    """
    values = scenario.values
    problem = problem or values.problem()
    ownership = owned(
        values.fabric,
        prices or scenario_prices(scenario),
        values.accelerator.name,
        failures=values.failures,
    )
    solved = solve(values, problem, stop=stop)
    if solved.best is None:
        return WholeBill(name, ownership, values, None, solved.reason)
    best, lost = solved.best, None
    if failures:
        lost = worst_failure(values, best.plan, ownership.spare_nodes, stop=stop)
    sureness = sureness_of(values, problem, best)
    return WholeBill(
        name,
        ownership,
        values,
        best,
        sureness=sureness,
        training=training(values, best, tokens, sureness.interval),
        failure=lost,
        gap=solved.certificate.gap,
        points=solved.certificate.points,
    )


def device_usd_of(bills: Sequence[WholeBill]) -> PriceRange | None:
    """Return an accelerator with its server share, where all have one price for it."""
    prices = {bill.owned.device_usd for bill in bills}
    return prices.pop() if len(prices) == 1 else None


def _ends(value: PriceRange | None) -> list[float] | None:
    return None if value is None else [value.low, value.typical, value.high]


def typical(value: PriceRange | None) -> float | None:
    """Return the typical end of a range, if there is one."""
    return None if value is None else value.typical
