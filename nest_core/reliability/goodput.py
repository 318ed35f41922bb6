"""The goodput of a priced plan: everything that its effective share follows from, and the share.

Parts in use are the devices, hosts, NICs, links and switches under a plan's devices. Links and
switches are those that the bill counts (`nest_core.bill.bill.inventory`), tier by tier, in the
share of the tier's groups that hold a device in use. A tier that no traffic need climb to, as all
devices lie in one group below it, is not used. Links inside nodes are the hosts' own.

How often they fail follows from counts of events over their exposure:
``rate = sum over causes of events / (units * days) * parts``. Counts are Poisson: with Jeffreys'
prior the rate of a cause is a gamma variate of shape ``events + 1/2``; the sum is taken for the
gamma variate of equal mean and variance. Rates that a source prints without counts are taken as
exact, which they are not.

A job fails for more reasons than its hosts do (software, the scheduler, whatever stops all ranks
at once): causes that strike ``job`` are counted per job, or per device of one, and no host is
repaired.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nest_core.bill.bill import inventory
from nest_core.bill.prices import load_prices
from nest_core.costs import Plan, Problem
from nest_core.costs.placement import rank_mapping_of
from nest_core.documents.errors import require
from nest_core.documents.schema.failures import CauseTable, FailureFile
from nest_core.documents.units import DAY_S
from nest_core.fabric import Fabric
from nest_core.hardware.posterior import SHARE
from nest_core.network import BoolArray, FloatArray, IntArray, Network
from nest_core.reliability.checkpoint import (
    SavedState,
    Saving,
    availability_s,
    daly_s,
    saved_state,
    saving,
    young_s,
)
from nest_core.reliability.process import Process, Shares, effective_shares

__all__ = [
    "CauseRate",
    "GoodputEstimate",
    "cause_rates",
    "estimate",
    "parts_used",
    "rate_span",
]


def parts_used(fabric: Fabric, network: Network, plan: Plan) -> Mapping[str, float]:
    """Return how many parts a plan uses, by what causes strike; one job.

    Tiers of direct links (tori) count in the share of devices in use.
    """
    counts = inventory(fabric, load_prices())
    used = rank_mapping_of(network, plan).rank >= 0
    hosts = len(np.unique(network.host[used]))
    blocks = _blocks(network)
    if network.torus is None:
        below = [_share(block, used) for block in blocks]
        climbs = [len(np.unique(block[used])) > 1 for block in blocks]
        links, switches = np.multiply(below, climbs), np.multiply([*below[1:], below[-1]], climbs)
    else:
        links = switches = np.array([used.mean()])
    return {
        "device": float(used.sum()),
        "host": float(hosts),
        "nic": counts.nics * hosts / len(np.unique(network.host)),
        "link": _sum([link.count for link in counts.links], links),
        "switch": _sum([switch.count for switch in counts.switches], switches),
        "job": 1.0,
    }


def _blocks(network: Network) -> tuple[IntArray, ...]:
    """Return the groups that climb into the first tier of switches, and those above."""
    nodes = [np.array_equal(block, network.node) for block in network.nesting]
    return network.nesting[nodes.index(True) if any(nodes) else 0 :]


def _share(block: IntArray, used: BoolArray) -> float:
    """Return the share of groups with devices in use."""
    return len(np.unique(block[used])) / len(np.unique(block))


def _sum(counts: Sequence[int], shares: FloatArray) -> float:
    """Return parts of all tiers in use; tiers that no level stands for are as the topmost."""
    return float(
        sum(count * shares[min(tier, len(shares) - 1)] for tier, count in enumerate(counts))
    )


@dataclass(frozen=True, slots=True)
class CauseRate:
    """One cause under a plan.

    Parameters
    ----------
    cause : CauseTable
    parts : float
        Of what it strikes, in use; of a job one, or its devices over those that were watched.
    """

    cause: CauseTable
    parts: float

    @property
    def per_event(self) -> float:
        """Rate that one counted event stands for, 1/s."""
        return self.parts / (self.cause.units * self.cause.days * DAY_S)

    @property
    def per_s(self) -> float:
        """Failures per second of the plan's parts."""
        return self.cause.events * self.per_event


def cause_rates(file: FailureFile, parts: Mapping[str, float]) -> tuple[CauseRate, ...]:
    """Return the rate of every cause for a plan's parts, by what causes strike."""
    return tuple(
        CauseRate(
            cause,
            parts["device"] / cause.job_devices if cause.job_devices else parts[cause.strikes],
        )
        for cause in file.cause
    )


def rate_span(rates: tuple[CauseRate, ...]) -> tuple[float, float]:
    """Return between which failures per second lie in four cases of five, by the counts."""
    from scipy.special import gammaincinv  # not for every start

    certain = sum(rate.per_s for rate in rates if not rate.cause.counted)
    weights = np.array([rate.per_event for rate in rates if rate.cause.counted])
    events = np.array([rate.cause.events for rate in rates if rate.cause.counted]) + 0.5
    mean, variance = float(events @ weights), float(events @ weights**2)
    if not variance:
        return certain, certain
    ends = gammaincinv(mean**2 / variance, [(1 - SHARE) / 2, (1 + SHARE) / 2]) * variance / mean
    return certain + float(ends[0]), certain + float(ends[1])


@dataclass(frozen=True, slots=True)
class GoodputEstimate:
    """What failures leave of a plan, in closed form.

    Parameters
    ----------
    file : FailureFile
    rates : tuple of CauseRate
    parts : mapping of str to float
        In use, by what causes strike.
    state : SavedState
    saving : Saving
    process : Process
    shares : Shares
    span : tuple of float
        Effective share between the ends of what the counts say of the rates, in four cases of five.
    idle_hosts : int
        Of the spares, hosts of the fabric that the plan leaves idle.
    """

    file: FailureFile
    rates: tuple[CauseRate, ...]
    parts: Mapping[str, float]
    state: SavedState
    saving: Saving
    process: Process
    shares: Shares
    span: tuple[float, float]
    idle_hosts: int

    @property
    def mtbf_s(self) -> float:
        """Mean time between failures of what the plan uses, s; infinite without any."""
        return 1 / self.process.rate if self.process.rate else math.inf

    @property
    def interval_s(self) -> float:
        """From save to save, s."""
        return self.process.work_s + self.process.blocking_s

    def under(self, file: FailureFile) -> GoodputEstimate:
        """Return the same plan's under other failures."""
        return _estimate(file, self.parts, self.state, self.idle_hosts, self.process.replicas)

    @property
    def intervals_s(self) -> dict[str, float]:
        """What the three formulae say; Young's and Daly's are work between saves."""
        blocking = self.saving.blocking_s
        return {
            "young": young_s(self.mtbf_s, blocking),
            "daly": daly_s(self.mtbf_s, blocking),
            "availability": availability_s(self.mtbf_s, self.saving, self.process.restart_s),
        }


def estimate(problem: Problem, fabric: Fabric, plan: Plan, file: FailureFile) -> GoodputEstimate:
    """Return what failures leave of a plan.

    Parameters
    ----------
    problem : Problem
        That the plan is priced on.
    fabric : Fabric
        The problem's, before it was collapsed.
    """
    parts = parts_used(fabric, problem.network, plan)
    # Hosts of which the plan uses no device stand by.
    idle = len(np.unique(problem.network.host)) - int(parts["host"])
    return _estimate(file, parts, saved_state(problem, plan), idle, plan.point.dp)


def _estimate(
    file: FailureFile, parts: Mapping[str, float], state: SavedState, idle: int, replicas: int
) -> GoodputEstimate:
    rates = cause_rates(file, parts)
    recovery = file.recovery
    per_host = parts["device"] / parts["host"]
    times = saving(state, per_host, recovery)
    rate = sum(cause.per_s for cause in rates)
    mtbf_s = 1 / rate if rate else math.inf
    restart_s = recovery.detection_s.value + recovery.restart_s.value + times.write_s
    interval = recovery.interval_s
    period_s = availability_s(mtbf_s, times, restart_s)
    if interval is not None:
        period_s = interval.value
        require(
            period_s > times.blocking_s and period_s >= times.blocking_s + times.lag_s,
            "failures.recovery.interval_s",
            f"must be above the {times.blocking_s + times.lag_s:.4g} s that a save takes",
            period_s,
            "save less often, or leave it out for the best",
        )
    process = Process(
        rates=tuple(cause.per_s for cause in rates),
        takes_host=tuple(cause.cause.needs_spare for cause in rates),
        work_s=period_s - times.blocking_s,
        blocking_s=times.blocking_s,
        lag_s=times.lag_s,
        restart_s=restart_s,
        rejoin_s=times.blocking_s + times.lag_s + restart_s - recovery.detection_s.value,
        repair_s=3600 * recovery.repair_hours.value,
        spares=idle + math.ceil(recovery.spare_hosts.value * parts["host"] - 1e-9),
        replicas=replicas,
        replica_hosts=parts["device"] / replicas / per_host,
        shrinks=recovery.when_exhausted == "fewer_replicas",
    )
    low, high = (
        effective_shares(process.scaled(end / rate)).effective if rate else 1.0
        for end in reversed(rate_span(rates))
    )
    return GoodputEstimate(
        file,
        rates,
        parts,
        state,
        times,
        process,
        effective_shares(process),
        (low, high),
        idle,
    )
