"""The one judge of every plan: what it takes, where, and whether it fits.

``iteration = sum(t_s) + (m - 1) * max(t_s) + max(sync_s)`` for 1F1B with ``m`` micro-batches
(Narayanan et al. 2021, PipeDream-Flush), ``t_s`` the forward and backward of one micro-batch on
stage ``s`` with its communication, ``sync_s`` its gradient synchronisation and optimizer step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nest_core.costs.plan import Plan
from nest_core.costs.problem import RECOMPUTE, LayerTable, Problem
from nest_core.costs.stages import (
    Links,
    StageCosts,
    gathered_bytes,
    links,
    stage_costs,
    state_shares,
    update_seconds,
)
from nest_core.errors import InputError
from nest_core.units import humanise_bytes

__all__ = ["Memory", "Report", "Stage", "check_plan", "price"]


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on one device of a stage, at its fullest."""

    weights: float
    gradients: float
    optimizer: float
    activations: float
    stash: float
    buffers: float

    @property
    def total(self) -> float:
        """All of it."""
        return (
            self.weights
            + self.gradients
            + self.optimizer
            + self.activations
            + self.stash
            + self.buffers
        )


@dataclass(frozen=True, slots=True)
class Stage:
    """One pipeline stage of a priced plan; times are per iteration.

    ``compute_s + recompute_s + communication_s + idle_s`` is the iteration time; compute is
    forward, backward and optimizer step. ``micro_batch_s`` is the stage's load ``t_s``,
    ``sync_s`` its gradient synchronisation and optimizer step ``e_s``.
    """

    first: int
    last: int
    recompute: str
    micro_batch_s: float
    compute_s: float
    recompute_s: float
    communication_s: float
    idle_s: float
    sync_s: float
    producer_level: int
    memory: Memory


@dataclass(frozen=True, slots=True)
class Report:
    """A priced plan.

    Parameters
    ----------
    feasible : bool
    reason : str
        Empty when feasible, else the first stage that does not fit and by how much.
    iteration_s, samples_per_s, tokens_per_s_per_device, mfu : float
        Throughput counts real sequences; per device and MFU count every device of the fabric,
        and MFU leaves recomputation out. Given for infeasible plans too: what it would take.
    terms : tuple of (str, float)
        Seconds that add up to ``iteration_s``.
    stages : tuple of Stage
    """

    plan: Plan
    feasible: bool
    reason: str
    iteration_s: float
    samples_per_s: float
    tokens_per_s_per_device: float
    mfu: float
    bubble: float
    memory_limit_bytes: float
    terms: tuple[tuple[str, float], ...]
    stages: tuple[Stage, ...]


def check_plan(problem: Problem, plan: Plan) -> None:
    """Refuse plans that do not exist on this problem; InputError names the field."""
    point = plan.point
    layers, devices = problem.layers, problem.network.devices
    for field in ("tp", "dp", "pp", "micro_batch"):
        if getattr(point, field) < 1:
            raise InputError(
                f"plan.{field}", "must be at least 1", getattr(point, field), "correct it"
            )
    if point.zero not in (0, 1, 2, 3):
        raise InputError("plan.zero", "must be 0, 1, 2 or 3", point.zero, "pick a ZeRO stage")
    if point.devices_used > devices:
        raise InputError(
            "plan",
            f"must use at most the fabric's {devices} devices",
            point.devices_used,
            "lower dp, tp or pp",
        )
    if problem.batch % (point.dp * point.micro_batch):
        raise InputError(
            "plan.dp",
            f"times micro_batch = {point.micro_batch} must divide the batch of {problem.batch}",
            point.dp,
            "choose another dp or micro_batch",
        )
    if point.pp > layers:
        raise InputError(
            "plan.pp", f"must not exceed the model's {layers} layers", point.pp, "lower pp"
        )
    rising = all(a < b for a, b in zip(plan.cuts, plan.cuts[1:], strict=False))
    if len(plan.cuts) != point.pp + 1 or plan.cuts[0] != 0 or plan.cuts[-1] != layers or not rising:
        raise InputError(
            "plan.cuts",
            f"must rise from 0 to {layers} in {point.pp} steps",
            list(plan.cuts),
            "give the first layer of every stage and the total",
        )
    if len(plan.recompute) != point.pp or not set(plan.recompute) <= set(RECOMPUTE):
        raise InputError(
            "plan.recompute",
            f"must name none, selective or full for {point.pp} stages",
            list(plan.recompute),
            "correct it",
        )


def price(problem: Problem, plan: Plan) -> Report:
    """Time, terms and memory of a plan.

    Raises
    ------
    InputError
        If the plan does not exist on this problem (too many devices, a batch that does not
        divide, cuts that do not cover the layers). Not fitting into memory is an answer.
    """
    check_plan(problem, plan)
    point = plan.point
    shared = links(problem, point)
    costs = stage_costs(problem, point, shared)
    table = problem.table(point.tp, point.sp, point.micro_batch)
    spans = [
        (plan.cuts[s], plan.cuts[s + 1], RECOMPUTE.index(plan.recompute[s]))
        for s in range(point.pp)
    ]
    loads = np.array([costs.load(s, *span) for s, span in enumerate(spans)])
    syncs = np.array([costs.sync_seconds(s, i, j) for s, (i, j, _) in enumerate(spans)])
    m = costs.micro_batches
    fill = float(loads.sum() - loads.max())
    iteration = float(loads.sum() + (m - 1) * loads.max() + syncs.max())
    stages = tuple(
        _stage(
            problem,
            plan,
            table,
            costs,
            shared,
            s,
            span,
            iteration,
            float(loads[s]),
            float(syncs[s]),
        )
        for s, span in enumerate(spans)
    )
    reason = _overflow(stages, problem)
    worst = int(loads.argmax())
    i, j, c = spans[worst]
    compute = m * float(table.compute_s[i:j].sum())
    replay = m * float(table.replay_s[c, i:j].sum())
    steady = m * float(loads.max())
    samples = problem.batch / iteration
    devices = problem.network.devices
    return Report(
        plan=plan,
        feasible=not reason,
        reason=reason,
        iteration_s=iteration,
        samples_per_s=samples,
        tokens_per_s_per_device=samples * problem.tokens / devices,
        mfu=samples * problem.model_flops / (devices * problem.peak_flops),
        bubble=fill / iteration,
        memory_limit_bytes=problem.memory_bytes,
        terms=(
            ("compute of the slowest stage", compute),
            ("recomputation of the slowest stage", replay),
            ("communication of the slowest stage", steady - compute - replay),
            ("pipeline fill and drain", fill),
            ("gradient synchronisation and optimizer step", float(syncs.max())),
        ),
        stages=stages,
    )


def _stage(
    problem: Problem,
    plan: Plan,
    table: LayerTable,
    costs: StageCosts,
    shared: Links,
    s: int,
    span: tuple[int, int, int],
    iteration: float,
    load: float,
    sync: float,
) -> Stage:
    i, j, c = span
    m = costs.micro_batches
    compute = m * float(table.compute_s[i:j].sum())
    replay = m * float(table.replay_s[c, i:j].sum())
    point = plan.point
    update = _elements(table, i, j, point.pp) * update_seconds(problem, point.zero, point.dp)
    return Stage(
        first=i,
        last=j,
        recompute=plan.recompute[s],
        micro_batch_s=load,
        compute_s=compute + update,
        recompute_s=replay,
        communication_s=m * load - compute - replay + sync - update,
        idle_s=max(0.0, iteration - m * load - sync),  # rounding
        sync_s=sync,
        producer_level=int(shared.producer_level[s]),
        memory=_memory(problem, plan, table, costs, s, span),
    )


def _elements(table: LayerTable, i: int, j: int, pp: int) -> float:
    """Parameters on a rank; a tied copy in the same stage is the embedding itself."""
    return float(table.parameters[i:j].sum()) - (table.tied_parameters if pp == 1 else 0.0)


def _memory(
    problem: Problem,
    plan: Plan,
    table: LayerTable,
    costs: StageCosts,
    s: int,
    span: tuple[int, int, int],
) -> Memory:
    i, j, c = span
    point = plan.point
    elements = _elements(table, i, j, point.pp)
    weights, gradients, optimizer = state_shares(point.zero, point.dp, problem.state)
    gathered = gathered_bytes(point.zero, problem.state) if point.dp > 1 else 0.0
    peak = (table.working_bytes[c, i:j] + gathered * table.parameters[i:j]).max()
    kept = float(table.kept_bytes[c, i:j].sum())
    return Memory(
        weights=elements * weights,
        gradients=elements * gradients,
        optimizer=elements * optimizer,
        activations=kept,
        stash=(float(costs.in_flight[s]) - 1) * kept,
        buffers=float(peak) + problem.reserved_bytes,
    )


def _overflow(stages: tuple[Stage, ...], problem: Problem) -> str:
    number, worst = max(enumerate(stages), key=lambda pair: pair[1].memory.total)
    over = worst.memory.total - problem.memory_bytes
    if over <= 1e-9 * problem.memory_bytes:
        return ""
    return (
        f"stage {number + 1} needs {humanise_bytes(worst.memory.total)} per device, "
        f"{humanise_bytes(over)} more than the {humanise_bytes(problem.memory_bytes)} there are"
    )
