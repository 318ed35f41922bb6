"""Communication of a plan, class by class and level by level.

A class costs what the plan's communication shrinks by when its traffic is left out. Classes are
left out one after another, in the order of `CLASSES`, so that their costs add up to the whole:
where several hide behind the same compute, the first to go is charged with what it exposes.
Pipeline transfers are what remains. A class is *at* the level whose bandwidth shortens it most;
at none where only latency counts.

Seconds are per iteration, of one rank of each stage.

One iteration of the slowest stage, part by part, and where the peak rate goes.

A stage's iteration is compute, communication by class (`nest_core.costs.communication`) and idling;
the parts add up to the iteration. Model FLOP utilisation is what model FLOP alone would take at the
device's peak over the iteration, so 100 % less every part's share: what compute takes beyond that
is lost in kernels, to recomputation, in uneven stages or on idle devices.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from nest_core.costs import LayerTable, Plan, Problem, Report, price
from nest_core.network import FloatArray, Network

__all__ = [
    "CLASSES",
    "KINDS",
    "STEP",
    "IterationPart",
    "Traffic",
    "class_seconds",
    "iteration_parts",
    "lost",
    "report_parts",
    "traffic_of",
    "wider",
    "with_tables",
]

STEP = 0.01
"""How much more of a resource a gain is stated for."""

CLASSES = {
    "tied": "tied embedding copies",
    "expert_data": "expert gradients and states",
    "data": "gradients and states",
    "ep": "expert-parallel exchange",
    "etp": "experts' tensor-parallel collectives",
    "cp": "context-parallel exchange",
    "tp": "tensor-parallel collectives",
    "transfers": "pipeline transfers",
}
"""Classes of traffic and what they are called, in the order in which they are left out."""

_LATENCY = 1e-3  # of a class; less than that of it depends on no level's bandwidth


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """One class of a plan's communication, stage by stage.

    Parameters
    ----------
    name : str
        One of `CLASSES`.
    seconds : tuple of float
        Per iteration, of every stage.
    level : tuple of int
        The level in `wider` that it depends on most, of every stage; −1: on none.
    """

    name: str
    seconds: tuple[float, ...]
    level: tuple[int, ...]

    @property
    def words(self) -> str:
        """What people call it."""
        return CLASSES[self.name]


def with_tables(problem: Problem, change: Callable[[LayerTable], LayerTable]) -> Problem:
    """Return the problem with other per-layer figures."""

    def table(tp: int, sp: bool, micro_batch: int, cp: int, ep: int, etp: int) -> LayerTable:
        return change(problem.table(tp, sp, micro_batch, cp, ep, etp))

    return replace(problem, table=table)


def wider(network: Network) -> tuple[tuple[str, Network], ...]:
    """Return the network with one level's bandwidth 1 % wider, level by level; a torus has one."""
    if network.torus is not None:
        return (("links", network.faster(0, 1 + STEP)),)
    return tuple(
        (level.name, network.faster(number, 1 + STEP))
        for number, level in enumerate(network.levels)
    )


def traffic_of(problem: Problem, plan: Plan) -> tuple[Traffic, ...]:
    """Return the classes that a plan has, costliest over all stages first.

    Their seconds add up to ``communication_s`` of every stage.
    """
    alone_s = class_seconds(problem, plan)
    present = list(alone_s)
    by_level = [
        _apart(replace(problem, network=network), plan, present)
        for _, network in wider(problem.network)
    ]
    rows = []
    for name in present:
        shorter = np.stack([alone_s[name] - entry[name] for entry in by_level])
        saved, level = shorter.max(axis=0), shorter.argmax(axis=0)
        bound = saved > _LATENCY * STEP * alone_s[name]
        rows.append(
            Traffic(name, tuple(alone_s[name].tolist()), tuple(np.where(bound, level, -1).tolist()))
        )
    return tuple(sorted(rows, key=lambda entry: -sum(entry.seconds)))


def class_seconds(problem: Problem, plan: Plan) -> dict[str, FloatArray]:
    """Return seconds of every class that a plan has, shape (stages,) each."""
    return _apart(problem, plan, _present(plan, price(problem, plan)))


def _present(plan: Plan, report: Report) -> list[str]:
    """Classes that the degrees of a plan allow at all."""
    points = [plan.stage_point(stage) for stage in range(plan.point.pp)]
    may = {
        "tied": plan.point.ends_apart,
        "expert_data": any(at.experts_apart and at.expert_sharers > 1 for at in points),
        "data": any(at.sharers > 1 for at in points),
        "ep": any(at.ep > 1 for at in points),
        "etp": any(1 < at.etp != at.tp for at in points),
        "cp": any(at.cp > 1 for at in points),
        "tp": any(at.tp > 1 for at in points),
        "transfers": plan.point.pp > 1,
    }
    total = sum(stage.communication_s for stage in report.stages)
    return [name for name in CLASSES if may[name] and total > 0]


def _apart(problem: Problem, plan: Plan, present: list[str]) -> dict[str, FloatArray]:
    """Seconds of every class at every stage."""
    seconds: dict[str, FloatArray] = {}
    before = _communication(problem, plan)
    for name in present:
        if name == "transfers":
            seconds[name] = before
            break
        problem = with_tables(problem, partial(_without, name))
        after = _communication(problem, plan)
        seconds[name] = np.maximum(0.0, before - after)
        before = after
    return seconds


def _communication(problem: Problem, plan: Plan) -> FloatArray:
    return np.array([stage.communication_s for stage in price(problem, plan).stages])


_SHARED = {
    "tied": ("tied_parameters",),
    "expert_data": ("expert_parameters",),
    "data": ("parameters", "expert_parameters", "tied_parameters"),
}
"""What ranks of a class share; every other class sends the calls of its axis."""


def _without(name: str, table: LayerTable) -> LayerTable:
    """Layers that send nothing of a class."""
    if name in _SHARED:
        none: dict[str, Any] = {field: 0.0 * getattr(table, field) for field in _SHARED[name]}
        return replace(table, **none)
    return replace(table, calls={axis: c for axis, c in table.calls.items() if axis != name})


KINDS = {
    "tp": "tensor",
    "etp": "tensor",
    "cp": "context",
    "ep": "expert",
    "transfers": "pipeline",
    "data": "data",
    "expert_data": "data",
    "tied": "data",
}
"""What classes of traffic are parts of, in the order of the parts."""


@dataclass(frozen=True, slots=True)
class IterationPart:
    """A part of an iteration.

    Parameters
    ----------
    name : str
        ``compute``, a value of `KINDS`, ``communication`` as a whole, or ``bubble``.
    seconds : float
    level : str
        The level that its traffic depends on most; empty where there is none.
    """

    name: str
    seconds: float
    level: str = ""


def iteration_parts(problem: Problem, report: Report) -> tuple[IterationPart, ...]:
    """Compute, tensor, context, expert, pipeline, data and bubble of the slowest stage.

    Parts that take no time are left out, but for compute. Seconds add up to ``iteration_s``.
    """
    number = _slowest(report)
    stage, levels = report.stages[number], [name for name, _ in wider(problem.network)]
    traffic = {entry.name: entry for entry in traffic_of(problem, report.plan)}
    parts = [IterationPart("compute", stage.compute_s + stage.recompute_s)]
    for kind in dict.fromkeys(KINDS.values()):
        of = [traffic[name] for name in KINDS if KINDS[name] == kind and name in traffic]
        seconds = sum(entry.seconds[number] for entry in of)
        parts.append(IterationPart(kind, seconds, _level(of, number, levels)))
    parts.append(IterationPart("bubble", stage.idle_s))
    least = 1e-6 * report.iteration_s
    return tuple(part for part in parts if part.seconds > least or part.name == "compute")


def report_parts(report: Report) -> tuple[IterationPart, ...]:
    """Return the same with communication as a whole, from a price alone."""
    stage = report.stages[_slowest(report)]
    return (
        IterationPart("compute", stage.compute_s + stage.recompute_s),
        IterationPart("communication", stage.communication_s),
        IterationPart("bubble", stage.idle_s),
    )


def lost(report: Report, parts: tuple[IterationPart, ...]) -> tuple[tuple[str, float], ...]:
    """Return what takes the utilisation from 1 to the report's, share by share; they sum to the
    gap.

    Parameters
    ----------
    parts : tuple of IterationPart
        Of the report.
    """
    compute, *others = parts
    kernels = compute.seconds / report.iteration_s - report.mfu
    return (
        ("kernels", kernels),
        *((part.name, part.seconds / report.iteration_s) for part in others),
    )


def _slowest(report: Report) -> int:
    return max(range(len(report.stages)), key=lambda s: report.stages[s].micro_batch_s)


def _level(of: list[Traffic], stage: int, levels: list[str]) -> str:
    """Where the costliest of some classes is at."""
    at = max(of, key=lambda entry: entry.seconds[stage], default=None)
    return "" if at is None or at.level[stage] < 0 else levels[at.level[stage]]
