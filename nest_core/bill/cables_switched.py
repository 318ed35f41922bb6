"""Every cable of Clos fabrics and dragonflies, by the wiring rules of their kinds.

Clos (`nest_core.fabric.asbuilt`): a leaf's ports go to its nodes in their order, then to spines;
uplink ``t`` of a leaf goes to spine ``t // share`` of its group, ``share`` uplinks each; a pod's
uplinks are dealt to the cores in turn, pods one after the other. Switches are numbered as in
``missing``. Dragonfly: a router's ports go to nodes, to the routers of its group in order, then to
other groups in the consecutive arrangement.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nest_core.bill.bundles import Bundle, Side, numbered
from nest_core.bill.counts import clos_places
from nest_core.bill.floor import Hall
from nest_core.bill.inventory import Inventory
from nest_core.fabric import Clos, Dragonfly, IntArray

__all__ = ["clos_bundles", "dragonfly_bundles"]


def clos_bundles(fabric: Clos, parts: Inventory) -> Iterator[Bundle]:
    """Cables of NICs, then of leaves, then of spines, without those of failed elements."""
    places = clos_places(fabric, parts.hall)
    yield _to_leaves(fabric, parts, places[0])
    if fabric.tiers > 1:
        yield _to_spines(fabric, parts, places)
    if fabric.tiers > 2:
        yield _to_cores(fabric, parts, places)


def _to_leaves(fabric: Clos, parts: Inventory, places: IntArray) -> Bundle:
    sizing, planes, hall = fabric.sizing, fabric.planes, parts.hall
    nics = fabric.nics_per_node // fabric.rails
    nodes = np.unique(fabric.node_of())
    node, rail, plane, nic = _product(len(nodes), fabric.rails, planes, nics)
    node = nodes[node]
    group = node // sizing.nodes_per_unit * sizing.rails + rail
    alive = fabric.as_built.alive[0][group, plane, 0]
    node, rail, plane, nic, group = (at[alive] for at in (node, rail, plane, nic, group))
    ports = node % sizing.nodes_per_unit * nics + nic
    cards = (rail * nics + nic) * planes + plane

    def port_name(number: int) -> str:
        card, port = divmod(number, planes)
        return f"nic {card}" if planes == 1 else f"nic {card} port {port}"

    leaf = fabric.tier_names[0]
    return Bundle(
        parts.links[0],
        Side(numbered("node"), node, cards, port_name=port_name),
        Side(numbered(leaf), group * planes + plane, ports, leaf),
        hall.lengths_m(hall.rack_of(node), places[group]),
    )


def _to_spines(fabric: Clos, parts: Inventory, places: list[IntArray]) -> Bundle:
    sizing, planes = fabric.sizing, fabric.planes
    pods, spines = np.array(sizing.pod_of), np.array(sizing.spines)
    leaf, plane, uplink = _product(len(pods), planes, sizing.up)
    pod = pods[leaf]
    share = sizing.up // spines[pod]
    spine = uplink // share
    alive = fabric.as_built.alive
    is_present = alive[0][leaf, plane, 0] & alive[1][pod, plane, spine]
    rank = np.zeros(len(pods), dtype=np.int64)
    for number in range(len(spines)):
        rank[pods == number] = np.arange(int((pods == number).sum()))
    port = rank[leaf] * share + uplink % share
    above = _switch(spines, planes, pod, plane, spine)
    names = fabric.tier_names
    return Bundle(
        parts.links[1],
        Side(
            numbered(names[0]),
            (leaf * planes + plane)[is_present],
            sizing.down + uplink[is_present],
            names[0],
        ),
        Side(numbered(names[1]), above[is_present], port[is_present], names[1]),
        parts.hall.lengths_m(places[0][leaf], places[1][pod])[is_present],
    )


def _to_cores(fabric: Clos, parts: Inventory, places: list[IntArray]) -> Bundle:
    sizing, planes = fabric.sizing, fabric.planes
    spines, up = np.array(sizing.spines), np.array(sizing.spine_up)
    tops, leaves = np.array(sizing.top_of), np.array(sizing.leaves)
    ends = spines * up
    pod = np.repeat(np.arange(len(spines)), ends)
    # Counted within its pod, and within all pods of its top.
    uplink = np.arange(len(pod)) - (np.cumsum(ends) - ends)[pod]
    first = np.zeros(len(spines), dtype=np.int64)
    for top in range(int(tops.max()) + 1):
        below = np.flatnonzero(tops == top)
        first[below] = np.cumsum(ends[below]) - ends[below]
    spine, port = uplink // up[pod], uplink % up[pod]
    core, core_port = (first[pod] + uplink) % sizing.cores, (first[pod] + uplink) // sizing.cores
    plane, at = _product(planes, len(pod))
    pod, spine, port, core, core_port = (x[at] for x in (pod, spine, port, core, core_port))
    alive = fabric.as_built.alive
    is_present = alive[1][pod, plane, spine] & alive[2][tops[pod], plane, core]
    cores = np.full(int(tops.max()) + 1, sizing.cores)
    down = leaves[pod] * (sizing.up // spines[pod])
    below, above = (
        _switch(spines, planes, pod, plane, spine),
        _switch(cores, planes, tops[pod], plane, core),
    )
    names = fabric.tier_names
    return Bundle(
        parts.links[2],
        Side(numbered(names[1]), below[is_present], (down + port)[is_present], names[1]),
        Side(numbered(names[2]), above[is_present], core_port[is_present], names[2]),
        parts.hall.lengths_m(places[1][pod], places[2][tops[pod]])[is_present],
    )


def _switch(
    counts: IntArray, planes: int, group: IntArray, plane: IntArray, index: IntArray
) -> IntArray:
    """Numbers of switches: group by group, within a group plane by plane."""
    first = (np.cumsum(counts) - counts) * planes
    number: IntArray = first[group] + plane * counts[group] + index
    return number


def dragonfly_bundles(fabric: Dragonfly, parts: Inventory) -> Iterator[Bundle]:
    """Cables of nodes, then inside groups, then between groups, group by group."""
    hall = parts.hall
    a, p, groups = fabric.routers_per_group, fabric.nodes_per_router, fabric.groups
    first = np.arange(groups) * a * p
    place = hall.middle(first, first + a * p - 1)
    node, nic = _product(fabric.nodes, fabric.nics_per_node)
    down = p * fabric.nics_per_node
    yield Bundle(
        parts.links[0],
        Side(numbered("node"), node, nic, port_name=numbered("nic")),
        _router(node // p, node % p * fabric.nics_per_node + nic),
        hall.lengths_m(hall.rack_of(node), place[node // (a * p)]),
    )
    first_router, second_router = np.triu_indices(a, 1)
    inside = int(hall.runs_m(np.zeros(1, np.int64), np.zeros(1, np.int64))[0])
    for group in range(groups):
        # A router's own number is left out where it counts the others.
        yield Bundle(
            parts.links[1],
            _router(group * a + first_router, down + second_router - 1),
            _router(group * a + second_router, down + first_router),
            np.full(len(first_router), inside),
        )
    for group in range(groups if fabric.links_per_pair else 0):
        yield _between_groups(fabric, parts, hall, place, group)


def _between_groups(
    fabric: Dragonfly, parts: Inventory, hall: Hall, place: IntArray, group: int
) -> Bundle:
    """From one group to all of higher numbers."""
    target, link = _product(fabric.groups - group - 1, fabric.links_per_pair)
    target = target + group + 1
    source, sink = np.full_like(target, group), target
    return Bundle(
        parts.links[2],
        _global(fabric, source, sink, link),
        _global(fabric, sink, source, link),
        hall.lengths_m(place[source], place[sink]),
    )


def _global(fabric: Dragonfly, group: IntArray, target: IntArray, link: IntArray) -> Side:
    dealt = (target - (target > group)) * fabric.links_per_pair + link
    h, first = fabric.global_links_per_router, fabric.radix - fabric.global_links_per_router
    router = group * fabric.routers_per_group + fabric.gateway(group, target, link)
    return _router(router, first + dealt % h)


def _router(number: IntArray, port: IntArray) -> Side:
    return Side(numbered("router"), number, port, "router")


def _product(*sizes: int) -> tuple[IntArray, ...]:
    """Indices of all combinations, the last one fastest."""
    return tuple(at.reshape(-1) for at in np.indices(sizes))
