"""Bisection: the least bandwidth between two halves of a fabric's devices, one direction.

Halves hold as many devices as come closest to half without dividing a node. Which halves are least
is searched, as no closed form is known of uneven fabrics: from the first and the last devices in
nested order, with switches that change sides one after the other (Fiduccia and Mattheyses), each
time with the nodes on the sides that suit these switches best. What is found is a cut that exists;
on small fabrics it is the least (tests/network/test_bisection.py). Of more than 4 million pairs of
a node and a switch, and where links join nodes directly, halves are those of the order alone:

* trees of groups by a recursion over the groups, ``cut(g, s) = sum over children c of
  min(cut(c, s), cut(c, not s) + uplinks(c))`` with ``s`` the half that a group's switches side
  with;
* tori by counting the links across a dimension (`Torus.bisection_Bps`), all places present;
* graphs and dragonflies by a maximum flow on their links (Dinic; `scipy.sparse.csgraph`).

Units: bytes/s.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from nest_core.fabric import MAX_EXPLICIT_DEVICES, Fabric, torus_of
from nest_core.network.graph import GraphLinkMap
from nest_core.network.levels import Network
from nest_core.network.link_graph import NIC, Links, read_links
from nest_core.network.link_map import BoolArray, FloatArray, IntArray, ScaleUpLinkMap
from nest_core.network.torus import TorusLinkMap
from nest_core.network.tree import TreeLinkMap, TreeTier

__all__ = ["bisection_Bps", "full_bisection_Bps", "knows_nodes", "last_half"]

Arcs = tuple[IntArray, IntArray, FloatArray]
MAX_PAIRS = 4_000_000
"""Of a node and a switch, beyond which halves are not searched."""
MOVES, ROUNDS = 16, 4
"""Switches that change sides before the best is kept; times that sides settle at first."""
_SAME = 1e-9


def bisection_Bps(fabric: Fabric, network: Network) -> float | None:
    """Bandwidth between the halves; None for one device, and for link graphs of over 16,384.

    Parameters
    ----------
    fabric : Fabric
    network : Network
        What the fabric collapses to.

    Examples
    --------
    >>> from nest_core.fabric import Hierarchical, Tier
    >>> from nest_core.network import collapse
    >>> tiers = (Tier("node", 4, 100e9, 1e-6), Tier("rack", 4, 50e9, 2e-6))
    >>> fabric = Hierarchical("sixteen", tiers)
    >>> bisection_Bps(fabric, collapse(fabric)) / 1e9
    400.0
    """
    if network.devices < 2:
        return None
    torus = torus_of(fabric)
    if torus is not None:
        return torus.bisection_Bps()
    last, link_map = last_half(network), network.link_map
    if isinstance(link_map, TreeLinkMap):
        node = _numbered(_nodes(network))
        least = _least(_tree_arcs(link_map, node), node, last) if node.any() else np.inf
        return min(_tree_cut(link_map, last), least)
    if network.devices > MAX_EXPLICIT_DEVICES:
        return None
    links = link_map.links if isinstance(link_map, GraphLinkMap) else read_links(fabric.explicit())
    return _link_cut(links, last)


def knows_nodes(network: Network) -> bool:
    """Whether it is known what leaves a node: not of a drawing without NICs."""
    link_map = network.link_map
    return not isinstance(link_map, GraphLinkMap) or bool((link_map.links.role == NIC).any())


def full_bisection_Bps(network: Network) -> float:
    """Return what the smaller half could send if nothing above the nodes were a bottleneck.

    Every device with its share of what leaves its node, on a torus with all of its links.
    """
    if network.devices < 2:
        return 0.0
    link_map = network.link_map
    if isinstance(link_map, TorusLinkMap):
        rate = link_map.port_Bps
    else:
        beyond = link_map.tier[link_map.outside]
        one_node = network.node.min() == network.node.max()
        first = 0 if one_node or not len(beyond) else int(beyond.min())
        rate = network.levels[min(first, len(network.levels) - 1)].bandwidth_Bps
    last = int(last_half(network).sum())
    return min(last, network.devices - last) * rate


def last_half(network: Network) -> BoolArray:
    """Whether a device is in the last half, shape (devices,)."""
    devices = network.devices
    order = np.lexsort(network.nesting)
    middle = devices // 2
    if network.torus is None:
        along = _nodes(network)[order]
        edges = np.flatnonzero(along[1:] != along[:-1]) + 1
        if len(edges):
            middle = int(edges[np.abs(2 * edges - devices).argmin()])
    last = np.zeros(devices, np.bool_)
    last[order[middle:]] = True
    return last


def _nodes(network: Network) -> IntArray:
    """Return what is not divided, shape (at least devices,): of drawings what hangs together."""
    link_map = network.link_map
    return link_map.links.node() if isinstance(link_map, GraphLinkMap) else network.nesting[0]


def _tree_arcs(link_map: TreeLinkMap, node: IntArray) -> Arcs:
    """Return uplinks outside nodes; nodes come first, then groups, tier by tier."""
    below, vertices, arcs = node, int(node.max()) + 1, []
    for inner, tier in itertools.pairwise(link_map.tiers):
        if tier.direct and not np.ptp(inner.group):
            break  # all devices meet further in
        child, first = np.unique(tier.child, return_index=True)
        group = vertices + _numbered(tier.group)
        low = (node if tier.direct else below)[first]
        arcs.append((low, group[first], tier.capacity_Bps[child]))
        below, vertices = group, int(group.max()) + 1
    low, high, capacity = (np.concatenate(part) for part in zip(*arcs, strict=True))
    return np.append(low, high), np.append(high, low), np.append(capacity, capacity)


@dataclass(frozen=True, slots=True, eq=False)
class _CutSearch:
    """Nodes and switches that are divided into sides 0 and 1.

    Parameters
    ----------
    wide_Bps : float array (nodes, switches)
    between_Bps : float array (switches, switches)
    weight : int array (nodes,)
        Devices.
    uneven : int
        Most devices that one side may have over the other.
    """

    wide_Bps: FloatArray
    between_Bps: FloatArray
    weight: IntArray
    uneven: int

    def cuts_Bps(self, sides: FloatArray) -> FloatArray:
        """Return cuts with the nodes that suit the switches' sides best, (rows, switches)."""
        cost = sides @ self.wide_Bps.T  # of nodes on side 0
        lean = 2 * cost - self.wide_Bps.sum(axis=1)
        order = np.argsort(-lean, axis=1, kind="stable")
        moved = 2 * np.cumsum(self.weight[order], axis=1) - self.weight.sum()
        saved = np.cumsum(np.take_along_axis(lean, order, axis=1), axis=1)
        most = np.where(np.abs(moved) <= self.uneven, saved, -np.inf).max(axis=1)
        crossing = (sides @ self.between_Bps) * (1 - sides)
        return np.asarray(cost.sum(axis=1) - most + crossing.sum(axis=1))

    def least_Bps(self, last: FloatArray) -> float:
        """Return the least cut that is found from nodes of which some are last."""
        switches = len(self.between_Bps)
        most = (self.wide_Bps.sum(axis=0) + self.between_Bps.sum(axis=0)) / 2
        side, least = np.zeros(switches), np.inf
        for _ in range(ROUNDS):
            side = np.where(last @ self.wide_Bps + side @ self.between_Bps > most, 1.0, 0.0)
        lowest = float(self.cuts_Bps(side[None])[0])
        while lowest < least * (1 - _SAME):
            least, trial, free = lowest, side, np.arange(switches)
            for _ in range(min(switches, MOVES, max(1, MAX_PAIRS // (4 * self.wide_Bps.size)))):
                moves = np.abs(trial - np.eye(switches)[free])
                values = self.cuts_Bps(moves)
                best = int(values.argmin())
                trial, free = moves[best], np.delete(free, best)
                if values[best] < lowest:
                    lowest, side = float(values[best]), trial
        return least


def _least(arcs: Arcs, node: IntArray, last: BoolArray) -> float:
    """Return the least cut that is found between halves of nodes; infinite where none is tried.

    Parameters
    ----------
    arcs : (int array, int array, float array)
        Tail, head and capacity, both directions; nodes come first.
    node : int array (devices,)
    last : bool array (devices,)
        Where devices are at first.
    """
    tail, head, capacity = arcs
    nodes = int(node.max()) + 1
    element, at = np.unique(np.concatenate([np.arange(nodes), tail, head]), return_inverse=True)
    tail, head = np.split(at[nodes:], 2)
    switches = len(element) - nodes
    joined = (np.maximum(tail, head) < nodes).any()
    if nodes == 1 or not 0 < nodes * switches <= MAX_PAIRS or joined:
        return np.inf
    matrix, down = np.zeros((len(element), switches)), head >= nodes
    np.add.at(matrix, (tail[down], head[down] - nodes), capacity[down])
    start = np.zeros(nodes)
    start[node] = last
    uneven = abs(2 * int(last.sum()) - len(last))
    return _CutSearch(matrix[:nodes], matrix[nodes:], np.bincount(node), uneven).least_Bps(start)


def _tree_cut(link_map: TreeLinkMap, last: BoolArray) -> float:
    """Every tier by which devices leave on their own starts a network of its own."""
    starts = [index for index, tier in enumerate(link_map.tiers) if tier.direct or index == 0]
    total = 0.0
    for start, end in itertools.pairwise([*starts, len(link_map.tiers)]):
        if start and len(np.unique(link_map.tiers[start - 1].group)) == 1:
            continue  # all devices meet further in
        if start == 0 and link_map.scale_up is not None:
            total += _direct_cut(link_map.scale_up, last)
        else:
            total += _part_cut(link_map.tiers[start:end], last)
    return total


def _part_cut(tiers: tuple[TreeTier, ...], last: BoolArray) -> float:
    # A link group that both halves share has its whole capacity up for one and down for the other.
    unit = _numbered(tiers[0].child * 2 + last)
    cost = np.full((int(unit.max()) + 1, 2), np.inf)
    cost[unit, last.astype(np.int64)] = 0.0
    for tier in tiers:
        least = np.minimum(
            cost, cost[:, ::-1] + _uplinks(unit, tier.child, tier.capacity_Bps)[:, None]
        )
        group = _numbered(tier.group)
        parent = np.zeros(len(cost), np.int64)
        parent[unit] = group
        above = np.zeros((int(group.max()) + 1, 2))
        np.add.at(above, parent, least)
        unit, cost = group, above
    return float(cost.min(axis=1).sum())


def _uplinks(unit: IntArray, link_group: IntArray, capacity_Bps: FloatArray) -> FloatArray:
    """Capacity of all link groups through which a unit's devices climb, shape (units,)."""
    pair = np.unique(np.stack([unit, link_group]), axis=1)
    return np.asarray(np.bincount(pair[0], capacity_Bps[pair[1]]), np.float64)


def _direct_cut(scale_up: ScaleUpLinkMap, last: BoolArray) -> float:
    """Links between slots of one node whose devices are in different halves."""
    a, b = np.nonzero(scale_up.distance == 1)
    link = scale_up.link[scale_up.start[a * len(scale_up.distance) + b]]
    sides = np.zeros((2, int(scale_up.node.max()) + 1, len(scale_up.distance)), np.bool_)
    sides[last.astype(np.int64), scale_up.node, scale_up.slot] = True
    capacity = scale_up.capacity_Bps.reshape(-1, scale_up.links_per_node)[:, link]
    return float(capacity[sides[0][:, a] & sides[1][:, b]].sum())


def _link_cut(links: Links, last: BoolArray) -> float:
    """Least cut between halves, at most that of the order's."""
    from nest_core.network.cuts import Cuts  # scipy: few fabrics are drawn

    side = np.append(last.astype(np.int64), np.full(len(links.elements) - links.devices, -1))
    used, one_group = np.ones(len(links.tail), np.bool_), np.zeros(links.devices, np.int64)
    by_order = Cuts.between(links, used, side, one_group).uplinks_Bps().min()
    part = links.node()
    node = _numbered(part[: links.devices])
    inside = np.full(int(part.max()) + 1, -1)
    inside[part[: links.devices]] = node
    contracted = Cuts.between(links, used, inside[part], one_group)
    return float(
        min(
            by_order,
            _least((contracted.tail, contracted.head, contracted.capacity_Bps), node, last),
        )
    )


def _numbered(values: IntArray) -> IntArray:
    return np.asarray(np.unique(values, return_inverse=True)[1], np.int64)
