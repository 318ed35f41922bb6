"""What every possible stage of an outer point costs.

For a point (degrees, micro-batch, ZeRO, order) the time, synchronisation and memory of a stage
follow from its position ``s`` and its layers ``i..j-1`` alone, and all of it is differences of
prefix sums. `StageCosts` holds those; the planner's program and `nest_core.costs.price` both
read it. Equations: ``docs/method.md``, "Time" and "Memory".

Declared rules that make this separable
---------------------------------------
* A position is priced at its slowest replica, collective by collective.
* All flows of one traffic class run at once and share links; different classes follow one
  another (nothing overlaps: the default, named on screen).
* Other stages' flows carry this stage's bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nest_core.costs.plan import Point
from nest_core.costs.problem import LayerTable, Problem, StateBytes, prefix
from nest_core.layout import seats
from nest_core.network import MessageTime, Network, transfers
from nest_core.network.traffic import collectives_by
from nest_core.network.wires import FloatArray, IntArray

__all__ = ["Links", "StageCosts", "Traffic", "links", "stage_costs", "state_shares", "traffic"]


@dataclass(frozen=True, slots=True, eq=False)
class Halves:
    """Half an all-reduce, and a reduce-scatter or all-gather that stands alone."""

    reduce: MessageTime
    alone: MessageTime


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """Times of each traffic class, a member for each stage position (one for ``tied``).

    ``forward[s]`` prices the link from stage ``s - 1`` to ``s`` (zero at ``s = 0``), in either
    direction; ``tied`` the pair of first and last stage.
    """

    tensor: Halves
    data: Halves
    forward: MessageTime
    tied: MessageTime
    producer_level: IntArray


def links(problem: Problem, point: Point) -> Links:
    """Count who shares which link under a point's layout."""
    network, software = problem.network, problem.software
    devices = seats(network, point.layout, point.device_order)
    pp, dp, tp = devices.shape
    tensor = devices.reshape(pp * dp, tp)
    data = devices.transpose(0, 2, 1).reshape(pp * tp, dp)

    def halves(groups: IntArray, team: IntArray) -> Halves:
        nodes, meshed = _nodes(network, groups), network.meshed_nodes
        libraries = [
            software.halves(op, groups.shape[1], nodes, meshed=meshed)
            for op in ("all_reduce", "reduce_scatter")
        ]
        return Halves(*collectives_by(network, groups, libraries, team))

    by_tensor = halves(tensor, np.repeat(np.arange(pp), dp))
    by_data = halves(data, np.repeat(np.arange(pp), tp))
    producer = np.full(pp, -1, dtype=np.int64)
    if pp == 1:
        nothing = MessageTime.nothing(1)
        return Links(by_tensor, by_data, nothing, nothing, producer)
    source = devices[:-1].reshape(-1)
    target = devices[1:].reshape(-1)
    receiver = np.repeat(np.arange(1, pp), dp * tp)
    outside = _nodes(network, np.stack([source, target], axis=1)) > 1
    sending = software.transfers(outside, meshed=network.meshed_nodes)
    forward = transfers(network, source, target, sending, receiver)
    np.maximum.at(producer, receiver, network.level(source, target))
    ends = np.stack([devices[0].reshape(-1), devices[-1].reshape(-1)], axis=1)
    tied = halves(ends, np.zeros(dp * tp, dtype=np.int64)).reduce
    return Links(by_tensor, by_data, forward, tied, producer)


def _nodes(network: Network, groups: IntArray) -> int:
    """The most nodes that any of the groups spans; a torus has no nodes to leave."""
    if network.torus is not None:
        return 1
    node = np.sort(network.nesting[0][groups], axis=1)
    return int((node[:, 1:] != node[:, :-1]).sum(axis=1).max(initial=0)) + 1


@dataclass(frozen=True, slots=True)
class Traffic:
    """Data-parallel traffic of ZeRO (Rajbhandari et al. 2020, section 7).

    Bytes per parameter of every half (reduce-scatter or all-gather): ``step`` once per
    micro-batch and layer, ``sync`` once per iteration and layer.
    """

    step: tuple[float, ...]
    sync: tuple[float, ...]


def traffic(zero: int, state: StateBytes) -> Traffic:
    """What a ZeRO stage sends: all-reduce at 0, and from 1 on reduce-scatter and all-gather.

    Stage 2 keeps no full gradient between micro-batches, so it reduces after each; stage 3
    also gathers the weights before the forward and the backward pass.
    """
    if zero == 0:
        return Traffic((), (state.gradients, state.gradients))
    if zero == 1:
        return Traffic((), (state.gradients, state.weights))
    if zero == 2:
        return Traffic((state.gradients,), (state.weights,))
    return Traffic((state.gradients, state.weights, state.weights), ())


def state_shares(zero: int, dp: int, state: StateBytes) -> tuple[float, float, float]:
    """Bytes per parameter of weights, gradients and optimizer states on one rank."""
    return (
        state.weights / (dp if zero >= 3 else 1),
        state.gradients / (dp if zero >= 2 else 1),
        state.optimizer / (dp if zero >= 1 else 1),
    )


def update_seconds(problem: Problem, zero: int, dp: int) -> float:
    """Optimizer step per parameter: reads and writes states, reads gradients, writes weights."""
    state = problem.state
    touched = 2 * state.optimizer + state.gradients + state.weights
    return touched / problem.update_Bps / (dp if zero >= 1 else 1)


def gathered_bytes(zero: int, state: StateBytes) -> float:
    """Bytes per parameter of the one layer that ZeRO 2 and 3 hold whole at a time."""
    return {2: state.gradients, 3: state.gradients + state.weights}.get(zero, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class StageCosts:
    """Prefix sums over ``L`` layers for every position of a point; rows of 3: `RECOMPUTE`.

    Attributes
    ----------
    micro_batches : int
    time : (pp, 3, L + 1)
        Seconds per micro-batch without pipeline transfers.
    arrive, retire : (pp, L + 1)
        Seconds to receive activations where a stage starts at ``i``, gradients where it ends
        at ``j``.
    sync : (pp, L + 1) and sync_base : (pp,)
        Gradient synchronisation and optimizer step, once per iteration.
    static : (L + 1,)
        Bytes of weights, gradients and optimizer states, reserve excluded.
    kept : (3, L + 1)
        Bytes kept per micro-batch in flight.
    peak : (3, L)
        Bytes that live only while a layer runs; the largest of a stage counts.
    in_flight : (pp,)
        Micro-batches whose activations a position holds (1F1B).
    limit : float
        Bytes for all of this.
    """

    micro_batches: int
    time: FloatArray
    arrive: FloatArray
    retire: FloatArray
    sync: FloatArray
    sync_base: FloatArray
    static: FloatArray
    kept: FloatArray
    peak: FloatArray
    in_flight: FloatArray
    limit: float

    def load(self, s: int, i: int, j: int, c: int) -> float:
        """Seconds per micro-batch of a stage: layers ``i..j-1`` at position ``s``, choice ``c``."""
        within = self.time[s, c, j] - self.time[s, c, i]
        return float(within + self.arrive[s, i] + self.retire[s, j])

    def sync_seconds(self, s: int, i: int, j: int) -> float:
        """Gradient synchronisation and optimizer step of that stage."""
        return float(self.sync[s, j] - self.sync[s, i] + self.sync_base[s])

    def used(self, s: int, i: int, j: int, c: int) -> float:
        """Bytes of that stage, reserve excluded."""
        kept = self.in_flight[s] * (self.kept[c, j] - self.kept[c, i])
        return float(self.static[j] - self.static[i] + kept + self.peak[c, i:j].max())


def stage_costs(problem: Problem, point: Point, shared: Links) -> StageCosts:
    """All stages of a point, in O(pp * L) memory."""
    table = problem.table(point.tp, point.sp, point.micro_batch)
    state = problem.state
    sends = traffic(point.zero, state)
    pp, dp = point.pp, point.dp
    held = _parameters(table, pp)
    tensor = (shared.tensor.alone if point.sp else shared.tensor.reduce).along(2)
    data = shared.data.alone if point.zero else shared.data.reduce
    per_layer = (
        table.compute_s
        + table.replay_s
        + _halves(tensor, table.tp_halves, table.tp_bytes)
        + _halves(tensor, table.tp_replay_halves, table.tp_replay_bytes)
    )
    if dp > 1:
        per_layer = per_layer + _reduced(data, sends.step, held)[:, None, :]
    hop = shared.forward.along(1).seconds(table.boundary_bytes)
    arrive = np.zeros((pp, table.layers + 1))
    retire = np.zeros((pp, table.layers + 1))
    arrive[1:] = hop[1:]
    retire[:-1] = hop[1:]
    sync, base = _sync(problem, point, shared, table, held)
    kept_in_flight = np.minimum(point.micro_batches(problem.batch), pp - np.arange(pp))
    return StageCosts(
        micro_batches=point.micro_batches(problem.batch),
        time=prefix(per_layer),
        arrive=arrive,
        retire=retire,
        sync=sync,
        sync_base=base,
        static=prefix(held) * sum(state_shares(point.zero, dp, state)),
        kept=prefix(table.kept_bytes),
        peak=table.working_bytes
        + (gathered_bytes(point.zero, state) if dp > 1 else 0.0) * table.parameters,
        in_flight=kept_in_flight.astype(np.float64),
        limit=problem.memory_bytes - problem.reserved_bytes,
    )


def _halves(time: MessageTime, halves: FloatArray, size: FloatArray) -> FloatArray:
    """Seconds of ``halves`` equal messages with ``size`` bytes in all."""
    return halves * time.seconds(size / np.maximum(halves, 1.0))


def _reduced(time: MessageTime, per_parameter: tuple[float, ...], held: FloatArray) -> FloatArray:
    """Seconds of the data-parallel halves of every layer, shape (pp, L)."""
    seconds = np.zeros((time.alpha_s.shape[1], len(held)))
    for size in per_parameter:
        seconds += time.along(1).seconds(size * held)
    return np.where(held > 0, seconds, 0.0)


def _parameters(table: LayerTable, pp: int) -> FloatArray:
    """Elements per layer; a tied copy is the embedding itself where one stage holds both."""
    held = table.parameters.copy()
    if pp == 1:
        held[-1] -= table.tied_parameters
    return held


def _sync(
    problem: Problem, point: Point, shared: Links, table: LayerTable, held: FloatArray
) -> tuple[FloatArray, FloatArray]:
    state, dp = problem.state, point.dp
    data = shared.data.alone if point.zero else shared.data.reduce
    layers = np.tile(update_seconds(problem, point.zero, dp) * held, (point.pp, 1))
    base = np.zeros(point.pp)
    if dp > 1:
        layers = layers + _reduced(data, traffic(point.zero, state).sync, held)
    if point.pp > 1 and table.tied_parameters:
        copy = 2 * shared.tied.seconds(table.tied_parameters * state.gradients)[0]
        base[0] += copy
        base[-1] += copy
    return prefix(layers), base
