"""What baselines share: what each may choose and find, times of many plans, blind networks.

What may be chosen are the planner's valid points, by its rules (``docs/method.md``, "The program"),
so that no baseline leaves the space in which our plan is the best.

By default every method here gets the scenario's whole space, with axes that its original lacks.
The paper compares methods as their papers have them: all under PipeDream-Flush (1F1B) and with
recomputation on or off, Manual and Phaze without ZeRO, only NEST (and MCMC, which walks over NEST's
strategies) with sequence and context parallelism, and with ZeRO over 8, 4 or 2 devices too.

`nest_core.costs.price` says everything about one plan; a method that tries hundreds needs two
numbers of each. What plans share is computed once: links of a layout, stages of a point. Plans
whose stages differ in their strategy are for `price`. `nest_core.costs.price` stays the judge:
what a method returns is priced by it.

Methods that do not know the fabric see a network `flat` or as a `mesh`. Both views keep the number
of devices and lose everything else: who shares an uplink, how many tiers a transfer climbs, where a
link is oversubscribed. Plans made on a view are priced on the fabric afterwards, by the same
`nest_core.costs.price` as every other plan; memory does not depend on the network.

Units: bytes/s per direction, seconds one way.

References
----------
.. [1] NEST, MLSys 2026, tables 1 and 2 and section 5.1.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from nest_core.costs import (
    MEGATRON_ORDER,
    Plan,
    Point,
    Problem,
    Report,
    Spans,
    acting_zero,
    even_cuts,
    iteration_seconds,
    paces,
    places,
    stage_memory,
)
from nest_core.fabric import Hierarchical, Tier
from nest_core.network import IntArray, Level, Network, collapse
from nest_core.planner import SearchSpace
from nest_core.planner.layouts import even_patterns
from nest_core.planner.solver import Solver

__all__ = [
    "NAMES",
    "Baseline",
    "Found",
    "PlanPrices",
    "Waterfall",
    "canonical",
    "default_order",
    "even_choices",
    "fastest",
    "flat",
    "grouped",
    "mesh",
    "natural",
    "paper_space",
    "rank_mappings",
    "row_length",
    "valid",
]

NAMES = {
    "nest": "NEST, level-wise program (paper)",
    "manual": "Manual",
    "mcmc": "MCMC",
    "phaze": "Phaze",
    "alpa_e": "Alpa-E",
    "mist": "Mist",
}
"""Display names by key, in the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a method came to.

    Parameters
    ----------
    plan : Plan or None
        None where the method has none within the search limits; ``reason`` then says why. A
        plan that does not fit into memory is an answer too.
    origin : str
        How the method came to it, in a sentence.
    promised_s : float or None
        Seconds of an iteration that the method expected, where it has costs of its own.
    """

    plan: Plan | None
    origin: str
    reason: str = ""
    promised_s: float | None = None


@dataclass(frozen=True, slots=True)
class Waterfall:
    """Seconds by which the level-wise program's plan is slower than the exact search's, by cause.

    The terms add up to the difference; one is negative where the program gains by it.

    Parameters
    ----------
    schedule : float
        1F1B alone, under the exact search.
    memory_rule : float
        ZeRO raised only where a stage does not fit, under the program.
    objective : float
        The paper's objective, and what the program may do besides that the exact search may not:
        ZeRO and strategies stage by stage, gaps.
    levels : float
        Levels in place of links, under the exact search with 1F1B.
    widths : float
        Unequal widths: its plan against the best of its plans whose stages are equally wide.
    """

    schedule: float
    memory_rule: float
    objective: float
    levels: float
    widths: float

    @property
    def total(self) -> float:
        """The difference."""
        return self.schedule + self.memory_rule + self.objective + self.levels + self.widths


@dataclass(frozen=True, slots=True)
class Baseline:
    """One method's plan, priced like ours.

    Parameters
    ----------
    name, label : str
        Key and display name.
    origin : str
        How the method came to its plan.
    report : Report or None
        None where no placement exists; not feasible where it does not fit.
    reason : str
        Why there is no feasible plan; empty otherwise.
    search_seconds : float
        Time that the method took here.
    promised_s : float or None
        Seconds of an iteration that the method expected, where it has costs of its own.
    waterfall : Waterfall or None
        Of ``nest``, where both it and the exact search have a plan.
    """

    name: str
    label: str
    origin: str
    report: Report | None
    reason: str
    search_seconds: float
    promised_s: float | None = None
    waterfall: Waterfall | None = None

    @property
    def feasible(self) -> bool:
        """Whether it can be run."""
        return self.report is not None and not self.reason


def fastest(baselines: Iterable[Baseline]) -> Baseline | None:
    """Return the feasible one with the shortest iteration, the first of equals; None where none is.

    NEST's program is no rival: it is a planner of this product, beside the exact search.
    """
    feasible = [entry for entry in baselines if entry.feasible and entry.name != "nest"]
    return min(
        feasible,
        key=lambda entry: entry.report.iteration_s if entry.report else math.inf,
        default=None,
    )


_EVERYBODY: Mapping[str, tuple[Any, ...]] = {
    "schedules": ("1f1b",),
    "interleave": (1,),
    "recompute": ("none", "full"),
    "device_orders": ("natural",),
    "zero_groups": (0, 2, 4, 8),
}
_ITS_OWN: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "manual": {"sp": (False,), "cp": (1,), "zero": (0,), "zero_groups": (0,)},
    "mcmc": {},
    "phaze": {"sp": (False,), "cp": (1,), "zero": (0,), "zero_groups": (0,)},
    "alpa_e": {"sp": (False,), "cp": (1,), "zero_groups": (0,)},
    "mist": {"sp": (False,), "cp": (1,), "ep": (1,), "zero_groups": (0,)},
}


def paper_space(name: str, space: SearchSpace) -> SearchSpace:
    """Return the part of a space that a method searches in the paper.

    An axis of which the scenario allows none of a method's values stays as the scenario has it.

    Examples
    --------
    >>> space = SearchSpace((1, 2), (False, True), (1,), (1,), (1,))
    >>> paper_space("phaze", space).zero, paper_space("mist", space).zero
    ((0,), (0, 1, 2, 3))
    """
    narrowed: dict[str, Any] = {
        field: tuple(value for value in getattr(space, field) if value in values)
        for field, values in (*_EVERYBODY.items(), *_ITS_OWN.get(name, {}).items())
    }
    return replace(space, **{field: values for field, values in narrowed.items() if values})


def default_order(space: SearchSpace) -> tuple[str, ...]:
    """Megatron-LM's and Alpa's axis order, or the first that is allowed."""
    return MEGATRON_ORDER if MEGATRON_ORDER in space.orders else space.orders[0]


def natural(space: SearchSpace) -> str:
    """Return the fabric's own device order, or the first of those that are allowed."""
    return "natural" if "natural" in space.device_orders else space.device_orders[0]


def valid(problem: Problem, space: SearchSpace, point: Point) -> bool:
    """Whether a point is one of the planner's; recomputation and cuts are not looked at."""
    devices, order = problem.network.devices, point.device_order
    limit = places(problem.network, order) if isinstance(order, str) else devices
    if (
        point.devices_used > limit
        or (not space.idle_devices and point.devices_used < devices)
        or not problem.divides(point.dp, point.micro_batch)
        or point.tp * point.sharers % (point.ep * point.etp)
        or point.etp not in space.expert_tensor(point.tp, point.sp)
        or (point.zero and point.zero_group not in _groups(space, point))
        or point.pp > problem.layers
        or (point.sp and point.tp == 1)
    ):
        return False
    if point.schedule != "interleaved":
        return point.interleave == 1
    return (
        point.pp > 1
        and point.interleave > 1
        and point.micro_batches(problem.batch) % point.pp == 0
        and bool(even_patterns(problem.layers, point.pp, point.interleave))
    )


def canonical(space: SearchSpace, point: Point) -> Point:
    """Return the name that a point has where others stand for the same: ZeRO of a single copy of
    the
    weights, ZeRO 1 and 2 of a pipeline, schedules of a single stage.
    """
    if not point.shared:
        point = replace(point, zero=0, zero_group=0)
    elif point.zero not in space.stages_of_zero(point.pp):
        point = replace(point, zero=acting_zero(point.zero, point.pp, space.sharded_gradients))
    if point.pp == 1 and point.schedule != "interleaved":
        point = replace(point, schedule=space.plain or point.schedule)
    return point


def grouped(space: SearchSpace, point: Point) -> Point:
    """Return the point in its own group of ZeRO's if it may have that, else over all or the
    largest.

    Where no group divides its ranks it is left to ZeRO 0, if that is allowed.
    """
    groups = _groups(space, point) if point.zero else (0,)
    if point.zero_group in groups:
        return point
    if not groups:
        return replace(point, zero=0, zero_group=0) if 0 in space.zero else point
    return replace(point, zero_group=0 if 0 in groups else max(groups))


def _groups(space: SearchSpace, point: Point) -> tuple[int, ...]:
    return space.groups_among(point.sharers, point.expert_sharers)


def even_choices(problem: Problem, point: Point) -> tuple[tuple[int, ...], ...]:
    """Equal stages or virtual stages, of blocks or of layers; else as even as they go.

    Interleaved points that are valid have equal virtual stages.
    """
    patterns = even_patterns(problem.layers, point.pp, point.interleave)
    return patterns or (even_cuts(problem.layers, point.pp * point.interleave),)


_FITS = 1.0 + 1e-12


class PlanPrices:
    """Iteration times and memory of a problem's uniform plans.

    Parameters
    ----------
    problem : Problem
    size : int
        Points whose stages are remembered.
    """

    def __init__(self, problem: Problem, size: int = 256) -> None:
        self.problem = problem
        self.solver = Solver(problem, np.empty(0, dtype=np.int64), size=size)
        self._memory = lru_cache(size)(partial(stage_memory, problem))

    def seconds(self, plan: Plan) -> float:
        """Return the seconds of one iteration, whether the plan fits or not."""
        costs, stages = self.solver.costs(plan.point), self._stages(plan)
        loads, hidden = costs.load(*stages)
        syncs = costs.sync_seconds(*stages, paces(plan.point, loads))
        starts, ends = np.array(stages[1]).swapaxes(0, 1)
        spared = (costs.spared[ends] - costs.spared[starts]).cumsum(axis=0)[-1]
        return iteration_seconds(plan.point, costs.micro_batches, loads, spared, hidden, syncs)

    def overflow(self, plan: Plan) -> float:
        """Return what the fullest stage needs over what there is, less one; 0 where it fits."""
        memory = self._memory(plan.point)
        most = float(memory.used(*self._stages(plan)).max())
        return 0.0 if most <= memory.limit * _FITS else most / memory.limit - 1.0

    def _stages(self, plan: Plan) -> tuple[IntArray, Spans, IntArray]:
        """Return positions, virtual stages and rows of recomputations of all stages."""
        cuts, pp = np.array(plan.cuts), plan.point.pp
        starts, ends = cuts[:-1].reshape(-1, pp), cuts[1:].reshape(-1, pp)
        rows = np.array([self.problem.row(name) for name in plan.recompute])
        return np.arange(pp), list(zip(starts, ends, strict=True)), rows


def flat(problem: Problem) -> Problem:
    """Return the same problem on one switch to which every device has a link of its own.

    Notes
    -----
    The one bandwidth is the geometric mean over the fabric's levels of what a device gets when
    all send (`Level.bandwidth_Bps`), the one latency the arithmetic mean. A method without levels
    leaves the choice open. Of the levels' geometric, arithmetic and harmonic means, means weighted
    by pairs of devices, the innermost and the outermost level, this is the one with which its plans
    turned out fastest on average over the presets, so it is taken in the method's favour.
    """
    # A level that nobody needs may have lost all its links.
    levels = [level for level in problem.network.levels if level.bandwidth_Bps > 0]
    bandwidth = math.exp(sum(math.log(level.bandwidth_Bps) for level in levels) / len(levels))
    latency = sum(level.latency_s for level in levels) / len(levels)
    tier = Tier("flat", problem.network.devices, bandwidth, latency)
    return replace(problem, network=collapse(Hierarchical("flat", (tier,))))


def mesh(problem: Problem) -> Problem:
    """Return the same problem on a mesh of ``devices / M`` rows by ``M`` columns.

    A row is a node, with the innermost level's bandwidth between its devices; rows are joined by
    what one device gets of the level just outside the node, however far apart they are. On a torus
    rows are those of its first dimension, and both bandwidths one hop's.
    """
    network, row = problem.network, row_length(problem.network)
    tiers = [_tier("row", row, network.levels[0])]
    if row < network.devices:
        outside = network.levels[
            0 if network.torus is not None else min(1, len(network.levels) - 1)
        ]
        tiers.append(_tier("mesh", network.devices // row, outside))
    return replace(problem, network=collapse(Hierarchical("mesh", tuple(tiers))))


def row_length(network: Network) -> int:
    """Devices of a row: of a node, or where nodes differ, the most that divides all of them."""
    return int(np.gcd.reduce(np.bincount(network.node)))


def rank_mappings(space: SearchSpace, plan: Plan) -> tuple[Plan, ...]:
    """Return a plan under every axis and device order that is allowed and places its ranks
    differently.
    """
    point = plan.point
    wide = {axis for axis in ("tp", "cp", "dp", "pp") if getattr(point, axis) > 1}
    return tuple(
        replace(plan, point=replace(point, order=order, device_order=host_mapping))
        for order in space.orders_among(wide)
        for host_mapping in space.device_orders
    )


def _tier(name: str, size: int, level: Level) -> Tier:
    return Tier(name, size, level.bandwidth_Bps, level.latency_s)
