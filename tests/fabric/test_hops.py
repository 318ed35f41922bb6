"""Hops from devices, on graphs drawn at random: as networkx counts them."""

from __future__ import annotations

import networkx as nx
import pytest

from nest_core.fabric.arrange import heights, hops, inner_switches


@pytest.mark.parametrize("seed", range(20))
def test_heights_are_the_shortest_paths_to_a_device(seed):
    graph = nx.gnm_random_graph(30, 32, seed=seed)
    devices = [0, 1, 2]
    lengths = nx.multi_source_dijkstra_path_length(graph, set(devices))
    above = max(lengths.values()) + 1
    assert heights(graph, devices) == {name: lengths.get(name, above) for name in graph}
    assert hops(graph, devices) == lengths


def test_what_is_not_entered_hides_what_is_behind_it():
    graph = nx.path_graph(5)
    assert hops(graph, [0], lambda name: name != 3) == {0: 0, 1: 1, 2: 2}


def test_an_inner_switch_has_devices_alone_beside_it():
    graph = nx.Graph([("a", "inner"), ("b", "inner"), ("a", "leaf"), ("leaf", "spine")])
    graph.add_node("unlinked")
    assert inner_switches(graph, ["a", "b"]) == {"inner"}
