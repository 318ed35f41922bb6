"""Lower bounds of communication: of one device, of one node or leaf, of one transfer.

Nothing here is placed: a point's degrees and axis order say enough for a lower bound
(``docs/method.md``, "The program"). The words, for tp 2, cp 1, dp 2, pp 2 in the order
tp-dp-pp, on blocks (nodes) of four devices::

    rank      0   1   2   3 | 4   5   6   7
    tp group  a   a   b   b | c   c   d   d      ranks that work on one layer together
    replica   0   0   1   1 | 0   0   1   1
    stage     0   0   0   0 | 1   1   1   1
    sharers   x   y   x   y | z   w   z   w      ranks with the same weights: dp * cp of a stage
    block     ------0------ | ------1------      devices behind one egress

In the order tp-pp-dp replicas are outermost (`RankColumns.dp_outside`): ranks 0 to 3 are both
stages of replica 0, so sharers 0 and 4 lie in different blocks and every gradient leaves its own.
"""

from dataclasses import replace
from functools import cache

import numpy as np

from nest_core.costs import Problem
from nest_core.network import (
    BoolArray,
    Dispatch,
    FloatArray,
    IntArray,
    Kind,
    Network,
)
from nest_core.planner.node_bounds import (
    RankColumns,
    alone_outside,
    beyond_nodes,
    node_ranks,
    port_Bps,
)
from nest_core.planner.points import each
from nest_core.planner.relaxed import HopBounds

__all__ = [
    "TransferBounds",
    "all_ports_Bps",
    "beyond_blocks",
    "beyond_instances",
    "call_bound",
    "hop_seconds",
    "start_bound_s",
]


class TransferBounds:
    """Lower bounds of reduce-scatters and all-gathers, each looked up once."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.lines = cache(self._lines)

    def _lines(self, op: str, n: int) -> tuple[tuple[float, float], ...]:
        """Return lower bounds of a collective among ``n`` devices: `Software.lower_bounds`."""
        network = self._problem.network
        node = 0 if network.torus is not None else network.node_size
        return self._problem.software.lower_bounds(
            op,
            n,
            -(-n // node) if node else 0,
            network.link_map.least_latency_s,
            spans=network.torus is None and bool(network.node.any()),
            meshed=network.meshed_nodes,
        )

    def starts(self, zero: IntArray, ranks: IntArray) -> FloatArray:
        """Seconds before the first byte among the ranks that share weights, shape (points,)."""

        def start(kind: int) -> float:
            if kind < 4:  # one rank has nothing to send
                return 0.0
            return min(
                start
                for start, _ in self.lines(
                    "reduce_scatter" if kind % 2 else "all_reduce", kind // 2
                )
            )

        return each(2 * ranks + (zero > 0), start)


def beyond_blocks(problem: Problem, ranks: RankColumns) -> tuple[FloatArray, FloatArray]:
    """Return seconds per byte that collectives of gradients take at least to leave their blocks.

    Dense weights are shared by all ``dp * cp`` ranks of a stage, experts by every ``ep``-th of
    them. Context-parallel neighbours are ``tp`` ranks apart, in runs as far apart as replicas are.

    Parameters
    ----------
    problem : Problem
    ranks : RankColumns

    Returns
    -------
    dense, experts : (points,)

    Notes
    -----
    Whatever sits where, nodes bound what their members send and receive (`beyond_nodes`). Where the
    groups lie alike in every block, a block's egress carries what all of its groups send out
    (`_even_groups_bound`). Groups that lie unevenly exchange different parts in every
    phase: where replicas follow one another the least part counts that any group sends in a phase
    (`_uneven_groups_bound`), else nothing.
    """
    network = problem.network
    has_experts, ep = ranks.ep > 0, np.maximum(ranks.ep, 1)
    tp, cp, dp, pp = ranks.tp, ranks.cp, ranks.dp, ranks.pp
    dense, experts = np.zeros(len(tp)), np.zeros(len(tp))
    if network.torus is not None:
        return dense, experts
    sharers = dp * cp
    dense_beyond, experts_beyond = (
        beyond_nodes(problem, ranks, every) for every in (np.ones_like(ep), ep)
    )
    if not network.regular:
        return dense_beyond, np.where(has_experts, experts_beyond, 0.0)
    # Admissible where it says anything: a block's egress is shared by all flows that leave it, so
    # what groups must send out of a block, added up, over its bytes per second is under the price
    # of any algorithm (docs/method.md, "The program", "Bounds"). Of tori nothing is said: a 0
    # excludes no plan.
    period = tp * cp * np.where(ranks.dp_outside, pp, 1)
    regular = ranks.natural & ((cp == 1) | ~ranks.cp_outside)
    even = regular & _lie_evenly(network, ranks, tp)
    same_groups = not (ep > 1).any()  # then experts are shared as dense weights are
    even_experts = (
        even if same_groups else even & ((ep == 1) | _lie_evenly(network, ranks, tp * ep))
    )
    egress_rates = [
        (size, egress_Bps * problem.software.reach_outside)
        for size, egress_Bps in network.alike_egress
    ]
    port = 1.0 / all_ports_Bps(problem)
    one_link = alone_outside(problem) if network.node_size else 0.0
    in_block = [_members_in_block(block, tp, cp, ep, period) for block, _ in egress_rates]
    dense_in_block = [dense for dense, _ in in_block]
    experts_in_block = [experts for _, experts in in_block]
    bound = _even_groups_bound(egress_rates, dense_in_block, sharers, port, one_link)
    dense = np.where(even, bound, 0.0)
    if same_groups:
        experts = dense.copy()
    else:
        bound = _even_groups_bound(egress_rates, experts_in_block, sharers // ep, port, one_link)
        experts = np.where(even_experts, bound, 0.0)
    ones = np.ones_like(cp)
    for block, rate in egress_rates:
        outermost = regular & ((cp == 1) | (block == _block_sizes(network)[-1]))
        kinds = [(dense, period, dp, cp, np.minimum(cp, -(-block // tp)), outermost)]
        if not same_groups:
            replicas = np.maximum(dp // ep, 1)
            kinds.append((experts, period * ep, replicas, ones, ones, regular & (cp == 1)))
        for bounds, stride, members, width, max_in_place, applies in kinds:
            leaves = applies & ranks.dp_outside & (members > 1) & (stride * (members - 1) >= block)
            seconds = (
                _uneven_groups_bound(network, block, stride, members, width, max_in_place) / rate
            )
            np.maximum(bounds, np.where(leaves, seconds, 0.0), out=bounds)
            if same_groups:
                np.maximum(experts, np.where(leaves & (cp == 1), seconds, 0.0), out=experts)
    experts = np.where(has_experts, np.maximum(experts, experts_beyond), 0.0)
    return np.maximum(dense, dense_beyond), experts


def _node_egress_Bps(problem: Problem) -> float:
    """Return the most that leaves a node at once; infinite where that is not known."""
    rates = dict(problem.network.alike_egress)
    return rates.get(problem.network.node_size, float("inf")) * problem.software.reach_outside


def beyond_instances(
    problem: Problem, ranks: RankColumns, instances: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the same within instances of ZeRO's shards, and between the instances.

    An instance is a run of ranks that holds every shard once. Its groups lie like those of a plan
    with as few replicas and more stages; where replicas are the outermost axis, like those of some
    replicas alone. Ranks of different instances with the same shard lie like those that share
    experts of groups as large as an instance. For other orders nothing is known, and the bounds
    are 0.

    Parameters
    ----------
    problem : Problem
    ranks : RankColumns
    instances : (points,)
        Copies of the shards.

    Returns
    -------
    dense, experts, between : (points,)
        Seconds per byte.
    """
    single = instances == 1
    if single.all():
        return *beyond_blocks(problem, ranks), np.zeros(len(single))
    cp, dp, pp, outside = ranks.cp, ranks.dp, ranks.pp, ranks.dp_outside
    group = dp * cp // instances
    inside = ~(outside | ranks.cp_outside)
    applies = single | inside | (outside & ~ranks.cp_outside & (group % cp == 0))
    within = replace(
        ranks,
        cp=np.where(single | outside, cp, 1),
        dp=np.where(single, dp, np.where(outside, np.maximum(group // cp, 1), group)),
        pp=np.where(outside, pp, pp * instances),
    )
    dense, experts = beyond_blocks(problem, within)
    _, between = beyond_blocks(problem, replace(ranks, ep=np.maximum(group, 1)))
    return (
        np.where(applies, dense, 0.0),
        np.where(applies, experts, 0.0),
        np.where(applies & ~single, between, 0.0),
    )


def _members_in_block(
    block: int, tp: IntArray, cp: IntArray, ep: IntArray, period: IntArray
) -> tuple[IntArray, IntArray]:
    """Return how many members of a group of dense weights, and of experts, a block has at most.

    Parameters
    ----------
    block : int
        Devices.
    period : (points,)
        Ranks from a replica to the next.
    """
    run, periods = np.minimum(cp, -(-block // tp)), -(-block // period)
    within = np.where(ep <= cp, -(-run // ep), 1)
    beyond = np.where(
        ep <= cp, periods * -(-cp // ep), -(-block // (period * np.maximum(ep // cp, 1)))
    )
    inside = block <= period
    return np.where(inside, run, periods * cp), np.where(inside, within, beyond)


def _even_groups_bound(
    egress_rates: list[tuple[int, float]],
    in_block: list[IntArray],
    members: IntArray,
    port: float,
    one_link: float,
) -> FloatArray:
    """Return seconds per byte of the faster algorithm among groups that lie alike in every block.

    Parameters
    ----------
    egress_rates : list of (int, float)
        Devices of a block of each kind, and bytes/s that leave it.
    in_block : list of (points,)
        Members of a group in such a block, at most.
    members : (points,)
        Ranks of a group, ``n``.
    port, one_link : float
        Seconds per byte of a device through all of its ports, and of a flow outside its node.

    Notes
    -----
    A ring leaves a block once for every group in it, with ``1 - 1/n`` of the buffer. Level by
    level every device of a block with ``g`` members sends ``1/g - 1/n`` out of it in all.
    """
    ring, levels = np.zeros(len(members)), (1 - 1 / members) * port
    for (block, rate), at_most in zip(egress_rates, in_block, strict=True):
        inside = np.minimum(at_most, members)
        # block / inside groups have a rank here; a ring crosses the border of each at least once,
        # with all but 1/n of its buffer. A ring of one flow is no faster than that flow's link.
        out = (1 - 1 / members) * np.maximum(block / (inside * rate), one_link)
        ring = np.maximum(ring, np.where(members > inside, out, 0.0))
        levels = np.maximum(levels, (1 / inside - 1 / members) * block / rate)
    # The price takes the faster of the two algorithms, so only the lesser bound is certain.
    return np.minimum(ring, levels)


def _block_sizes(network: Network) -> list[int]:
    """Return the devices of the largest block at every level but the last."""
    return [int(np.bincount(block).max()) for block in network.nesting[:-1]]


def _lie_evenly(network: Network, ranks: RankColumns, tp: IntArray) -> BoolArray:
    """Return whether all groups that share weights lie alike in every block, (points,).

    That is so where runs of ranks and blocks divide one another at every level.
    """
    cp, dp, pp, outside = ranks.cp, ranks.dp, ranks.pp, ranks.dp_outside
    stage, used = tp * cp * dp, tp * cp * dp * pp
    fits = np.ones(len(tp), dtype=bool)
    for index, size in enumerate(_block_sizes(network)):
        runs = (tp, tp * cp, np.where(outside, tp * cp * pp, tp))
        for run in runs:
            fits &= (size % run == 0) | (run % size == 0)
        if index == 0:  # further out the groups of a stage lie alike wherever it begins
            fits &= outside | (size % stage == 0) | (stage % size == 0)
        fits &= ~outside | (used % size == 0) | (used <= size)
    return fits


def _uneven_groups_bound(
    network: Network,
    block: int,
    stride: IntArray,
    members: IntArray,
    width: IntArray,
    max_in_place: IntArray,
) -> FloatArray:
    """Return buffers that leave a block at least, where every device has one; (points,).

    Parameters
    ----------
    stride, members, width : (points,)
        A group has ``width`` ranks in each of ``members`` places that are ``stride`` ranks apart;
        no group lies in one block.
    max_in_place : (points,)
        Of the ranks in one place, those in one block at most.

    Notes
    -----
    Level by level every device sends: in a block of ``size`` devices at least ``size // stride``
    places of every group, at most one more, have halved what they exchange. In a ring at least
    one rank of every group in the block sends ``1 - 1/n`` at once to the outside. Where ``width``
    is above one only the last phase counts, so the block must be the outermost.
    """
    used = stride * members
    part = np.zeros(len(members))
    inner = block
    for size in [*(size for size in _block_sizes(network) if size > block), network.devices]:
        reach = np.minimum(used, size)
        places = np.where(used <= size, members, size // stride)
        fan = np.maximum(np.where(inner >= stride, reach // inner, places), 1)
        inside = np.where(
            inner >= stride, np.minimum(-(-inner // stride), members) * width, max_in_place
        )
        part = part + (1.0 - 1.0 / fan) / inside
        inner = size
    groups = np.where(block >= stride, stride // width, block / max_in_place)
    # `part` adds the phases level by level: a phase among `fan` places sends 1 - 1/fan of the
    # buffer over the `inside` members that have divided it before. As above the lesser of that and
    # of a ring in every group, as prices may take either.
    return np.minimum(block * part, groups * (1.0 - 1.0 / (members * width)))


def call_bound(
    problem: Problem,
    transfer_bounds: TransferBounds,
    axis: str,
    kind: Kind,
    n: int,
    stride: int,
    size: FloatArray,
    device_orders: tuple[str, ...],
) -> FloatArray:
    """Return the least seconds of one call among ``n`` ranks at least ``stride`` apart, by bytes.

    Each rank sends ``1 - 1/n`` of the buffer, to a neighbour in a ring and inside a node through
    one port, else through all of its ports, from which no protocol gets more than its reach;
    collectives of tensor parallelism also take the least of their regimes. What belongs outside a
    node or leaf leaves it: of every group that has ``g`` members there ``1 - g/n`` of the buffer,
    in an all-to-all of every member's, or what `Dispatch` leaves of it.
    """
    network, software = problem.network, problem.software
    dispatch = problem.dispatch if kind == "all_to_all" else None
    # Three things happen whatever the algorithm, so the largest bounds it: a rank's own bytes
    # through its own ports, after the least latency; one flow through the one link by which it
    # leaves a node; a block's bytes through its egress (docs/method.md, "The program", "Bounds").
    # Contention with other groups, tiles of hops and the rest of the route only add to each.
    natural = set(device_orders) == {"natural"}
    fewest, most = node_ranks(network, device_orders)
    share = 1.0 - 1.0 / n if dispatch is None else (n - 1) * dispatch.copies(1, n)
    inside = natural and axis in ("tp", "etp") and network.node_size % n == 0 < network.node_size
    if axis in ("tp", "etp"):
        least = transfer_bounds.lines("all_reduce" if kind == "all_reduce" else "reduce_scatter", n)
        link_map = network.link_map
        per_port = share * size / (link_map.port_Bps if inside else link_map.all_ports_Bps)
        seconds = np.min([starts + per_port / reach for starts, reach in least], axis=0)
    else:
        port = port_Bps(problem) if kind == "ring" else all_ports_Bps(problem)
        seconds = start_bound_s(problem) + share * size / port
    if network.torus is not None:
        return np.asarray(seconds)
    if most and n > (together := -(-most // stride)):
        if kind == "ring":  # a neighbour is outside
            out = share * alone_outside(problem)
        elif kind == "all_to_all":
            alone = 1.0 / (network.link_map.outlet_Bps * software.reach_outside)
            out = max(alone, fewest / _node_egress_Bps(problem))
            out *= _share_outside(dispatch, n, together)
        else:  # level by level nodes send the buffer part by part
            leaving = 1.0 / (network.node_egress_Bps * software.reach_outside)
            out = max(alone_outside(problem) / together, leaving) * (1 - 1 / -(-n // together))
        seconds = np.maximum(seconds, out * size)
    if natural:
        phased = kind in ("all_reduce", "reduce_scatter")
        for block, egress_Bps in network.alike_egress:
            if phased and block % stride:
                continue  # groups lie unevenly, and need not wait for one another's phases
            together = -(-block // stride)
            if n > together and n * stride >= block:
                senders = block if kind == "all_to_all" else block / together
                out = senders * _share_outside(dispatch, n, together)
                seconds = np.maximum(seconds, out * size / (egress_Bps * software.reach_outside))
    return np.asarray(seconds)


def _share_outside(dispatch: Dispatch | None, n: int, together: int) -> float:
    """Return what leaves a block, or enters it, of each member's buffer; ``together`` are in it."""
    return (
        1 - together / n
        if dispatch is None
        else min((n - g) * dispatch.copies(g, n) / g for g in range(1, together + 1))
    )


def hop_seconds(
    problem: Problem,
    boundary: FloatArray,
    levels: IntArray,
    copies: IntArray,
    pp: IntArray,
    natural: BoolArray,
    most: IntArray,
    alike: BoolArray,
) -> tuple[HopBounds, FloatArray]:
    """Seconds that pipeline transfers take at least, and all forward ones together, (points,).

    ``levels`` ranks of a stage sit side by side, stages one after another, and ``copies`` of the
    chain follow each other. Where the ranks fill whole nodes, or leaves, every transfer leaves its
    own, and all of its devices send at once; where a node has ``most`` ranks in a row, no more than
    a stage has, they leave it, else where a node ends between the two in any copy. Where several
    stages share a block, the last of them sends to another block: as a position waits for its
    slowest copy, that is every position that comes last in any of them.
    """
    network = problem.network
    start = network.link_map.least_latency_s
    # `near` bounds any transfer, `far[b]` one that leaves its block of kind b; `together` says at
    # which positions that happens in at least one copy of the chain. A position waits for its
    # slowest copy, so `far` counts there as soon as one copy crosses; the largest kind of block
    # that is crossed decides (docs/method.md, "The program", "Bounds": transfers between stages).
    near = start_bound_s(problem) + boundary / port_Bps(problem)
    blocks: list[tuple[int, float, float]] = []
    if network.torus is None and network.node_size:
        blocks.append((network.node_size, 0.0, alone_outside(problem)))
    if network.torus is None:
        reach = problem.software.reach_outside
        blocks += [
            (block, 1.0 / (egress_Bps * reach), 0.0) for block, egress_Bps in network.egress_rates
        ]
    beyond = np.maximum(near, start + boundary * alone_outside(problem))
    near = np.where((most > 0) & (levels >= most), beyond, near)
    far = np.zeros((len(blocks), len(levels)))
    together = np.zeros((len(blocks), len(levels)), dtype=np.int64)
    for index, (block, per_device, alone) in enumerate(blocks):
        sending = np.where(levels % block == 0, block, np.where(levels < block, levels, 1))
        far[index] = start + boundary * np.maximum(sending * per_device, alone)
        near = np.where(natural & (levels >= block), np.maximum(near, far[index]), near)
        shared = natural & (levels < block) & (block % levels == 0)
        together[index] = np.where(shared, block // levels, 0)
    slowest, forward = near, (pp - 1) * near
    for stages, seconds in zip(together, far, strict=True):  # blocks nest
        # Copy k begins k pp stages on, hence at one of stages / gcd(pp, stages) offsets in a
        # block. Each offset has its own positions of crossing, (pp - 1) // stages of them at
        # least: positions of different offsets differ, so they add up.
        classes = np.minimum(copies, stages // np.gcd(pp, stages))
        crossing = classes * np.where(stages > 0, (pp - 1) // np.maximum(stages, 1), 0)
        higher = np.where(crossing > 0, np.maximum(slowest, seconds), slowest)
        forward = forward + crossing * (higher - slowest)
        slowest = higher
    # Copies begin at places in a node that are `gap` apart. From the last place that a stage has in
    # any of them it sends to the next node if less than two stages fit behind it.
    gap = np.gcd(pp * levels, np.maximum(most, 1))
    places = pp * (2 * levels - np.gcd(levels, gap)) // gap - 1
    crossing = np.where(gap < 2 * levels, pp - 1, places)
    applies = alike & (levels < most) & (copies * gap >= most)
    passed = (pp - 1) * near + np.where(applies, crossing * np.maximum(beyond - near, 0.0), 0.0)
    return HopBounds(near, far, together, copies), np.maximum(forward, passed)


def start_bound_s(problem: Problem) -> float:
    """Latency that any message pays: none where a protocol between nodes counts no steps inside."""
    return 0.0 if problem.software.between else problem.network.link_map.least_latency_s


def all_ports_Bps(problem: Problem) -> float:
    """Bytes per second that one device gets through all of its ports at most."""
    return (problem.network.link_map.all_ports_Bps or float("inf")) * problem.software.reach
