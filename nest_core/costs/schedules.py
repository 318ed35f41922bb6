"""Pipeline schedules: how long the pipeline fills and drains, and what is in flight meanwhile.

* ``gpipe``: all forward passes, then all backward passes (Huang et al. 2019).
* ``1f1b``: a stage alternates once its first micro-batch comes back (Narayanan et al. 2021,
  PipeDream-Flush): the same bubble, fewer micro-batches in flight.
* ``interleaved``: every stage holds ``v`` virtual stages, one from each round of the pipeline, and
  alternates between them (Narayanan et al. 2021, SC, section 2.2): the bubble
  shrinks by ``v``, transfers multiply by it. Micro-batches go through in groups of ``pp``, so their
  number must be a multiple of it.

``tests/costs/test_schedules.py`` replays all three event by event.
"""

from __future__ import annotations

import numpy as np

from nest_core.costs.plan import Point
from nest_core.network import FloatArray

__all__ = ["fill_seconds", "in_flight", "iteration_seconds", "paces"]


def in_flight(point: Point, micro_batches: int) -> FloatArray:
    """Micro-batches whose activations a position holds at its fullest, shape (pp,).

    Under the interleaved schedule a position holds virtual stages, and a micro-batch is ``v`` of
    them: before the first backward pass it has run ``2 (pp - s - 1) + (v - 1) pp + 1`` forward
    passes.
    """
    after = point.pp - 1 - np.arange(point.pp)
    if point.schedule == "gpipe":
        return np.full(point.pp, float(micro_batches))
    if point.schedule == "interleaved":
        v = point.interleave
        virtual_stages = np.minimum(micro_batches * v, 2 * after + (v - 1) * point.pp + 1)
        return np.asarray(virtual_stages / v, dtype=np.float64)
    return np.minimum(micro_batches, after + 1).astype(np.float64)


def fill_seconds(point: Point, loads: FloatArray) -> float:
    """Seconds that the slowest stage waits in all while the pipeline fills and drains."""
    return float(loads.sum() - loads.max()) / point.interleave


def paces(point: Point, loads: FloatArray) -> FloatArray:
    """Seconds from one micro-batch to the next, shape (pp,), as gradients hide behind the last.

    Virtual stages of interleaved stages take turns with those of the others, so a stage runs at the
    pace of the slowest, and waiting hides traffic as computing does; else the last passes follow
    one another.
    """
    return np.full_like(loads, loads.max()) if point.interleave > 1 else loads


def iteration_seconds(
    point: Point, micro_batches: int, loads: FloatArray, syncs: FloatArray
) -> float:
    """An iteration: ``m max(t) + fill + max(e)``, shapes (pp,)."""
    steady = micro_batches * float(loads.max())
    return steady + fill_seconds(point, loads) + float(syncs.max())
