"""When every pass of a pipeline starts, as one compiled loop.

Kept apart since numba takes 0.3 s to import, and few commands draw a timeline.
"""

from __future__ import annotations

import numpy as np

from nest_core.compiled import compiled
from nest_core.network import BoolArray, FloatArray, IntArray

__all__ = ["starts"]


@compiled
def starts(
    backward: BoolArray,
    micro_batch: IntArray,
    virtual_stage: IntArray,
    pass_s: FloatArray,
    micro_batches: int,
) -> FloatArray:
    """Start of every pass, shape (pp, passes), in the order in which each stage runs them.

    A forward pass waits for that of the virtual stage before, a backward pass for that of the
    virtual stage after, and every stage for its own passes. ``pass_s`` has shape (pp, virtual
    stages, 2): seconds of a stage's forward and backward passes.
    """
    stages, passes = backward.shape
    last = stages * pass_s.shape[1] - 1
    ended = np.full((2, micro_batches, last + 1), np.nan)
    begun = np.full((stages, passes), np.nan)
    free, place = np.zeros(stages), np.zeros(stages, dtype=np.int64)
    moved = True
    while moved:
        moved = False
        for s in range(stages):
            while place[s] < passes:
                at = place[s]
                k, number = micro_batch[s, at], virtual_stage[s, at] * stages + s
                way = 1 if backward[s, at] else 0
                ready = 0.0
                if way == 0 and number > 0:
                    ready = ended[0, k, number - 1]
                elif way == 1:
                    ready = ended[1, k, number + 1] if number < last else ended[0, k, number]
                if np.isnan(ready):
                    break
                begun[s, at] = max(free[s], ready)
                free[s] = begun[s, at] + pass_s[s, virtual_stage[s, at], way]
                ended[way, k, number] = free[s]
                place[s] += 1
                moved = True
    return begun
