"""Times and memory of many plans of one problem.

`nest_core.costs.price` says everything about one plan; a method that tries hundreds needs two
numbers of each. What plans share is computed once: links of a layout, stages of a point. Plans
whose stages differ in their strategy are for `price`. `nest_core.costs.price` stays the judge:
what a method returns is priced by it.
"""

from functools import lru_cache, partial

import numpy as np

from nest_core.costs import Plan, Problem
from nest_core.costs.schedules import iteration_seconds, paces
from nest_core.costs.stages import Spans, stage_memory
from nest_core.network import IntArray
from nest_core.planner.solver import Solver

__all__ = ["PlanPrices"]

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
        loads = costs.load(*stages)
        syncs = costs.sync_seconds(*stages, paces(plan.point, loads))
        starts, ends = np.array(stages[1]).swapaxes(0, 1)
        spared = (costs.spared[ends] - costs.spared[starts]).cumsum(axis=0)[-1]
        return iteration_seconds(plan.point, costs.micro_batches, loads, spared, syncs)

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
