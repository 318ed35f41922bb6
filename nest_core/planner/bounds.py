"""Lower bounds of outer points: what no plan of them can be faster than.

Every bound is admissible: it ignores contention, tied copies and the granularity of layers, so no
plan of the point beats it (``docs/method.md``, "The program"). Bounds of many points are computed
at once, from `Ledger` entries: what one micro-batch of a family takes at best-case communication.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from nest_core.costs.overlap import cost
from nest_core.costs.problem import Calls, LayerTable, Problem
from nest_core.costs.zero import traffic, update_seconds
from nest_core.network import Network
from nest_core.network.wires import BoolArray, FloatArray, IntArray
from nest_core.planner.space import Families, SearchSpace

__all__ = [
    "Bounds",
    "Case",
    "Ledger",
    "best_case",
    "beyond_blocks",
    "bounds",
    "hop_seconds",
    "ledger",
    "untied",
]


@dataclass(frozen=True, slots=True, eq=False)
class Ledger:
    """What layers take and hold at best-case communication, entry by entry.

    Attributes
    ----------
    within, tallest : (entries,)
        Seconds of all layers, and of the longest, under the lightest recomputation.
    boundary : (entries,)
        Least bytes that a rank sends to the next stage.
    dense, experts : (entries,)
        Elements in all; ``largest`` the most dense ones of a layer.
    slope, slope_dense, slope_experts : (entries,)
        Of a second that ZeRO adds to a layer's device so much shows at least: the least of all
        layers, and weighted by elements.
    busy, backward : (entries,)
        Seconds of compute that communication can hide behind.
    """

    within: FloatArray
    tallest: FloatArray
    boundary: FloatArray
    dense: FloatArray
    experts: FloatArray
    largest: FloatArray
    slope: FloatArray
    slope_dense: FloatArray
    slope_experts: FloatArray
    busy: FloatArray
    backward: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A family's table at one or more multiples of its seconds and bytes, at its best.

    Parameters
    ----------
    family : int
    table : LayerTable
    scale : (n,)
        Multiples: 1 for the table of a micro-batch itself, its sequences for a table of floors.
    seconds, slope : (n, 3, L)
        See `best_case`.
    """

    family: int
    table: LayerTable
    scale: FloatArray
    seconds: FloatArray
    slope: FloatArray


def ledger(
    families: Families,
    cases: Iterable[Case],
    allowed: IntArray,
    *,
    exact: bool = True,
) -> Ledger:
    """Entries of cases, one for each of their multiples.

    Parameters
    ----------
    allowed : (choices,)
        Rows of `RECOMPUTE` that may be used.
    exact : bool
        Whether tables are those of micro-batches; under floors there may be more to hide behind.
    """
    parts: list[list[FloatArray]] = []
    for case in cases:
        table, scale = case.table, case.scale
        tp, sp = int(families.tp[case.family]), bool(families.sp[case.family])
        lightest = case.seconds[:, allowed].min(axis=1)
        slope = case.slope[:, allowed].min(axis=1)
        dense = untied(table)
        share = tp if tp > 1 and not sp else 1  # ranks that hold the same send a part each
        busy = (table.compute_s + table.replay_s.max(axis=0)).sum() if exact else np.inf
        backward = (table.compute_s - table.forward_s).sum() if exact else np.inf
        ones = np.ones(len(scale))
        parts.append([
            lightest.sum(axis=1),
            lightest.max(axis=1),
            scale * _smallest_boundary(table) / share,
            dense.sum() * ones,
            table.expert_parameters.sum() * ones,
            dense.max() * ones,
            slope.min(axis=1),
            slope @ dense,
            slope @ table.expert_parameters,
            busy * scale,
            backward * scale,
        ])  # fmt: skip
    return Ledger(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def untied(table: LayerTable) -> FloatArray:
    """Dense elements per layer without the last layer's tied copy, shape (L,)."""
    dense = table.parameters.copy()
    dense[-1] -= table.tied_parameters
    return dense


def best_case(
    problem: Problem,
    space: SearchSpace,
    families: Families,
    family: int,
    table: LayerTable,
    scale: FloatArray,
) -> Case:
    """Seconds of every layer at best-case communication, and their slope.

    The slope is 1 where the device takes longer than its host: what more it does then shows.
    """
    compute = table.compute_s + table.replay_s
    inside = np.zeros((len(scale), *compute.shape))
    for axis, calls in table.calls.items():
        n = int(getattr(families, axis)[family])
        if n > 1:
            stride = 1 if axis == "tp" else int(families.tp[family])
            for number, total in (
                (calls.number, calls.bytes),
                (calls.replay_number, calls.replay_bytes),
            ):
                each = np.divide(total, number, out=np.zeros_like(total), where=number > 0)
                size = each * scale[:, None, None]
                least = _call(problem, space, axis, calls, n, stride, size)
                inside = inside + number * least
    compute = compute * scale[:, None, None]
    device = compute + cost(inside, compute, problem.overlap.within)
    slope = (device >= table.launch_s).astype(np.float64)
    return Case(family, table, scale, np.maximum(device, table.launch_s), slope)


def _call(
    problem: Problem,
    space: SearchSpace,
    axis: str,
    calls: Calls,
    n: int,
    stride: int,
    size: FloatArray,
) -> FloatArray:
    """The least seconds of one call among ``n`` ranks at least ``stride`` apart, by bytes.

    Each rank sends ``1 - 1/n`` of the buffer through a port, in an all-to-all through all it has,
    from which no protocol gets more than its reach; halves of tensor parallelism also take the
    least of their regimes. What belongs outside a node or leaf leaves it: of every group that has
    ``g`` members there ``1 - g/n`` of the buffer, in an all-to-all of every member's.
    """
    network, software = problem.network, problem.software
    latency, share = network.wires.least_latency_s, 1.0 - 1.0 / n
    if axis == "tp":
        node = network.devices if network.torus is not None else network.node_size
        may = (not node or n <= node, network.torus is None and len(network.nesting) > 1)
        lines = software.least(
            "all_reduce" if calls.kind == "reduce" else "reduce_scatter", n, may, latency,
            meshed=network.meshed_nodes,
        )  # fmt: skip
        each = share * size / network.wires.port_Bps
        found = np.min([starts + each / reach for starts, reach in lines], axis=0)
    else:
        ports = _ports(problem.network) if calls.kind == "all_to_all" else 1
        found = latency + share * size / (ports * _port(problem))
    if network.torus is None and set(space.device_orders) == {"natural"}:
        if calls.kind == "ring" and n * stride > network.node_size:  # a neighbour is outside
            found = np.maximum(found, share * size * _alone_outside(problem))
        for block, way_out in network.exits:
            together = -(-block // stride)
            if n > together and n * stride >= block:
                senders = block if calls.kind == "all_to_all" else block / together
                out = senders * (1 - together / n) / (way_out * software.reach_outside)
                found = np.maximum(found, out * size)
    return np.asarray(found)


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """``seconds <= iteration``, ``total <= sum(t_s)``, ``sync <= max(e_s)``; shape (points,)."""

    seconds: FloatArray
    total: FloatArray
    sync: FloatArray


def bounds(
    problem: Problem,
    entries: Ledger,
    entry: IntArray,
    dp: IntArray,
    cp: IntArray,
    ep: IntArray,
    pp: IntArray,
    micro_batches: IntArray,
    zero: IntArray,
    interleave: IntArray,
    chunks: IntArray,
    hop: FloatArray,
    beyond: tuple[FloatArray, FloatArray],
) -> Bounds:
    """Bound many points at once; all columns have shape (points,).

    Parameters
    ----------
    entry : index into ``entries``
    chunks : the fewest that the chain is cut into
    hop : seconds of a pipeline transfer at least; see `hop_seconds`
    beyond : seconds per byte that halves of dense and of expert gradients take at least to leave
        their blocks; see `beyond_blocks`

    Notes
    -----
    A reduce-scatter among ``n`` ranks takes at least ``(1 - 1/n)`` of the buffer over all that
    one device can send through at once. Of a second sent ``1 - saved`` shows at least, whatever
    the cover; of all layers' traffic all but what their cover in all can save. The longer of
    device and host is convex in what the device does, so its slope at the least bounds what more
    of it adds.
    """
    state, saved, port = problem.state, problem.overlap.data, _port(problem)
    sharers = dp * cp
    owners = sharers // ep
    spread = np.maximum((1.0 - 1.0 / sharers) / port, beyond[0])
    spread_experts = np.maximum((1.0 - 1.0 / owners) / port, beyond[1])
    sends = [traffic(stage, state) for stage in range(4)]
    each = np.array([sum(found.step) for found in sends])[zero]
    once = np.array([sum(found.sync) for found in sends])[zero]
    dense, experts = entries.dense[entry], entries.experts[entry]

    total = entries.within[entry]
    total = total + 2 * (1.0 - problem.overlap.transfer) * (chunks - 1) * hop
    if each.any():
        weighed = spread * entries.slope_dense[entry]
        weighed = weighed + spread_experts * entries.slope_experts[entry]
        sent = each * (spread * dense + spread_experts * experts)
        total = total + np.maximum(
            (1.0 - saved) * each * weighed,
            entries.slope[entry] * cost(sent, entries.busy[entry], saved),
        )
    bottleneck = np.maximum(total / pp, entries.tallest[entry])

    update = update_seconds(problem, 0, 1)
    shard = np.where(zero >= 1, sharers, 1)
    shard_experts = np.where(zero >= 1, owners, 1)
    sent = once * (spread * dense + spread_experts * experts)
    shown = cost(sent, entries.backward[entry], saved)
    shown = shown + update * (dense / shard + experts / shard_experts)
    alone = ((1.0 - saved) * once * spread + update / shard) * entries.largest[entry]
    sync = np.maximum(shown / pp, alone)
    seconds = total / interleave + (micro_batches - 1.0 / interleave) * bottleneck + sync
    return Bounds(seconds, total, sync)


def beyond_blocks(
    problem: Problem,
    tp: IntArray,
    cp: IntArray,
    ep: IntArray,
    dp: IntArray,
    pp: IntArray,
    outer: BoolArray,
    natural: BoolArray,
) -> tuple[FloatArray, FloatArray]:
    """Seconds per byte that halves among the sharers of weights take to leave their blocks.

    Of dense weights all ``dp * cp`` ranks, of experts every ``ep``-th. A node, or a leaf, whose
    devices all work sends, for each of its groups, the sums of all shards that belong elsewhere:
    ``1 - g/n`` of the buffer where ``g`` of the group's ``n`` members sit in it, and it holds at
    least ``block / g`` groups. Context-parallel neighbours are ``tp`` apart, in runs as far apart
    as replicas are.
    """
    network = problem.network
    dense, experts = np.zeros(len(tp)), np.zeros(len(tp))
    if network.torus is not None:
        return dense, experts
    ranks = dp * cp
    period = tp * cp * np.where(outer, pp, 1)
    for block, way_out in network.exits:
        rate = way_out * problem.software.reach_outside
        full = tp * ranks * pp >= block
        run = np.minimum(cp, -(-block // tp))
        together = np.where(block <= period, run, -(-block // period) * cp)
        together = np.where(natural, together, np.minimum(block, ranks))
        out = (1 - together / ranks) * block / (together * rate)
        dense = np.maximum(dense, np.where(full & (ranks > together), out, 0.0))
        owners = ranks // ep
        together = np.where(ep <= cp, -(-run // ep), 1)
        together = np.where(
            block <= period, together,
            np.where(ep <= cp, -(-block // period) * -(-cp // ep),
                     -(-block // (period * np.maximum(ep // cp, 1)))),
        )  # fmt: skip
        together = np.where(natural, together, np.minimum(block, owners))
        out = (1 - together / owners) * block / (together * rate)
        experts = np.maximum(experts, np.where(full & (owners > together), out, 0.0))
    return dense, experts


def hop_seconds(
    problem: Problem, boundary: FloatArray, apart: IntArray, natural: BoolArray
) -> FloatArray:
    """Seconds that a pipeline transfer takes at least, shape (points,).

    ``apart`` ranks of a stage sit side by side: where they fill whole nodes, or leaves, every
    transfer leaves its own, and all of its devices send at once.
    """
    network = problem.network
    per_byte = np.full(len(apart), 1.0 / _port(problem))
    if network.torus is None:
        node = network.node_size
        if node:
            far = natural & (apart % node == 0)
            per_byte = np.where(far, np.maximum(per_byte, _alone_outside(problem)), per_byte)
        for block, way_out in network.exits:
            whole = natural & (apart % block == 0)
            out = block / (way_out * problem.software.reach_outside)
            per_byte = np.where(whole, np.maximum(per_byte, out), per_byte)
    return np.asarray(network.wires.least_latency_s + boundary * per_byte)


def _alone_outside(problem: Problem) -> float:
    """Seconds per byte that a flow takes at least where it leaves its node; 0 if none can."""
    wires = problem.network.wires
    lanes = wires.lane_Bps[wires.outside]
    if not len(lanes):
        return 0.0
    return float(1.0 / (lanes.max() * problem.software.reach_outside))


def _port(problem: Problem) -> float:
    """Bytes per second that one device gets through at most; infinite with one device."""
    return (problem.network.wires.port_Bps or float("inf")) * problem.software.reach


def _ports(network: Network) -> int:
    """How many ports as wide as its widest a device may send through at once."""
    return 1 if network.torus is not None else max(2, len(network.nesting))


def _smallest_boundary(table: LayerTable) -> float:
    inner = table.boundary_bytes[1:-1]
    return float(inner.min()) if inner.size else 0.0
