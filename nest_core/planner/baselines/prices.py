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
from nest_core.costs.stages import Span, over, stage_memory
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
        loads = np.array([costs.load(*stage) for stage in stages])
        pace = paces(plan.point, loads).tolist()
        syncs = np.array([costs.sync_seconds(*stage, pace[stage[0]]) for stage in stages])
        spared = np.array([over(costs.spared, spans) for _, spans, _ in stages])
        return iteration_seconds(plan.point, costs.micro_batches, loads, spared, syncs)

    def overflow(self, plan: Plan) -> float:
        """Return what the fullest stage needs over what there is, less one; 0 where it fits."""
        memory = self._memory(plan.point)
        most = max(memory.used(*stage) for stage in self._stages(plan))
        return 0.0 if most <= memory.limit * _FITS else most / memory.limit - 1.0

    def _stages(self, plan: Plan) -> list[tuple[int, tuple[Span, ...], int]]:
        """Return position, virtual stages and recomputation's row of every stage."""
        rows = map(self.problem.row, plan.recompute)
        return [(s, plan.virtual_stages(s), row) for s, row in enumerate(rows)]
