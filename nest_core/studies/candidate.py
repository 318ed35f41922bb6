"""One scenario of a comparison, solved, with what else is read against the others."""

from __future__ import annotations

from dataclasses import dataclass, field

from nest_core.bill.bill import Bill
from nest_core.explain.interval import Interval, Span
from nest_core.network.blocks import LevelBlocks
from nest_core.network.levels import Level
from nest_core.planner.baselines import Baseline
from nest_core.scenario import ScenarioValues
from nest_core.studies.equal_budget import AtBudget
from nest_core.studies.interval import Sureness
from nest_core.studies.whole_bill import WholeBill

__all__ = ["Candidate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate(WholeBill):
    """One scenario of a comparison: its whole bill, and where it is built and known of.

    Parameters
    ----------
    levels : tuple of Level
        Of its network, innermost first.
    blocks : LevelBlocks
        Where its devices meet.
    settings : tuple of (str, str)
        Keys of the scenario that are not the same in all candidates, with this one's values.
    at_budget : AtBudget or None
        None where no budget was given.
    nest : Baseline or None
        NEST's level-wise program, where it was asked for.
    """

    scenario: ScenarioValues
    sureness: Sureness | None = field(default=None, compare=False)
    levels: tuple[Level, ...]
    blocks: LevelBlocks = field(compare=False)
    settings: tuple[tuple[str, str], ...]
    at_budget: AtBudget | None = None
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
