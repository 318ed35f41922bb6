"""Bounds on drawings of any shape: no flow beats a port, and no plan beats its bound.

The enumerations run on trees. Here devices, switches and NICs are linked at random, under every
routing, so that a flow may leave its device by several links at once, or by one of many.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, permutations

import networkx as nx
import numpy as np
import pytest
from joint_instances import joint_instance

from nest_core.network import Network, collectives, transfers
from nest_core.network.clusters import graph_network
from nest_core.network.groups import exchange
from nest_core.network.phases import price_phases
from nest_core.planner import audit, search

ROUTINGS = ("adaptive", "shortest_path", "ecmp")
QUICK, ALL = 6, 300


def _network(devices: int, seed: int) -> Network:
    """Every pair linked, or planes of one switch each, or nodes whose devices share NICs or have
    several, or a random tree with links beside it.
    """
    dice = np.random.default_rng([seed, 51])
    graph = nx.Graph()
    graph.add_nodes_from(range(devices), role="device")
    shape = dice.choice(["clique", "planes", "nodes", "random", "random"])
    if shape == "clique":
        pairs = list(nx.complete_graph(devices).edges)
    elif shape == "planes":
        graph.add_nodes_from(planes := ["e0", "e1", "e2"], role="switch")
        pairs = [(device, plane) for device in range(devices) for plane in planes]
    elif shape == "nodes":
        pairs = _nodes(graph, devices, dice)
    else:
        others = [f"e{k}" for k in range(dice.integers(0, 5))]
        for name in others:
            graph.add_node(name, role=str(dice.choice(["switch", "switch", "nic"])))
        order = [list(graph)[k] for k in dice.permutation(len(graph))]
        pairs = [(order[k], order[dice.integers(k)]) for k in range(1, len(order))]
        extra = dice.integers(0, 2 * len(order))
        pairs += [tuple(order[k] for k in dice.permutation(len(order))[:2]) for _ in range(extra)]
    speeds, late = ([1.0], [0.01]) if dice.random() < 0.5 else ([1.0, 3.0, 10.0], [0.0, 0.01])
    for a, b in pairs:
        graph.add_edge(
            a,
            b,
            bandwidth_Bps=float(dice.choice(speeds)),
            latency_s=float(dice.choice(late)),
            count=int(dice.choice([1, len(speeds)])),
        )
    return graph_network(graph, ROUTINGS[seed % 3], seed)


def _nodes(graph, devices, dice):
    """Links of nodes of up to four, on a switch or one behind the other, and of one or two leaves.

    Each device has a NIC that it shares with others, or one on each leaf, or, now and then, none.
    """
    size, sharing = int(dice.integers(1, 5)), int(dice.integers(1, 4))
    leaves = [f"leaf {number}" for number in range(dice.integers(1, 3))]
    graph.add_nodes_from(leaves, role="switch")
    pairs = [(leaves[0], leaf) for leaf in leaves[1:] if dice.random() < 0.5]
    for first in range(0, devices, size):
        members = list(range(first, min(first + size, devices)))
        if switched := bool(dice.random() < 0.6):
            graph.add_node(("node", first), role="switch")
        pairs += [(device, ("node", first)) for device in members if switched]
        pairs += [] if switched else list(pairwise(members))
        for device in members[dice.integers(0, 2) and len(members) > 1 :]:
            for leaf in leaves[: dice.integers(1, 3)]:
                nic = ("nic", first, (device - first) // sharing, leaf)
                graph.add_node(nic, role="nic")
                pairs += [(device, nic), (nic, leaf)]
    return pairs


@pytest.mark.sampled(9)
@pytest.mark.parametrize("seed", range(40))
def test_no_device_sends_faster_than_its_ports(seed):
    """To one other through what is called a port, to all others at once through all of them."""
    network = _network(n := 2 + seed % 9, seed)
    link_map = network.link_map
    for source, target in permutations(range(n), 2):
        alone = transfers(network, np.array([source]), np.array([target]))
        assert alone.beta_s_per_byte.min() * link_map.port_Bps >= 1 - 1e-12
    half = collectives(network, np.arange(n)[None]).beta_s_per_byte.min()
    assert half * link_map.port_Bps >= (1 - 1 / n) * (1 - 1e-12)
    every = exchange(np.arange(n)[None], volume=1.0, steps=1.0)
    together = price_phases(link_map, [every], 1)
    assert together.beta_s_per_byte.min() * link_map.all_ports_Bps >= (n - 1) * (1 - 1e-12)


@pytest.mark.sampled(9)
@pytest.mark.parametrize("seed", range(60))
def test_nothing_leaves_a_node_faster_than_its_ways_out(seed):
    """One flow, all flows of one device, and all of a node to all others."""
    network = _network(n := 2 + seed % 9, seed)
    link_map, node = network.link_map, network.node
    outside = [(a, b) for a, b in permutations(range(n), 2) if node[a] != node[b]]
    kinds = [(pair, link_map.flow_outside_Bps) for pair in outside]
    pairs = np.array(outside, np.int64).reshape(-1, 2)
    for ends, rate in kinds + [
        (pairs[sends == sender], limit)
        for sends, limit in (
            (pairs[:, 0], link_map.outlet_Bps),
            (node[pairs[:, 0]], network.node_egress_Bps),
        )
        for sender in np.unique(sends)
    ]:
        source, target = np.reshape(ends, (-1, 2)).T
        flows = transfers(network, source, target)
        assert flows.beta_s_per_byte.max() * rate >= len(source) * (1 - 1e-12)


def test_devices_that_share_nics_leave_their_nodes_through_these():
    """Four devices on two NICs of 25 bytes/s; one NIC of another node has 10 behind it."""
    graph = nx.Graph()
    graph.add_nodes_from(range(8), role="device")
    graph.add_nodes_from(["leaf", "node 0", "node 1"], role="switch")
    for device in range(8):
        graph.add_edge(device, f"node {device // 4}", bandwidth_Bps=100.0, count=1, latency_s=0.0)
        graph.add_node(f"nic {device // 2}", role="nic")
        graph.add_edge(device, f"nic {device // 2}", bandwidth_Bps=25.0, count=1, latency_s=0.0)
    for nic, behind in enumerate((25.0, 25.0, 25.0, 10.0)):
        graph.add_edge(f"nic {nic}", "leaf", bandwidth_Bps=behind, count=1, latency_s=0.0)
    network = graph_network(graph)
    assert network.link_map.flow_outside_Bps == 25.0
    assert network.node_egress_Bps == 50.0


def _no_plan_beats_a_bound(seed: int) -> int:
    """Every point that the search excluded is solved after all; how many there were."""
    instance = joint_instance(seed)
    network = _network(instance.fabric.devices, seed)
    problem = replace(instance.problem, network=network)
    result = search(problem, instance.space)
    assert result.certificate.proven
    told = audit(problem, instance.space, result, result.certificate.points, seed=1)
    assert not told.violations, f"seed {seed}: {told.violations}"
    return told.solved


@pytest.mark.check
def test_no_plan_on_a_drawing_beats_its_bound():
    assert sum(map(_no_plan_beats_a_bound, range(QUICK))) > 10 * QUICK


@pytest.mark.check
def test_no_plan_on_many_drawings_beats_its_bound():
    assert sum(map(_no_plan_beats_a_bound, range(QUICK, ALL))) > 10 * (ALL - QUICK)
