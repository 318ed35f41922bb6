"""The goodput of a priced plan: everything that its effective share follows from, and the share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nest_core.costs import Plan, Problem
from nest_core.documents.errors import require
from nest_core.documents.schema.failures import FailureFile
from nest_core.fabric import Fabric
from nest_core.reliability.checkpoint import (
    SavedState,
    Saving,
    availability_s,
    daly_s,
    saved_state,
    saving,
    young_s,
)
from nest_core.reliability.parts import parts_used
from nest_core.reliability.process import Process, Shares, effective_shares
from nest_core.reliability.rates import CauseRate, cause_rates, rate_span

__all__ = ["GoodputEstimate", "estimate"]


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
        replicas = self.process.replicas
        return _estimate(file, self.parts, self.state, self.idle_hosts, replicas)

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
