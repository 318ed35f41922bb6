"""What communication takes at least: of one device, of one node or leaf, of one transfer.

Nothing here is placed: a layout's degrees and axis order say enough for a lower bound
(``docs/method.md``, "The program").
"""

from __future__ import annotations

import numpy as np

from nest_core.costs import Problem
from nest_core.network import BoolArray, FloatArray, IntArray, Kind, Network, TreeLinkMap
from nest_core.planner.lookup import each
from nest_core.planner.relaxed import Hops

__all__ = [
    "TransferBounds",
    "all_ports_Bps",
    "alone_outside",
    "beyond_blocks",
    "beyond_instances",
    "call_bound",
    "hop_seconds",
    "port_Bps",
    "start_bound_s",
]


class TransferBounds:
    """Lower bounds of reduce-scatters and all-gathers, each looked up once."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._found: dict[tuple[str, int], tuple[tuple[float, float], ...]] = {}

    def lines(self, op: str, n: int) -> tuple[tuple[float, float], ...]:
        """Lower bounds of a collective among ``n`` devices; see `Software.lower_bounds`."""
        if (op, n) not in self._found:
            network = self._problem.network
            node = 0 if network.torus is not None else network.node_size
            self._found[op, n] = self._problem.software.lower_bounds(
                op,
                n,
                -(-n // node) if node else 0,
                network.link_map.least_latency_s,
                spans=network.torus is None and bool(network.node.any()),
                meshed=network.meshed_nodes,
            )
        return self._found[op, n]

    def starts(self, zero: IntArray, ranks: IntArray) -> FloatArray:
        """Seconds before the first byte among the ranks that share weights, shape (points,)."""

        def start(kind: int) -> float:
            if kind < 4:  # one rank has nothing to send
                return 0.0
            lines = self.lines("reduce_scatter" if kind % 2 else "all_reduce", kind // 2)
            return min(start for start, _ in lines)

        return each(2 * ranks + (zero > 0), start)


def beyond_blocks(
    problem: Problem,
    tp: IntArray,
    cp: IntArray,
    ep: IntArray,
    dp: IntArray,
    pp: IntArray,
    outer: BoolArray,
    parted: BoolArray,
    natural: BoolArray,
) -> tuple[FloatArray, FloatArray]:
    """Seconds per byte that collectives among the sharers of weights take to leave their blocks.

    Of dense weights all ``dp * cp`` ranks, of experts every ``ep``-th, where ``ep`` is what expert
    groups take beyond one tensor-parallel group: ``ep * etp / tp``; 0 where that is a part of it,
    of which nothing is known. Context-parallel neighbours
    are ``tp`` apart, in runs as far apart as replicas are. What groups send that lie alike in
    every block is known, see `_even_out`.

    Groups that lie unevenly in blocks exchange different parts in every phase. Where replicas
    follow one another the least part counts that any group sends in a phase, else nothing.
    """
    network = problem.network
    whole, ep = ep > 0, np.maximum(ep, 1)
    dense, experts = np.zeros(len(tp)), np.zeros(len(tp))
    if network.torus is not None:
        return dense, experts
    ranks = dp * cp
    period = tp * cp * np.where(outer, pp, 1)
    regular = natural & network.regular
    told = regular & ((cp == 1) | ~parted)
    even = told & _even(network, tp, cp, dp, pp, outer)
    same = not (ep > 1).any()  # then experts are shared as dense weights are
    even_experts = even if same else even & ((ep == 1) | _even(network, tp * ep, cp, dp, pp, outer))
    egress_rates = [
        (size, egress_Bps * problem.software.reach_outside)
        for size, egress_Bps in network.alike_egress
    ]
    port = 1.0 / all_ports_Bps(problem)
    one_link = alone_outside(problem) if network.node_size else 0.0
    held = [_held(block, tp, cp, ep, period) for block, _ in egress_rates]
    of_dense, of_experts = [dense for dense, _ in held], [experts for _, experts in held]
    dense = np.where(even, _even_out(egress_rates, of_dense, ranks, port, one_link), 0.0)
    experts = (
        dense.copy()
        if same
        else np.where(
            even_experts, _even_out(egress_rates, of_experts, ranks // ep, port, one_link), 0.0
        )
    )
    one = np.ones_like(cp)
    for block, rate in egress_rates:
        known = told & ((cp == 1) | (block == _sizes(network)[-1]))
        run = np.minimum(cp, -(-block // tp))
        kinds = [(dense, period, dp, cp, run, known)]
        if not same:
            replicas = np.maximum(dp // ep, 1)
            kinds.append((experts, period * ep, replicas, one, one, told & (cp == 1)))
        for share, apart, members, wide, most, fits in kinds:
            alone = fits & outer & (members > 1) & (apart * (members - 1) >= block)
            out = _out_bound(network, block, apart, members, wide, most) / rate
            np.maximum(share, np.where(alone, out, 0.0), out=share)
            if same:
                np.maximum(experts, np.where(alone & (cp == 1), out, 0.0), out=experts)
    return dense, np.where(whole, experts, 0.0)


def beyond_instances(
    problem: Problem,
    tp: IntArray,
    cp: IntArray,
    ep: IntArray,
    dp: IntArray,
    pp: IntArray,
    outer: BoolArray,
    parted: BoolArray,
    natural: BoolArray,
    instances: IntArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The same within instances, of which each holds what ZeRO shards once, and between them.

    An instance is a run of ranks: of a stage, its groups lying like those of a plan with as few
    replicas and more stages, or where replicas are the outermost axis of all stages of some
    replicas, as in a plan of those alone. Ranks of different instances that hold the same shard lie
    like replicas of so much wider ones. Elsewhere nothing is known.
    """
    one, whole = np.ones_like(tp), instances == 1
    nothing, never = np.zeros(len(tp)), np.zeros(len(tp), dtype=bool)
    if whole.all():
        return *beyond_blocks(problem, tp, cp, ep, dp, pp, outer, parted, natural), nothing
    group = dp * cp // instances
    inside = ~(outer | parted)
    known = whole | inside | (outer & ~parted & (group % cp == 0))
    dense, experts = beyond_blocks(
        problem,
        tp,
        np.where(whole | outer, cp, 1),
        ep,
        np.where(whole, dp, np.where(outer, np.maximum(group // cp, 1), group)),
        np.where(outer, pp, pp * instances),
        outer,
        parted,
        natural,
    )
    between, _ = beyond_blocks(
        problem,
        tp * group * np.where(outer, pp, 1),
        one,
        one,
        instances,
        np.where(outer, 1, pp),
        never,
        never,
        natural,
    )
    return (
        np.where(known, dense, 0.0),
        np.where(known, experts, 0.0),
        np.where(known & ~whole, between, 0.0),
    )


def _held(
    block: int, tp: IntArray, cp: IntArray, ep: IntArray, period: IntArray
) -> tuple[IntArray, IntArray]:
    """How many sharers of dense weights, and of experts, a block holds of every group."""
    run, turns = np.minimum(cp, -(-block // tp)), -(-block // period)
    within = np.where(ep <= cp, -(-run // ep), 1)
    beside = np.where(
        ep <= cp, turns * -(-cp // ep), -(-block // (period * np.maximum(ep // cp, 1)))
    )
    inside = block <= period
    return np.where(inside, run, turns * cp), np.where(inside, within, beside)


def _even_out(
    egress_rates: list[tuple[int, float]],
    held: list[IntArray],
    members: IntArray,
    port: float,
    one_link: float,
) -> FloatArray:
    """Seconds per byte of the faster algorithm among groups that lie alike in every block.

    Of a group's ``members`` a block of each kind holds so many; a device takes ``port`` seconds
    per byte through all of its ports, a flow outside its node ``one_link``. A ring leaves a block
    once for every group in it, with ``1 - 1/n`` of the buffer. Level by level every device of a
    block that holds ``g`` sends ``1/g - 1/n`` out of it in all.
    """
    ring, levels = np.zeros(len(members)), (1 - 1 / members) * port
    for (block, rate), most in zip(egress_rates, held, strict=True):
        inside = np.minimum(most, members)
        out = (1 - 1 / members) * np.maximum(block / (inside * rate), one_link)
        ring = np.maximum(ring, np.where(members > inside, out, 0.0))
        levels = np.maximum(levels, (1 / inside - 1 / members) * block / rate)
    return np.minimum(ring, levels)


def _sizes(network: Network) -> list[int]:
    """Devices of the largest block at every level but the last."""
    return [int(np.bincount(block).max()) for block in network.nesting[:-1]]


def _even(
    network: Network, tp: IntArray, cp: IntArray, dp: IntArray, pp: IntArray, outer: BoolArray
) -> BoolArray:
    """Whether all groups that share weights lie alike in every block."""
    stage, used = tp * cp * dp, tp * cp * dp * pp
    fits = np.ones(len(tp), dtype=bool)
    for index, size in enumerate(_sizes(network)):
        runs = (tp, tp * cp, np.where(outer, tp * cp * pp, tp))
        for run in runs:
            fits &= (size % run == 0) | (run % size == 0)
        if index == 0:  # further out the groups of a stage lie alike wherever it begins
            fits &= outer | (size % stage == 0) | (stage % size == 0)
        fits &= ~outer | (used % size == 0) | (used <= size)
    return fits


def _out_bound(
    network: Network,
    block: int,
    period: IntArray,
    members: IntArray,
    wide: IntArray,
    held: IntArray,
) -> FloatArray:
    """Buffers that leave a block at least, where every device has one; shape (points,).

    A group has ``wide`` ranks in each of ``members`` places ``period`` apart, and no group sits in
    one block; of the ranks in one place a block holds at most ``held``. Level by level
    every device sends: in a block of ``size`` at least ``size // period``
    places of every group, at most one more, have halved what they exchange. In a ring at least one
    rank of every group in the block sends ``1 - 1/n`` at once to the outside. Where ``wide`` is
    above one only the last phase is counted, so the block must be the outermost.
    """
    used = period * members
    part = np.zeros(len(members))
    inner = block
    for size in [*(size for size in _sizes(network) if size > block), network.devices]:
        reach = np.minimum(used, size)
        spread = np.where(used <= size, members, size // period)
        fan = np.maximum(np.where(inner >= period, reach // inner, spread), 1)
        inside = np.where(inner >= period, np.minimum(-(-inner // period), members) * wide, held)
        part = part + (1.0 - 1.0 / fan) / inside
        inner = size
    groups = np.where(block >= period, period // wide, block / held)
    return np.minimum(block * part, groups * (1.0 - 1.0 / (members * wide)))


def call_bound(
    problem: Problem,
    transfer_bounds: TransferBounds,
    axis: str,
    kind: Kind,
    n: int,
    stride: int,
    size: FloatArray,
    natural: bool,
) -> FloatArray:
    """The least seconds of one call among ``n`` ranks at least ``stride`` apart, by bytes.

    ``natural``: ranks are placed on devices in their own order.

    Each rank sends ``1 - 1/n`` of the buffer, to a neighbour in a ring and inside a node through
    one port, else through all of its ports, from which no protocol gets more than its reach;
    collectives of tensor parallelism also take the least of their regimes. What belongs outside a
    node or leaf leaves it: of every group that has ``g`` members there ``1 - g/n`` of the buffer,
    in an all-to-all of every member's, or what `Dispatch` leaves of it.
    """
    network, software = problem.network, problem.software
    dispatch = problem.dispatch if kind == "all_to_all" else None
    share = 1.0 - 1.0 / n if dispatch is None else (n - 1) * dispatch.copies(1, n)
    inside = natural and axis in ("tp", "etp") and network.node_size % n == 0 < network.node_size
    if axis in ("tp", "etp"):
        least = transfer_bounds.lines("all_reduce" if kind == "all_reduce" else "reduce_scatter", n)
        link_map = network.link_map
        each = share * size / (link_map.port_Bps if inside else link_map.all_ports_Bps)
        found = np.min([starts + each / reach for starts, reach in least], axis=0)
    else:
        port = port_Bps(problem) if kind == "ring" else all_ports_Bps(problem)
        found = start_bound_s(problem) + share * size / port
    if network.torus is None and natural:
        if kind == "ring" and 0 < network.node_size < n * stride:  # a neighbour is outside
            found = np.maximum(found, share * size * alone_outside(problem))
        phased = kind in ("all_reduce", "reduce_scatter")
        for block, egress_Bps in network.alike_egress:
            if phased and block % stride:
                continue  # groups lie unevenly, and need not wait for one another's phases
            together = -(-block // stride)
            if n > together and n * stride >= block:
                senders = block if kind == "all_to_all" else block / together
                left = 1 - together / n
                if dispatch is not None:  # what enters, of each of the block's members
                    left = min((n - g) * dispatch.copies(g, n) / g for g in range(1, together + 1))
                out = senders * left / (egress_Bps * software.reach_outside)
                found = np.maximum(found, out * size)
    return np.asarray(found)


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
    start = network.link_map.least_latency_s
    near = start_bound_s(problem) + boundary / port_Bps(problem)
    blocks: list[tuple[int, float, float]] = []
    if network.torus is None and network.node_size:
        blocks.append((network.node_size, 0.0, alone_outside(problem)))
    if network.torus is None:
        reach = problem.software.reach_outside
        blocks += [
            (block, 1.0 / (egress_Bps * reach), 0.0) for block, egress_Bps in network.egress_rates
        ]
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


def alone_outside(problem: Problem) -> float:
    """Seconds per byte that a flow takes at least where it leaves its node.

    0 if none can, and where flows may leave by several ways at once.
    """
    link_map = problem.network.link_map
    if not isinstance(link_map, TreeLinkMap) or not link_map.flow_outside_Bps:
        return 0.0
    return 1.0 / (link_map.flow_outside_Bps * problem.software.reach_outside)


def start_bound_s(problem: Problem) -> float:
    """Latency that any message pays: none where a protocol between nodes counts no steps inside."""
    return 0.0 if problem.software.between else problem.network.link_map.least_latency_s


def all_ports_Bps(problem: Problem) -> float:
    """Bytes per second that one device gets through all of its ports at most."""
    return (problem.network.link_map.all_ports_Bps or float("inf")) * problem.software.reach


def port_Bps(problem: Problem) -> float:
    """Bytes per second that one device gets through at most; infinite with one device."""
    return (problem.network.link_map.port_Bps or float("inf")) * problem.software.reach
