"""What a network's link groups are called."""

from __future__ import annotations

import numpy as np

from nest_core.network import GraphLinkMap, IntArray, Network, TreeLinkMap
from nest_core.network.torus import TorusLinkMap

__all__ = ["link_group_name", "tier_name"]


def tier_name(network: Network, level: int) -> str:
    """The links whose traffic a level's pairs send first; a torus has one kind of link."""
    return "links" if network.torus is not None else network.levels[level].name


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
    at = link_group
    if link_map.scale_up is not None:
        inside = len(link_map.scale_up.capacity_Bps)
        if at < inside:
            return f"a link inside node {at // link_map.scale_up.links_per_node:,}"
        at -= inside
    for tier in link_map.tiers:
        link_groups = 2 * tier.group_links * len(tier.capacity_Bps)
        if at < link_groups:
            break
        at -= link_groups
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
    if isinstance(name, tuple):
        return " ".join(map(str, name))
    return str(name)
