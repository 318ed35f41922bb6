"""The one judge of every plan: what it takes, where, and whether it fits.

``iteration = m * max(t_s) + fill + max(e_s)`` with ``m`` micro-batches per replica, ``t_s`` the
forward and backward of one micro-batch on stage ``s`` with its communication, ``fill`` what the
slowest stage waits while the pipeline fills and drains (`nest_core.costs.schedules`), and ``e_s``
the gradient synchronisation and optimizer step.
"""

from dataclasses import dataclass

import numpy as np

from nest_core.costs.checks import check_plan
from nest_core.costs.head_room import sure_words
from nest_core.costs.links import PlanLinks
from nest_core.costs.memory import Memory, stage_memory
from nest_core.costs.offload import offloaded
from nest_core.costs.passes import LayerSeconds, layer_seconds, pairs_passes
from nest_core.costs.plan import Plan, Point
from nest_core.costs.problem import LayerTable, Problem
from nest_core.costs.ragged import plan_links
from nest_core.costs.schedules import fill_seconds, paces, replayed_seconds
from nest_core.costs.stages import StageCosts, stage_costs, update_layers
from nest_core.documents.units import humanise_bytes
from nest_core.network import FloatArray, IntArray

__all__ = ["Memory", "Report", "Stage", "check_plan", "price"]


@dataclass(frozen=True, slots=True)
class Stage:
    """One pipeline stage of a priced plan; times are per iteration.

    ``compute_s + recompute_s + communication_s + idle_s`` is the iteration time; compute is
    forward, backward and optimizer step, and ``launch_s`` the part of it in which the device
    waits for its host. Communication is what is exposed, and what the rest slows compute down.
    ``micro_batch_s`` is the stage's load ``t_s``, ``sync_s`` its gradient synchronisation and
    optimizer step ``e_s``. ``virtual_stages`` are its layers, ``first`` and ``last`` their ends;
    ``passes`` those of each virtual stage, where they are replayed; see `StageCosts.passes`.
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
    launch_s: float = 0.0
    virtual_stages: tuple[tuple[int, int], ...] = ()
    passes: tuple[tuple[float, ...], ...] = ()

    @property
    def layers(self) -> int:
        """How many layers it holds."""
        return sum(j - i for i, j in self.virtual_stages)

    @property
    def spans(self) -> str:
        """Its layers in words; of many virtual stages the first two and the last."""
        words = [f"{i} to {j - 1}" if j - i > 1 else f"{i}" for i, j in self.virtual_stages]
        return (
            f"{words[0]}, {words[1]}, …, {words[-1]} ({len(words)} virtual stages)"
            if len(words) > 3
            else ", ".join(words)
        )


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
    bubble : float
        The bubble fraction of Narayanan et al. 2021 (SC), section 2.2: seconds of fill and drain
        over those that the slowest stage works, ``(p - 1) / (v m)`` for equal stages.
    fill_s : float
        Seconds of fill and drain; one of the terms.
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
    fill_s: float
    memory_limit_bytes: float
    terms: tuple[tuple[str, float], ...]
    stages: tuple[Stage, ...]

    @property
    def fullest_bytes(self) -> float:
        """Bytes of the fullest stage's device, as predicted."""
        return max(stage.memory.total for stage in self.stages)


def price(problem: Problem, plan: Plan) -> Report:
    """Time, terms and memory of a plan.

    A stage with a strategy of its own is priced as if all others used it too; in a ragged plan
    every stage is priced on its own devices (`nest_core.costs.ragged`).

    Raises
    ------
    InputError
        If the plan does not exist on this problem (too many devices, a batch that does not
        divide, cuts that do not cover the layers). Not fitting into memory is an answer.
    """
    check_plan(problem, plan)
    problem, point = offloaded(problem, plan.offload), plan.point
    points = [plan.stage_point(s) for s in range(point.pp)]
    grounds = {at: _ground(problem, plan, at) for at in dict.fromkeys(points)}
    virtual_stages = [
        (plan.virtual_stages(s), problem.row(plan.recompute[s])) for s in range(point.pp)
    ]
    loads, hidden = np.array(
        [grounds[at].costs.load(s, *virtual_stages[s]) for s, at in enumerate(points)]
    ).T
    pace = paces(point, loads).tolist()
    works = [
        _work(problem, grounds[at], s, *virtual_stages[s], float(loads[s]), pace[s])
        for s, at in enumerate(points)
    ]
    syncs = np.array([work.sync for work in works])
    m = point.micro_batches(problem.batch)
    spared = np.array([work.spared for work in works])
    steady, fill = m * float(loads.max()), fill_seconds(point, m, loads, spared, hidden)
    if plan.is_replayed:
        passes = np.array([work.passes for work in works])
        ended = replayed_seconds(point, m, passes, is_paired=pairs_passes(problem, point))
        fill = max(0.0, ended - steady) + float(hidden.sum())  # rounding
    iteration = steady + fill + float(syncs.max())
    stages = tuple(
        _stage(problem, plan, grounds[points[s]], s, work, iteration)
        for s, work in enumerate(works)
    )
    reason = _overflow(stages, problem)
    worst = works[int(loads.argmax())]
    samples = problem.batch / iteration
    devices = problem.network.devices
    terms = {
        "compute of the slowest stage": m * worst.compute,
        "recomputation of the slowest stage": m * worst.replay,
        "kernel launches of the slowest stage": m * worst.launch,
        "communication of the slowest stage": m * worst.communication,
        "pipeline fill and drain": fill,
        "gradient synchronisation and optimizer step": float(syncs.max()),
    }
    if not worst.launch:
        del terms["kernel launches of the slowest stage"]
    return Report(
        plan=plan,
        feasible=not reason,
        reason=reason,
        iteration_s=iteration,
        samples_per_s=samples,
        tokens_per_s_per_device=samples * problem.tokens / devices,
        mfu=samples * problem.model_flops / (devices * problem.peak_flops),
        bubble=fill / steady if fill else 0.0,
        fill_s=fill,
        memory_limit_bytes=problem.memory_bytes,
        terms=tuple(terms.items()),
        stages=stages,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Ground:
    """What stages with the same strategy are priced from."""

    point: Point
    shared: PlanLinks
    table: LayerTable
    costs: StageCosts
    layered: LayerSeconds
    update: FloatArray


def _ground(problem: Problem, plan: Plan, point: Point) -> _Ground:
    shared = plan_links(problem, plan, point)
    table = problem.table(point.tp, point.sp, point.micro_batch, point.cp, point.ep, point.etp)
    return _Ground(
        point,
        shared,
        table,
        stage_costs(problem, point, shared),
        layer_seconds(problem, point, shared, table),
        update_layers(problem, point, table),
    )


@dataclass(frozen=True, slots=True)
class _StageWork:
    """Seconds of a stage: per micro-batch, and (``sync``, of it ``update``) per iteration."""

    virtual_stages: tuple[tuple[int, int], ...]
    choice: int
    load: float
    compute: float
    spared: float
    replay: float
    launch: float
    sync: float
    update: float
    passes: tuple[tuple[float, ...], ...] = ()

    @property
    def communication(self) -> float:
        """What communication costs a micro-batch."""
        return max(0.0, self.load - self.compute - self.replay - self.launch)  # rounding


def _work(
    problem: Problem,
    ground: _Ground,
    s: int,
    virtual_stages: tuple[tuple[int, int], ...],
    choice: int,
    load: float,
    pace: float,
) -> _StageWork:
    layered = ground.layered
    rows = problem.layer_rows(problem.recomputations[choice], virtual_stages)
    return _StageWork(
        virtual_stages=virtual_stages,
        choice=choice,
        load=load,
        compute=_over(ground.table.compute_s, virtual_stages),
        spared=sum(
            float(ground.costs.spared[j] - ground.costs.spared[i]) for i, j in virtual_stages
        ),
        replay=_over_rows(ground.table.replay_s, rows, virtual_stages),
        launch=_over_rows(
            layered.total[s] - layered.offload - layered.device[s], rows, virtual_stages
        ),
        sync=float(ground.costs.sync_seconds(s, virtual_stages, choice, pace)),
        update=_over(ground.update, virtual_stages),
        passes=ground.costs.passes(s, virtual_stages, choice) if len(virtual_stages) > 1 else (),
    )


def _over(layers: FloatArray, virtual_stages: tuple[tuple[int, int], ...]) -> float:
    return float(sum(layers[i:j].sum() for i, j in virtual_stages))


def _over_rows(
    values: FloatArray, rows: IntArray, virtual_stages: tuple[tuple[int, int], ...]
) -> float:
    """Return the same of figures (R, L) whose row differs from layer to layer."""
    layers = [layer for i, j in virtual_stages for layer in range(i, j)]
    ends = np.cumsum([j - i for i, j in virtual_stages])[:-1]
    return float(sum(part.sum() for part in np.split(values[rows, layers], ends)))


def _stage(
    problem: Problem, plan: Plan, ground: _Ground, s: int, work: _StageWork, iteration: float
) -> Stage:
    m = ground.costs.micro_batches
    memory = stage_memory(
        problem,
        ground.point,
        ground.table,
        ground.costs,
        s,
        work.virtual_stages,
        work.choice,
        is_replayed=plan.is_replayed,
    )
    return Stage(
        first=work.virtual_stages[0][0],
        last=work.virtual_stages[-1][1],
        recompute=plan.recompute[s],
        micro_batch_s=work.load,
        compute_s=m * (work.compute + work.launch) + work.update,
        recompute_s=m * work.replay,
        communication_s=max(0.0, m * work.communication + work.sync - work.update),  # rounding
        idle_s=max(0.0, iteration - m * work.load - work.sync),  # rounding
        sync_s=work.sync,
        producer_level=int(ground.shared.producer_level[s]),
        memory=memory,
        launch_s=m * work.launch,
        virtual_stages=work.virtual_stages,
        passes=work.passes if plan.is_replayed else (),
    )


def _overflow(stages: tuple[Stage, ...], problem: Problem) -> str:
    number, worst = max(enumerate(stages), key=lambda pair: pair[1].memory.total)
    have = problem.planned_bytes
    over = worst.memory.total - have
    if over <= 1e-9 * have:
        return ""
    sure = sure_words(problem.memory_bytes, problem.memory_spread, problem.certainty)
    return (
        f"stage {number + 1} needs {humanise_bytes(worst.memory.total)} per device"
        f"{problem.under}, "
        f"{humanise_bytes(over)} more than {sure}"
    )
