"""What one failed switch costs: the plan as it is, and a new one, on the fabric that is left.

A Clos fabric is rebuilt without the first leaf, and without the first spine, that it has
(`nest_core.fabric.asbuilt`). A failed spine takes its share of every leaf's uplinks. A failed
leaf takes one rail of its nodes, or one plane of their NICs; where it was all that joined them, its
nodes go with it. Nothing is replayed: both prices are those of a job that runs on what is left, so
what a restart loses is no part of them.

Degrees divide the batch, so devices that are left may idle for want of a divisor, and that is no
switch's doing. Where the new plan leaves any idle, the same is planned with the batch that the old
plan's replicas would have on what is left, each as many sequences as before; what it trains more
is the batch's part of the loss (docs/decisions/failed-switches.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nest_core.costs.price import Report, price
from nest_core.costs.problem import Problem
from nest_core.documents.errors import InputError
from nest_core.documents.units import plural
from nest_core.fabric import Fabric
from nest_core.scenario import Scenario, ScenarioValues
from nest_core.studies.solving import solve

__all__ = ["Loss", "lose_one", "losses", "tiers_at_risk", "worst_of"]

MOST_TIERS = 2
"""Leaves and spines; cores do not fail here."""

_BATCH = "workload.global_batch_sequences"


@dataclass(frozen=True, slots=True)
class Loss:
    """What a fabric without one switch reaches of the throughput before.

    Parameters
    ----------
    tier : str
        What the failed switch is: ``"leaf"`` or ``"spine"``, or as its fabric names it.
    missing : tuple of str
        What failed; empty where that cannot be expressed.
    devices : int
        Devices that are left.
    kept : float or None
        Share of throughput that is lost if the plan stays; None where it cannot run.
    replanned : float or None
        The same for the best plan on what is left; None where there is none.
    by_batch : float
        Part of ``replanned`` that is lost because the batch does not divide over what is left.
    idle : int
        Devices that are left and that the new plan does not use.
    note : str
        Why a share is None, or which nodes went with the switch; empty if nothing is to be said.
    """

    tier: str
    missing: tuple[str, ...]
    devices: int
    kept: float | None
    replanned: float | None
    by_batch: float = 0.0
    idle: int = 0
    note: str = ""

    @property
    def by_switch(self) -> float | None:
        """Part of ``replanned`` that is the switch's: its links, and devices that went with it."""
        return None if self.replanned is None else self.replanned - self.by_batch


def worst_of(lost: Sequence[Loss]) -> tuple[float, str] | None:
    """Share of throughput that the worst of some switches takes, planned anew, and which it is."""
    known = ((one.replanned if one.replanned is not None else 1.0, one.tier) for one in lost)
    return max(((share, f"one {tier}") for share, tier in known), default=None)


def tiers_at_risk(fabric: Fabric) -> tuple[str, ...]:
    """Names of the switch tiers of which one switch fails; empty unless it is a Clos."""
    return fabric.tier_names[:MOST_TIERS]


def losses(
    scenario: Scenario,
    report: Report,
    *,
    tell: Callable[[str], None] = lambda _: None,
    stop: Callable[[], bool] | None = None,
) -> tuple[Loss, ...]:
    """One switch of every tier at risk fails, one at a time.

    Parameters
    ----------
    scenario : Scenario
    report : Report
        Its best plan.
    tell : callable (tier), optional
        Called before a switch of a tier fails.
    stop : callable, optional
        See `search`.

    Returns
    -------
    tuple of Loss
        Innermost tier first; empty for fabrics that are no Clos.
    """
    found = []
    for tier in tiers_at_risk(scenario.values.fabric):
        tell(tier)
        found.append(lose_one(scenario, report, tier, stop=stop))
    return tuple(found)


def lose_one(
    scenario: Scenario,
    report: Report,
    tier: str,
    *,
    stop: Callable[[], bool] | None = None,
) -> Loss:
    """The first switch of one tier of a Clos fails; parameters as of `losses`."""
    fabric, overrides = scenario.values.fabric, scenario.overrides
    ways = fabric.without_switch(tier)
    if not ways:
        raise InputError("fabric", "must be a Clos", fabric.name, "describe its switch tiers")
    left: ScenarioValues | None = None
    refusal = ""
    for gone in ways:
        failed = (*fabric.missing, *gone)
        try:
            missing = {**overrides, "fabric.missing": list(failed)}
            left = replace(scenario, overrides=missing).values
        except InputError as error:
            refusal = str(error)
            continue
        loss = _priced(left, report, tier, gone, stop)
        cut = _cut_batch(scenario.values, report, loss)
        if cut == scenario.values.batch:
            return loss
        smaller = replace(scenario, overrides={**missing, _BATCH: cut})
        return _attributed(loss, smaller.values, report, stop)
    return Loss(tier, (), fabric.devices, None, None, note=f"Without {ways[0][0]}: {refusal}")


def _priced(
    left: ScenarioValues,
    report: Report,
    tier: str,
    gone: tuple[str, ...],
    stop: Callable[[], bool] | None,
) -> Loss:
    with np.errstate(invalid="ignore"):  # what has no way left takes for ever
        problem = left.problem()
        kept, why = _kept(problem, report)
        within_s = kept.iteration_s if kept else float("inf")
        solved = solve(left, problem, within_s=within_s, stop=stop)
    again = solved.report or kept  # within the old plan's time there may be nothing else
    devices = problem.network.devices
    nodes = len(gone) - 1
    words = [f"{plural(nodes, 'node')} lose their only leaf"] if nodes else []
    words += [why] if why else []
    if again is None:
        words.append(solved.reason)
    elif nodes and (used := again.plan.devices_used) < devices:
        words.append(f"the new plan uses {used:,} of {devices:,}")
    return Loss(
        tier,
        gone,
        devices,
        _share(report, kept),
        _share(report, again),
        note="; ".join(words),
        idle=devices - again.plan.devices_used if again else 0,
    )


def _cut_batch(scenario: ScenarioValues, report: Report, loss: Loss) -> int:
    """The batch of as many of the old plan's replicas as are left; the same where none idles."""
    point = report.plan.point
    replicas = loss.devices * point.dp // report.plan.devices_used
    if not loss.idle or replicas >= point.dp:
        return scenario.batch
    return max(1, scenario.batch * replicas // point.dp)


def _attributed(
    loss: Loss, left: ScenarioValues, before: Report, stop: Callable[[], bool] | None
) -> Loss:
    """The loss with the part that a batch cut in proportion would not have."""
    if loss.replanned is None:
        return loss
    again = (1.0 - loss.replanned) * before.samples_per_s
    with np.errstate(invalid="ignore"):
        best = solve(left, left.problem(), within_s=left.batch / again, stop=stop).report
    more = best.samples_per_s - again if best else 0.0
    return replace(loss, by_batch=max(0.0, more / before.samples_per_s))


def _kept(problem: Problem, report: Report) -> tuple[Report | None, str]:
    """The same plan on what is left, or why it cannot run there."""
    needed, there = report.plan.devices_used, problem.network.devices
    if needed > there:
        return None, f"the plan needs {needed:,} devices, {there:,} are left"
    found = price(problem, report.plan)
    if found.feasible and not math.isfinite(found.iteration_s):
        return None, "the plan's devices no longer all reach each other"
    return (found, "") if found.feasible else (None, found.reason)


def _share(before: Report, after: Report | None) -> float | None:
    return 1.0 - after.samples_per_s / before.samples_per_s if after else None
