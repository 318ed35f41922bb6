"""One scenario of a comparison, solved, with what else is read against the others."""

from __future__ import annotations

from dataclasses import dataclass, field

from nest_core.baselines import Baseline
from nest_core.bill.bill import Bill
from nest_core.costs.price import Report
from nest_core.explain.interval import Interval, Span
from nest_core.network.blocks import LevelBlocks
from nest_core.network.levels import Level
from nest_core.scenario import ScenarioValues
from nest_core.studies.equal_budget import AtBudget
from nest_core.studies.failures import Loss
from nest_core.studies.interval import Sureness

__all__ = ["Candidate"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One scenario of a comparison, solved.

    Parameters
    ----------
    name : str
    scenario : ScenarioValues
    report : Report or None
        The best plan; None where there is none, or none yet was found.
    reason : str
        Why there is no plan; empty otherwise.
    gap : float
        How far the plan may be from the best, as a share of its time; 0 where it is proven.
    sureness : Sureness or None
        How surely the plan's time is known; None without a plan.
    levels : tuple of Level
        Of its network, innermost first.
    blocks : LevelBlocks
        Where its devices meet.
    bill : Bill
        Of its network.
    settings : tuple of (str, str)
        Keys of the scenario that are not the same in all candidates, with this one's values.
    losses : tuple of Loss
        Empty where they were not asked for, where there is no plan, and where the fabric does
        not say which switches it has.
    at_budget : AtBudget or None
        None where no budget was given.
    nest : Baseline or None
        NEST's level-wise program, where it was asked for.
    points : int
        Plans that the search considered.
    """

    name: str
    scenario: ScenarioValues
    report: Report | None
    reason: str
    gap: float
    sureness: Sureness | None = field(compare=False)
    levels: tuple[Level, ...]
    blocks: LevelBlocks = field(compare=False)
    bill: Bill
    settings: tuple[tuple[str, str], ...]
    losses: tuple[Loss, ...] = ()
    at_budget: AtBudget | None = None
    nest: Baseline | None = None
    points: int = 0

    @property
    def interval(self) -> Interval | None:
        """Where the plan's time will lie."""
        return self.sureness.interval if self.sureness else None

    @property
    def tokens_per_s(self) -> float | None:
        """Throughput of the whole fabric."""
        return self.report.samples_per_s * self.scenario.sequence if self.report else None

    @property
    def tokens_per_s_span(self) -> Span | None:
        """Between which throughputs the plan would be measured; None where that is unknown."""
        rate = self.tokens_per_s
        return self.interval.around(rate) if self.interval and rate else None

    @property
    def tokens_per_s_per_W(self) -> float | None:
        """Throughput over the network's typical power, tokens/s per W."""
        return _over(self.tokens_per_s, self.bill.power_W.typical)

    @property
    def usd_per_device(self) -> float:
        """The network's typical price over the devices."""
        return self.bill.price_usd.typical / self.scenario.fabric.devices

    @property
    def all_power_W(self) -> float | None:
        """Network and accelerators at design power; None where the vendor publishes none."""
        device = self.scenario.accelerator.power_w
        if device is None:
            return None
        return self.bill.power_W.typical + device * self.scenario.fabric.devices


def _over(rate: float | None, spent: float) -> float | None:
    return rate / spent if rate is not None and spent > 0 else None
