"""Caps that step down until no plan can win.

Caps step strictly below the bottleneck found, so the least ``(m + S - 1) max t + max e`` is exact
where a longer suffix is never worse: where the tensors sent between layers are equally large.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nest_core.network import BoolArray, IntArray

__all__ = ["Attempt", "least_objective"]

Attempt = Callable[[float, float, int], tuple[IntArray, float, float]]
"""A plan of the fewest stages under a cap on loads and one on synchronisation, or of so many as the
last argument says above 0; its largest load and its slowest synchronisation. The plan is as that of
`nest_core.planner.levelwise.recurrence.trace`, without stages where there is none."""


def least_objective(
    attempt: Attempt,
    allowed: BoolArray,
    m: int,
    total: float,
    heaviest: float,
    sync_bound: float,
    cutoff: float,
    late: Callable[[], bool],
) -> tuple[float, IntArray, bool]:
    """Least ``(m + S - 1) max t + max e`` of two stages or more that is under ``cutoff``.

    Parameters
    ----------
    allowed : (stages + 1,)
        Numbers of stages that a plan may have.
    total, heaviest, sync_bound : float
        Lower bounds of the loads added up, of the largest of them and of ``max e``.
    late : callable
        Whether to stop here.

    Returns
    -------
    seconds : float
        Infinity if there is none.
    plan : int array (5, S + 1)
        As `Attempt` tells it.
    done : bool
        Whether it was not stopped.
    """
    most, pinned = len(allowed) - 1, not allowed[1:].all()
    plan = np.zeros((5, 0), dtype=np.int64)
    best, sync_cap = cutoff, np.inf
    while True:
        least, least_sync, top, stages = np.inf, np.inf, np.inf, 2
        low, high = 0.0, np.inf  # of this number of stages: a cap too low, the bottleneck found
        while stages <= most:
            if not allowed[stages]:
                stages, high = stages + 1, np.inf
                continue
            limit = min(top, (best - sync_bound) / (m + stages - 1))
            bound = max(total / stages, heaviest) * (1.0 - 1e-12)
            if limit < bound:
                if heaviest > limit or heaviest * stages > total:
                    break
                stages, high = stages + 1, np.inf
                continue
            if late():
                return (best if plan.size else np.inf), plan, False
            low = max(low, bound) if high < np.inf else bound
            cap = limit
            if high < np.inf and limit > low * (1.0 + 1e-3):
                cap = 0.5 * (low + limit)
            trial, worst, sync = attempt(cap, sync_cap, stages if pinned else 0)
            number = trial.shape[1] - 1
            value = (m + number - 1) * worst
            if value + sync < best:
                best, plan = value + sync, trial
            if number == 0 or number > stages:
                if cap < limit:
                    low = cap
                elif pinned:
                    stages, high = stages + 1, np.inf
                elif number == 0:
                    break
                else:
                    stages, high = number, np.inf
                continue
            high, top = worst, float(np.nextafter(min(worst, cap), 0.0))
            if value < least:
                least, least_sync = value, sync
        if least == np.inf or least + sync_bound >= best or least_sync <= 0.0:
            break
        sync_cap = float(np.nextafter(min(least_sync, sync_cap), 0.0))
    return (best if plan.size else np.inf), plan, True
