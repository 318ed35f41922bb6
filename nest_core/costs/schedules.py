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
* ``interleaved_zb``: ZB-1p's rule among the virtual stages of ``interleaved``, as PyTorch has it: a
  stage runs ``pp - 1 - s + (v - 1) pp`` forward passes ahead and delays W by ``s`` passes.
* ``zbv`` (ZB-V of Qi et al. 2024, "Pipeline Parallelism with Controllable Memory") and
  ``dualpipev`` (DualPipe of DeepSeek-V3's report, cut in half) have two virtual stages per stage,
  on the way forth and on the way back, and the passes of PyTorch's classes of these names. Where a
  forward pass of ``dualpipev`` overlaps a backward pass, both begin when both may, take the sum of
  their times, and hand over when both are over. None of these three has a closed form but for
  equal passes: their passes are replayed.

``tests/costs/test_schedules.py`` replays all of them event by event.

When every pass of a pipeline starts, as one compiled loop.

Kept apart since numba takes 0.3 s to import, and few commands draw a timeline.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nest_core.costs.plan import REPLAYED, Point
from nest_core.documents.compiled import compiled
from nest_core.network import BoolArray, FloatArray, IntArray

__all__ = [
    "DELAYS",
    "LATE",
    "MOST_PASSES",
    "SPLIT",
    "PassOrder",
    "deferral",
    "deferred",
    "fill_seconds",
    "fullest_order",
    "hides_transfers",
    "in_flight",
    "iteration_seconds",
    "paces",
    "paired",
    "replayed_seconds",
    "starts",
]

DELAYS = {"zb_h1": 1, "zb_1p": 1, "zb_2p": 2}
"""Micro-batches by which each stage delays W behind the stage before it."""

LATE = {**DELAYS, "interleaved_zb": 1}
"""Passes by which it does, also among virtual stages."""

SPLIT = (*DELAYS, *REPLAYED)
"""Schedules that make gradients of weights passes of their own."""

_Passes = tuple[IntArray, IntArray, IntArray, BoolArray]
"""Arrays of a `PassOrder`, but where virtual stages are placed."""

MOST_PASSES = 1_000_000
"""Of all stages together that are replayed one by one; a hundred bytes each."""


def in_flight(point: Point, micro_batches: int) -> FloatArray:
    """Micro-batches whose activations a position holds at its fullest, shape (pp,).

    Under the interleaved schedule a position holds virtual stages, and a micro-batch is ``v`` of
    them: before the first backward pass it has run ``2 (pp - s - 1) + (v - 1) pp + 1`` forward
    passes. So it has where passes are `paired`: the one that starts earlier keeps a layer where the
    backward pass beside it frees one.
    """
    if point.schedule in REPLAYED:
        order, passes = fullest_order(point, micro_batches), np.ones((point.interleave, point.pp))
        return order.most_held(np.arange(point.pp), passes / point.interleave, 0 * passes)
    passes = (micro_batches - deferred(point, micro_batches)) * point.interleave
    ahead = _ahead(point, micro_batches, is_paired=False)
    return np.asarray(np.minimum(passes, ahead + 1.0) / point.interleave)


def _ahead(point: Point, micro_batches: int, *, is_paired: bool) -> IntArray:
    """Forward passes before the first that a backward pass follows, shape (pp,)."""
    if point.schedule == "gpipe":
        return np.full(point.pp, micro_batches)
    for_each = LATE.get(point.schedule, min(point.interleave, 2))
    after = point.pp - 1 - np.arange(point.pp)
    return np.asarray(for_each * after + (point.interleave - 1) * point.pp + is_paired)


def paired(point: Point, micro_batches: int) -> FloatArray:
    """Share of a position's forward passes that run beside a backward pass, shape (pp,).

    Interleaved, or without a pipeline, a forward pass may run beside the backward pass of another
    micro-batch. It then starts one pass earlier, so that neither waits for the other (Megatron-LM,
    ``get_pp_rank_microbatches``); the first ones run alone, and the last backward passes.
    """
    passes = micro_batches * point.interleave
    if point.is_v_shaped:
        order = PassOrder.of(point, micro_batches)
        return np.asarray((order.overlaps & (order.way == 0)).sum(axis=1) / passes)
    alone = _ahead(point, micro_batches, is_paired=True)
    return np.asarray(np.maximum(passes - alone, 0.0) / passes)


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


def hides_transfers(point: Point) -> bool:
    """Whether stages are far enough ahead of the next to compute while activations travel.

    Under 1F1B, ZB-H1 and ZB-1p a stage is ahead of the next by one micro-batch: its forward pass
    follows at once on that of the stage before, and its backward pass on that of the stage after.
    """
    return DELAYS.get(point.schedule, point.interleave) > 1 or point.schedule == "gpipe"


def fill_seconds(
    point: Point, micro_batches: int, loads: FloatArray, spared: FloatArray, hidden: FloatArray
) -> float:
    """Seconds that the slowest stage waits in all while the pipeline fills and drains.

    Parameters
    ----------
    loads, spared, hidden : (pp,)
        Seconds of a micro-batch on every stage, `deferral` times those of them in W, and those
        of its transfers that hide once the pipeline is full.
    """
    if point.schedule not in DELAYS:
        return float(loads.sum() - loads.max()) / point.interleave + float(hidden.sum())
    waited = loads - spared
    slowest = float((micro_batches * loads - waited).max())
    return float((waited + hidden).sum()) + slowest - micro_batches * float(loads.max())


def paces(point: Point, loads: FloatArray) -> FloatArray:
    """Seconds from one micro-batch to the next, shape (pp,), as gradients hide behind the last.

    Virtual stages of interleaved stages take turns with those of the others, so a stage runs at the
    pace of the slowest, and waiting hides traffic as computing does; else the last passes follow
    one another.
    """
    return np.full_like(loads, loads.max()) if point.interleave > 1 else loads


def iteration_seconds(
    point: Point,
    micro_batches: int,
    loads: FloatArray,
    spared: FloatArray,
    hidden: FloatArray,
    syncs: FloatArray,
) -> float:
    """Return an iteration: ``m max(t) + fill + max(e)``, shapes (pp,)."""
    steady = micro_batches * float(loads.max())
    return steady + fill_seconds(point, micro_batches, loads, spared, hidden) + float(syncs.max())


@dataclass(frozen=True, slots=True, eq=False)
class PassOrder:
    """The passes of every stage in the order in which it runs them, each array (pp, passes).

    Parameters
    ----------
    way : 0 forward, 1 backward, 2 gradients of weights where they are a pass of their own
    micro_batch, virtual_stage : of which the pass is
    overlaps : whether it runs together with the next
        Both begin when both may, one after the other, and hand over when both are over.
    placed : (pp, v)
        See `Point.placed`.
    """

    way: IntArray
    micro_batch: IntArray
    virtual_stage: IntArray
    overlaps: BoolArray
    placed: IntArray

    @classmethod
    def of(cls, point: Point, micro_batches: int, *, is_paired: bool = False) -> PassOrder:
        """Return the order of a point's schedule; ``is_paired``: as where passes are `paired`."""
        schedule, v = point.schedule, point.interleave
        alike = Point(1, False, 1, point.pp, 1, 0, (), schedule=schedule, interleave=v)
        return cls(*_passes(alike, micro_batches, is_paired), point.placed)

    def starts(self, pass_s: FloatArray) -> FloatArray:
        """When every pass starts, shape (pp, passes).

        Parameters
        ----------
        pass_s : (pp, v, ways)
            Seconds of a stage's passes, by virtual stage and way.
        """
        count = int(self.micro_batch.max()) + 1
        passes = self.way, self.micro_batch, self.virtual_stage, self.overlaps, self.placed
        return starts(*passes, pass_s, count)

    def seconds(self, pass_s: FloatArray) -> float:
        """When the last pass ends."""
        last = pass_s[np.arange(len(pass_s)), self.virtual_stage[:, -1], self.way[:, -1]]
        return float((self.starts(pass_s)[:, -1] + last).max())

    def most_held(self, s: IntArray, kept_bytes: FloatArray, late_bytes: FloatArray) -> FloatArray:
        """Bytes of activations that stages ``s`` hold at their fullest, shape (stages,).

        Parameters
        ----------
        kept_bytes, late_bytes : (v, stages)
            Bytes that a forward pass leaves for the backward pass, and that one for gradients of
            weights where they are a pass of their own.
        """
        way, which = self.way[s], (self.virtual_stage[s], np.arange(len(s))[:, None])
        # A backward pass that goes on to gradients of weights leaves nothing to them.
        goes_on = self.overlaps[s] & (way == 1)
        late = ~(goes_on | np.roll(goes_on, 1, axis=1)) * np.array([0, 1, -1])[way]
        added = kept_bytes[which] * np.array([1, -1, 0])[way] + late_bytes[which] * late
        return np.asarray(added.cumsum(axis=1).max(axis=1))


def fullest_order(point: Point, micro_batches: int) -> PassOrder:
    """Return passes of a point of virtual stages in which every stage is once at its fullest.

    A stage is ahead by two groups of ``pp`` micro-batches at most, and after them holds the same
    virtual stages again with every group.
    """
    return PassOrder.of(point, min(micro_batches, 3 * point.pp))


def replayed_seconds(
    point: Point, micro_batches: int, pass_s: FloatArray, *, is_paired: bool = False
) -> float:
    """When the last pass of a point of virtual stages ends.

    Beyond `MOST_PASSES` every further group of ``pp`` micro-batches takes as long as the last.
    """
    most = max(3, MOST_PASSES // (2 * point.interleave * point.pp**2)) * point.pp
    groups = max(0, -((most - micro_batches) // point.pp))
    few = micro_batches - groups * point.pp
    ended = PassOrder.of(point, few, is_paired=is_paired).seconds(pass_s)
    if groups:
        before = PassOrder.of(point, few - point.pp, is_paired=is_paired).seconds(pass_s)
        ended += groups * (ended - before)
    return ended


@lru_cache(4)
def _passes(point: Point, m: int, is_paired: bool) -> _Passes:
    """Return the passes of a point's schedule, sorted by the round in which they run, F, B, W."""
    if point.is_v_shaped:
        return _v_shaped(point.schedule, point.pp, m)
    v, pp, ways = point.interleave, point.pp, 3 if point.schedule in LATE else 2
    number = np.arange(m * v)
    ahead = _ahead(point, m, is_paired=is_paired)
    late = LATE.get(point.schedule, 0) * np.arange(pp)
    rounds = (np.stack([-ahead, 0 * late, late], axis=1)[:, :ways, None] + number).reshape(pp, -1)
    way, which = np.repeat(np.arange(ways), len(number)), np.tile(number, ways)
    order = np.lexsort((np.tile(which, (pp, 1)), np.tile(way, (pp, 1)), rounds))
    way, which = way[order], which[order]
    forth = which // pp % v
    micro_batch = which // (pp * v) * pp + which % pp
    return way, micro_batch, np.where(way > 0, v - 1 - forth, forth), way < 0


_LETTERS = "FIWOJfiwoj"
"""Passes in a V, of the first and, small, of the second virtual stage: forward, backward, gradients
of weights; forward and backward together with what follows."""


def _v_shaped(schedule: str, pp: int, m: int) -> _Passes:
    """Return the passes of a V-shaped schedule."""
    letters = {"zbv": _zbv, "dualpipev": _dualpipev}[schedule]
    rows = [[_LETTERS.index(letter) for letter in letters(pp, s, m)] for s in range(pp)]
    virtual_stage, letter = np.divmod(np.array(rows), 5)
    way = letter % 3
    kind = (3 * virtual_stage + way)[..., None]
    count = (kind == np.arange(6)).cumsum(axis=1)
    which = np.take_along_axis(count, kind, axis=2)[..., 0] - 1
    # ZB-V is the order of as many micro-batches as fill it, of which some may not be there.
    way, which, virtual_stage, letter = (
        array[which < m].reshape(pp, -1) for array in (way, which, virtual_stage, letter)
    )
    return way, which, virtual_stage, letter > 2


def _zbv(pp: int, s: int, m: int) -> str:
    """Return a stage's passes under ZB-V, in `_LETTERS`."""
    after, m = pp - s, max(m, 2 * pp - 1)
    filling = "F" * (2 * after - 1) + "fF" * s + "fiw" * after
    steady = "FIWfiw" * (m - 2 * pp + 1 + s) + "IWfiw" * (after - 1)
    return filling + steady + "Ii" * s + "IW" * after + "w" * s + "W" * s


def _dualpipev(pp: int, s: int, m: int) -> str:
    """Return a stage's passes under DualPipeV, in `_LETTERS`; B is I together with W."""
    after = pp - 1 - s
    filling = "F" * (2 * after) + "Ff" * (s + 1) + "iwf" * after
    steady = "OboB" * (m - 2 * pp + 1 + s) + "boB" * after
    if not after:  # the stage of the turn begins without
        steady = "F" + steady[1:]
    # Of what comes back last, half leaves gradients of weights until the others are done.
    late = ("iI" * (s + 1))[s + 1 :]
    weights = (late + "I" * after).replace("i", "w").replace("I", "W")
    draining = ("bB" * (s + 1))[: s + 1] + late + "".join(w + "I" for w in weights[:after])
    passes = filling + steady + draining + weights[after:]
    return passes.replace("B", "JW").replace("b", "jw")


@compiled
def starts(
    way: IntArray,
    micro_batch: IntArray,
    virtual_stage: IntArray,
    overlaps: BoolArray,
    placed: IntArray,
    pass_s: FloatArray,
    micro_batches: int,
) -> FloatArray:
    """Start of every pass, shape (pp, passes), in the order in which each stage runs them.

    A forward pass waits for that of the virtual stage before, a backward pass for that of the
    virtual stage after, and every stage for its own passes. ``way`` and the arrays after it are as
    of a `PassOrder`; ``pass_s``, shape (pp, virtual stages, ways), has the seconds of a stage's
    passes of each.
    """
    stages, passes = way.shape
    last = placed.size - 1
    ended = np.full((3, micro_batches, last + 1), np.nan)
    begun = np.full((stages, passes), np.nan)
    free, place = np.zeros(stages), np.zeros(stages, dtype=np.int64)
    moved = True
    while moved:
        moved = False
        for s in range(stages):
            while place[s] < passes:
                first, now = place[s], free[s]
                after = first + 1
                while overlaps[s, after - 1]:
                    after += 1
                for at in range(first, after):
                    k, number = micro_batch[s, at], placed[s, virtual_stage[s, at]]
                    if way[s, at] == 0 and number > 0:
                        now = np.maximum(now, ended[0, k, number - 1])
                    elif way[s, at] == 1:
                        ready = ended[1, k, number + 1] if number < last else ended[0, k, number]
                        now = np.maximum(now, ready)
                if np.isnan(now):  # waits for a pass that is still to run
                    break
                for at in range(first, after):
                    begun[s, at] = now
                    now += pass_s[s, virtual_stage[s, at], way[s, at]]
                for at in range(first, after):
                    k, number = micro_batch[s, at], placed[s, virtual_stage[s, at]]
                    ended[way[s, at], k, number] = now
                free[s], place[s], moved = now, after, True
    return begun
