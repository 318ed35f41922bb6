"""Parts of drawn graphs: what of them is inside nodes, tiers of switches, and where they stand.

The insides of nodes are no part of the network. A node is what hangs together without NICs, and a
switch in a group with devices that is called a node, host or server, or after the switch. Where
NICs tell the nodes, these stand on the floor as those of other fabrics do: nodes fill racks in the
order of their first devices, a switch stands in the middle of the nodes below it. Elsewhere every
cable is ``floor.unknown_m`` long.
"""

import itertools
import math
import re
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from nest_core.bill.inventory import (
    BITS,
    RACK,
    Hall,
    Inventory,
    LinkCount,
    SwitchCount,
    node_hall,
)
from nest_core.bill.prices import Prices
from nest_core.documents import grouped, join_words
from nest_core.fabric import ROLES, Element, GraphFabric, Link, hops

__all__ = ["DrawnLinks", "DrawnTiers", "drawn_links", "drawn_tiers", "graph_parts"]

_RACK = re.compile(rf"(.*?/)?{RACK}[^/]*", re.IGNORECASE)
_NODE = re.compile(r"(node|host|server)(?![a-z])", re.IGNORECASE)
_SCALE_UP_Bps = 140e9
_NO_NICS = (
    "The drawing has no NICs: cards are not billed, and but for groups called node, host or server "
    "and links of 140 GB/s or more it does not tell the insides of nodes, which are then billed as "
    "well; draw NICs."
)
MAX_WORDS = 2
"""Different ones in the names of a tier's switches; more name the tier by its number."""
_ENDS = {"device": "chip", "nic": "nic", "switch": "switch"}


@dataclass(frozen=True, slots=True, eq=False)
class _Network:
    """What of a graph is outside its nodes.

    ``height`` counts links between a switch and the nearest NIC (without NICs: the nearest device
    or switch inside a node); ``span`` are the first and last node below an element; ``names`` those
    of the tiers by height; ``racks`` those of the nodes, where groups are called so; ``scale_up``
    the switches inside nodes.
    """

    elements: dict[str, Element]
    names: dict[int, str]
    height: dict[str, int]
    links: list[Link]
    span: dict[str, tuple[int, int]]
    nodes: int
    racks: tuple[int, ...]
    scale_up: int


@dataclass(frozen=True, slots=True, eq=False)
class DrawnTiers:
    """What a bill calls the parts of a drawing; what is inside nodes is left out.

    Parameters
    ----------
    links : mapping of (str, str) to str
        Tier of every link by its ends.
    switches : mapping of str to str
        Role of every switch by its id.
    """

    links: dict[tuple[str, str], str]
    switches: dict[str, str]


def drawn_tiers(fabric: GraphFabric) -> DrawnTiers:
    """Return tier by tier what `graph_parts` counts together."""
    network = _network(fabric)
    elements, names, height = network.elements, network.names, network.height
    linked = {end for link in network.links for end in (link.a, link.b)}
    return DrawnTiers(
        {
            (link.a, link.b): names.get(max(height[link.a], height[link.b]), "chip")
            for link in network.links
        },
        {
            name: names[at]
            for name, at in height.items()
            if at and name in linked and elements[name].role == "switch"
        },
    )


@dataclass(frozen=True, slots=True)
class DrawnLinks:
    """A drawn link outside nodes, and what of the bill it is.

    Parameters
    ----------
    low, high : Element
        The end nearer to the devices, and the other.
    count : int
        Parallel links.
    tier : LinkCount
        Its tier, rate and what its ends plug into; lengths are not set.
    height : int
        Links between its upper end and the nearest NIC.
    roles : (str, str)
        Tiers of switches that its ends are of; empty for other ends.
    metres : int
    """

    low: Element
    high: Element
    count: int
    tier: LinkCount
    height: int
    roles: tuple[str, str]
    metres: int


def drawn_links(fabric: GraphFabric, prices: Prices) -> tuple[_Network, Hall, list[DrawnLinks]]:
    """Return the network outside nodes, its floor, and its links in the order of the drawing."""
    network = _network(fabric)
    elements, names = network.elements, network.names
    per_node = -(-fabric.devices // network.nodes)
    hall = node_hall(prices, network.nodes, per_node, fabric.name, network.racks)
    cards = any(element.role == "nic" for element in fabric.elements)
    runs: dict[tuple[tuple[int, int], tuple[int, int]], int] = {}
    tiers: dict[tuple[int, float, str, str], LinkCount] = {}
    counts = []
    for link in network.links:
        low, high = sorted((link.a, link.b), key=network.height.__getitem__)
        rate = link.bandwidth_Bps * BITS
        # Two ends of a network without switches: what a torus has.
        ends = "chip", "chip" if not network.height[high] else "switch"
        lower = _ENDS[elements[low].role] if ends[1] == "switch" else ends[0]
        height = network.height[high]
        key = height, rate, lower, ends[1]
        if key not in tiers:
            tiers[key] = LinkCount(names.get(height, "chip"), rate, (), lower, ends[1])
        places = network.span[low], network.span[high]
        if places not in runs:
            runs[places] = _metres(hall, *places) if cards else _unknown(hall)
        roles = names.get(network.height[low], ""), names.get(network.height[high], "")
        counts.append(
            DrawnLinks(
                elements[low],
                elements[high],
                link.count,
                tiers[key],
                height,
                roles,
                runs[places],
            )
        )
    return network, hall, counts


def graph_parts(fabric: GraphFabric, prices: Prices) -> Inventory:
    """Return what was drawn, switches by how many links they are from cards or devices."""
    network, hall, links = drawn_links(fabric, prices)
    cards = [element for element in fabric.elements if element.role == "nic"]
    tiers: dict[tuple[int, LinkCount], Counter[int]] = {}
    used: Counter[str] = Counter()
    fastest: dict[str, float] = {}
    carried: dict[str, float] = {}
    for link in links:
        rate = link.tier.rate_Gbps
        tiers.setdefault((link.height, link.tier), Counter())[link.metres] += link.count
        for name in (link.low.id, link.high.id):
            used[name] += link.count
            fastest[name] = max(rate, fastest.get(name, 0.0))
            carried[name] = carried.get(name, 0.0) + rate * link.count
    # A card is as fast as all of its links into the network.
    rates = [carried.get(card.id, 0.0) / card.count for card in cards]
    floor = (
        f"A drawing without NICs has no floor: every cable is taken as {_unknown(hall)} m "
        "(floor.unknown_m)."
    )

    def order(entry: tuple[tuple[int, LinkCount], Counter[int]]) -> tuple[int, float, str, str]:
        (height, tier), _ = entry
        return height, tier.rate_Gbps, tier.lower, tier.upper

    return Inventory(
        hall,
        network.nodes,
        sum(card.count for card in cards),
        max(rates, default=0.0),
        _switches(prices, network, used, fastest),
        tuple(
            replace(tier, metres=tuple(sorted(metres.items())))
            for (_, tier), metres in sorted(tiers.items(), key=order)
        ),
        () if cards else (floor, *((_NO_NICS,) if network.names else ())),
        network.scale_up,
    )


def _network(fabric: GraphFabric) -> _Network:
    elements = {element.id: element for element in fabric.elements}
    inside = _inside(fabric, elements)
    neighbours: dict[str, list[str]] = {name: [] for name in elements}
    for link in fabric.links:
        neighbours[link.a].append(link.b)
        neighbours[link.b].append(link.a)
    cards = [name for name, element in elements.items() if element.role == "nic"]
    ends = cards or [name for name in elements if name in inside]
    # With cards drawn, a node without any hangs on the network by its switch or its devices.
    ends += [
        name
        for name in inside
        if cards
        and any(
            other not in inside and elements[other].role == "switch" for other in neighbours[name]
        )
    ]
    height = hops(
        neighbours, ends, lambda name: name not in inside and elements[name].role == "switch"
    )
    links = [
        link
        for link in fabric.links
        if link.a in height
        and link.b in height
        and not (link.a in inside and inside[link.a] == inside.get(link.b))
        and not any(
            near in inside and elements[other].role == "nic"
            for near, other in ((link.a, link.b), (link.b, link.a))
        )
    ]
    homes = dict.fromkeys(inside[name] for name in fabric.device_ids)
    node = {home: number for number, home in enumerate(homes)}
    span: dict[str, tuple[int, int]] = {}
    for name in height:
        below = [
            (node[inside[other]],) * 2 if other in inside else span[other]
            for other in neighbours[name]
            if inside.get(other) in node or (other in span and height[other] < height[name])
        ]
        if name in inside:
            below.append((node[inside[name]],) * 2)
        span[name] = (min((a for a, _ in below), default=0), max((b for _, b in below), default=0))
    scale_up = sum(elements[name].count for name in inside if elements[name].role == "switch")
    names, racks = (
        _tier_names(elements, height),
        _racks(fabric, [node[inside[n]] for n in fabric.device_ids]),
    )
    return _Network(elements, names, height, links, span, len(node), racks, scale_up)


def _racks(fabric: GraphFabric, node: list[int]) -> tuple[int, ...]:
    """Return the rack of every node by the groups of its devices; empty where one has none."""
    devices = (element for element in fabric.elements if element.role == "device")
    home = {number: device.group for number, device in zip(node, devices, strict=True)}
    racks = [_RACK.match(home[number]) for number in range(len(home))]
    numbers = {
        name: at for at, name in enumerate(dict.fromkeys(rack and rack[0] for rack in racks))
    }
    return () if None in numbers else tuple(numbers[rack and rack[0]] for rack in racks)


def _inside(fabric: GraphFabric, elements: dict[str, Element]) -> dict[str, int]:
    """Return number of the node that a device, or a switch inside a node, belongs to."""
    homes = _homes(fabric, elements)
    number = {group: at for at, group in enumerate(dict.fromkeys(homes.values()))}
    node_of = {name: number[group] for name, group in homes.items()}
    import networkx as nx  # most fabrics are counted

    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(name for name in fabric.device_ids if name not in homes)
    cards = {name for name, element in elements.items() if element.role == "nic"}
    beyond: dict[str, set[str]] = {name: set() for name in cards}
    placed = cards | homes.keys()
    for link in fabric.links:
        for card, other in ((link.a, link.b), (link.b, link.a)):
            if card in cards:
                beyond[card].add(other)
        # No port of a network switch is as fast as what joins devices inside a node.
        if (cards or link.bandwidth_Bps >= _SCALE_UP_Bps) and placed.isdisjoint((link.a, link.b)):
            graph.add_edge(link.a, link.b)
    devices = set(fabric.device_ids)
    parts = [part for part in nx.connected_components(graph) if part & devices]
    at = {name: index for index, part in enumerate(parts) for name in part}
    at |= {name: len(parts) + node for name, node in node_of.items()}
    met: dict[int, set[int]] = {}
    for ends in beyond.values():
        joined = {at[name] for name in ends if name in at}
        for index in joined:
            met.setdefault(index, set()).update(joined)
    fresh = itertools.count(len(number))
    for index, part in enumerate(parts):
        # What the NICs of several nodes lead to is the network, and its devices are nodes alone.
        network = len(met.get(index, {index})) > 2
        for members in [{name} for name in part & devices] if network else [part]:
            node_of |= dict.fromkeys(members, next(fresh))
    return node_of


def _homes(fabric: GraphFabric, elements: dict[str, Element]) -> dict[str, str]:
    """Return the group of devices, and of the switches among them, that is called a node."""
    groups = {elements[name].group for name in fabric.device_ids} - {""}
    cards = any(element.role == "nic" for element in elements.values())
    called = {
        element.group
        for name, element in elements.items()
        if element.group in groups
        # Imported hosts call their switch as the host.
        and (_NODE.match(_last(element.group)) or (name == _last(element.group) and not cards))
    }
    return {
        name: element.group
        for name, element in elements.items()
        if element.group in called and element.role != "nic"
    }


def _last(group: str) -> str:
    return group.rpartition("/")[2]


def _tier_names(elements: dict[str, Element], height: dict[str, int]) -> dict[int, str]:
    """Return the words in the names of a tier's switches, or its role where no name has one."""
    words = grouped(
        (at, "".join(re.findall(r"^[^\W\d_]{3,}", name))) for name, at in height.items() if at
    )
    common = {at: set(names) for at, names in words.items()}
    every = Counter(word for names in common.values() for word in names)
    roles = dict(enumerate(() if every.keys() - {""} else ROLES, start=1))
    return {
        at: join_words(sorted(names))
        if len(names) <= MAX_WORDS and "" not in names and all(every[word] == 1 for word in names)
        else roles.get(at, f"tier {at}")
        for at, names in common.items()
    }


def _metres(hall: Hall, low: tuple[int, int], high: tuple[int, int]) -> int:
    """Between what stands amid the nodes of two spans."""
    racks = [hall.middle(*(np.array([end]) for end in span)) for span in (low, high)]
    return int(hall.lengths_m(*racks)[0])


def _unknown(hall: Hall) -> int:
    return math.ceil(hall.floor.unknown_m.typical)


def _switches(
    prices: Prices, network: _Network, used: Counter[str], fastest: dict[str, float]
) -> tuple[SwitchCount, ...]:
    boxes: Counter[tuple[int, int, float]] = Counter()
    ports: Counter[tuple[int, int, float]] = Counter()
    for name, count in used.items():
        element, height = network.elements[name], network.height[name]
        if element.role == "switch" and height:
            radix = element.radix or _listed(prices, -(-count // element.count), fastest[name])
            boxes[height, radix, fastest[name]] += element.count
            ports[height, radix, fastest[name]] += count
    return tuple(
        SwitchCount(
            network.names[height],
            boxes[height, radix, rate],
            radix,
            rate,
            ports[height, radix, rate],
        )
        for height, radix, rate in sorted(boxes)
    )


def _listed(prices: Prices, used: int, rate_Gbps: float) -> int:
    """Ports of the smallest listed switch of that rate with enough of them; else those used."""
    enough = [
        switch.ports
        for switch in prices.switch
        if switch.ports >= used and math.isclose(switch.rate_Gbps, rate_Gbps, rel_tol=1e-6)
    ]
    return min(enough, default=used)
