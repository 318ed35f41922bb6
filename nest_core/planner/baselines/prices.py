"""Times and memory of many plans of one problem.

`nest_core.costs.price` says everything about one plan; a method that tries hundreds needs two
numbers of each. What plans share is computed once: links of a layout, stages of a point. Plans
whose stages differ in their strategy are for `price`. `nest_core.costs.price` stays the judge:
what a method returns is priced by it.
"""

from __future__ import annotations

import numpy as np

from nest_core.costs import Plan, Point, Problem, StageCosts
from nest_core.costs.schedules import iteration_seconds, paces
from nest_core.costs.stages import StageMemory, stage_memory
from nest_core.network import IntArray
from nest_core.planner.solver import Solver

__all__ = ["PlanPrices", "overflow", "seconds"]

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
        self.problem, self._size = problem, size
        self.solver = Solver(problem, np.empty(0, dtype=np.int64), size=size)
        self._memory: dict[Point, StageMemory] = {}

    def seconds(self, plan: Plan) -> float:
        """One iteration, whether it fits or not."""
        return seconds(self.solver.costs(plan.point), plan, self.rows(plan))

    def overflow(self, plan: Plan) -> float:
        """See `overflow`."""
        point = plan.point
        if point not in self._memory:
            if len(self._memory) >= self._size:
                self._memory.pop(next(iter(self._memory)))
            self._memory[point] = stage_memory(self.problem, point)
        return overflow(self._memory[point], plan, self.rows(plan))

    def rows(self, plan: Plan) -> IntArray:
        """Rows of tables: what each stage recomputes."""
        return np.array([self.problem.row(name) for name in plan.recompute], dtype=np.int64)


def seconds(costs: StageCosts, plan: Plan, rows: IntArray) -> float:
    """One iteration of a uniform plan of the point that the costs are of.

    Parameters
    ----------
    rows : (pp,)
        Of tables: what stages recompute.
    """
    point = plan.point
    starts, ends = _virtual_stages(plan)
    s, c = np.arange(point.pp), rows
    heads = np.minimum(ends, costs.heads[c, starts])
    within, free = (
        (array[s, c, ends] - array[s, c, heads] + (array[s, -1, heads] - array[s, -1, starts])).sum(
            0
        )
        for array in (costs.time, costs.free)
    )
    hops = (costs.arrive[s, starts] + costs.retire[s, ends]).sum(axis=0)
    hidden = costs.transfer_saved * np.minimum(hops, free)
    forward = (costs.forward[ends] - costs.forward[starts]).sum(axis=0)
    loads = within + hops - hidden
    slack = paces(point, loads) - (within - free) - hops - forward
    once = (costs.once[s, ends] - costs.once[s, starts]).sum(axis=0)
    syncs = (costs.sync[s, ends] - costs.sync[s, starts]).sum(axis=0) + costs.sync_base
    syncs -= costs.once_saved * np.minimum(once, np.maximum(slack, 0.0))
    spared = (costs.spared[ends] - costs.spared[starts]).sum(axis=0)
    return iteration_seconds(point, costs.micro_batches, loads, spared, syncs)


def overflow(costs: StageMemory, plan: Plan, rows: IntArray) -> float:
    """What the fullest stage's tensors need over what there is, less one; 0 where they fit."""
    pp = plan.point.pp
    starts, ends = _virtual_stages(plan)
    largest = np.maximum.reduceat(costs.peak, starts.reshape(-1), axis=1)
    largest = largest.reshape(-1, *starts.shape).max(axis=1)[rows, np.arange(pp)]
    kept_bytes = (costs.kept[rows, ends] - costs.kept[rows, starts]).sum(axis=0)
    for s, c in enumerate(rows.tolist()):
        if costs.by_method(c):
            kept_bytes[s], largest[s] = costs.held_by(plan.virtual_stages(s), c)
    static = (costs.static[ends] - costs.static[starts]).sum(axis=0)
    stepping = (costs.step[ends] - costs.step[starts]).sum(axis=0)
    plain_bytes = (costs.kept[0, ends] - costs.kept[0, starts]).sum(axis=0)
    passes = costs.in_flight * kept_bytes + costs.deferred * plain_bytes + largest
    used = static + np.maximum(passes, stepping)
    most = float(used.max())
    return 0.0 if most <= costs.limit * _FITS else most / costs.limit - 1.0


def _virtual_stages(plan: Plan) -> tuple[IntArray, IntArray]:
    """First layers and ends, shape (virtual stages, pp)."""
    cuts = np.array(plan.cuts, dtype=np.int64)
    return cuts[:-1].reshape(-1, plan.point.pp), cuts[1:].reshape(-1, plan.point.pp)
