"""Names of link groups: where they lead, in words."""

import numpy as np

from nest_core.network.dragonfly import DragonflyLinkMap
from nest_core.network.graph import GraphLinkMap
from nest_core.network.levels import Network
from nest_core.network.link_map import IntArray
from nest_core.network.torus import TorusLinkMap
from nest_core.network.tree import TreeLinkMap

__all__ = ["link_group_name"]


def link_group_name(network: Network, link_group: int) -> str:
    """Where a link group leads, in words; devices and switches count from 0."""
    link_map = network.link_map
    if isinstance(link_map, TreeLinkMap):
        return _of_tree(network, link_map, link_group)
    if isinstance(link_map, TorusLinkMap):
        return _of_torus(link_map, link_group)
    if isinstance(link_map, DragonflyLinkMap):
        return link_map.name(link_group)
    if isinstance(link_map, GraphLinkMap):
        return _of_graph(link_map, link_group)
    return f"link {link_group:,}"


def _of_tree(network: Network, link_map: TreeLinkMap, link_group: int) -> str:
    inside = link_map.scale_up
    sizes = [0 if inside is None else len(inside.capacity_Bps)]
    sizes += [2 * tier.group_links * len(tier.capacity_Bps) for tier in link_map.tiers]
    starts = np.cumsum([0, *sizes])
    part = int(np.searchsorted(starts, link_group, side="right")) - 1
    at = link_group - int(starts[part])
    if inside is not None and part == 0:
        return f"a link inside node {at // inside.links_per_node:,}"
    tier = link_map.tiers[part - 1]
    number, down = divmod(at, 2)
    child, one_link = divmod(number, tier.group_links)
    above, below = network.levels[part - 1].name, _devices(np.flatnonzero(tier.child == child))
    link = f", link {one_link + 1:,} of {tier.group_links:,}" if tier.group_links > 1 else ""
    return f"{above} down to {below}{link}" if down else f"{below} up to {above}{link}"


def _devices(members: IntArray) -> str:
    if len(members) == 1:
        return f"device {members[0]:,}"
    if len(members) and members[-1] - members[0] == len(members) - 1:
        return f"devices {members[0]:,} to {members[-1]:,}"
    first = f" from {members[0]:,} on" if len(members) else ""
    return f"{len(members):,} devices{first}"


def _of_torus(link_map: TorusLinkMap, link_group: int) -> str:
    link, downwards = divmod(link_group, 2)
    place, axis = divmod(link, len(link_map.shape.shape))
    devices = np.flatnonzero(link_map.place == place)
    who = f"device {devices[0]:,}" if len(devices) else f"router {place:,}"
    return f"{who}, dimension {axis + 1}, {'down' if downwards else 'up'}wards"


def _of_graph(link_map: GraphLinkMap, link_group: int) -> str:
    arc, cable = link_map.cable(link_group)
    links = link_map.links
    ends = (links.elements[int(links.tail[arc])], links.elements[int(links.head[arc])])
    name = " to ".join(_element(end) for end in ends)
    return name if cable is None else f"{name}, cable {cable + 1:,} of {links.count[arc]:,}"


def _element(name: object) -> str:
    if isinstance(name, int):
        return f"device {name:,}"
    return " ".join(map(str, name)) if isinstance(name, tuple) else str(name)
