"""The whole bill of a scenario or a fabric: lines, figures per token and hour, break-evens.

A scenario is planned, so that what it costs is read over what it trains: dollars per million
tokens, tokens per kWh, days and dollars of a training run. A fabric alone is billed. Beside others
(ratios of the same fabric, other fabrics) every pair with the first has its break-evens
(`nest_core.studies.break_evens`). What a person sets is the price list: a file, tables in the
scenario (``[prices]``), dotted keys that start with ``prices.``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nest_core.bill.ownership import HOURS_PER_YEAR, Owned, OwnedLine, owned
from nest_core.bill.prices import PriceRange, Prices, prices_of
from nest_core.costs.price import Report
from nest_core.documents.errors import InputError
from nest_core.explain.training import Training, training, usual_tokens
from nest_core.fabric import Fabric
from nest_core.network.dragonfly import without_detours
from nest_core.scenario import OF_PRICES, Scenario, ScenarioValues, expanded
from nest_core.studies.break_evens import BreakEven, Weighed, between, of_one
from nest_core.studies.failures import Loss, losses, worst_of
from nest_core.studies.interval import Sureness, sureness_of
from nest_core.studies.solving import Stop, solve

__all__ = [
    "WholeBill",
    "bill_of_fabric",
    "bill_of_scenario",
    "device_usd_of",
    "scenario_prices",
    "training_of",
    "typical",
    "with_break_evens",
]


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
        Of the tokens that were asked for.
    losses : tuple of Loss
        What one failed switch of each tier costs; empty where that was not asked for, and where
        the fabric does not say which switches it has.
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
    sureness: Sureness | None = None
    training: Training | None = None
    losses: tuple[Loss, ...] = ()
    gap: float = 0.0
    points: int = 0

    @property
    def worst_loss(self) -> tuple[float, str] | None:
        """Share of throughput that the worst single switch takes, planned anew, and which it is."""
        return worst_of(self.losses)

    @property
    def tokens_per_s(self) -> float | None:
        """Of the whole cluster."""
        if self.report is None or self.scenario is None:
            return None
        return self.report.samples_per_s * self.scenario.sequence

    @property
    def caveat(self) -> str:
        """What its speed does not know about its fabric; empty without a plan."""
        if self.report is None or self.scenario is None:
            return ""
        return without_detours(self.scenario.fabric)

    @property
    def weighed(self) -> Weighed:
        """As break-evens take it."""
        return Weighed(self.name, self.owned, self.tokens_per_s, self.sureness)

    @property
    def usd_per_million_tokens(self) -> PriceRange | None:
        """At the share of the hours that is sold; None without a plan or a price."""
        hourly, rate = self.owned.usd_per_device_hour, self.tokens_per_s
        if hourly is None or rate is None:
            return None
        return (self.owned.devices * 1e6 / (3600.0 * rate)) * hourly

    @property
    def tokens_per_kWh(self) -> float | None:
        """At the meter where the PUE is known, all drawing what energy is billed for."""
        energy = self.owned.of("energy")
        rate = self.tokens_per_s
        if rate is None or not energy or not energy[0].count:
            return None
        return rate * 3600.0 * self.owned.years * HOURS_PER_YEAR / energy[0].count

    @property
    def training_usd(self) -> PriceRange | None:
        """Of the training run: its hours of every accelerator."""
        hourly = self.owned.usd_per_device_hour
        if hourly is None or self.training is None:
            return None
        return (24.0 * self.training.device_days) * hourly

    def to_json(self) -> dict[str, Any]:
        """Fields of the command line."""
        whole = self.owned
        run = self.training
        return {
            "name": self.name,
            "prices": whole.prices,
            "devices": whole.devices,
            "years": whole.years,
            "lines": [_line(line) for line in whole.lines],
            "total_usd": whole.total_usd.typical,
            "total_usd_range": _ends(whole.total_usd),
            "missing": list(whole.missing),
            "power_w": whole.power_W.typical,
            "failures_per_year": whole.failures_per_year.typical,
            "sold_share": whole.sold_share,
            "usd_per_gpu_hour": typical(whole.usd_per_device_hour),
            "usd_per_gpu_hour_range": _ends(whole.usd_per_device_hour),
            "device_usd": typical(whole.device_usd),
            "tokens_per_s": self.tokens_per_s,
            "usd_per_million_tokens": typical(self.usd_per_million_tokens),
            "usd_per_million_tokens_range": _ends(self.usd_per_million_tokens),
            "tokens_per_kwh": self.tokens_per_kWh,
            "training": None
            if run is None
            else {
                "tokens": run.tokens,
                "days": run.days,
                "days_range": list(run.span),
                "usd": typical(self.training_usd),
                "usd_range": _ends(self.training_usd),
            },
            "worst_failure": None
            if self.worst_loss is None
            else {"lost": self.worst_loss[0], "what": self.worst_loss[1]},
            "gap": self.gap if self.report else None,
            "reason": self.reason,
            "assumed": list(whole.assumed),
            "caveat": self.caveat,
            "checks": list(whole.checks),
        }


def scenario_prices(scenario: Scenario) -> Prices:
    """The price list of a scenario: its ``prices``, then keys that start with ``prices.``."""
    merged, changes = expanded(scenario.document, scenario.overrides, scenario.folder)
    asked = changes.get("prices", merged.get("prices"))
    if asked is not None and not isinstance(asked, str | Mapping):
        raise InputError("prices", "must be a list's name or a table", asked, "name a price list")
    return prices_of(asked, prices_changes(changes), scenario.folder)


def prices_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Of dotted keys those of the price list, as it has them."""
    return {
        key.removeprefix(OF_PRICES): value
        for key, value in changes.items()
        if key.startswith(OF_PRICES)
    }


def bill_of_fabric(name: str, fabric: Fabric, prices: Prices, accelerator: str = "") -> WholeBill:
    """A fabric's whole bill, without a plan."""
    return WholeBill(name, owned(fabric, prices, accelerator))


def bill_of_scenario(
    name: str,
    scenario: Scenario,
    *,
    tokens: float | None = None,
    failures: bool = False,
    stop: Stop | None = None,
) -> WholeBill:
    """A scenario's whole bill, planned.

    Parameters
    ----------
    name : str
    scenario : Scenario
        Keys of its overrides that start with ``prices.`` are the price list's.
    tokens : float, optional
        Of the training run; 20 per parameter without.
    failures : bool
        Whether one switch of each tier fails, which takes searches of their own.
    stop : callable, optional
        See `search`.
    """
    values, prices = scenario.values, scenario_prices(scenario)
    whole = owned(values.fabric, prices, values.accelerator.name)
    problem = values.problem()
    solved = solve(values, problem, stop=stop)
    if solved.report is None:
        return WholeBill(name, whole, values, None, solved.reason)
    lost = losses(scenario, solved.report, stop=stop) if failures else ()
    return WholeBill(
        name,
        whole,
        values,
        solved.report,
        sureness=(sure := sureness_of(values, problem, solved.report)),
        training=training_of(values, solved.report, sure, tokens),
        losses=lost,
        gap=solved.gap,
        points=solved.points,
    )


def training_of(
    scenario: ScenarioValues, report: Report, sure: Sureness, tokens: float | None
) -> Training:
    """The training run of a plan; on 20 tokens per parameter where nobody said on how many."""
    asked = usual_tokens(scenario) if tokens is None else tokens
    return training(scenario, report, asked, sure.interval)


def with_break_evens(bills: Sequence[WholeBill]) -> list[BreakEven]:
    """What decides: of the first alone, then of the first against every other."""
    first, *others = bills
    found = [] if others else of_one(first.weighed)
    for other in others:
        found += between(first.weighed, other.weighed, device_usd_of(bills))
    return found


def device_usd_of(bills: Sequence[WholeBill]) -> PriceRange | None:
    """An accelerator with its server share, where all have one price for it."""
    prices = {one.owned.device_usd for one in bills}
    return prices.pop() if len(prices) == 1 else None


def _line(line: OwnedLine) -> dict[str, Any]:
    return {
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


def _ends(value: PriceRange | None) -> list[float] | None:
    return None if value is None else [value.low, value.typical, value.high]


def typical(value: PriceRange | None) -> float | None:
    """The typical end of a range, if there is one."""
    return None if value is None else value.typical
