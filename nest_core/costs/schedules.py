"""Pipeline schedules: how long the pipeline fills and drains, and what is in flight meanwhile.

* ``gpipe``: all forward passes, then all backward passes (Huang et al. 2019).
* ``1f1b``: a stage alternates once its first micro-batch comes back (Narayanan et al. 2021,
  PipeDream-Flush): the same bubble, fewer micro-batches in flight.
* ``interleaved``: every stage holds ``v`` virtual stages, one from each round of the pipeline, and
  alternates between them (Narayanan et al. 2021, SC, section 2.2): the bubble
  shrinks by ``v``, transfers multiply by it. Micro-batches go through in groups of ``pp``, so their
  number must be a multiple of it.
* ``zb_h1``, ``zb_1p``, ``zb_2p``: zero-bubble schedules (Qi et al. 2023, "Zero Bubble Pipeline
  Parallelism"). The backward pass is split: gradients of inputs (B) go on to the stage before,
  those of weights (W) wait until a stage would idle. Stage ``s`` runs ``c (pp - 1 - s)`` forward
  passes ahead and delays W by ``c s`` micro-batches, ``c`` from `DELAYS`. ``zb_h1`` and ``zb_1p``
  hold as many micro-batches as 1F1B's first stage. In that memory no order beats ZB-H1, which is
  therefore the price of ZB-1p. ``zb_2p`` has twice the memory, and is priced at the order made by
  hand for it, ZB-H2: what the paper's heuristic finds there depends on the times, and is at best
  shorter. ``zb_1p`` and ``zb_2p`` validate the optimizer's step afterwards, so that an iteration
  lasts as long as the stage that takes longest from its first pass to its last.

``tests/costs/test_schedules.py`` replays all of them event by event.

When every pass of a pipeline starts, as one compiled loop.

Kept apart since numba takes 0.3 s to import, and few commands draw a timeline.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nest_core.costs.plan import Point
from nest_core.documents.compiled import compiled
from nest_core.network import FloatArray, IntArray

__all__ = [
    "DELAYS",
    "MOST_PASSES",
    "PassOrder",
    "deferral",
    "deferred",
    "fill_seconds",
    "fullest_order",
    "in_flight",
    "iteration_seconds",
    "paces",
    "paired",
    "replayed_seconds",
    "starts",
]

DELAYS = {"zb_h1": 1, "zb_1p": 1, "zb_2p": 2}
"""Micro-batches by which each stage delays W behind the stage before it."""

MOST_PASSES = 1_000_000
"""Of all stages together that are replayed one by one; a hundred bytes each."""


def in_flight(point: Point, micro_batches: int, *, is_paired: bool = False) -> FloatArray:
    """Micro-batches whose activations a position holds at its fullest, shape (pp,).

    Under the interleaved schedule a position holds virtual stages, and a micro-batch is ``v`` of
    them: before the first backward pass it has run ``2 (pp - s - 1) + (v - 1) pp + 1`` forward
    passes. ``is_paired``: one more, whose expert traffic that backward pass hides; see `paired`.
    """
    after = point.pp - 1 - np.arange(point.pp)
    if is_paired:
        return np.asarray(np.minimum(micro_batches, (_alone(point) + 1.0) / point.interleave))
    if point.schedule == "gpipe":
        return np.full(point.pp, float(micro_batches))
    if point.schedule in DELAYS:
        ahead = DELAYS[point.schedule] * after
        remaining = micro_batches - deferred(point, micro_batches)
        return np.asarray(np.minimum(remaining, ahead + 1.0), dtype=np.float64)
    if point.schedule == "interleaved":
        v = point.interleave
        virtual_stages = np.minimum(micro_batches * v, 2 * after + (v - 1) * point.pp + 1)
        return np.asarray(virtual_stages / v, dtype=np.float64)
    return np.minimum(micro_batches, after + 1).astype(np.float64)


def paired(point: Point, micro_batches: int) -> FloatArray:
    """Share of a position's forward passes that run beside a backward pass, shape (pp,).

    Interleaved, or without a pipeline, a forward pass may run beside the backward pass of another
    micro-batch. It then starts one pass earlier, so that neither waits for the other (Megatron-LM,
    ``get_pp_rank_microbatches``); the first ones run alone, and the last backward passes.
    """
    passes = micro_batches * point.interleave
    return np.asarray(np.maximum(passes - _alone(point), 0.0) / passes)


def _alone(point: Point) -> FloatArray:
    """Forward passes before the first that runs beside a backward pass, shape (pp,)."""
    after = point.pp - 1.0 - np.arange(point.pp)
    return np.asarray(2 * after + (point.interleave - 1) * point.pp + 1)


def deferred(point: Point, micro_batches: int) -> FloatArray:
    """Micro-batches beside those in flight that wait for W at the fullest, shape (pp,)."""
    late = DELAYS.get(point.schedule, 0) * np.arange(point.pp, dtype=np.float64)
    return np.asarray(np.minimum(micro_batches - 1.0, late), dtype=np.float64)


def deferral(point: Point, micro_batches: int) -> float:
    """Seconds by which a second of W shortens the wait of the other stages, at most 3.

    Every other stage makes them wait for its F + B + W under 1F1B, for F + B - W under ZB-H1 and
    for F + B - 2 W under ZB-H2; fewer micro-batches than stages have less to delay.
    """
    if point.schedule not in DELAYS or point.pp == 1:
        return 0.0
    others = point.pp - 1
    return 1.0 + min(DELAYS[point.schedule] * others, micro_batches - 1) / others


def fill_seconds(point: Point, micro_batches: int, loads: FloatArray, spared: FloatArray) -> float:
    """Seconds that the slowest stage waits in all while the pipeline fills and drains.

    Parameters
    ----------
    loads, spared : (pp,)
        Seconds of a micro-batch on every stage, and `deferral` times those of them in W.
    """
    if point.schedule not in DELAYS:
        return float(loads.sum() - loads.max()) / point.interleave
    waited = loads - spared
    slowest = float((micro_batches * loads - waited).max())
    return float(waited.sum()) + slowest - micro_batches * float(loads.max())


def paces(point: Point, loads: FloatArray) -> FloatArray:
    """Seconds from one micro-batch to the next, shape (pp,), as gradients hide behind the last.

    Virtual stages of interleaved stages take turns with those of the others, so a stage runs at the
    pace of the slowest, and waiting hides traffic as computing does; else the last passes follow
    one another.
    """
    return np.full_like(loads, loads.max()) if point.interleave > 1 else loads


def iteration_seconds(
    point: Point, micro_batches: int, loads: FloatArray, spared: FloatArray, syncs: FloatArray
) -> float:
    """Return an iteration: ``m max(t) + fill + max(e)``, shapes (pp,)."""
    steady = micro_batches * float(loads.max())
    return steady + fill_seconds(point, micro_batches, loads, spared) + float(syncs.max())


@dataclass(frozen=True, slots=True, eq=False)
class PassOrder:
    """The passes of every stage in the order in which it runs them, each array (pp, passes).

    Parameters
    ----------
    way : 0 forward, 1 backward, 2 gradients of weights where they are a pass of their own
    micro_batch, virtual_stage : of which the pass is
    """

    way: IntArray
    micro_batch: IntArray
    virtual_stage: IntArray

    @classmethod
    def of(cls, point: Point, micro_batches: int, *, is_paired: bool = False) -> PassOrder:
        """Return the order of a point's schedule; ``is_paired``: as where passes are `paired`."""
        if point.schedule in DELAYS:
            return cls(*_delayed(point, micro_batches))
        v, pp = point.interleave, point.pp
        number = np.arange(micro_batches * v)
        micro_batch, forth, back = number, np.zeros_like(number), np.zeros_like(number)
        if point.schedule == "interleaved":
            micro_batch = number // (pp * v) * pp + number % pp
            forth, back = number // pp % v, v - 1 - number // pp % v
        way = np.zeros((pp, 2 * len(number)), dtype=np.int64)
        which, virtual_stage = np.zeros_like(way), np.zeros_like(way)
        for s in range(pp):
            first, second = _places(point, s, len(number), is_paired=is_paired)
            way[s, second] = 1
            which[s, first] = which[s, second] = micro_batch
            virtual_stage[s, first], virtual_stage[s, second] = forth, back
        return cls(way, which, virtual_stage)

    def starts(self, pass_s: FloatArray) -> FloatArray:
        """When every pass starts, shape (pp, passes).

        Parameters
        ----------
        pass_s : (pp, v, ways)
            Seconds of a stage's passes, by virtual stage and way.
        """
        count = int(self.micro_batch.max()) + 1
        return starts(self.way, self.micro_batch, self.virtual_stage, pass_s, count)

    def seconds(self, pass_s: FloatArray) -> float:
        """When the last pass ends."""
        last = pass_s[np.arange(len(pass_s)), self.virtual_stage[:, -1], self.way[:, -1]]
        return float((self.starts(pass_s)[:, -1] + last).max())

    def most_held(self, kept_bytes: FloatArray) -> FloatArray:
        """Bytes of activations that every stage holds at its fullest, shape (..., pp).

        Parameters
        ----------
        kept_bytes : (..., pp, v)
            Bytes that a forward pass leaves for the backward pass.
        """
        stage = np.arange(len(self.way))[:, None]
        resident = kept_bytes[..., stage, self.virtual_stage] * (1 - 2 * self.way)
        return np.asarray(resident.cumsum(axis=-1).max(axis=-1))


def fullest_order(point: Point, micro_batches: int, *, is_paired: bool = False) -> PassOrder:
    """Return passes of an interleaved point up to where every stage has been at its fullest.

    A stage is ahead by two groups of ``pp`` micro-batches at most, and after them holds the same
    virtual stages again with every group.
    """
    return PassOrder.of(point, min(micro_batches, 3 * point.pp), is_paired=is_paired)


def replayed_seconds(
    point: Point, micro_batches: int, pass_s: FloatArray, *, is_paired: bool = False
) -> float:
    """When the last pass of an interleaved point ends.

    Beyond `MOST_PASSES` every further group of ``pp`` micro-batches takes as long as the last.
    """
    groups = micro_batches // point.pp
    most = max(2, MOST_PASSES // (2 * point.interleave * point.pp**2))
    if groups <= most:
        return PassOrder.of(point, micro_batches, is_paired=is_paired).seconds(pass_s)
    ended, before = (
        PassOrder.of(point, number * point.pp, is_paired=is_paired).seconds(pass_s)
        for number in (most, most - 1)
    )
    return ended + (groups - most) * (ended - before)


def _delayed(point: Point, m: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return passes of zero-bubble schedules: sorted by the round in which a pass runs, F, B, W."""
    number = np.arange(m)
    ways, which = np.repeat([0, 1, 2], m), np.tile(number, 3)
    orders = []
    for s in range(point.pp):
        ahead = DELAYS[point.schedule] * (point.pp - 1 - s)
        rounds = np.concatenate([number - ahead, number, number + DELAYS[point.schedule] * s])
        orders.append(np.lexsort((which, ways, rounds)))
    order = np.array(orders)
    return ways[order], which[order], np.zeros_like(order)


def _places(point: Point, s: int, count: int, *, is_paired: bool) -> tuple[IntArray, IntArray]:
    """Where in a stage's order its forward and its backward passes stand."""
    number = np.arange(count)
    after = point.pp - 1 - s
    if is_paired:
        ahead = min(int(_alone(point)[s]), count)
    elif point.schedule == "gpipe":
        ahead = count
    elif point.schedule == "interleaved":
        ahead = min(2 * after + (point.interleave - 1) * point.pp, count)
    else:
        ahead = min(after, count)
    turns = count - ahead
    forward = np.where(number < ahead, number, 2 * number - ahead)
    return forward, np.where(number < turns, ahead + 2 * number + 1, count + number)


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
