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

Nodes that go with a leaf are replaced by spare ones as far as the bill buys any, under a leaf that
serves them as the lost one did: the loss is that of the nodes that are still missing.

What runs without a switch also runs with it, so no loss is below 0. A plan that is faster on what
is left than the whole fabric's is one that a search that was stopped had not found: it becomes the
whole fabric's, and the losses are those beside it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nest_core.costs import Plan, Problem, Report, price
from nest_core.documents import InputError, percent, plural, require
from nest_core.planner import Certificate, SearchResult, search
from nest_core.scenario import Scenario, ScenarioValues

__all__ = [
    "Stop",
    "SwitchLoss",
    "Tell",
    "improved",
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
_SAME = 1e-9


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
        Devices that the job may run on: what is left, and spare ones.
    same_plan : float or None
        Share of throughput that is lost if the plan stays; None where it cannot run.
    replanned : float or None
        The same for the best plan on what is left; None where there is none.
    by_batch : float
        Part of ``replanned`` that is lost because the batch does not divide over what is left.
    idle : int
        Devices that are left and that the new plan does not use.
    spares : int
        Spare nodes that take the place of lost ones.
    by_spares : float
        Share of throughput that would be lost beside ``replanned`` without them.
    is_cut : bool
        Whether nodes are left without a path to each other.
    faster : Plan or None
        The new plan, where it is faster than that of the whole fabric.
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
    spares: int = 0
    by_spares: float = 0.0
    is_cut: bool = False
    faster: Plan | None = None

    @property
    def by_switch(self) -> float | None:
        """Part of ``replanned`` that is the switch's: its links, and devices that went with it."""
        return None if self.replanned is None else self.replanned - self.by_batch

    @property
    def words(self) -> str:
        """Which switch it is, and why everything is lost or how much is not its doing."""
        if self.replanned is None:
            return f"one {self.tier}, " + (
                "the only path between its nodes (no part of them is planned alone)"
                if self.is_cut
                else "without which no plan fits"
            )
        part = f", of which {percent(self.by_batch)} because the batch does not divide"
        return f"one {self.tier}{part if self.by_batch > _SAME else ''}"


def worst_of(lost: Sequence[SwitchLoss]) -> tuple[float, str] | None:
    """Share of throughput that the worst of some switches takes, planned anew, and which it is."""
    return max(
        ((1.0 if loss.replanned is None else loss.replanned, loss.words) for loss in lost),
        default=None,
    )


def losses(
    scenario: Scenario,
    report: Report,
    spares: int = 0,
    *,
    stop: Callable[[], bool] | None = None,
) -> tuple[Report, tuple[SwitchLoss, ...]]:
    """Let one switch of every tier at risk fail, one at a time.

    Parameters
    ----------
    scenario : Scenario
    report : Report
        Its best plan.
    spares : int
        Spare nodes that the bill buys.
    stop : callable, optional
        See `search`.

    Returns
    -------
    Report
        The plan given, or one found without a switch that is faster on the whole fabric as well.
    tuple of SwitchLoss
        Beside that plan, innermost tier first; empty for fabrics that are no Clos.
    """
    values = scenario.values
    lost = tuple(
        lose_one(scenario, report, tier, spares, stop=stop)
        for tier in values.fabric.tier_names[:MAX_TIERS]
    )
    plans = [
        loss.faster
        for loss in lost
        if loss.faster
        and (values.space.idle_devices or loss.faster.devices_used == values.fabric.devices)
    ]
    if plans:
        problem = values.problem()
        better = max((price(problem, plan) for plan in plans), key=_rate)
        if _is_faster(better, report):
            return losses(scenario, better, spares, stop=stop)
    return report, lost


def lose_one(
    scenario: Scenario,
    report: Report,
    tier: str,
    spares: int = 0,
    *,
    stop: Callable[[], bool] | None = None,
) -> SwitchLoss:
    """Let the first switch of one tier of a Clos fail; parameters as of `losses`."""
    fabric = scenario.values.fabric
    ways = fabric.without_switch(tier)
    require(ways, "fabric", "must be a Clos", fabric.name, "describe its switch tiers")
    refusal, is_cut = "", False
    for gone in ways:
        try:
            loss = _without(scenario, report, tier, gone, stop)
            replaced = min(spares, len(gone) - 1)
            return _replaced(scenario, report, loss, replaced, stop) if replaced else loss
        except InputError as error:
            refusal, is_cut = str(error), error.field == "missing"
    return SwitchLoss(
        tier, (), fabric.devices, None, None, note=f"Without {ways[0][0]}: {refusal}", is_cut=is_cut
    )


def _without(
    scenario: Scenario,
    report: Report,
    tier: str,
    gone: tuple[str, ...],
    stop: Callable[[], bool] | None,
) -> SwitchLoss:
    """Return the loss of a switch and the nodes that go with it, none of them replaced."""
    values = scenario.values
    overrides = {**scenario.overrides, "fabric.missing": [*values.fabric.missing, *gone]}
    loss = _priced(replace(scenario, overrides=overrides).values, report, tier, gone, stop)
    batch = _cut_batch(values, report, loss)
    if batch == values.batch or loss.replanned is None:
        return loss
    return _attributed(
        loss, replace(scenario, overrides={**overrides, _BATCH: batch}).values, report, stop
    )


def _replaced(
    scenario: Scenario,
    report: Report,
    loss: SwitchLoss,
    spares: int,
    stop: Callable[[], bool] | None,
) -> SwitchLoss:
    """Return the loss once spare nodes stand in for as many that went with the switch."""
    devices, nodes = scenario.values.fabric.devices, loss.missing[1:]
    rest = (
        _without(scenario, report, loss.tier, nodes[spares:], stop)
        if nodes[spares:]
        else SwitchLoss(loss.tier, (), devices, 0.0, 0.0, idle=devices - report.plan.devices_used)
    )
    before, after = (1.0 if x.replanned is None else x.replanned for x in (loss, rest))
    return replace(
        rest,
        missing=loss.missing,
        note=f"{spares} of {plural(len(nodes), 'node')} that lose their only leaf have a spare one"
        + (rest.note[rest.note.find("; ") :] if "; " in rest.note else ""),
        spares=spares,
        by_spares=max(0.0, before - after),
        faster=rest.faster or loss.faster,
    )


def improved(result: SearchResult, report: Report) -> SearchResult:
    """Return a search's answer with a plan that is at least as good as its own."""
    proof = result.certificate
    gap = max(0.0, 1.0 - proof.lower_bound_s / report.iteration_s)
    is_new = report is not result.best
    return replace(result, best=report, certificate=replace(proof, gap=gap)) if is_new else result


def _rate(report: Report) -> float:
    return report.samples_per_s if report.feasible else 0.0


def _is_faster(report: Report | None, before: Report) -> bool:
    return report is not None and _rate(report) > (1.0 + _SAME) * before.samples_per_s


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
        solved = solve(
            rest, problem, within_s=same_plan.iteration_s if same_plan else float("inf"), stop=stop
        )
    best = solved.best or same_plan  # within the old plan's time there may be nothing else
    devices = problem.network.devices
    used = best.plan.devices_used if best else devices
    nodes = sum(entry.startswith("node") for entry in gone)
    words = [f"{plural(nodes, 'node')} lose their only leaf" if nodes else "", why]
    if best is None:
        words.append(solved.reason)
    elif nodes and used < devices:
        words.append(f"the new plan uses {used:,} of {devices:,}")
    faster = best.plan if best and _is_faster(best, report) else None
    if faster:
        words.append("no loss: the plan of the whole fabric is not its best")
    return SwitchLoss(
        tier,
        gone,
        devices,
        _share(report, same_plan),
        _share(report, best),
        note="; ".join(filter(None, words)),
        idle=devices - used,
        faster=faster,
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
    return replace(loss, by_batch=min(max(0.0, more / before.samples_per_s), loss.replanned or 0.0))


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
    return max(0.0, 1.0 - after.samples_per_s / before.samples_per_s) if after else None
