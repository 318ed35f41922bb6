"""Forwarding tables as OpenSM's routing engines fill them, and networks that follow tables.

What is stated here of OpenSM was read in 3.3.23 and agrees port by port with its tables on random
fabrics (`benchmarks/outside/opensm.py`). Every engine first counts hops from each port of a switch
to each other switch, and then takes, address by address, the port with the fewest addresses so far
among those with the fewest hops, the lowest of several:

* ``minhop`` counts all ways;
* ``updn`` counts ways that never turn up again once they went down from the roots. Roots are the
  switches from which nearly all adapters are equally far: over 90 % at one distance, and at no
  other over 5 %. Of switches that are equally far from the roots the one with the higher GUID is
  up. Without roots it is minhop, as OpenSM falls back to it;
* ``dor`` counts all ways, but of the ports with the fewest hops takes only those that lead to the
  switch behind the first: dimension by dimension, if a mesh is cabled in that order.

Addresses are filled in switch by switch, those with most adapters first and then by GUID, port by
port; GUIDs are compared from their last byte on, as OpenSM keeps them in the order of the wire.
Tables are those of a subnet manager that starts anew: one that runs leaves ways that are still
short where they were.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt

from nest_core.documents.compiled import compiled
from nest_core.documents.errors import require
from nest_core.fabric import Fabric, GraphFabric, LinkGraph, SubnetSwitch
from nest_core.network.forwarding import (
    Forwarding,
    Subnet,
    TabledLinkMap,
    forwarding_of,
    stated_ports,
    stated_subnet,
)
from nest_core.network.graph import GraphLinkMap
from nest_core.network.levels import Network
from nest_core.network.link_graph import NIC, SWITCH, Links
from nest_core.network.link_map import (
    ECMP_DRAWS,
    BoolArray,
    FloatArray,
    IntArray,
    rank_within,
    runs,
)
from nest_core.network.phases import Phase, price_phases

__all__ = ["engine_ports", "routed_network", "routing_notes"]

UInt8Array = npt.NDArray[np.uint8]
FAR = 255
NEARLY_ALL, FEW = 0.9, 0.05
ENGINES = ("minhop", "updn", "dor")
FEW_DEVICES = 2048
"""Of fabrics whose routing is compared where it is not known."""


def routed_network(fabric: Fabric) -> Network:
    """Return the network of a fabric whose flows follow forwarding tables.

    Raises
    ------
    InputError
        If the tables do not lead from everywhere to everywhere, or it is no fabric of switches.
    """
    from nest_core.network.clusters import graph_network  # scipy: few follow tables

    stated = fabric.forwarding if isinstance(fabric, GraphFabric) else ()
    graph = fabric.explicit() if stated else single_switches(fabric.explicit())

    def forwards(link_map: TabledLinkMap) -> Forwarding:
        return _forwards(link_map, stated, fabric.routing)

    return graph_network(graph, forwards=forwards)


def _forwards(
    link_map: TabledLinkMap, stated: tuple[SubnetSwitch, ...], routing: str
) -> Forwarding:
    links = link_map.links
    subnet = stated_subnet(links, stated) if stated else assumed_subnet(links)
    nics = subnet.nic_cables(links)
    if routing == "tables":
        return forwarding_of(link_map, subnet, stated_ports(stated, subnet.lid[nics]))
    ends = np.flatnonzero(subnet.peer < 0)
    ports = engine_ports(subnet, routing)
    return forwarding_of(link_map, subnet, ports[:, np.searchsorted(ends, nics)])


def routing_notes(fabric: Fabric, network: Network) -> tuple[str, ...]:
    """Return what is assumed of the routing of a subnet that was read, and what hangs on it.

    The busiest cable is compared where every device sends to the one half the fabric away.
    """
    link_map = network.link_map
    if not isinstance(fabric, GraphFabric) or not fabric.forwarding or fabric.routing == "tables":
        return ()
    words = f"Routing is assumed to be {fabric.routing}: no forwarding tables were read."
    if not isinstance(link_map, GraphLinkMap) or fabric.devices > FEW_DEVICES:
        return (words,)
    fields = link_map.links, link_map.nesting, link_map.arc_level
    inside: dict[str, Any] = {
        "scale_up": link_map.scale_up,
        "scale_up_arc": link_map.scale_up_arc,
    }
    tabled = TabledLinkMap(*fields, **inside)
    tables = {name: _forwards(tabled, fabric.forwarding, name) for name in ENGINES}
    maps: dict[str, GraphLinkMap] = {
        "adaptive": GraphLinkMap(*fields, **inside),
        "ecmp": GraphLinkMap(*fields, "ecmp", variants=ECMP_DRAWS, **inside),
    } | {name: replace(tabled, forwarding=entry) for name, entry in tables.items()}
    source = np.arange(fabric.devices)
    target = np.roll(source, -(fabric.devices // 2))
    steps = np.zeros(len(source))
    phase = Phase(source, target, source, steps + 1.0, steps)
    seconds = {
        name: float(price_phases(by_routing, [phase], len(source)).seconds(1.0).max())
        for name, by_routing in maps.items()
    }
    least = min(seconds.values())
    times = ", ".join(f"{name} {value / least:.3g}" for name, value in seconds.items())
    alike = np.array_equal(tables["minhop"].group, tables["updn"].group)
    return (
        f"{words} Where every device sends to the one half the fabric away the time is, relative"
        f" to the least: {times}.",
        *(("OpenSM's updn has no roots here, or no other ways than minhop.",) * alike),
    )


def single_switches(graph: LinkGraph) -> LinkGraph:
    """Return the graph with every switch on its own, and links spread evenly over those."""
    copies = {
        node: [node]
        if data["role"] != "switch" or data.get("count", 1) == 1
        else [
            (*node, place) if isinstance(node, tuple) else f"{node} #{place}"
            for place in range(data["count"])
        ]
        for node, data in graph.nodes(data=True)
    }
    result: LinkGraph = nx.Graph(name=graph.name)
    for node, switches in copies.items():
        result.add_nodes_from(switches, **graph.nodes[node])
        if len(switches) > 1:
            nx.set_node_attributes(result, dict.fromkeys(switches, 1), "count")
    for a, b, data in graph.edges(data=True):
        width = data["count"]
        pairs = Counter(
            (copies[a][cable * len(copies[a]) // width], copies[b][cable * len(copies[b]) // width])
            for cable in range(width)
        )
        result.add_edges_from((*pair, data | {"count": count}) for pair, count in pairs.items())
    return result


def assumed_subnet(links: Links) -> Subnet:
    """Return the switches outside nodes in the order of the graph, ports in that of their links."""
    part = links.node()
    is_switch = (links.role == SWITCH) & ~np.isin(part, part[: links.devices])
    element = np.flatnonzero(is_switch)
    require(
        len(element) and (links.role == NIC).any(),
        "routing",
        "must be adaptive, shortest_path or ecmp for a fabric without NICs and switches",
        "an engine of OpenSM",
        "choose one of them",
    )
    arc = np.flatnonzero(is_switch[links.tail])
    which, _ = runs(arc, links.count[arc])
    arc = arc[which]
    switch = np.searchsorted(element, links.tail[arc])
    lid = np.where(is_switch[links.head[arc]], 0, np.arange(len(arc)) + 1)
    guid = tuple(
        at << 48 | int.from_bytes((at << 48).to_bytes(8, "little")) for at in range(len(element))
    )
    return Subnet(element, guid, switch, rank_within(switch) + 1, links.head[arc], lid)


def engine_ports(subnet: Subnet, engine: str) -> IntArray:
    """Return the port of every switch to everything that is no switch.

    Parameters
    ----------
    engine : {"minhop", "updn", "dor"}

    Returns
    -------
    int array (switches, cables that end at no switch)
        In the order of the cables; 255 where there is no way.
    """
    from scipy.sparse import csgraph, csr_array

    switches, port, peer = subnet.switch, subnet.port, subnet.peer
    ends, inner = np.flatnonzero(peer < 0), np.flatnonzero(peer >= 0)
    behind = np.full((len(subnet.element), int(port.max()) + 1), -1)
    behind[switches, port] = peer
    adapters = np.bincount(switches[ends], minlength=len(behind))
    links = csr_array(
        (np.ones(len(inner)), (switches[inner], peer[inner])), shape=2 * (len(behind),)
    )
    away = csgraph.dijkstra(links, unweighted=True)
    roots = _roots(away, adapters)
    if engine == "updn" and roots.any():
        far_port = np.zeros_like(behind)
        here = inner[np.lexsort((port[inner], peer[inner], switches[inner]))]
        opposite = inner[np.lexsort((port[inner], switches[inner], peer[inner]))]
        far_port[switches[here], port[here]] = port[opposite]  # of parallel cables in their order
        rank, place = away[roots].min(axis=0), np.array(subnet.guid, np.uint64).argsort().argsort()
        hops = ways_down(behind, far_port, rank, place)
    else:
        onward = np.where(behind[:, None] >= 0, 1.0 + away.T[:, behind].swapaxes(0, 1), FAR)
        hops = np.minimum(onward, FAR).astype(np.uint8)
    swapped = [int.from_bytes(guid.to_bytes(8, "little")) for guid in subnet.guid]
    place, home = np.array(swapped, np.uint64).argsort().argsort(), switches[ends]
    order = np.lexsort((port[ends], place[home], -adapters[home]))
    return filled(hops, behind, home, port[ends], order, engine == "dor").astype(np.int64)


def _roots(away: FloatArray, adapters: IntArray) -> BoolArray:
    """Return which switches have nearly all adapters at one distance, (switches,)."""
    at = np.stack([(away == far) @ adapters for far in range(64)]) / adapters.sum()
    return np.asarray(((at > NEARLY_ALL).sum(axis=0) == 1) & ((at > FEW).sum(axis=0) == 1))


@compiled
def ways_down(
    behind: IntArray, far_port: IntArray, rank: FloatArray, place: IntArray
) -> UInt8Array:
    """Return hops of ways that never turn up again, (switches, switches, ports), 255 for none.

    Indexed by where they start, where they end, and the port that they leave by.

    Parameters
    ----------
    behind, far_port : int array (switches, ports)
        Switch behind every port, −1 for none, and its port at the same cable.
    rank : float array (switches,)
        Hops from a root.
    place : int array (switches,)
        By GUID.
    """
    switches, ports = behind.shape
    hops = np.full((switches, switches, ports), 255, np.uint8)
    down, waiting = np.zeros(switches, np.bool_), np.zeros(switches, np.bool_)
    least, queue = np.empty(switches, np.int64), np.empty(switches * ports + 1, np.int64)
    for goal in range(switches):
        # Backwards from the goal: who comes climbs what goes down here.
        least[:] = 255
        least[goal], down[goal], queue[0], done, size = 0, False, goal, 0, 1
        while done < size:
            at = queue[done]
            done, waiting[at] = done + 1, False
            for port in range(1, ports):
                other, back = behind[at, port], far_port[at, port]
                goes_down = rank[at] < rank[other] or (
                    rank[at] == rank[other] and rank[at] > 0 and place[at] <= place[other]
                )
                is_shorter = other >= 0 and least[at] + 1 < hops[other, goal, back]
                if is_shorter and (goes_down or not down[at]):
                    hops[other, goal, back] = least[at] + 1
                    least[other] = min(least[other], least[at] + 1)
                    if not waiting[other]:
                        down[other], waiting[other], queue[size] = goes_down, True, other
                        size += 1
    return hops


@compiled
def filled(
    hops: UInt8Array,
    behind: IntArray,
    home: IntArray,
    port: IntArray,
    order: IntArray,
    by_dimension: bool,
) -> UInt8Array:
    """Return the port of every switch to every adapter, (switches, adapters), 255 for none.

    Parameters
    ----------
    home, port : int array (adapters,)
        Switch and port that an adapter hangs on.
    order : int array (adapters,)
        In which they are given a port.
    by_dimension : bool
        Take ports to the switch behind the first one only.
    """
    switches, ports = behind.shape
    result, count = np.full((switches, len(home)), 255, np.uint8), np.empty(ports, np.int64)
    for at in range(switches):
        count[:] = 0
        for adapter in order:
            ways = hops[at, home[adapter]]
            best, first, least = 255, -1, ways.min()
            if home[adapter] == at:
                best = port[adapter]
            elif least < 255:
                for out in range(1, ports):
                    if ways[out] == least and (
                        first < 0 or not by_dimension or behind[at, out] == first
                    ):
                        first = behind[at, out] if first < 0 else first
                        best = out if best == 255 or count[out] < count[best] else best
            if best < 255:
                result[at, adapter] = best
                count[best] += 1
    return result
