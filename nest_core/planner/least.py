"""What communication takes at least: of one device, of one node or leaf, of one transfer.

Nothing here is placed: a layout's degrees and axis order say enough for a lower bound
(``docs/method.md``, "The program").
"""

from __future__ import annotations

import numpy as np

from nest_core.costs.problem import CallKind, Problem
from nest_core.network import Network
from nest_core.network.tree import TreeWires
from nest_core.network.wires import BoolArray, FloatArray, IntArray
from nest_core.planner.lookup import each
from nest_core.planner.relaxed import Hops

__all__ = [
    "Halves",
    "alone_outside",
    "beyond_blocks",
    "hop_seconds",
    "least_call",
    "least_start_s",
    "port_Bps",
]


class Halves:
    """Halves of collectives at their least, each looked up once."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._found: dict[tuple[str, int], tuple[tuple[float, float], ...]] = {}

    def lines(self, op: str, n: int) -> tuple[tuple[float, float], ...]:
        """Lines that no half among ``n`` devices comes under; see `Software.least`."""
        if (op, n) not in self._found:
            network = self._problem.network
            node = 0 if network.torus is not None else network.node_size
            self._found[op, n] = self._problem.software.least(
                op, n, -(-n // node) if node else 0, network.wires.least_latency_s,
                spans=network.torus is None and bool(network.node.any()),
                meshed=network.meshed_nodes,
            )  # fmt: skip
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
    """Seconds per byte that halves among the sharers of weights take to leave their blocks.

    Of dense weights all ``dp * cp`` ranks, of experts every ``ep``-th. A node, or a leaf, whose
    devices all work sends, for each of its groups, the sums of all shards that belong elsewhere:
    ``1 - g/n`` of the buffer where ``g`` of the group's ``n`` members sit in it, and it holds at
    least ``block / g`` groups. Context-parallel neighbours are ``tp`` apart, in runs as far apart
    as replicas are.

    Groups that lie unevenly in blocks exchange different parts in every phase. Of members that
    share no node the least part counts that any group sends in a phase, of others nothing.
    """
    network = problem.network
    dense, experts = np.zeros(len(tp)), np.zeros(len(tp))
    if network.torus is not None:
        return dense, experts
    ranks = dp * cp
    period = tp * cp * np.where(outer, pp, 1)
    regular = natural & network.regular
    told = regular & ((cp == 1) | ~parted)
    even = told & _even(network, tp, cp, dp, pp, outer)
    even_experts = even & ((ep == 1) | _even(network, tp * ep, cp, dp, pp, outer))
    for block, way_out in network.exits:
        rate = way_out * problem.software.reach_outside
        full = tp * ranks * pp >= block
        run = np.minimum(cp, -(-block // tp))
        together = np.where(block <= period, run, -(-block // period) * cp)
        out = (1 - together / ranks) * block / (together * rate)
        dense = np.maximum(dense, np.where(full & even & (ranks > together), out, 0.0))
        owners = ranks // ep
        together = np.where(ep <= cp, -(-run // ep), 1)
        together = np.where(
            block <= period, together,
            np.where(ep <= cp, -(-block // period) * -(-cp // ep),
                     -(-block // (period * np.maximum(ep // cp, 1)))),
        )  # fmt: skip
        out = (1 - together / owners) * block / (together * rate)
        experts = np.maximum(experts, np.where(full & even_experts & (owners > together), out, 0.0))
    for block, way_out in network.exits[:1]:
        rate = way_out * problem.software.reach_outside
        for share, apart, members in (
            (dense, period, dp),
            (experts, period * ep, np.maximum(dp // ep, 1)),
        ):
            alone = regular & outer & (cp == 1) & (members > 1) & (apart * (members - 1) >= block)
            out = _least_out(network, block, apart, members) / rate
            np.maximum(share, np.where(alone, out, 0.0), out=share)
    return dense, experts


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


def _least_out(network: Network, block: int, period: IntArray, members: IntArray) -> FloatArray:
    """Buffers that leave a block at least, where every device has one; shape (points,).

    Members are ``period`` apart, and no group sits in one block. By the hierarchical algorithm
    every device sends, phase by phase: in a block of ``size`` at least ``size // period`` members
    of every group, at most one more, have halved what they exchange. In a ring the last member of
    every group sends ``1 - 1/n`` at once.
    """
    used = period * members
    part = np.zeros(len(members))
    inner = block
    for size in [*_sizes(network)[1:], network.devices]:
        reach = np.minimum(used, size)
        spread = np.where(used <= size, members, size // period)
        fan = np.maximum(np.where(inner >= period, reach // inner, spread), 1)
        shard = 1.0 / np.where(inner >= period, np.minimum(-(-inner // period), members), 1)
        part = part + (1.0 - 1.0 / fan) * shard
        inner = size
    return np.minimum(block * part, np.minimum(period, block) * (1.0 - 1.0 / members))


def least_call(
    problem: Problem,
    halves: Halves,
    axis: str,
    kind: CallKind,
    n: int,
    stride: int,
    size: FloatArray,
    natural: bool,
) -> FloatArray:
    """The least seconds of one call among ``n`` ranks at least ``stride`` apart, by bytes.

    ``natural``: devices are seated in their own order.

    Each rank sends ``1 - 1/n`` of the buffer through a port, in an all-to-all through all it has,
    from which no protocol gets more than its reach; halves of tensor parallelism also take the
    least of their regimes. What belongs outside a node or leaf leaves it: of every group that has
    ``g`` members there ``1 - g/n`` of the buffer, in an all-to-all of every member's.
    """
    network, software = problem.network, problem.software
    share = 1.0 - 1.0 / n
    if axis == "tp":
        least = halves.lines("all_reduce" if kind == "reduce" else "reduce_scatter", n)
        each = share * size / network.wires.port_Bps
        found = np.min([starts + each / reach for starts, reach in least], axis=0)
    else:
        ports = _ports(problem.network) if kind == "all_to_all" else 1
        found = least_start_s(problem) + share * size / (ports * port_Bps(problem))
    if network.torus is None and natural:
        if kind == "ring" and 0 < network.node_size < n * stride:  # a neighbour is outside
            found = np.maximum(found, share * size * alone_outside(problem))
        phased = kind in ("reduce", "halves")
        for block, way_out in network.exits:
            if phased and block % stride:
                continue  # groups lie unevenly, and need not wait for one another's phases
            together = -(-block // stride)
            if n > together and n * stride >= block:
                senders = block if kind == "all_to_all" else block / together
                out = senders * (1 - together / n) / (way_out * software.reach_outside)
                found = np.maximum(found, out * size)
    return np.asarray(found)


def _ports(network: Network) -> int:
    """How many ports as wide as its widest a device may send through at once."""
    return 1 if network.torus is not None else max(2, len(network.nesting))


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
    near = least_start_s(problem) + boundary / port_Bps(problem)
    blocks: list[tuple[int, float, float]] = []
    if network.torus is None and network.node_size:
        blocks.append((network.node_size, 0.0, alone_outside(problem)))
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


def alone_outside(problem: Problem) -> float:
    """Seconds per byte that a flow takes at least where it leaves its node.

    0 if none can, and where flows may leave by several ways at once.
    """
    wires = problem.network.wires
    if not isinstance(wires, TreeWires):
        return 0.0
    lanes = wires.lane_Bps[wires.outside]
    if not len(lanes):
        return 0.0
    return float(1.0 / (lanes.max() * problem.software.reach_outside))


def least_start_s(problem: Problem) -> float:
    """Latency that any message pays: none where a protocol between nodes counts no steps inside."""
    return 0.0 if problem.software.between else problem.network.wires.least_latency_s


def port_Bps(problem: Problem) -> float:
    """Bytes per second that one device gets through at most; infinite with one device."""
    return (problem.network.wires.port_Bps or float("inf")) * problem.software.reach
