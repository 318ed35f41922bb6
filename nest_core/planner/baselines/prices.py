"""Times and memory of many plans of one problem.

`nest_core.costs.price` says everything about one plan; a method that tries hundreds needs two
numbers of each. What plans share is computed once: links of a layout, stages of a point. Plans
whose stages differ in their strategy are for `price`. `nest_core.costs.price` stays the judge:
what a method returns is priced by it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nest_core.costs import (
    Plan,
    Point,
    Problem,
    StageCosts,
    in_flight,
    links,
    stage_costs,
)
from nest_core.costs.schedules import DELAYS, iteration_seconds, paces
from nest_core.costs.stages import PlanLinks, StageMemory, stage_memory
from nest_core.network import IntArray

__all__ = ["PlanPrices", "overflow", "seconds"]

_FITS = 1.0 + 1e-12


class PlanPrices:
    """Iteration times and memory of a problem's uniform plans.

    Parameters
    ----------
    problem : Problem
    kept : int
        Points whose stages are remembered.
    """

    def __init__(self, problem: Problem, size: int = 256) -> None:
        self.problem = problem
        self._kept = size
        self._links: dict[Point, PlanLinks] = {}
        self._stages: dict[Point, StageCosts] = {}
        self._memory: dict[Point, StageMemory] = {}

    def stages(self, point: Point) -> StageCosts:
        """What every stage of a point costs; schedules differ in what they keep in flight."""
        if point in self._stages:
            return self._stages[point]
        key_schedule = point.schedule if point.schedule in DELAYS else "1f1b"
        key = replace(point, schedule=key_schedule, interleave=min(point.interleave, 2))
        if self.problem.overlap.experts:
            key = point
        if key != point:
            costs = self.stages(key)
            costs = replace(costs, in_flight=in_flight(point, costs.micro_batches))
        else:
            costs = stage_costs(self.problem, point, self.layout(point))
        if len(self._stages) >= self._kept:
            self._stages.pop(next(iter(self._stages)))
        self._stages[point] = costs
        return costs

    def seconds(self, plan: Plan) -> float:
        """One iteration, whether it fits or not."""
        return seconds(self.stages(plan.point), plan, self.rows(plan))

    def overflow(self, plan: Plan) -> float:
        """See `overflow`."""
        point = plan.point
        if point not in self._memory:
            if len(self._memory) >= self._kept:
                self._memory.pop(next(iter(self._memory)))
            self._memory[point] = stage_memory(self.problem, point)
        return overflow(self._memory[point], plan, self.rows(plan))

    def rows(self, plan: Plan) -> IntArray:
        """Rows of tables: what each stage recomputes."""
        return np.array([self.problem.row(name) for name in plan.recompute], dtype=np.int64)

    def layout(self, point: Point) -> PlanLinks:
        """Links do not depend on what is sent, nor on the schedule but for its way round."""
        key = replace(
            point,
            sp=False,
            micro_batch=1,
            zero=0,
            zero_group=0,
            schedule="1f1b",
            interleave=min(point.interleave, 2),
        )
        if key not in self._links:
            self._links[key] = links(self.problem, key)
        return self._links[key]


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
