"""The plan that the search chooses where runs were measured, beside the fastest of those runs.

Runs of one model, accelerator, number of devices, batch, sequence length and precision form a
group, whoever measured them. The exact search chooses from its default space on the machine and
under the stack of the group's fastest run, at the posterior's centre, among plans that fit as
surely as every plan must. What it promises over what was measured is a product:

    optimum / measured = (price of the measured plan / measured)             error of the model
                       x (best within the source's settings / that price)    a better plan
                       x (optimum / best within the source's settings)       other settings

A source's settings are what its runs under the same stack use: ZeRO stages, recomputation, sequence
parallelism, schedules, and whether they divide tensors, layers, sequences or experts at all
(`as_used`).

A measured plan that lies in the searched space is never priced under a proven optimum; `outside`
says why one does not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from benchmarks.validation.training.memory_spread import measured_spreads
from benchmarks.validation.training.posterior import source_name
from nest_core.calibration.training.machines import accelerator_of, fabric_of, machine_of, model_of
from nest_core.calibration.training.predict import Prediction, predict, problem_of, spread
from nest_core.calibration.training.runs import Run, Unread
from nest_core.costs import Problem, Report, price
from nest_core.costs.head_room import POOLED, MemorySpread, spread_of
from nest_core.documents.errors import InputError
from nest_core.documents.schema import SearchTable, WorkloadTable
from nest_core.hardware.posterior import WIDTH, load_posterior
from nest_core.hardware.stacks import load_stack
from nest_core.planner import SearchSpace, search
from nest_core.planner.layouts import even_patterns
from nest_core.scenario.search_table import search_space

__all__ = [
    "Group",
    "Optimum",
    "as_used",
    "found_or_why",
    "groups",
    "optimum",
    "outside",
    "planning_problem",
    "space_of",
]

TIME_LIMIT_S = 60.0
"""Of one search; a plan not proven by then is counted with its gap."""

LEAST_GAIN = 1e-9
"""Of a time: smaller differences are rounding."""


@dataclass(frozen=True, slots=True)
class Group:
    """Measured runs of one job on one kind of machine.

    Parameters
    ----------
    best : Prediction
        The fastest measured.
    runs : int
        How many were measured.
    source : tuple of Run
        All runs of the source of ``best`` under its stack.
    others : MemorySpread
        What the memory of other sources' runs says of its framework.
    """

    best: Prediction
    runs: int
    source: tuple[Run, ...]
    others: MemorySpread


@dataclass(frozen=True, slots=True)
class Optimum:
    """A group's optimum beside its fastest run.

    Parameters
    ----------
    group : Group
    mine : Report
        The measured plan, priced.
    outside : tuple of str
        Why that is none of the plans searched; empty: it is one.
    best : Report or None
        None: no plan fits as surely as it must.
    proven : bool
    gap : float
        What an unproven one may be above the best.
    usual_s : float or None
        The best plan's time within the source's settings; None: none of those fits.
    beyond : tuple of str
        Settings of the optimum that no run of the source has.
    spread : float
        Standard deviation of the logarithm of the optimum's time.
    memory : MemorySpread
        By which it fits surely.
    needed_left_out_bytes : float or None
        Bytes of the optimum that fits surely by ``group.others``; None: no plan does.
    """

    group: Group
    mine: Report
    outside: tuple[str, ...]
    best: Report | None
    proven: bool
    gap: float
    usual_s: float | None
    beyond: tuple[str, ...]
    spread: float
    memory: MemorySpread
    needed_left_out_bytes: float | None

    @property
    def measured_s(self) -> float:
        """Of the fastest run."""
        return self.group.best.outcome.seconds or math.nan

    @property
    def ratio(self) -> float:
        """The optimum's time over the fastest measured."""
        return self.best.iteration_s / self.measured_s if self.best else math.nan

    @property
    def parts(self) -> tuple[float, float, float]:
        """Its factors: error of the model, a better plan, settings that no run of the source has.

        Where no plan within the source's settings fits, all that the plan gains is the last.
        """
        if self.best is None:
            return (math.nan,) * 3
        usual = self.mine.iteration_s if self.usual_s is None else self.usual_s
        return (
            self.mine.iteration_s / self.measured_s,
            usual / self.mine.iteration_s,
            self.best.iteration_s / usual,
        )

    @property
    def inside(self) -> bool:
        """Whether the fastest run lies in the optimum's own interval."""
        return self._holds(self.ratio)

    @property
    def usual_inside(self) -> bool:
        """Whether it lies as near to the best plan within the source's settings."""
        error, better, _ = self.parts
        return self._holds(error * better)

    def _holds(self, ratio: float) -> bool:
        return abs(math.log(ratio)) <= WIDTH * self.spread

    @property
    def needed_bytes(self) -> float:
        """Of the optimum's fullest device."""
        return _needed(self.best) or math.nan

    @property
    def contradiction(self) -> bool:
        """Whether a plan of the searched space is priced under the proven optimum: a defect."""
        if self.outside or not self.proven:
            return False
        least = self.mine.iteration_s * (1.0 + LEAST_GAIN)
        return self.best is None or self.best.iteration_s > least


def groups(predictions: Iterable[Prediction]) -> list[Group]:
    """Groups of measured runs of every quality but C, in the order of their first rows."""
    every = list(predictions)
    sources: dict[str, list[Prediction]] = {}
    for item in every:
        sources.setdefault(source_name(item.run.source), []).append(item)
    apart = {
        name: {
            known.framework: known
            for known in measured_spreads(
                item for item in every if source_name(item.run.source) != name
            )
        }
        for name, items in sources.items()
        if any(item.memory_error is not None for item in items)
    }
    found: dict[object, list[Prediction]] = {}
    for item in every:
        if item.outcome.seconds is not None and item.run.quality != "C":
            found.setdefault(_key(item.run), []).append(item)
    answer = []
    for items in found.values():
        best = min(items, key=lambda item: (item.outcome.seconds or math.inf, item.run.id))
        name = source_name(best.run.source)
        alike = (item.run for item in sources[name] if item.run.stack == best.run.stack)
        others = _others(load_stack(best.run.stack).framework, apart.get(name))
        answer.append(Group(best, len(items), tuple(alike), others))
    return answer


def _others(framework: str, apart: Mapping[str, MemorySpread] | None) -> MemorySpread:
    """Of a framework without a source; as shipped where the source has no memory."""
    if apart is None:
        return spread_of(framework)
    return apart.get(framework) or apart.get(POOLED) or MemorySpread(POOLED, 0.0, 0, 0)


def _key(run: Run) -> object:
    model = replace(model_of(run), name="", source="")
    machine = machine_of(run.accelerator).preset
    return model, machine, run.devices, run.batch, run.sequence, run.precision


def planning_problem(run: Run, memory: MemorySpread) -> Problem:
    """A run's job as plans are searched for it: they fit as surely as every plan must."""
    problem = problem_of(run, accelerator_of(run.accelerator))
    return replace(problem, memory_spread=memory.sd)


def space_of(run: Run) -> SearchSpace:
    """What a scenario of the run's job may choose from by default."""
    workload = WorkloadTable(
        model="measured", sequence_length_tokens=run.sequence, global_batch_sequences=run.batch
    )
    space = search_space(SearchTable(), workload, model_of(run), fabric_of(run))
    return replace(space, sharded_gradients=load_stack(run.stack).sharded_gradients)


def as_used(space: SearchSpace, runs: Iterable[Run]) -> SearchSpace:
    """Of a space what runs use: settings of theirs, degrees above 1 where one of them has such.

    A recomputation that no row states may be any, and settings that the space lacks are left to
    it.
    """
    runs = list(runs)
    unstated = any(not run.recompute for run in runs)
    virtual = any(run.point.interleave > 1 for run in runs)
    named = {run.point.schedule for run in runs} | {"1f1b"}

    def kept(every: tuple[int, ...], axis: str) -> tuple[int, ...]:
        return every if any(getattr(run.point, axis) > 1 for run in runs) else (1,)

    def listed(every: tuple[str, ...], used: set[str]) -> tuple[str, ...]:
        return tuple(name for name in every if name in used) or every

    return replace(
        space,
        tp=kept(space.tp, "tp"),
        cp=kept(space.cp, "cp"),
        pp=kept(space.pp, "pp"),
        ep=kept(space.ep, "ep"),
        etp=space.etp if any(run.point.etp != run.point.tp for run in runs) else (),
        sp=tuple(sorted({run.point.sp and run.point.tp > 1 for run in runs} | {False})),
        zero=tuple(zero for zero in space.zero if zero in {run.point.zero for run in runs}),
        recompute=space.recompute
        if unstated
        else listed(space.recompute, {run.recompute for run in runs}),
        schedules=listed(space.schedules, named),
        interleave=space.interleave if virtual else (1,),
    )


def outside(problem: Problem, space: SearchSpace, report: Report) -> tuple[str, ...]:
    """Why a priced plan is none of those searched, in words; none if it is one."""
    point = report.plan.point
    found = [
        f"{axis} {getattr(point, axis)}"
        for axis in ("tp", "cp", "ep", "dp", "pp", "micro_batch", "interleave")
        if getattr(point, axis) not in getattr(space, axis)
    ]
    if point.etp not in space.expert_tensor(point.tp, point.sp):
        found.append(f"etp {point.etp}")
    if point.schedule not in space.schedules:
        found.append(f"schedule {point.schedule}")
    elif point.interleave > 1 and report.plan.cuts not in even_patterns(
        problem.layers, point.pp, point.interleave
    ):
        found.append("uneven virtual stages")
    wide = {axis for axis in ("tp", "cp", "dp", "pp") if getattr(point, axis) > 1}
    placed = tuple(axis for axis in point.order if axis in wide)
    if placed not in (tuple(a for a in order if a in wide) for order in space.orders):
        found.append("rank order " + "-".join(point.order))
    found += [
        f"recomputation of {name}"
        for name in dict.fromkeys(report.plan.recompute)
        if name not in space.recompute
    ]
    if not price(problem, report.plan).feasible:
        found.append("does not fit surely")
    return tuple(found)


def found_or_why(group: Group) -> Optimum | Unread:
    """A group's optimum, or why it has none that could be searched."""
    try:
        return optimum(group)
    except InputError as error:
        return Unread(group.best.run.id, str(error))


def optimum(group: Group) -> Optimum:
    """The plan that the search chooses for a group's job.

    Raises
    ------
    InputError
        If its space is empty.
    """
    run = group.best.run
    memory = spread_of(load_stack(run.stack).framework)
    problem, space, mine = planning_problem(run, memory), space_of(run), predict(run)
    used = as_used(space, group.source)
    found = search(problem, space, time_limit_s=TIME_LIMIT_S)
    best = found.best
    return Optimum(
        group,
        mine,
        outside(problem, space, mine),
        best,
        found.certificate.proven,
        found.certificate.gap,
        _within(problem, used, best),
        _beyond(used, best) if best else (),
        spread(run, load_posterior(), best.plan) if best else math.nan,
        memory,
        _needed(best)
        if group.others == memory
        else _needed(_searched(planning_problem(run, group.others), space)),
    )


def _searched(problem: Problem, space: SearchSpace) -> Report | None:
    try:
        return search(problem, space, time_limit_s=TIME_LIMIT_S).best
    except InputError:  # nothing valid is left
        return None


def _within(problem: Problem, used: SearchSpace, best: Report | None) -> float | None:
    """The best time within a source's settings, which is no less than the best of all."""
    found = _searched(problem, used)
    if found is None:
        return None
    return max(found.iteration_s, best.iteration_s) if best else found.iteration_s


def _needed(report: Report | None) -> float | None:
    return max(stage.memory.total for stage in report.stages) if report else None


def _beyond(used: SearchSpace, best: Report) -> tuple[str, ...]:
    """Settings of a plan that a source does not use, in words."""
    point = best.plan.point
    degrees = {
        "tensor parallelism": (point.tp, used.tp),
        "context parallelism": (point.cp, used.cp),
        "pipeline parallelism": (point.pp, used.pp),
        "expert parallelism": (point.ep, used.ep),
        "virtual stages": (point.interleave, used.interleave),
    }
    found = [name for name, (value, usual) in degrees.items() if value > 1 and usual == (1,)]
    if point.etp not in used.expert_tensor(point.tp, point.sp):
        found.append("experts left whole")
    if point.sp not in used.sp:
        found.append("sequence parallelism")
    if point.zero not in used.zero and point.sharers > 1:
        found.append(f"ZeRO {point.zero}" if point.zero else "no ZeRO")
    words = {"none": "no recomputation", "selective": "selective", "full": "full recomputation"}
    return (
        *found,
        *(words[name] for name in dict.fromkeys(best.plan.recompute) if name not in used.recompute),
    )
