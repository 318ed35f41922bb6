"""What the bundles of a network's wires are called."""

from __future__ import annotations

import numpy as np

from nest_core.network import Network
from nest_core.network.graph import GraphWires
from nest_core.network.torus import TorusWires
from nest_core.network.tree import TreeWires
from nest_core.network.wires import IntArray

__all__ = ["bundle_name", "tier_name"]


def tier_name(network: Network, level: int) -> str:
    """The links whose traffic a level's pairs send first; a torus has one kind of link."""
    return "links" if network.torus is not None else network.levels[level].name


def bundle_name(network: Network, bundle: int) -> str:
    """Where a bundle of links leads, in words.

    Devices count from 0. Of dragonflies the bundle's number is told.
    """
    wires = network.wires
    if isinstance(wires, TreeWires):
        return _of_tree(wires, bundle)
    if isinstance(wires, TorusWires):
        return _of_torus(wires, bundle)
    if isinstance(wires, GraphWires):
        return _of_graph(wires, bundle)
    return f"link {bundle:,}"


def _of_tree(wires: TreeWires, bundle: int) -> str:
    at = bundle
    if wires.interior is not None:
        inside = len(wires.interior.capacity_Bps)
        if at < inside:
            return f"a link inside node {at // wires.interior.links_per_node:,}"
        at -= inside
    for tier in wires.tiers:
        bundles = 2 * tier.lanes * len(tier.capacity_Bps)
        if at < bundles:
            break
        at -= bundles
    number, down = divmod(at, 2)
    child, lane = divmod(number, tier.lanes)
    way = "down to" if down else "up from"
    link = f", link {lane + 1:,} of {tier.lanes:,}" if tier.lanes > 1 else ""
    return f"{way} {_devices(np.flatnonzero(tier.child == child))}{link}"


def _devices(members: IntArray) -> str:
    if len(members) == 1:
        return f"device {members[0]:,}"
    if len(members) and members[-1] - members[0] == len(members) - 1:
        return f"devices {members[0]:,} to {members[-1]:,}"
    first = f" from {members[0]:,} on" if len(members) else ""
    return f"{len(members):,} devices{first}"


def _of_torus(wires: TorusWires, bundle: int) -> str:
    link, downwards = divmod(bundle, 2)
    place, axis = divmod(link, len(wires.shape.shape))
    seated = np.flatnonzero(wires.place == place)
    who = f"device {seated[0]:,}" if len(seated) else f"router {place:,}"
    return f"{who}, dimension {axis + 1}, {'down' if downwards else 'up'}wards"


def _of_graph(wires: GraphWires, bundle: int) -> str:
    links = wires.links
    copies = links.count if wires.routing == "ecmp" else np.ones_like(links.count)
    arc = int(np.searchsorted(np.cumsum(copies), bundle, side="right"))
    ends = (links.elements[int(links.tail[arc])], links.elements[int(links.head[arc])])
    return " to ".join(_element(end) for end in ends)


def _element(name: object) -> str:
    if isinstance(name, int):
        return f"device {name:,}"
    if isinstance(name, tuple):
        return " ".join(map(str, name))
    return str(name)
