"""The best plan of a scenario as studies ask for it, and what one failed switch costs it.

That there is no plan is an answer. A Clos fabric is rebuilt without the first leaf, and without the
first spine, that it has (`nest_core.fabric.asbuilt`). A failed spine takes its share of every
leaf's uplinks. A failed leaf takes one rail of its nodes, or one plane of their NICs; where it was
all that joined them, its nodes go with it. Nothing is replayed: both prices are those of a job that
runs on what is left, so what a restart loses is no part of them.

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

from nest_core.costs import Problem, Report, price
from nest_core.documents import InputError, plural, require
from nest_core.planner import Certificate, SearchResult, search
from nest_core.scenario import Scenario, ScenarioValues

__all__ = [
    "Stop",
    "SwitchLoss",
    "Tell",
    "lose_one",
    "losses",
    "never",
    "silent",
    "solve",
    "worst_of",
]

Tell = Callable[[float, str], None]
Stop = Callable[[], bool]


def solve(
    scenario: ScenarioValues,
    problem: Problem,
    *,
    within_s: float = float("inf"),
    stop: Stop | None = None,
) -> SearchResult:
    """Search a scenario's space within its time limit.

    Parameters
    ----------
    scenario : ScenarioValues
    problem : Problem
        The scenario's.
    within_s, stop
        See `search`. A space without a plan on this fabric is a reason here, no error.
    """
    try:
        return search(
            problem,
            scenario.space,
            time_limit_s=scenario.time_limit_s,
            within_s=within_s,
            stop=stop,
        )
    except InputError as error:
        nothing = Certificate(float("inf"), 0.0, True, 0, 0, 0, 0, scenario.space)
        return SearchResult(None, str(error), 0.0, (), nothing, (), 0.0)


def silent(share: float, words: str) -> None:
    """Ignore progress."""


def never() -> bool:
    """Return that nothing is to stop."""
    return False


MAX_TIERS = 2
"""Leaves and spines; cores do not fail here."""

_BATCH = "workload.global_batch_sequences"


@dataclass(frozen=True, slots=True)
class SwitchLoss:
    """What a fabric without one switch reaches of the throughput before.

    Parameters
    ----------
    tier : str
        What the failed switch is: ``"leaf"`` or ``"spine"``, or as its fabric names it.
    missing : tuple of str
        What failed; empty where that cannot be expressed.
    devices : int
        Devices that are left.
    same_plan : float or None
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
    same_plan: float | None
    replanned: float | None
    by_batch: float = 0.0
    idle: int = 0
    note: str = ""

    @property
    def by_switch(self) -> float | None:
        """Part of ``replanned`` that is the switch's: its links, and devices that went with it."""
        return None if self.replanned is None else self.replanned - self.by_batch


def worst_of(lost: Sequence[SwitchLoss]) -> tuple[float, str] | None:
    """Share of throughput that the worst of some switches takes, planned anew, and which it is."""
    return max(
        ((1.0 if loss.replanned is None else loss.replanned, f"one {loss.tier}") for loss in lost),
        default=None,
    )


def losses(
    scenario: Scenario,
    report: Report,
    *,
    stop: Callable[[], bool] | None = None,
) -> tuple[SwitchLoss, ...]:
    """Let one switch of every tier at risk fail, one at a time.

    Parameters
    ----------
    scenario : Scenario
    report : Report
        Its best plan.
    stop : callable, optional
        See `search`.

    Returns
    -------
    tuple of SwitchLoss
        Innermost tier first; empty for fabrics that are no Clos.
    """
    tiers = scenario.values.fabric.tier_names[:MAX_TIERS]
    return tuple(lose_one(scenario, report, tier, stop=stop) for tier in tiers)


def lose_one(
    scenario: Scenario,
    report: Report,
    tier: str,
    *,
    stop: Callable[[], bool] | None = None,
) -> SwitchLoss:
    """Let the first switch of one tier of a Clos fail; parameters as of `losses`."""
    fabric, overrides = scenario.values.fabric, scenario.overrides
    ways = fabric.without_switch(tier)
    require(ways, "fabric", "must be a Clos", fabric.name, "describe its switch tiers")
    refusal = ""
    for gone in ways:
        missing = {**overrides, "fabric.missing": [*fabric.missing, *gone]}
        try:
            rest = replace(scenario, overrides=missing).values
            loss = _priced(rest, report, tier, gone, stop)
            batch = _cut_batch(scenario.values, report, loss)
            if batch == scenario.values.batch or loss.replanned is None:
                return loss
            smaller = replace(scenario, overrides={**missing, _BATCH: batch})
            return _attributed(loss, smaller.values, report, stop)
        except InputError as error:
            refusal = str(error)
    return SwitchLoss(tier, (), fabric.devices, None, None, note=f"Without {ways[0][0]}: {refusal}")


def _priced(
    rest: ScenarioValues,
    report: Report,
    tier: str,
    gone: tuple[str, ...],
    stop: Callable[[], bool] | None,
) -> SwitchLoss:
    with np.errstate(invalid="ignore"):  # what has no way left takes for ever
        problem = rest.problem()
        same_plan, why = _same_plan(problem, report)
        within_s = same_plan.iteration_s if same_plan else float("inf")
        solved = solve(rest, problem, within_s=within_s, stop=stop)
    best = solved.best or same_plan  # within the old plan's time there may be nothing else
    devices = problem.network.devices
    used = best.plan.devices_used if best else devices
    nodes = len(gone) - 1
    words = [f"{plural(nodes, 'node')} lose their only leaf" if nodes else "", why]
    if best is None:
        words.append(solved.reason)
    elif nodes and used < devices:
        words.append(f"the new plan uses {used:,} of {devices:,}")
    return SwitchLoss(
        tier,
        gone,
        devices,
        _share(report, same_plan),
        _share(report, best),
        note="; ".join(filter(None, words)),
        idle=devices - used,
    )


def _cut_batch(scenario: ScenarioValues, report: Report, loss: SwitchLoss) -> int:
    """Return the batch of the old plan's replicas that are left; the same where none idles."""
    point = report.plan.point
    replicas = loss.devices * point.dp // report.plan.devices_used
    return (
        max(1, scenario.batch * replicas // point.dp)
        if loss.idle and replicas < point.dp
        else scenario.batch
    )


def _attributed(
    loss: SwitchLoss, rest: ScenarioValues, before: Report, stop: Callable[[], bool] | None
) -> SwitchLoss:
    """Return the loss with the part that a batch cut in proportion would not have."""
    rate = (1.0 - (loss.replanned or 0.0)) * before.samples_per_s
    with np.errstate(invalid="ignore"):
        best = solve(rest, rest.problem(), within_s=rest.batch / rate, stop=stop).best
    more = best.samples_per_s - rate if best else 0.0
    return replace(loss, by_batch=max(0.0, more / before.samples_per_s))


def _same_plan(problem: Problem, report: Report) -> tuple[Report | None, str]:
    """Return the same plan on what is left, or why it cannot run there."""
    needed, available = report.plan.devices_used, problem.network.devices
    if needed > available:
        return None, f"the plan needs {needed:,} devices, {available:,} are left"
    priced = price(problem, report.plan)
    if priced.feasible and not math.isfinite(priced.iteration_s):
        return None, "the plan's devices no longer all reach each other"
    return (priced, "") if priced.feasible else (None, priced.reason)


def _share(before: Report, after: Report | None) -> float | None:
    return 1.0 - after.samples_per_s / before.samples_per_s if after else None
