"""Cables of one tier as arrays: which port of what is joined to which, and how far apart they are.

Kinds of fabrics state theirs (`cables_switched`, `cables_direct`, `cables_drawn`);
`nest_core.bill.cables` turns them into rows. Ports of switches are numbered from 0, down ports
first.

Every cable of tori and meshes: chip to chip, NIC to NIC, or through optical switches.

A chip's ports are called after the directions that they lead to: ``+x``, ``-z``. Of whole cubes
behind optical switches every face port has a fibre of its own to the switch of its face position,
with port ``2 c`` of a cube ``c`` for the far face and ``2 c + 1`` for the near one
(`nest_core.bill.counts`).

Every cable of drawn graphs, link by link in the order that they were drawn.

Ends are called after the drawn elements. An element that stands for several deals its cables to
them in turn, ``spine (2 of 16)``. Ports are numbered in the order of the links, those of a switch
towards devices first.

Every cable of Clos fabrics and dragonflies, by the wiring rules of their kinds.

Clos (`nest_core.fabric.asbuilt`): a leaf's ports go to its nodes in their order, then to spines;
uplink ``t`` of a leaf goes to spine ``t // share`` of its group, ``share`` uplinks each; a pod's
uplinks are dealt to the cores in turn, pods one after the other. Switches are numbered as in
``missing``. Dragonfly: a router's ports go to nodes, to the routers of its group in order, then to
other groups in the consecutive arrangement. A faster link has the first of the ports that it takes.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from nest_core.bill.counts import clos_places
from nest_core.bill.counts_drawn import DrawnLinks, drawn_links
from nest_core.bill.inventory import Hall, Inventory, LinkCount
from nest_core.bill.prices import Prices
from nest_core.fabric import Clos, Dragonfly, Element, Fabric, GraphFabric, IntArray, Lattice, Torus

__all__ = [
    "Bundle",
    "Side",
    "clos_bundles",
    "dragonfly_bundles",
    "graph_bundles",
    "numbered",
    "torus_bundles",
]


@dataclass(frozen=True, slots=True)
class Side:
    """One end of every cable of a bundle.

    Parameters
    ----------
    name : callable (int) -> str
        What the element of a number is called.
    element, port : int array (cables,)
    role : str
        Of switches as `SwitchCount` has it, which tells how many ports a cage has; else empty.
    port_name : callable (int) -> str
        Of elements other than switches.
    """

    name: Callable[[int], str]
    element: IntArray
    port: IntArray
    role: str = ""
    port_name: Callable[[int], str] = "port {}".format


@dataclass(frozen=True, slots=True)
class Bundle:
    """Cables of one tier.

    Parameters
    ----------
    link : LinkCount
        Tier, rate and what the ends plug into; its lengths are not read.
    a, b : Side
        Below and above.
    metres : int array (cables,)
    """

    link: LinkCount
    a: Side
    b: Side
    metres: IntArray


def numbered(word: str) -> Callable[[int], str]:
    """Return names as ``missing`` has them: leaf 3.

    Examples
    --------
    >>> numbered("leaf")(3)
    'leaf 3'
    """
    return f"{word} {{}}".format


CUBE = 4
AXES = "xyz"


def torus_bundles(
    fabric: Fabric, lattice: Lattice, parts: Inventory, prices: Prices
) -> Iterator[Bundle]:
    """Return cables of a fabric that is a torus, dimension by dimension.

    Parameters
    ----------
    fabric : Fabric
        The torus itself, or the drawing that is one.
    lattice : Lattice
    parts : Inventory
    prices : Prices
    """
    torus = lattice.torus
    name = _names(fabric, lattice)
    links = {link.tier: link for link in parts.links}
    if "between cubes" in links:
        yield from _cubes(torus, parts, prices, name)
        return
    hall, per_node = parts.hall, torus.devices_per_node if torus.nics_per_device else 1
    yield from (
        Bundle(
            links["wrap-around" if closes else "neighbour"],
            *_ends(name, axis, a, b),
            hall.lengths_m(hall.rack_of(a // per_node), hall.rack_of(b // per_node)),
        )
        for a, b, axis, closes in torus.link_places()
    )


def _names(fabric: Fabric, lattice: Lattice) -> Callable[[int], str]:
    if isinstance(fabric, Torus):
        return numbered("chip")
    ids = fabric.device_ids
    return [ids[at] if isinstance(at, int) else str(at) for at in lattice.elements].__getitem__


def _ends(name: Callable[[int], str], axis: int, a: IntArray, b: IntArray) -> tuple[Side, Side]:
    ports = np.full(len(a), axis)
    return (
        Side(name, a, ports, port_name=lambda at: f"+{AXES[at]}"),
        Side(name, b, ports, port_name=lambda at: f"-{AXES[at]}"),
    )


def _stride(torus: Torus, axis: int) -> int:
    return int(np.prod(torus.shape[:axis], dtype=np.int64))


def _cubes(
    torus: Torus, parts: Inventory, prices: Prices, name: Callable[[int], str]
) -> Iterator[Bundle]:
    hall, (inside, between) = parts.hall, parts.links
    place = np.arange(torus.places)
    at = [place // _stride(torus, axis) % size for axis, size in enumerate(torus.shape)]
    x, y, _ = (size // CUBE for size in torus.shape)
    cube = at[0] // CUBE + x * (at[1] // CUBE + y * (at[2] // CUBE))
    for axis in range(3):
        inner = place[at[axis] % CUBE < CUBE - 1]
        yield Bundle(
            inside,
            *_ends(name, axis, inner, inner + _stride(torus, axis)),
            np.full(len(inner), hall.in_rack_m),
        )
    centre = hall.middle(np.zeros(1, np.int64), np.array([torus.places - 1]))
    boxes = -(-2 * (torus.places // CUBE**3) // prices.optical_switch.used_ports)
    for axis in range(3):
        row_at, column_at = (at[other] % CUBE for other in range(3) if other != axis)
        face = axis * CUBE**2 + row_at * CUBE + column_at
        for near, coordinate in enumerate((CUBE - 1, 0)):
            chips = place[at[axis] % CUBE == coordinate]
            port = 2 * cube[chips] + near
            box, port = np.divmod(port, prices.optical_switch.used_ports)
            yield Bundle(
                between,
                _ends(name, axis, chips, chips)[near],
                Side(numbered("optical"), face[chips] * boxes + box, port, "optical"),
                hall.lengths_m(hall.rack_of(cube[chips] * CUBE**3), np.repeat(centre, len(chips))),
            )


def graph_bundles(fabric: GraphFabric, prices: Prices) -> Iterator[Bundle]:
    """Return cables outside nodes, tier by tier."""
    given: defaultdict[str, int] = defaultdict(int)

    def kind(link: DrawnLinks) -> tuple[int, float, str, str, tuple[str, str]]:
        tier = link.tier  # downlinks are met before uplinks
        return link.height, tier.rate_Gbps, tier.lower, tier.upper, link.roles

    _, _, links = drawn_links(fabric, prices)
    for (*_, roles), group in groupby(sorted(links, key=kind), kind):
        tier = list(group)
        metres = np.repeat([link.metres for link in tier], [link.count for link in tier])
        low, high = (
            _side([(getattr(link, end), link.count) for link in tier], given, role)
            for end, role in zip(("low", "high"), roles, strict=True)
        )
        yield Bundle(tier[0].tier, low, high, metres)


def _side(ends: Sequence[tuple[Element, int]], given: defaultdict[str, int], role: str) -> Side:
    """Boxes and ports of every cable; ``given`` counts the ports that each element gave so far."""
    names: dict[str, int] = {}
    boxes, ports = [], []
    for element, count in ends:
        for number in range(given[element.id], given[element.id] + count):
            port, box = divmod(number, element.count)
            name = (
                element.id if element.count == 1 else f"{element.id} ({box + 1} of {element.count})"
            )
            boxes.append(names.setdefault(name, len(names)))
            ports.append(port)
        given[element.id] += count
    return Side(
        list(names).__getitem__,
        np.array(boxes),
        np.array(ports),
        role if ends[0][0].role == "switch" else "",
        port_name=lambda port: f"port {port + 1}",
    )


def clos_bundles(fabric: Clos, parts: Inventory) -> Iterator[Bundle]:
    """Return cables of NICs, then of leaves, then of spines, without those of failed elements."""
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
    spine, port = np.zeros((2, len(pods), sizing.up), dtype=np.int64)
    for number in range(len(spines)):
        links = sizing.spine_links(number)
        above = np.repeat(np.tile(np.arange(spines[number]), len(links)), links.ravel())
        order = np.argsort(above, kind="stable")  # ports of a spine are counted leaf by leaf
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order)) - np.searchsorted(above[order], above[order])
        spine[pods == number] = above.reshape(-1, sizing.up)
        port[pods == number] = rank.reshape(-1, sizing.up)
    spine, port = spine[leaf, uplink], port[leaf, uplink]
    alive = fabric.as_built.alive
    is_present = alive[0][leaf, plane, 0] & alive[1][pod, plane, spine]
    above = _switch(spines, planes, pod, plane, spine)
    names = fabric.tier_names
    return Bundle(
        parts.links[1],
        Side(
            numbered(names[0]),
            (leaf * planes + plane)[is_present],
            (_first_up(fabric, 0, sizing.down) + uplink * fabric.link_ports[1])[is_present],
            names[0],
        ),
        Side(
            numbered(names[1]),
            above[is_present],
            (port * fabric.link_ports[1])[is_present],
            names[1],
        ),
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
    wide = fabric.link_ports[2]
    spine, port = uplink // up[pod], uplink % up[pod] * wide
    core_port, core = np.divmod(first[pod] + uplink, sizing.cores)
    plane, at = _product(planes, len(pod))
    pod, spine, port, core, core_port = (x[at] for x in (pod, spine, port, core, core_port))
    alive = fabric.as_built.alive
    is_present = alive[1][pod, plane, spine] & alive[2][tops[pod], plane, core]
    first_up = _first_up(fabric, 1, leaves[pod] * sizing.up // spines[pod])
    below, above = (
        _switch(spines, planes, pod, plane, spine),
        _switch(np.full(int(tops.max()) + 1, sizing.cores), planes, tops[pod], plane, core),
    )
    names = fabric.tier_names
    return Bundle(
        parts.links[2],
        Side(numbered(names[1]), below[is_present], (first_up + port)[is_present], names[1]),
        Side(numbered(names[2]), above[is_present], (core_port * wide)[is_present], names[2]),
        parts.hall.lengths_m(places[1][pod], places[2][tops[pod]])[is_present],
    )


def _first_up(fabric: Clos, tier: int, down: IntArray | int) -> IntArray:
    """Return the first port up of switches by their links down: a whole one of the fastest."""
    fastest = max(fabric.link_ports[tier : tier + 2])
    return np.asarray(-(-down * fabric.link_ports[tier] // fastest) * fastest)


def _switch(
    counts: IntArray, planes: int, group: IntArray, plane: IntArray, index: IntArray
) -> IntArray:
    """Return numbers of switches: group by group, within a group plane by plane."""
    first = (np.cumsum(counts) - counts) * planes
    return np.asarray(first[group] + plane * counts[group] + index)


def dragonfly_bundles(fabric: Dragonfly, parts: Inventory) -> Iterator[Bundle]:
    """Return cables of nodes, then inside groups, then between groups, group by group."""
    hall = parts.hall
    a, p, groups = fabric.routers_per_group, fabric.nodes_per_router, fabric.groups
    first = np.arange(groups) * a * p
    place = hall.middle(first, first + a * p - 1)
    node, nic = _product(fabric.nodes, fabric.nics_per_node)
    down = p * fabric.nics_per_node
    yield Bundle(
        parts.links[0],
        Side(numbered("node"), node, nic, port_name=numbered("nic")),
        Side(numbered("router"), node // p, node % p * fabric.nics_per_node + nic, "router"),
        hall.lengths_m(hall.rack_of(node), place[node // (a * p)]),
    )
    first_router, second_router = np.triu_indices(a, 1)
    # A router's own number is left out where it counts the others.
    yield from (
        Bundle(
            parts.links[1],
            Side(numbered("router"), group * a + first_router, down + second_router - 1, "router"),
            Side(numbered("router"), group * a + second_router, down + first_router, "router"),
            np.full(len(first_router), hall.in_rack_m),
        )
        for group in range(groups)
    )
    yield from (
        _between_groups(fabric, parts, hall, place, group)
        for group in range(groups if fabric.links_per_pair else 0)
    )


def _between_groups(
    fabric: Dragonfly, parts: Inventory, hall: Hall, place: IntArray, group: int
) -> Bundle:
    """Return the cables from one group to all of higher numbers."""
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
    return Side(numbered("router"), router, first + dealt % h, "router")


def _product(*sizes: int) -> tuple[IntArray, ...]:
    """Return indices of all combinations, the last one fastest."""
    return tuple(at.reshape(-1) for at in np.indices(sizes))
