"""Fabrics as they stand in halls: uneven, short of something, or of no shape with a name.

Each has levels that say what joins its devices, is planned and proven, and no point that the search
excluded beats its bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from nest_core.documents.errors import InputError
from nest_core.fabric import Element, GraphFabric, Link
from nest_core.network import Network, collapse
from nest_core.network.clusters import graph_network
from nest_core.planner import audit, search
from nest_core.scenario import load_scenario

Graph = nx.Graph


def link(graph: Graph, a: object, b: object, GBps: float = 50, us: float = 0.6) -> None:
    graph.add_edge(a, b, bandwidth_Bps=GBps * 1e9, count=1, latency_s=us * 1e-6)


def clos(
    racks: tuple[int, ...] = (2, 2, 2),
    size: Callable[[int], int] = lambda node: 4,
    spines: int = 2,
    planes: tuple[float, ...] = (50,),
    name: Callable[[int], str] = lambda node: f"node{node}",
) -> Graph:
    """Nodes of devices with a NIC per plane, on the leaves of their rack; leaves on all spines."""
    graph: Graph = nx.Graph()
    hosts = [(rack, host) for rack, hosts in enumerate(racks) for host in range(hosts)]
    numbers = sorted(range(len(hosts)), key=name)  # as a file lists them
    for number in numbers:
        for slot in range(size(number)):
            graph.add_node((name(number), slot), role="device")
    for spine in range(spines):
        graph.add_node(f"spine{spine}", role="switch")
    for number in numbers:
        rack, node = hosts[number][0], name(number)
        graph.add_node(node, role="switch")
        for slot in range(size(number)):
            link(graph, (node, slot), node, 300, 0.2)
            for plane, rate in enumerate(planes):
                graph.add_node(nic := f"{node} nic{slot}.{plane}", role="nic")
                graph.add_node(leaf := f"leaf{rack}.{plane}", role="switch")
                link(graph, (node, slot), nic, rate, 0)
                link(graph, nic, leaf, rate)
                for spine in range(spines):
                    link(graph, leaf, f"spine{spine}", 2 * rate)
    return graph


def without(graph: Graph, *elements: str) -> Graph:
    graph.remove_nodes_from(elements)
    return graph


def one_uplink_less() -> Graph:
    graph = clos()
    graph.remove_edge("leaf0.0", "spine0")
    return graph


def ring_of_switches() -> Graph:
    graph: Graph = nx.Graph()
    graph.add_nodes_from(range(12), role="device")
    for number in range(6):
        graph.add_node(f"ring{number}", role="switch")
    for number in range(6):
        link(graph, f"ring{number}", f"ring{(number + 1) % 6}", 100)
        for device in (2 * number, 2 * number + 1):
            link(graph, device, f"ring{number}")
    return graph


SHAPES: dict[str, tuple[Graph, list[tuple[str, int]]]] = {
    "uneven racks": (clos((3, 2, 1)), [("node", 4), ("leaf", 12), ("spine", 24)]),
    "a missing leaf of two planes": (
        without(clos(planes=(50, 50)), "leaf1.1"),
        [("node", 4), ("leaf", 8), ("spine", 24)],
    ),
    "a missing spine": (without(clos(), "spine1"), [("node", 4), ("leaf", 8), ("spine", 24)]),
    "one node of two among nodes of four": (
        clos(size=lambda node: 2 if node == 3 else 4),
        [("node", 4), ("leaf", 8), ("spine", 22)],
    ),
    "planes of two rates": (
        clos(planes=(50, 12.5)),
        [("node", 4), ("leaf", 8), ("spine", 24)],
    ),
    "one uplink less": (one_uplink_less(), [("node", 4), ("leaf", 8), ("spine", 24)]),
    "a ring of switches": (ring_of_switches(), [("ring", 2), ("level 1", 12)]),
}


def planned(network: Network) -> None:
    scenario = load_scenario(
        "llama2-7b-64-h100",
        ["workload.global_batch_sequences=16", "search.tp=[1, 2, 4]", "search.schedule='1f1b'"],
    )
    counts = tuple(range(1, network.devices + 1))
    space = replace(scenario.space, dp=counts, pp=counts)
    problem = replace(scenario.problem(), network=network)
    result = search(problem, space)
    assert result.best is not None
    assert result.certificate.proven
    checked = audit(problem, space, result, 60, seed=1)
    assert checked.solved + checked.infeasible == 60
    assert not checked.violations


@pytest.mark.parametrize("name", SHAPES)
def test_an_odd_shape_has_levels_and_a_proven_plan(name):
    graph, levels = SHAPES[name]
    network = graph_network(graph)
    assert [(level.name, level.group_size) for level in network.levels] == levels
    planned(network)


def test_a_torus_drawn_as_a_graph_is_one():
    chips = [f"chip {number}" for number in range(16)]
    pairs = [
        (here, there)
        for here in range(16)
        for there in (here // 4 * 4 + (here + 1) % 4, (here + 4) % 16)
    ]
    links = tuple(Link(chips[a], chips[b], 50e9, 1, 1e-6) for a, b in pairs)
    network = collapse(
        GraphFabric("drawn", tuple(Element(chip, "device") for chip in chips), links)
    )
    assert network.torus is not None
    assert network.torus.shape == (4, 4)
    planned(network)


def test_an_isolated_device_is_named():
    elements = (Element("a", "device"), Element("b", "device"), Element("lost", "device"))
    with pytest.raises(InputError, match=r"must connect all devices, lost with a"):
        GraphFabric("short of a link", elements, (Link("a", "b", 50e9),))


def test_names_in_another_order_than_numbers_are_the_same_fabric():
    """node10 is listed before node2: other device numbers, the same levels and the same node."""
    listed, counted = (
        graph_network(clos((4, 4, 4), name=name))
        for name in (lambda node: f"node{node}", lambda node: f"node{node:02}")
    )
    assert listed.levels == counted.levels
    assert [sorted(np.bincount(a)) for a in listed.nesting] == [
        sorted(np.bincount(a)) for a in counted.nesting
    ]
    assert listed.node_egress_Bps == counted.node_egress_Bps


def test_devices_with_two_nics_are_routed_from_one_small_table():
    """3,072 devices, each on two planes: more than can be tabled as they are."""
    network = graph_network(clos((32,) * 12, size=lambda node: 8, planes=(50, 50)))
    assert network.devices == 3072
    every = np.arange(network.devices)
    routes = network.link_map.routes(every, np.roll(every, 8))
    outside = network.link_map.outside[routes.link_group]
    first = outside & (routes.flow == 0)  # over a NIC, a leaf, a spine, a leaf, a NIC
    assert routes.share[first].sum() == pytest.approx(6)
    assert network.link_map.outlet_Bps == 100e9


@pytest.mark.parametrize(
    ("switch", "node_size"), [("leaf0", 1), ("IBLEAF 0", 1), ("tor", 1), ("nvswitch", 8), ("s", 8)]
)
def test_what_a_switch_is_called_says_whether_devices_on_it_are_a_node(switch, node_size):
    """Eight devices on one switch, without NICs: on a leaf each is a node of its own."""
    graph = nx.Graph()
    graph.add_nodes_from(range(8), role="device")
    graph.add_node(switch, role="switch")
    for device in range(8):
        link(graph, device, switch)
    network = graph_network(graph)
    assert network.node_size == node_size
    assert network.link_map.outside.all() == (node_size == 1)
    planned(network)


def test_devices_on_leaves_of_a_fabric_are_nodes_and_those_on_switches_of_their_own_are_not():
    for inside, node_size in (("leaf", 1), ("host", 4)):
        graph = nx.Graph()
        graph.add_nodes_from(range(8), role="device")
        for number in range(2):
            graph.add_node(f"{inside}{number}", role="switch")
            link(graph, f"{inside}{number}", "spine0", 100)
        graph.add_node("spine0", role="switch")
        for device in range(8):
            link(graph, device, f"{inside}{device // 4}")
        network = graph_network(graph)
        assert network.node_size == node_size
        assert [level.group_size for level in network.levels] == [4, 8]
        planned(network)
