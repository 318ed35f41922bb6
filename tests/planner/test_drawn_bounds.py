"""Bounds on drawings of any shape: no flow beats a port, and no plan beats its bound.

The enumerations run on trees. Here devices, switches and NICs are linked at random, under every
routing, so that a flow may leave its device by several links at once, or by one of many.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

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
    """Every pair linked, or planes of one switch each, or a random tree with links beside it."""
    dice = np.random.default_rng([seed, 51])
    graph = nx.Graph()
    graph.add_nodes_from(range(devices), role="device")
    shape = dice.choice(["clique", "planes", "random", "random"])
    if shape == "clique":
        pairs = list(nx.complete_graph(devices).edges)
    elif shape == "planes":
        graph.add_nodes_from(planes := ["e0", "e1", "e2"], role="switch")
        pairs = [(device, plane) for device in range(devices) for plane in planes]
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
