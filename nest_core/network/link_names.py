"""Names of link groups: where they lead, in words."""

import numpy as np

from nest_core.network.graph import GraphLinkMap
from nest_core.network.levels import Network
from nest_core.network.link_map import IntArray
from nest_core.network.torus import TorusLinkMap
from nest_core.network.tree import TreeLinkMap

__all__ = ["link_group_name"]


def link_group_name(network: Network, link_group: int) -> str:
    """Where a link group leads, in words.

    Devices count from 0. Of dragonflies the link group's number is told.
    """
    link_map = network.link_map
    if isinstance(link_map, TreeLinkMap):
        return _of_tree(link_map, link_group)
    if isinstance(link_map, TorusLinkMap):
        return _of_torus(link_map, link_group)
    if isinstance(link_map, GraphLinkMap):
        return _of_graph(link_map, link_group)
    return f"link {link_group:,}"


def _of_tree(link_map: TreeLinkMap, link_group: int) -> str:
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
    way = "down to" if down else "up from"
    link = f", link {one_link + 1:,} of {tier.group_links:,}" if tier.group_links > 1 else ""
    return f"{way} {_devices(np.flatnonzero(tier.child == child))}{link}"


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
    links = link_map.links
    copies = links.count if link_map.routing == "ecmp" else np.ones_like(links.count)
    arc = int(np.searchsorted(np.cumsum(copies), link_group, side="right"))
    ends = (links.elements[int(links.tail[arc])], links.elements[int(links.head[arc])])
    return " to ".join(_element(end) for end in ends)


def _element(name: object) -> str:
    if isinstance(name, int):
        return f"device {name:,}"
    if not isinstance(name, tuple):
        return str(name)
    words = [place for place, part in enumerate(name) if isinstance(part, str)] or [0]
    return f"{name[words[0]]} {'.'.join(map(str, name[words[0] + 1 :]))}"
