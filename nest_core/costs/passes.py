"""When every pass of a pipeline starts, as one compiled loop.

Kept apart since numba takes 0.3 s to import, and few commands draw a timeline.
"""

from __future__ import annotations

import numpy as np

from nest_core.documents.compiled import compiled
from nest_core.network import FloatArray, IntArray

__all__ = ["starts"]


@compiled
def starts(
    way: IntArray,
    micro_batch: IntArray,
    virtual_stage: IntArray,
    pass_s: FloatArray,
    micro_batches: int,
) -> FloatArray:
    """Start of every pass, shape (pp, passes), in the order in which each stage runs them.

    A forward pass waits for that of the virtual stage before, a backward pass for that of the
    virtual stage after, and every stage for its own passes. ``way`` is 0 forward, 1 backward, and
    2 for gradients of weights that are a pass of their own; ``pass_s``, shape (pp, virtual stages,
    3), has the seconds of a stage's passes of each.
    """
    stages, passes = way.shape
    last = stages * pass_s.shape[1] - 1
    ended = np.full((3, micro_batches, last + 1), np.nan)
    begun = np.full((stages, passes), np.nan)
    free, place = np.zeros(stages), np.zeros(stages, dtype=np.int64)
    moved = True
    while moved:
        moved = False
        for s in range(stages):
            while place[s] < passes:
                at = place[s]
                k, number = micro_batch[s, at], virtual_stage[s, at] * stages + s
                ready = 0.0
                if way[s, at] == 0 and number > 0:
                    ready = ended[0, k, number - 1]
                elif way[s, at] == 1:
                    ready = ended[1, k, number + 1] if number < last else ended[0, k, number]
                if np.isnan(ready):
                    break
                begun[s, at] = max(free[s], ready)
                free[s] = begun[s, at] + pass_s[s, virtual_stage[s, at], way[s, at]]
                ended[way[s, at], k, number] = free[s]
                place[s] += 1
                moved = True
    return begun
