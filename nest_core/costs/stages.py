"""What every possible stage of an outer point costs.

For a point (degrees, micro-batch, ZeRO, order, schedule) the time, synchronisation and memory of
a stage follow from its position ``s`` and its layers ``i..j-1`` alone, and all of it is
differences of prefix sums. `StageCosts` holds those; the planner's program and
`nest_core.costs.price` both read it. Equations: ``docs/method.md``, "Time" and "Memory".

Declared rules that make this separable
---------------------------------------
* A position is priced at its slowest replica, collective by collective.
* All flows of one traffic class run at once and share links; different classes follow one
  another.
* Other stages' flows carry this stage's bytes.
* A stage's transfers, and what it sends once per iteration, hide behind what its own layers
  leave; see `nest_core.costs.passes`.
"""

from collections import namedtuple
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from nest_core.costs.links import PlanLinks
from nest_core.costs.methods import KEPT, PEAK, grow
from nest_core.costs.passes import (
    LayerSeconds,
    held,
    layer_seconds,
    pairs_passes,
    sharded_seconds,
)
from nest_core.costs.plan import Point
from nest_core.costs.problem import (
    KEPT_BYTES,
    LayerTable,
    Problem,
    condensed,
    prefix,
)
from nest_core.costs.schedules import (
    SPLIT,
    PassOrder,
    deferral,
    deferred,
    hides_transfers,
    in_flight,
)
from nest_core.costs.zero import (
    state_shares,
    step_share,
    traffic,
    update_seconds,
    whole_bytes,
)
from nest_core.documents.compiled import compiled
from nest_core.documents.presets import kept_within
from nest_core.network import FloatArray, IntArray

__all__ = [
    "Spans",
    "StageCosts",
    "StageMemory",
    "hop_seconds",
    "met",
    "peak_bytes",
    "stage_costs",
    "stage_memory",
    "update_layers",
]

Place = int | IntArray
Spans = Sequence[tuple[Place, Place]] | IntArray
"""First layers and ends of virtual stages, one after another: of a stage, or of many, (stages,)."""


@dataclass(frozen=True, slots=True, eq=False)
class StageMemory:
    """What tensors of stages hold, over ``L`` layers; rows: ``R`` recomputations.

    Attributes
    ----------
    point : Point
    micro_batches : int
    static : (L + 1,)
        Bytes of weights, gradients and optimizer states.
    kept : (R, L + 1)
        Bytes kept per micro-batch in flight.
    peak : (R, L)
        Bytes that live only while a layer runs; the largest of a stage counts.
    step : (L + 1,)
        Bytes that live only while the optimizer steps, when nothing is in flight.
    in_flight : (pp,)
        Micro-batches whose activations a position holds.
    deferred : (pp,)
        Micro-batches beside them of which all is held for W: zero-bubble schedules delay it.
    is_paired : bool
        Whether forward passes run beside backward passes; see `pairs_passes`.
    limit : float
        Bytes that tensors may hold.
    heads, chunks, again : as of `Problem`
    """

    point: Point
    micro_batches: int
    static: FloatArray
    kept: FloatArray
    peak: FloatArray
    step: FloatArray
    in_flight: FloatArray
    deferred: FloatArray
    is_paired: bool
    limit: float
    heads: IntArray
    chunks: IntArray
    again: IntArray

    def used(
        self, s: Place, virtual_stages: Spans, c: Place, order: PassOrder | None = None
    ) -> FloatArray:
        """Return the bytes that tensors of stages hold: positions ``s``, recomputations ``c``, and
        the ``order`` of passes where they are replayed.
        """
        static, step, _, _, peak = self._held(virtual_stages, c)
        passes = self.activations(s, virtual_stages, c, order) + peak
        return cast(FloatArray, static + np.maximum(passes, step))

    def activations(
        self, s: Place, virtual_stages: Spans, c: Place, order: PassOrder | None
    ) -> FloatArray:
        """Return the bytes that forward passes leave for later ones, at their fullest."""
        _, _, plain, kept_bytes, _ = self._held(virtual_stages, c)
        if order is None:
            return np.asarray(self.in_flight[s] * kept_bytes + self.deferred[s] * plain)
        spans, rows = _as_arrays(virtual_stages, c)
        chunks = spans.swapaxes(0, 1).reshape(1, 2, -1)
        totals = self._held(chunks, np.tile(rows, len(spans))).reshape(5, len(spans), -1)
        late = totals[2] * (self.point.schedule in SPLIT)
        return order.most_held(np.array(s).reshape(-1), totals[3], late).reshape(np.shape(c))

    def held_by(self, virtual_stages: Spans, c: Place) -> FloatArray:
        """Bytes kept per micro-batch, and the most that lives beside them while a layer runs."""
        return self._held(virtual_stages, c)[3:]

    def _held(self, virtual_stages: Spans, c: Place) -> FloatArray:
        """Return `_held_totals` of stages, each of the shape of ``c``."""
        tables = _HeldTables(*(getattr(self, name) for name in _HeldTables._fields))
        return _held_totals(tables, *_as_arrays(virtual_stages, c)).reshape(-1, *np.shape(c))


_HeldTables = namedtuple("_HeldTables", "static kept peak step heads chunks again")
_TimeTables = namedtuple(
    "_TimeTables",
    "time free ahead arrive retire opening turning sync sync_base once renewed heads",
)
"""Fields of `StageMemory` and `StageCosts`."""


def _as_arrays(virtual_stages: Spans, c: Place) -> tuple[IntArray, IntArray]:
    """Return virtual stages, (v, 2, stages), and recomputations, (stages,)."""
    rows = np.array(c).reshape(-1)
    return np.array(virtual_stages).reshape(-1, 2, len(rows)), rows


@compiled
def _held_totals(t: _HeldTables, spans: IntArray, rows: IntArray) -> FloatArray:
    """Return static bytes of stages, what stepping needs, and what is kept per micro-batch under no
    recomputation and under theirs; and the largest peak of their layers, (5, stages).
    """
    totals = np.zeros((5, len(rows)))
    for n in range(len(rows)):
        c = rows[n]
        for k in range(len(spans)):
            i, j = spans[k, 0, n], spans[k, 1, n]
            totals[0, n] += t.static[j] - t.static[i]
            totals[1, n] += t.step[j] - t.step[i]
            totals[2, n] += t.kept[0, j] - t.kept[0, i]
            kept_bytes, peak = t.kept[c, j] - t.kept[c, i], t.peak[c, i:j].max()
            if t.chunks[c] > 0 or t.heads[c, 0] > 0:
                state, ends = np.zeros(4), np.array([0, len(t.kept) - 1])
                for layer in range(i, j):
                    at = t.heads[c, i], t.chunks[c]
                    grow(state, layer, t.kept[ends], t.peak[ends], t.again, *at)
                kept_bytes, peak = state[KEPT], state[PEAK]
            totals[3, n] += kept_bytes
            totals[4, n] = max(totals[4, n], peak)
    return totals


def met(point: Point, spans: IntArray) -> IntArray:
    """Return where virtual stages meet the stages before and after theirs: their ends in the chain,
    in a V on the way back the other way round. Shape (v, 2, ...) as of ``spans``.
    """
    meeting = spans.copy()
    if point.is_v_shaped:
        meeting[1] = spans[1, ::-1]
    return meeting


@compiled
def _time_totals(
    t: _TimeTables, positions: IntArray, spans: IntArray, ends: IntArray, rows: IntArray
) -> FloatArray:
    """Return seconds of stages, (7, stages): per micro-batch without transfers, of it those in
    which nothing is sent, transfers, those of forward passes in which nothing is sent; once, of it
    what may hide, and of that what hides behind forward passes.
    """
    totals = np.zeros((7, len(rows)))
    for n in range(len(rows)):
        s, c = positions[n], rows[n]
        for k in range(len(spans)):
            i, j = spans[k, 0, n], spans[k, 1, n]
            head = min(j, t.heads[c, i])
            totals[0, n] += t.time[s, c, j] - t.time[s, c, head]
            totals[0, n] += t.time[s, -1, head] - t.time[s, -1, i]
            totals[0, n] += t.opening[s, i] + t.turning[s, j]
            totals[1, n] += t.free[s, c, j] - t.free[s, c, head]
            totals[1, n] += t.free[s, -1, head] - t.free[s, -1, i]
            totals[2, n] += t.arrive[s, ends[k, 0, n]] + t.retire[s, ends[k, 1, n]]
            totals[3, n] += t.ahead[s, j] - t.ahead[s, i]
            totals[4, n] += t.sync[s, j] - t.sync[s, i]
            # Of the first layer gradients come last, and weights are waited for first.
            first = i + 1 if k == 0 else i
            totals[5, n] += t.once[s, j] - t.once[s, first]
            totals[6, n] += t.renewed[s, j] - t.renewed[s, first]
        totals[4, n] += t.sync_base[s]
    return totals


@dataclass(frozen=True, slots=True, eq=False)
class StageCosts(StageMemory):
    """Prefix sums over ``L`` layers for every position of a point; rows: ``R`` recomputations.

    Attributes
    ----------
    time, free : (pp, R, L + 1)
        Seconds per micro-batch without pipeline transfers, and those of them in which nothing is
        sent.
    ahead : (pp, L + 1)
        Those of the forward pass, in which nothing is sent.
    forward : (L + 1,)
        Seconds of compute in a forward pass.
    computed : (R, L + 1)
        Seconds of compute in both passes, replayed layers included.
    weights : (L + 1,)
        Seconds of gradients of weights, where they are a pass of their own.
    spared : (L + 1,)
        Seconds by which other stages wait for less than the load: `deferral` times those in W.
    arrive, retire : (pp, L + 1)
        Seconds to receive activations where a virtual stage starts at ``i``, gradients where it
        ends at ``j``; on the way back of a V the other way round, see `met`.
    opening, turning : (pp, L + 1)
        Seconds more where a virtual stage starts at ``i``, and where it ends at ``j``; see
        `LayerSeconds`.
    transfer_saved : float
        Seconds saved per second of transfers that has compute to hide behind.
    sync : (pp, L + 1) and sync_base : (pp,)
        Gradient synchronisation and optimizer step, once per iteration, were nothing hidden.
    once, renewed : (pp, L + 1)
        Of it, what may hide; of that, new weights that ZeRO gathers, behind the first forward
        pass of the next iteration. The rest hides behind the last backward pass.
    once_saved : float
        Seconds saved per second of that which has compute to hide behind.
    """

    time: FloatArray
    free: FloatArray
    ahead: FloatArray
    forward: FloatArray
    computed: FloatArray
    weights: FloatArray
    spared: FloatArray
    arrive: FloatArray
    retire: FloatArray
    opening: FloatArray
    turning: FloatArray
    transfer_saved: float
    sync: FloatArray
    sync_base: FloatArray
    once: FloatArray
    renewed: FloatArray
    once_saved: float

    def load(self, s: Place, virtual_stages: Spans, c: Place) -> tuple[FloatArray, FloatArray]:
        """Return seconds of stages per micro-batch, and of transfers that hide beside them:
        positions ``s``, recomputations ``c``.
        """
        within, free, hops, *_ = self.totals(s, virtual_stages, c)
        hidden = self.transfer_saved * np.minimum(hops, free)
        return within + hops - hidden, hidden

    def totals(self, s: Place, virtual_stages: Spans, c: Place) -> FloatArray:
        """Return `_time_totals` of stages, each of the shape of ``c``."""
        spans, rows = _as_arrays(virtual_stages, c)
        tables = _TimeTables(*(getattr(self, name) for name in _TimeTables._fields))
        positions, ends = np.array(s).reshape(-1), met(self.point, spans)
        return _time_totals(tables, positions, spans, ends, rows).reshape(-1, *np.shape(c))

    def passes(
        self, s: int, virtual_stages: Sequence[tuple[int, int]], c: int
    ) -> tuple[tuple[float, ...], ...]:
        """Seconds of a forward and a backward pass of each virtual stage, and of gradients of
        weights.

        They add up to the stage's load. What hides of transfers is shared as they are; without
        recomputation half of communication and of waits for the host falls into either pass, and
        all that recomputation adds into the backward one. Gradients of weights compute only.
        """
        i, j = np.array(virtual_stages).T
        late = self.weights[j] - self.weights[i]
        forward = self.forward[j] - self.forward[i]
        ahead = forward + (self._each(s, i, j, 0) - (self.computed[0, j] - self.computed[0, i])) / 2
        seconds = np.stack([ahead, self._each(s, i, j, c) - ahead - late, late], axis=1)
        return tuple(map(tuple, seconds.tolist()))

    def _each(self, s: int, i: IntArray, j: IntArray, c: int) -> FloatArray:
        """Seconds per micro-batch of each virtual stage of a stage."""
        ends = met(self.point, np.stack([i, j], axis=1))
        hops = self.arrive[s, ends[:, 0]] + self.retire[s, ends[:, 1]]
        head = np.minimum(j, self.heads[c, i])
        time, free = (
            array[c, j] - array[c, head] + (array[-1, head] - array[-1, i])
            for array in (self.time[s], self.free[s])
        )
        time = time + self.opening[s, i] + self.turning[s, j]
        hidden = self.transfer_saved * min(hops.sum(), free.sum()) / (hops.sum() or 1.0)
        return np.asarray(time + hops * (1.0 - hidden))

    def sync_seconds(
        self, s: Place, virtual_stages: Spans, c: Place, pace: FloatArray | float
    ) -> FloatArray:
        """Return gradient synchronisation and optimizer step of stages.

        What hides depends on the ``pace``, seconds from one micro-batch to the next.
        """
        within, free, hops, ahead, sync_s, once, renewed = self.totals(s, virtual_stages, c)
        behind = np.maximum(0.0, pace - (within - free) - hops - ahead)
        hidden = np.minimum(once - renewed, behind) + np.minimum(renewed, ahead)
        return cast(FloatArray, sync_s - self.once_saved * hidden)


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """What follows from a table alone: prefix sums as of `StageCosts`, and its boundaries.

    ``sizes`` are the different ones, ``which`` says which of them a boundary has.
    """

    table: LayerTable
    kept: FloatArray
    forward: FloatArray
    computed: FloatArray
    sizes: FloatArray
    which: IntArray

    def size_bytes(self) -> int:
        """Return what they and the table take in memory, about."""
        return self.table.size_bytes() + 3 * self.kept.nbytes


@kept_within(4096, KEPT_BYTES, _Sums.size_bytes)
def _sums(table: LayerTable) -> _Sums:
    sizes, which = np.unique(table.boundary_bytes, return_inverse=True)
    computed = prefix(table.compute_s + table.replay_s)
    kept_bytes, forward = prefix(table.kept_bytes), prefix(table.forward_s)
    return _Sums(table, kept_bytes, forward, computed, sizes, which)


def stage_memory(problem: Problem, point: Point) -> StageMemory:
    """Return what all stages of a point hold; no link is asked."""
    table = problem.table(point.tp, point.sp, point.micro_batch, point.cp, point.ep, point.etp)
    return StageMemory(**_memory(problem, point, table))


def _memory(problem: Problem, point: Point, table: LayerTable) -> dict[str, Any]:
    """Fields of `StageMemory`."""
    state, zero = problem.state, problem.acting_zero(point)
    dense, experts = held(table, point), table.expert_parameters
    m, is_paired = point.micro_batches(problem.batch), pairs_passes(problem, point)
    ranks, expert_ranks = point.shard_ranks, point.expert_shard_ranks
    return {
        "point": point,
        "micro_batches": m,
        "static": prefix(
            dense * sum(state_shares(zero, ranks, state))
            + experts * sum(state_shares(zero, expert_ranks, state))
        ),
        "kept": _sums(table).kept,
        "peak": peak_bytes(problem, point, table),
        "step": prefix(
            dense * step_share(zero, ranks, state) + experts * step_share(zero, expert_ranks, state)
        ),
        "in_flight": in_flight(point, m),
        "deferred": deferred(point, m),
        "is_paired": is_paired,
        "limit": problem.room(point),
        "heads": problem.heads,
        "chunks": problem.chunks,
        "again": problem.again,
    }


def stage_costs(
    problem: Problem, point: Point, shared: PlanLinks, layers: LayerSeconds | None = None
) -> StageCosts:
    """All stages of a point, in O(pp * L) memory.

    Parameters
    ----------
    layers : LayerSeconds, optional
        What `layer_seconds` answers, where it was asked already.
    """
    table = problem.table(point.tp, point.sp, point.micro_batch, point.cp, point.ep, point.etp)
    memory, sums = _memory(problem, point, table), _sums(table)
    layers = layers or layer_seconds(problem, point, shared, table)
    arrive, retire = hop_seconds(point, shared, table)
    once, renewed = _once(problem, point, shared, table)
    return StageCosts(
        **memory,
        time=prefix(layers.total),
        free=prefix(layers.free),
        ahead=prefix(layers.ahead),
        forward=sums.forward,
        computed=sums.computed,
        weights=prefix((point.schedule in SPLIT) * table.weight_s),
        spared=prefix(deferral(point, memory["micro_batches"]) * table.weight_s),
        arrive=arrive,
        retire=retire,
        opening=np.pad(layers.opening, ((0, 0), (0, 1))),
        turning=np.pad(layers.turning, ((0, 0), (1, 0))),
        transfer_saved=problem.overlap.transfer * hides_transfers(point),
        sync=prefix(once + update_layers(problem, point, table)),
        sync_base=_tied(problem, point, shared, table),
        once=prefix(once),
        renewed=prefix(renewed),
        # W comes last where it is delayed, and leaves nothing to hide behind.
        once_saved=0.0 if point.schedule in SPLIT else problem.overlap.data,
    )


def peak_bytes(problem: Problem, point: Point, table: LayerTable) -> FloatArray:
    """Bytes that live only while a layer runs, shape (R, L).

    Where passes are paired, what the forward pass keeps of a layer stands beside what the backward
    pass has not freed yet of its own; head and loss run between pairs.
    """
    peak = table.working_bytes + whole_bytes(problem, point, table)
    if pairs_passes(problem, point) and not point.is_v_shaped:
        peak[:, :-1] += table.kept_bytes[:, :-1]
    return peak


def hop_seconds(
    point: Point, shared: PlanLinks, table: LayerTable
) -> tuple[FloatArray, FloatArray]:
    """Seconds of the transfers into a virtual stage, by its first layer and by its end.

    Tensor-parallel ranks that hold the same tensor send a part each and gather it again on
    arrival (Narayanan et al. 2021, SC, section 4.1).
    """
    arrive = np.zeros((point.pp, table.layers + 1))
    retire = np.zeros((point.pp, table.layers + 1))
    alike = point.tp > 1 and not point.sp  # every rank of a stage holds the whole tensor
    sizes, which = (sums := _sums(table)).sizes, sums.which
    shard_bytes = sizes / point.tp if alike else sizes
    hop = shared.forward.along(1).seconds(shard_bytes * shared.hop_ranks)[:, which]
    gather = np.zeros((point.pp, table.layers + 1))
    if alike:
        gathered = shared.time("tp", "reduce_scatter").along(1).seconds(sizes)
        gather = np.where(sizes > 0, gathered, 0.0)[:, which]
    arrive[1:] = hop[1:] + gather[1:]
    retire[:-1] = hop[1:] + gather[:-1]
    if point.around:  # the last stage feeds the first, but at the ends of the chain
        arrive[0, 1:] = hop[0, 1:] + gather[0, 1:]
        retire[-1, :-1] = hop[0, :-1] + gather[-1, :-1]
    return arrive, retire


def _once(
    problem: Problem, point: Point, shared: PlanLinks, table: LayerTable
) -> tuple[FloatArray, FloatArray]:
    """Seconds of what data-parallel ranks send once per iteration, and of it those that gather new
    weights, shape (pp, L) each.
    """
    zero = problem.acting_zero(point)
    sends, between = traffic(zero, problem.state), point.instances > 1
    if not (sends.sync or between) or not point.shared:
        return np.zeros((point.pp, table.layers)), np.zeros((point.pp, table.layers))
    table, times = condensed(table)
    once = sharded_seconds(point, shared, table, sends.sync)
    renewed = sharded_seconds(point, shared, table, sends.sync[-1:] if zero in (1, 2) else ())
    if between:
        once = once + sharded_seconds(point, shared, table, sends.between, between=True)
    return np.repeat(once, times, axis=1), np.repeat(renewed, times, axis=1)


def _tied(problem: Problem, point: Point, shared: PlanLinks, table: LayerTable) -> FloatArray:
    """Seconds in which the ends of a pipeline synchronise their copies, shape (pp,)."""
    base = np.zeros(point.pp)
    if point.ends_apart and table.tied_parameters:
        size = table.tied_parameters * shared.tied_share * problem.state.gradients
        base[[0, -1]] = 2 * shared.time("tied", "all_reduce").seconds(size)[0]
    return base


def update_layers(problem: Problem, point: Point, table: LayerTable) -> FloatArray:
    """Seconds of the optimizer step, layer by layer."""
    dense = update_seconds(problem, problem.acting_zero(point), point.shard_ranks)
    experts = update_seconds(problem, problem.acting_zero(point), point.expert_shard_ranks)
    return dense * held(table, point) + experts * table.expert_parameters
