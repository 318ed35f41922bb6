"""Lower bounds of what leaves nodes level by level, by where the members of a group sit."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nest_core.costs import Problem, device_order, places, ranks_in_nodes
from nest_core.documents.compiled import compiled
from nest_core.network import BoolArray, FloatArray, IntArray, Network, TreeLinkMap

__all__ = ["RankColumns", "alone_outside", "beyond_nodes", "node_ranks", "port_Bps"]

_MOST_COUNTED = 4096
"""Nodes times stages, of which the members of a group are counted one by one."""


@dataclass(frozen=True, slots=True, eq=False)
class RankColumns:
    """Degrees of many points, and how their ranks are numbered; every array has shape (points,).

    Parameters
    ----------
    tp, cp, dp, pp : int arrays
    ep : int array
        Tensor-parallel groups that an expert group spans: ``ep * etp / tp``; 0 where it is a part
        of one, of which nothing is known.
    dp_outside, cp_outside : bool arrays
        Whether replicas, and context-parallel ranks, are numbered outside pipeline stages.
    natural : bool array
        Whether ranks sit on devices in their own order.
    most, alike : int, bool array
        Ranks in a row that a node has at most, see `ranks_in_nodes`, 0 where nothing is known; and
        whether all nodes have as many.
    device_order : int array
        Which of ``device_orders`` places the ranks; -1 where that may be any of them.
    """

    tp: IntArray
    cp: IntArray
    ep: IntArray
    dp: IntArray
    pp: IntArray
    dp_outside: BoolArray
    cp_outside: BoolArray
    natural: BoolArray
    most: IntArray
    alike: BoolArray
    device_order: IntArray
    device_orders: tuple[str, ...]


def beyond_nodes(problem: Problem, ranks: RankColumns, ep: IntArray) -> FloatArray:
    """Return seconds per byte that collectives of gradients take at least to leave their nodes.

    Of the ranks that share weights every ``ep``-th is in a group, and its neighbours are ``tp``
    ranks apart, in runs as far apart as stages or replicas are.

    Notes
    -----
    Rings carry all but ``1/n`` of the buffer out of every node, on one flow, or on as many as a
    group has members in each of its nodes if that is the same everywhere. Level by level nodes come
    first; then a member sends the part that the node with the fewest members leaves it, less what
    is its own (`nest_core.network.groups.block_rings`), and so does every member of a fuller block
    to the fewer of the next: some device receives as many parts as there are members for each of
    its own. Only links of devices and nodes are counted, of groups that lie alike together: others
    may add to each of them.
    """
    inner = np.where(ranks.cp_outside, 1, ranks.cp) * np.where(ranks.dp_outside, 1, ranks.dp)
    run, outer, instances = (
        ranks.tp * inner,
        ranks.cp * ranks.dp // inner,
        np.maximum(ep // inner, 1),
    )
    keys = np.stack(
        [
            np.where(ep > inner, run, ranks.tp * ep),
            np.where(ep > inner, 1, inner // ep),
            run * ranks.pp * instances,
            outer // instances,
            run,
            ranks.pp,
        ],
        axis=1,
    )
    reach, link_map = problem.software.reach_outside, problem.network.link_map
    inlet_Bps = link_map.outlet_Bps if isinstance(link_map, TreeLinkMap) else np.inf
    out_Bps = link_map.flow_outside_Bps, inlet_Bps, problem.network.node_egress_Bps
    rates = 1.0 / port_Bps(problem), *(1.0 / (rate * reach) for rate in out_Bps)
    # A node has ranks of the runs that it meets, `inside` of them of one group at most, which is
    # in as many nodes at least; what these leave to each member goes out of them.
    runs = np.maximum(ranks.most + run - 2, 0) // (run * ranks.pp) + 1
    inside = np.maximum(-(-np.minimum(ranks.most, runs * run) // (ranks.tp * ep)), 1)
    members = ranks.cp * ranks.dp // ep
    simple = (1.0 - 1.0 / -(-members // inside)) * np.maximum(rates[1] / inside, rates[3])
    simple = np.where((ranks.most > 0) & (members > inside), simple, 0.0)
    counted = problem.network.devices // np.maximum(ranks.most, 1) * ranks.pp <= _MOST_COUNTED
    lies = counted & (np.where(ep > inner, ep % inner, inner % ep) == 0)
    least = np.where(lies, np.inf, 0.0)
    for index, order in enumerate(ranks.device_orders):
        which = np.flatnonzero(lies & ((ranks.device_order == index) | (ranks.device_order < 0)))
        if len(which):
            seconds = _least_beyond(*_node_runs(problem.network, order), keys[which], *rates)
            least[which] = np.minimum(least[which], seconds)
    return np.maximum(np.where(least < np.inf, least, 0.0), simple)


@lru_cache(maxsize=64)
def _node_runs(network: Network, order: str) -> tuple[IntArray, IntArray, IntArray]:
    """Return the first rank of every node, the one after its last, and its block at every level
    beyond; nodes in the order of their blocks.

    All ranks are of one node where those of a node do not follow one another, or nodes are no
    blocks: nothing is known there.
    """
    devices = device_order(network, order)[: places(network, order)]
    node = network.node[devices]
    first = np.flatnonzero(np.diff(node, prepend=-1))
    blocks = np.stack([block[devices] for block in network.nesting])
    opens = np.flatnonzero(np.diff(blocks[0], prepend=-1))
    parted = len(np.unique(node[first])) < len(first) or not np.array_equal(first, opens)
    if parted or network.torus is not None:
        return np.array([0]), np.array([len(devices)]), np.zeros((1, 1), dtype=np.int64)
    sequence = np.lexsort(blocks[:, first])
    last = np.append(first[1:], len(devices))
    return first[sequence], last[sequence], blocks[1:, first[sequence]]


@compiled
def _least_beyond(
    first: IntArray,
    last: IntArray,
    beyond: IntArray,
    keys: IntArray,
    port: float,
    alone: float,
    inlet: float,
    egress: float,
) -> FloatArray:
    """Return what the fastest stage takes, (groups,); infinity where ranks have no place.

    Parameters
    ----------
    first, last : (nodes,)
    beyond : (levels, nodes)
    keys : (groups, 6)
        A group has ``width`` ranks ``stride`` apart, and as many in each of ``repeats`` runs that
        are ``period`` apart; those of the ``stages`` begin ``step`` ranks apart.
    port, alone, inlet, egress : float
        Seconds per byte of a device inside its node; beyond it of one flow, of what a device
        receives, and of what leaves a node.
    """
    result = np.zeros(len(keys))
    memo: dict[tuple[int, int, int, int, int, int], float] = {}
    size, heaviest = np.zeros(len(first), np.int64), np.zeros(len(first), np.int64)
    at = np.zeros(len(first), np.int64)
    common = 0
    for rank in first:
        common = np.gcd(common, rank)
    for k in range(len(keys)):
        key = (keys[k, 0], keys[k, 1], keys[k, 2], keys[k, 3], keys[k, 4], keys[k, 5])
        if key in memo:
            result[k] = memo[key]
            continue
        stride, width, period, repeats, step, stages = key
        n = width * repeats
        together = np.gcd(np.gcd(common, stride), step)
        least = np.inf
        for stage in range(stages):
            nodes, members, fewest, most = 0, 0, n, 0
            edge, before = -1, 0
            for node in range(len(first)):
                if last[node] <= stage * step or members == n:
                    continue
                upto = before
                for rank in (first[node], last[node]):
                    before = upto
                    if rank != edge:
                        runs, rest = divmod(max(rank - stage * step, 0), period)
                        upto = min(runs * width + min(width, (rest + stride - 1) // stride), n)
                        edge = rank
                count, before = upto - before, upto
                if count > 0:
                    size[nodes] = heaviest[nodes] = count
                    at[nodes] = node
                    fewest, most = min(fewest, count), max(most, count)
                    nodes += 1
                    members += count
            if members < n or nodes == 1:
                least = np.inf if members < n else 0.0
                break
            flows = fewest if fewest == most else 1
            inside = (1.0 - 1.0 / most) * port
            round_ring = (1.0 - 1.0 / n) * max(inside, alone / flows, together * egress)
            # Of two nodes a library may send chunks through both levels at once.
            level_by_level, shard = inside if nodes > 2 else 0.0, 1.0 / fewest
            for level in range(len(beyond)):
                widest, narrowest, slowest = 1, nodes, 0.0
                blocks, begin = 0, 0
                while begin < nodes:
                    end, joint, heavy = begin, 0, 0
                    while end < nodes and beyond[level, at[end]] == beyond[level, at[begin]]:
                        joint += size[end]
                        heavy = max(heavy, heaviest[end])
                        end += 1
                    fan = end - begin
                    widest, narrowest = max(widest, fan), min(narrowest, fan)
                    if fan > 1:
                        slowest = max(slowest, alone, heavy * together * egress)
                        for child in range(begin, end):
                            onto = size[child + 1 if child + 1 < end else begin]
                            slowest = max(slowest, -(-size[child] // onto) * inlet)
                    size[blocks], heaviest[blocks], at[blocks] = joint, heavy, at[begin]
                    blocks += 1
                    begin = end
                level_by_level += shard * (1.0 - 1.0 / widest) * slowest
                shard /= narrowest
                nodes = blocks
            least = min(least, level_by_level, round_ring)
        memo[key] = least
        result[k] = least
    return result


def alone_outside(problem: Problem) -> float:
    """Seconds per byte that a flow takes at least where it leaves its node; 0 if none can."""
    return 1.0 / (problem.network.link_map.flow_outside_Bps * problem.software.reach_outside)


def node_ranks(network: Network, device_orders: tuple[str, ...]) -> tuple[int, int]:
    """Return `ranks_in_nodes` over several orders; 0 and 0 where nothing is known of one."""
    ranks = [ranks_in_nodes(network, order) for order in device_orders]
    fewest = min(entry for entry, _ in ranks)
    return fewest, max(entry for _, entry in ranks) if fewest else 0


def port_Bps(problem: Problem) -> float:
    """Bytes per second that one device gets through at most; infinite with one device."""
    return (problem.network.link_map.port_Bps or float("inf")) * problem.software.reach
