"""Shortest paths that people read: real links from end to end, as far as routing says."""

from __future__ import annotations

import networkx as nx
import pytest

from nest_core.network import collapse
from nest_core.network.link_graph import shortest_paths
from nest_core.scenario import load_fabric

FABRICS = ["h100-spine-leaf-64", "rail-only-1024", "tpu-v4-4x4x4", "dgx1-v100-64", "drawn-8"]


@pytest.mark.parametrize("name", FABRICS)
def test_paths_are_links_from_end_to_end(name):
    fabric = load_fabric(name)
    graph = fabric.explicit()
    devices = range(0, fabric.devices, max(1, fabric.devices // 12))
    for a, row in zip(devices, shortest_paths(graph, devices), strict=True):
        for b, path in zip(devices, row, strict=True):
            if a == b:
                assert path is None
                continue
            assert (path.elements[0], path.elements[-1]) == (a, b)
            steps = [graph.edges[step] for step in nx.utils.pairwise(path.elements)]
            assert path.bandwidth_Bps == min(s["bandwidth_Bps"] * s["count"] for s in steps)
            assert path.latency_s == pytest.approx(sum(s["latency_s"] for s in steps))
            assert sum(graph.nodes[element]["role"] == "nic" for element in path.elements) <= 2


def test_devices_of_a_node_meet_inside_it():
    """A failure: the path leaves through a NIC though it need not."""
    fabric = load_fabric("h100-spine-leaf-64")
    inside, across = shortest_paths(fabric.explicit(), [0, 1, 63])[0][1:]
    assert inside.elements == (0, ("node", 0), 1)
    assert ("spine", 0) in across.elements
    network = collapse(fabric)
    assert inside.latency_s == pytest.approx(network.levels[0].latency_s)
    assert across.latency_s == pytest.approx(network.levels[-1].latency_s)
