"""The collapsed network says what the explicit link graph says, for every kind of fabric.

Latencies are shortest paths, lone flows get the narrowest link of their path, and an uplink
bundle is a minimum cut; a difference means that plans are priced on another fabric than the one
that was drawn.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from fabric_specs import CLOS, EVERY, HIERARCHIES, NESTED, TORI, clos, tree
from routes import path, routing_graph, usable

from nest_core.errors import InputError
from nest_core.network import Network, collapse, transfers
from nest_core.topology import Clos, Fabric, Torus


def pairs(fabric: Fabric, most: int = 400) -> list[tuple[int, int]]:
    """All ordered pairs of distinct devices, or a fixed sample of them."""
    everything = list(itertools.permutations(range(fabric.devices), 2))
    if len(everything) <= most:
        return everything
    chosen = np.random.default_rng(7).choice(len(everything), most, replace=False)
    return [everything[index] for index in chosen]


@pytest.mark.parametrize("name", EVERY)
def test_latency_is_that_of_the_shortest_path(name):
    """A failure: transfers between some pair are priced at a distance that no cable has."""
    fabric = EVERY[name]
    network, routes = collapse(fabric), routing_graph(fabric)
    for source, target in pairs(fabric):
        shortest = nx.shortest_path_length(
            routes, ("from", source), ("to", target), weight="latency_s"
        )
        level = int(network.level(source, target))
        assert network.levels[level].latency_s == pytest.approx(shortest, rel=1e-12)


@pytest.mark.parametrize("name", TORI)
def test_a_torus_level_is_the_hop_distance(name):
    """A failure: a dimension or its wrap is misread."""
    fabric = TORI[name]
    network = collapse(fabric)
    hops = dict(nx.all_pairs_shortest_path_length(fabric.explicit()))
    for a, b in itertools.product(range(fabric.devices), repeat=2):
        assert network.level(a, b) + 1 == hops[a][b]
    assert len(network.levels) == max(max(row.values()) for row in hops.values())


def several_nics_per_device(fabric: Fabric) -> bool:
    return isinstance(fabric, Clos) and fabric.nics_per_node > fabric.devices_per_node


@pytest.mark.parametrize(
    "name", [name for name in NESTED if not several_nics_per_device(NESTED[name])]
)
def test_a_flow_alone_gets_the_narrowest_link_of_its_path(name):
    """A failure: a lone transfer is priced by a bandwidth that its path does not have.

    A flow uses one link of every bundle; where a device owns several NICs it may use more,
    which the next test states.
    """
    fabric = NESTED[name]
    network, routes = collapse(fabric), routing_graph(fabric)
    for source, target in pairs(fabric, 150):
        narrowest = min(usable(routes.edges[link]) for link in path(routes, source, target))
        alone = transfers(network, np.array([source]), np.array([target]))
        assert 1.0 / alone.beta_s_per_byte[0] == pytest.approx(narrowest, rel=1e-12)


def test_a_device_with_two_nics_uses_both_up_to_the_leaf():
    """Sixteen NICs for eight devices: 2 x 50 GB/s from device to leaf."""
    fabric = CLOS["two NICs per device"]
    leaf = collapse(fabric).levels[1]
    routes = routing_graph(fabric)
    links = [routes.edges[link] for link in path(routes, 0, 8)]
    assert leaf.single_flow_Bps == min(usable(link, own=2) for link in links) == 100e9


def push(network: Network, level: int, child: int) -> float:
    """Bytes/s that a child can send up into a level, given what its own children can."""
    bundle = network.levels[level].capacity_Bps
    if level == 0:
        return bundle
    inner = children(network, level - 1, child)
    return min(bundle, sum(push(network, level - 1, block) for block in inner))


def take(network: Network, level: int, child: int) -> float:
    """Bytes/s that everything outside a child can take from it."""
    group = child * network.levels[level].child_size // network.levels[level].group_size
    total = sum(
        push(network, level, peer) for peer in children(network, level, group) if peer != child
    )
    if level + 1 < len(network.levels):
        total += min(network.levels[level + 1].capacity_Bps, take(network, level + 1, group))
    return total


def children(network: Network, level: int, group: int) -> range:
    """The children that stand in a group of a level; the last group may be short."""
    size, inner = network.levels[level].group_size, network.levels[level].child_size
    first, last = group * size, min((group + 1) * size, network.devices)
    return range(first // inner, -(-last // inner))


def cut(fabric: Fabric, inside: range, *, with_nics: bool) -> float:
    """Minimum cut between some devices and all others, over the explicit links."""
    routes = routing_graph(fabric)
    if not with_nics:
        nics = [node for node in routes if isinstance(node[1], tuple)]
        routes.remove_nodes_from(nics)
    for device in range(fabric.devices):
        if device in inside:
            routes.add_edge("source", ("from", device))
        else:
            routes.add_edge(("to", device), "sink")
    return float(nx.maximum_flow_value(routes, "source", "sink"))


@pytest.mark.parametrize("name", [name for name in NESTED if NESTED[name].devices > 1])
def test_an_uplink_bundle_is_a_minimum_cut(name):
    """A failure: a level gives a group more, or less, than the cables that leave it.

    Where inner links or the short rest of the fabric are the narrower cut, the levels must
    say so too.
    """
    fabric = NESTED[name]
    network = collapse(fabric)
    for index, level in enumerate(network.levels):
        count = -(-network.devices // level.child_size)
        if count == 1:
            continue
        for child in {0, count // 2, count - 1}:
            first = child * level.child_size
            inside = range(first, min(first + level.child_size, network.devices))
            within = network
            if index == 0 and isinstance(fabric, Clos):
                # Level 0 is the switch inside a node; NICs belong to the levels above.
                within = replace(network, levels=network.levels[:1])
                within = replace(within, devices=min(level.group_size, network.devices))
                if child >= within.devices:
                    continue
            expected = min(push(within, index, child), take(within, index, child))
            found = cut(fabric, inside, with_nics=within is network)
            assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "capacities"),
    [
        # 8 x 900; one shared uplink of 100 per node, of 400 per rack.
        ("the paper's uplinks", (900, 100, 400)),
        # 450; 4 devices with 50 / 2 each; one uplink of 400 / 4.
        ("both owners, oversubscribed", (450, 100, 100)),
        # 450; 8 NICs of 50; 2 nodes per leaf = 16 down, 16 / 4 = 4 up.
        ("two tiers, 4:1", (450, 400, 200)),
        # Pods of 4 leaves with 4 down, 4 / 1 up; 4 spines with 4 down, 4 / 4 = 1 up each.
        ("three tiers, short leaf and pod", (450, 100, 200, 200)),
    ],
)
def test_capacities_of_named_fabrics(name, capacities):
    """GB/s of the bundles, by hand."""
    levels = collapse(NESTED[name]).levels
    assert [level.capacity_Bps / 1e9 for level in levels] == pytest.approx(capacities)


@pytest.mark.parametrize("name", EVERY)
def test_levels_count_their_groups(name):
    """Nested: as many groups as hold a device, the last level one; a torus: every device."""
    fabric = EVERY[name]
    network = collapse(fabric)
    assert network.devices == fabric.devices
    for level in network.levels:
        if isinstance(fabric, Torus):
            assert (level.kind, level.group_size, level.groups) == ("affinity", 0, fabric.devices)
        else:
            assert level.kind == "nested"
            assert level.groups == -(-fabric.devices // level.group_size)
    if not isinstance(fabric, Torus):
        assert network.levels[-1].groups == 1


@pytest.mark.parametrize("name", HIERARCHIES)
def test_bandwidth_is_the_bundle_shared_by_all_of_the_child(name):
    """What one device gets when its whole group sends; never more than alone."""
    for level in collapse(HIERARCHIES[name]).levels:
        assert level.bandwidth_Bps == pytest.approx(level.capacity_Bps / level.child_size)
        assert level.single_flow_Bps >= level.bandwidth_Bps


def test_collapsing_takes_no_link_graph():
    """The largest fabric collapses although nobody could draw it."""
    fabric = clos(1_048_576, radix=256, tiers=3, ratios=(1.0, 1.0))
    assert collapse(fabric).devices == 1_048_576
    with pytest.raises(InputError, match="builds link graphs of at most 16,384 devices"):
        fabric.explicit()


def test_latency_that_falls_outward_has_no_link_graph():
    """Levels may say it, but no cable can be shorter than the path inside it."""
    fabric = tree((4, 450, 2.0, "device", 1), (4, 50, 1.0, "device", 1))
    assert [level.latency_s for level in collapse(fabric).levels] == [2e-6, 1e-6]
    with pytest.raises(InputError, match=r"level\[1\].latency_us must not be smaller"):
        fabric.explicit()


def roles(graph: nx.Graph[Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for _, role in graph.nodes(data="role"):
        found[role] = found.get(role, 0) + 1
    return found


@pytest.mark.parametrize("name", EVERY)
def test_every_node_of_the_link_graph_has_a_role_and_every_link_its_figures(name):
    """Pictures and simulators read the graph by these names."""
    fabric = EVERY[name]
    graph = fabric.explicit()
    assert nx.is_connected(graph)
    assert set(roles(graph)) <= {"device", "nic", "switch"}
    assert roles(graph)["device"] == fabric.devices
    assert all(graph.nodes[device]["role"] == "device" for device in range(fabric.devices))
    for _, _, link in graph.edges(data=True):
        assert link["bandwidth_Bps"] > 0
        assert link["latency_s"] >= 0
        assert isinstance(link["count"], int)
        assert link["count"] >= 1
