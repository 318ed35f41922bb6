"""Meshed nodes of drawn graphs: devices that are linked to one another and not to a switch.

Where every node is one and all are alike, slot by slot and link by link, their insides are those
of `ScaleUpLinkMap`, as in fabrics that are picked: a flow spreads evenly over its shortest paths,
and collectives may send to all others at once over the links of each device.
"""

from __future__ import annotations

import numpy as np

from nest_core.network.link_graph import DEVICE, NIC, Links
from nest_core.network.link_map import IntArray
from nest_core.network.scale_up import ScaleUpLinkMap, scale_up_link_map

__all__ = ["meshed_nodes"]

FEW = 16
"""Devices of a node whose shortest paths are few enough to be listed; rings and meshes have few.

Without NICs and switches so many are taken as one node, if two links join any two.
"""


def meshed_nodes(links: Links) -> tuple[ScaleUpLinkMap, IntArray] | None:
    """The insides of a graph's nodes, and the arc of each of their links.

    None unless all nodes are of devices alone, alike, with direct links and of one latency.
    Arcs are listed as `ScaleUpLinkMap` numbers links: node by node.
    """
    node = _node(links)
    if node is None:
        return None
    size = np.bincount(node)
    if size[0] < 2 or (size != size[0]).any():
        return None
    order = np.argsort(node, kind="stable")
    slot = np.empty(links.devices, dtype=np.int64)
    slot[order] = np.arange(links.devices) % size[0]
    inside = np.flatnonzero((links.role[links.tail] == DEVICE) & (links.role[links.head] == DEVICE))
    if len(inside) == 0 or np.ptp(links.latency_s[inside]) > 0:
        return None
    a, b = slot[links.tail[inside]], slot[links.head[inside]]
    where = np.lexsort((b, a, node[links.tail[inside]]))
    inside, a, b = inside[where], a[where], b[where]
    node_links, rest = divmod(len(inside), len(size))
    if size[0] > FEW and node_links not in (2 * size[0], size[0] * (size[0] - 1)):
        return None
    rate = links.capacity_Bps[inside]
    for row in (a, b, rate):
        if rest or not (row.reshape(len(size), node_links) == row[:node_links]).all():
            return None
    pairs = list(
        zip(
            a[:node_links].tolist(),
            b[:node_links].tolist(),
            rate[:node_links].tolist(),
            strict=True,
        )
    )
    once = [(low, high, width) for low, high, width in pairs if low < high]
    link_map = scale_up_link_map(node, slot, int(size[0]), once)
    # Links are numbered pair by pair, there and back.
    number = {(low, high): at for at, (low, high, _) in enumerate(pairs)}
    both_ways = [at for low, high, _ in once for at in (number[low, high], number[high, low])]
    return link_map, np.asarray(inside.reshape(len(size), node_links)[:, both_ways].reshape(-1))


def _node(links: Links) -> IntArray | None:
    """Node of every device, (devices,), where nodes are known and hold devices alone."""
    part = links.node()
    number, node = np.unique(part[: links.devices], return_inverse=True)
    if not (links.role == NIC).any():
        alone = len(links.role) == links.devices <= FEW
        return node if alone and _within_two(links) else None
    switches = part[links.devices :][links.role[links.devices :] != NIC]
    return None if np.isin(switches, number).any() else node


def _within_two(links: Links) -> bool:
    joined = np.eye(links.devices, dtype=np.int64)
    joined[links.tail, links.head] = 1
    return bool((joined @ joined > 0).all())
