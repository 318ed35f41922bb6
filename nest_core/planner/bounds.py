"""Lower bounds of outer points: what no plan of them can be faster than.

Every bound is admissible: it ignores contention, tied copies and the granularity of layers, so no
plan of the point beats it (``docs/method.md``, "The program"). Bounds of many points are computed
at once, from `Ledger` entries: what one micro-batch of a family takes at best-case communication.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from nest_core.compiled import compiled
from nest_core.costs.overlap import cost
from nest_core.costs.problem import Calls, LayerTable, Problem, condensed
from nest_core.costs.zero import traffic, update_seconds
from nest_core.network import Network
from nest_core.network.wires import BoolArray, FloatArray, IntArray
from nest_core.planner.lookup import each
from nest_core.planner.relaxed import Hops
from nest_core.planner.space import Families, SearchSpace

__all__ = [
    "Bounds",
    "Case",
    "Ledger",
    "Starts",
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
    count : (entries, runs)
        Layers of every run of equal ones; 0 fills up.
    dense, experts : (entries, runs)
        Elements of one layer.
    device, cover : (entries, runs, choices)
        Seconds of one layer without its host and without data-parallel traffic, and those of
        compute that such traffic can hide behind.
    host : (entries, runs, choices)
        Seconds of its launches.
    backward : (entries, runs)
        Seconds of compute in its backward pass.
    """

    within: FloatArray
    tallest: FloatArray
    boundary: FloatArray
    count: FloatArray
    dense: FloatArray
    experts: FloatArray
    device: FloatArray
    cover: FloatArray
    host: FloatArray
    backward: FloatArray

    @classmethod
    def joined(cls, parts: Sequence[Ledger]) -> Ledger:
        """Entries of several, one after another."""
        runs = max(part.count.shape[1] for part in parts)

        def filled(values: FloatArray) -> FloatArray:
            if values.ndim == 1 or values.shape[1] == runs:
                return values
            room = [(0, 0), (0, runs - values.shape[1]), *[(0, 0)] * (values.ndim - 2)]
            return np.pad(values, room)

        return cls(
            *(
                np.ascontiguousarray(
                    np.concatenate([filled(getattr(part, field.name)) for part in parts])
                )
                for field in fields(cls)
            )
        )


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A family's table at one or more multiples of its seconds and bytes, at its best.

    Parameters
    ----------
    family : int
    table : LayerTable
    scale : (n,)
        Multiples: 1 for the table of a micro-batch itself, its sequences for a table of floors.
    device, seconds : (n, 3, L)
        See `best_case`.
    """

    family: int
    table: LayerTable
    scale: FloatArray
    device: FloatArray
    seconds: FloatArray


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
    return Ledger.joined([_entries(families, case, allowed, exact=exact) for case in cases])


def _entries(families: Families, case: Case, allowed: IntArray, *, exact: bool) -> Ledger:
    table, times = condensed(case.table)
    first = np.cumsum(times) - times
    scale, n = case.scale, len(case.scale)
    tp, sp = int(families.tp[case.family]), bool(families.sp[case.family])
    lightest = case.seconds[:, allowed].min(axis=1)
    share = tp if tp > 1 and not sp else 1  # ranks that hold the same send a part each

    def every(values: FloatArray) -> FloatArray:
        return np.broadcast_to(values, (n, *values.shape))

    def scaled(values: FloatArray) -> FloatArray:
        return values * scale.reshape(-1, *(1,) * values.ndim) if exact else every(values + np.inf)

    return Ledger(
        within=lightest.sum(axis=1),
        tallest=lightest.max(axis=1),
        boundary=scale * _smallest_boundary(case.table) / share,
        count=every(times.astype(np.float64)),
        dense=every(untied(table)),
        experts=every(table.expert_parameters),
        device=case.device[:, allowed][:, :, first].transpose(0, 2, 1),
        cover=scaled((table.compute_s + table.replay_s[allowed]).T),
        host=every(table.launch_s[allowed].T),
        backward=scaled(table.compute_s - table.forward_s),
    )


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
    """Seconds of every layer at best-case communication: its device's, and with its host."""
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
    return Case(family, table, scale, device, np.maximum(device, table.launch_s))


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
        lines = _lines(problem, "all_reduce" if calls.kind == "reduce" else "reduce_scatter", n)
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


def _lines(problem: Problem, op: str, n: int) -> tuple[tuple[float, float], ...]:
    """Lines that no half of a collective among ``n`` devices comes under; `Software.least`."""
    network = problem.network
    node = 0 if network.torus is not None else network.node_size
    return problem.software.least(
        op, n, -(-n // node) if node else 1, network.wires.least_latency_s,
        spans=network.torus is None and len(network.nesting) > 1, meshed=network.meshed_nodes,
    )  # fmt: skip


class Starts:
    """Seconds before the first byte of a half among so many ranks at least, each looked up once."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._found: dict[int, float] = {}

    def of(self, zero: IntArray, ranks: IntArray) -> FloatArray:
        """Of points, shape (points,)."""
        return each(2 * ranks + (zero > 0), self._of_kind)

    def _of_kind(self, kind: int) -> float:
        if kind not in self._found:
            op = "reduce_scatter" if kind % 2 else "all_reduce"
            lines = _lines(self._problem, op, kind // 2) if kind > 3 else ((0.0, 1.0),)
            self._found[kind] = min(start for start, _ in lines)
        return self._found[kind]


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """``seconds <= iteration``, ``total <= sum(t_s)``, ``sync <= max(e_s)``; shape (points,)."""

    seconds: FloatArray
    total: FloatArray
    sync: FloatArray

    def chosen(self, which: IntArray | BoolArray | slice) -> Bounds:
        """Those of some points."""
        return Bounds(self.seconds[which], self.total[which], self.sync[which])


def bounds(
    problem: Problem,
    starts: Starts,
    entries: Ledger,
    entry: IntArray,
    dp: IntArray,
    cp: IntArray,
    ep: IntArray,
    pp: IntArray,
    micro_batches: IntArray,
    zero: IntArray,
    interleave: IntArray,
    transfers: FloatArray,
    beyond: tuple[FloatArray, FloatArray],
) -> Bounds:
    """Bound many points at once; all columns have shape (points,).

    Parameters
    ----------
    entry : index into ``entries``
    transfers : seconds that one micro-batch is on its way between stages at least
    beyond : seconds per byte that halves of dense and of expert gradients take at least to leave
        their blocks; see `beyond_blocks`

    Notes
    -----
    A reduce-scatter among ``n`` ranks takes at least the latency of its fewest steps, and
    ``(1 - 1/n)`` of the buffer over all that one device can send through at once.
    """
    state, port = problem.state, _port(problem)
    sharers = dp * cp
    owners = sharers // ep
    spread = np.maximum((1.0 - 1.0 / sharers) / port, beyond[0])
    spread_experts = np.maximum((1.0 - 1.0 / owners) / port, beyond[1])
    first = starts.of(zero, sharers)
    first_experts = np.where(ep > 1, starts.of(zero, owners), 0.0)
    sends = [traffic(stage, state) for stage in range(4)]
    shard, shard_experts = (np.where(zero >= 1, ranks, 1) for ranks in (sharers, owners))
    update = update_seconds(problem, 0, 1)
    books = (entries.count, entries.dense, entries.experts)

    total, tallest = entries.within[entry], entries.tallest[entry]
    each = np.array([sum(found.step) for found in sends])[zero]
    often = (each > 0) & (sharers > 1)
    if often.any():
        nothing = np.zeros(int(often.sum()))
        number = np.array([float(len(found.step)) for found in sends])[zero]
        total, tallest = total.copy(), tallest.copy()
        total[often], tallest[often] = _loaded(
            *books, entries.device, entries.cover, entries.host, problem.overlap.data,
            entry[often], (number * first)[often], (number * first_experts)[often],
            (each * spread)[often], (each * spread_experts)[often], nothing, nothing,
        )  # fmt: skip
    total = total + (1.0 - problem.overlap.transfer) * transfers
    bottleneck = np.maximum(total / pp, tallest)

    once = np.array([sum(found.sync) for found in sends])[zero]
    number = np.array([float(len(found.sync)) for found in sends])[zero]
    none = np.zeros((*entries.backward.shape, 1))
    shown, alone = _loaded(
        *books, none, entries.backward[:, :, None], none, problem.overlap.data,
        entry, number * first, number * first_experts, once * spread, once * spread_experts,
        update / shard, update / shard_experts,
    )  # fmt: skip
    sync = np.maximum(shown / pp, alone)
    seconds = total / interleave + (micro_batches - 1.0 / interleave) * bottleneck + sync
    return Bounds(seconds, total, sync)


@compiled
def _loaded(
    count: FloatArray,
    dense: FloatArray,
    experts: FloatArray,
    device: FloatArray,
    cover: FloatArray,
    host: FloatArray,
    saved: float,
    entry: IntArray,
    starts: FloatArray,
    starts_experts: FloatArray,
    spread: FloatArray,
    spread_experts: FloatArray,
    update: FloatArray,
    update_experts: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Seconds of all layers with their traffic, and of the longest; each (points,).

    Parameters
    ----------
    count, dense, experts, device, cover, host : see `Ledger`
    saved : seconds saved per second of traffic that has cover
    entry, starts, starts_experts, spread, spread_experts, update, update_experts : (points,)
        Of dense and of expert elements: seconds whatever their number, and per element that can
        hide, and that can not.
    """
    points = len(entry)
    total, tallest = np.zeros(points), np.zeros(points)
    for p in range(points):
        e = entry[p]
        for k in range(count.shape[1]):
            if count[e, k] == 0:
                continue
            own, others = dense[e, k], experts[e, k]
            sent = own * spread[p] + others * spread_experts[p]
            if own > 0:
                sent += starts[p]
            if others > 0:
                sent += starts_experts[p]
            least = np.inf
            for c in range(device.shape[2]):
                shown = device[e, k, c] + sent - saved * min(sent, cover[e, k, c])
                least = min(least, max(shown, host[e, k, c]))
            least += own * update[p] + others * update_experts[p]
            total[p] += count[e, k] * least
            tallest[p] = max(tallest[p], least)
    return total, tallest


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
    problem: Problem,
    boundary: FloatArray,
    apart: IntArray,
    copies: IntArray,
    pp: IntArray,
    natural: BoolArray,
) -> tuple[Hops, FloatArray]:
    """Seconds that pipeline transfers take at least, and all forward ones together, (points,).

    ``apart`` ranks of a stage sit side by side, stages one after another, and ``copies`` of the
    chain follow each other. Where the ranks fill whole nodes, or leaves, every transfer leaves its
    own, and all of its devices send at once. Where several stages share a block, the last of
    them sends to another block: as a position waits for its slowest copy, that is every position
    that comes last in any of them.
    """
    network = problem.network
    start = network.wires.least_latency_s
    near = start + boundary / _port(problem)
    blocks: list[tuple[int, float, float]] = []
    if network.torus is None and network.node_size:
        blocks.append((network.node_size, 0.0, _alone_outside(problem)))
    if network.torus is None:
        reach = problem.software.reach_outside
        blocks += [(block, 1.0 / (way_out * reach), 0.0) for block, way_out in network.exits]
    far = np.zeros((len(blocks), len(apart)))
    together = np.zeros((len(blocks), len(apart)), dtype=np.int64)
    for index, (block, per_device, alone) in enumerate(blocks):
        sending = np.where(apart % block == 0, block, np.where(apart < block, apart, 1))
        far[index] = start + boundary * np.maximum(sending * per_device, alone)
        near = np.where(natural & (apart >= block), np.maximum(near, far[index]), near)
        shared = natural & (apart < block) & (block % apart == 0)
        together[index] = np.where(shared, block // apart, 0)
    slowest, forward = near, (pp - 1) * near
    for stages, seconds in zip(together, far, strict=True):  # blocks nest
        classes = np.minimum(copies, stages // np.gcd(pp, stages))
        crossing = classes * np.where(stages > 0, (pp - 1) // np.maximum(stages, 1), 0)
        higher = np.where(crossing > 0, np.maximum(slowest, seconds), slowest)
        forward = forward + crossing * (higher - slowest)
        slowest = higher
    return Hops(near, far, together, copies), forward


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
