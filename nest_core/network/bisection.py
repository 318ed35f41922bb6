"""Bisection: the bandwidth between the two halves of a fabric's devices, one direction.

The halves are the first and the last devices in nested order, as many as come closest to half
without dividing a node. The bandwidth is that of a minimum cut between them:

* trees of groups by a recursion over the groups, ``cut(g, s) = sum over children c of
  min(cut(c, s), cut(c, not s) + uplinks(c))`` with ``s`` the half that a group's switches side
  with;
* tori by counting the links across a dimension (`Torus.bisection_Bps`), all places present;
* graphs and dragonflies by a maximum flow on their links (Dinic; `scipy.sparse.csgraph`).

Units: bytes/s.
"""

import itertools

import numpy as np

from nest_core.fabric import MAX_EXPLICIT_DEVICES, Fabric
from nest_core.fabric.lattice import torus_of
from nest_core.network.graph import GraphLinkMap
from nest_core.network.levels import Network
from nest_core.network.link_graph import NIC, Links, read_links
from nest_core.network.link_map import BoolArray, FloatArray, IntArray
from nest_core.network.scale_up import ScaleUpLinkMap
from nest_core.network.torus import TorusLinkMap
from nest_core.network.tree import TreeLinkMap, TreeTier

__all__ = ["bisection_Bps", "full_bisection_Bps", "knows_nodes", "last_half"]


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
    last = last_half(network)
    if isinstance(network.link_map, TreeLinkMap):
        return _tree_cut(network.link_map, last)
    if network.devices > MAX_EXPLICIT_DEVICES:
        return None
    link_map = network.link_map
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
        link_map = network.link_map
        node = link_map.links.node() if isinstance(link_map, GraphLinkMap) else network.nesting[0]
        along = node[order]
        edges = np.flatnonzero(along[1:] != along[:-1]) + 1
        if len(edges):
            middle = int(edges[np.abs(2 * edges - devices).argmin()])
    last = np.zeros(devices, np.bool_)
    last[order[middle:]] = True
    return last


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
        uplinks = _uplinks(unit, tier.child, tier.capacity_Bps)
        least = np.minimum(cost, cost[:, ::-1] + uplinks[:, None])
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
    """Minimum cut between the halves, each contracted to one vertex."""
    from nest_core.network.cuts import Cuts  # scipy: few fabrics are drawn

    side = np.append(last.astype(np.int64), np.full(len(links.elements) - links.devices, -1))
    used, one_group = np.ones(len(links.tail), np.bool_), np.zeros(links.devices, np.int64)
    return float(Cuts.between(links, used, side, one_group).uplinks_Bps().min())


def _numbered(values: IntArray) -> IntArray:
    return np.asarray(np.unique(values, return_inverse=True)[1], np.int64)
