"""The insides of nodes: who is linked to whom, and how bandwidth divides."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import pytest
from clos_specs import clos

from nest_core.documents.errors import InputError
from nest_core.fabric import ScaleUp

DIRECT = [("mesh", n) for n in (2, 3, 8)] + [("ring", n) for n in (2, 3, 8)]
DIRECT += [("hybrid_cube_mesh", 8)]


@pytest.mark.parametrize(("interconnect", "devices"), DIRECT)
def test_every_device_gives_all_of_its_bandwidth(interconnect, devices):
    """Links of a device add up to its bandwidth; pairs stand once; all are connected."""
    node = ScaleUp(interconnect, devices, 300e9, 1e-6)
    total: Counter[int] = Counter()
    for a, b, bandwidth in node.links():
        assert 0 <= a < b < devices
        total[a] += bandwidth
        total[b] += bandwidth
    assert len({(a, b) for a, b, _ in node.links()}) == len(node.links())
    assert [total[slot] for slot in range(devices)] == [pytest.approx(300e9)] * devices
    assert nx.is_connected(nx.Graph((a, b) for a, b, _ in node.links()))


def test_meshes_join_all_pairs_and_rings_two_neighbours():
    assert len(ScaleUp("mesh", 8, 448e9, 0.0).links()) == 28
    assert {bandwidth for *_, bandwidth in ScaleUp("mesh", 8, 448e9, 0.0).links()} == {64e9}
    ring = nx.Graph((a, b) for a, b, _ in ScaleUp("ring", 8, 1.0, 0.0).links())
    assert nx.is_isomorphic(ring, nx.cycle_graph(8))


def test_a_hybrid_cube_mesh_is_that_of_the_dgx_1():
    """Six NVLinks of 25 GB/s each: two pairs of quads; the second quad mirrors the first."""
    links = {
        (a, b): bandwidth / 25e9
        for a, b, bandwidth in ScaleUp("hybrid_cube_mesh", 8, 150e9, 0.0).links()
    }
    assert sum(links.values()) == 8 * 6 / 2
    assert set(links.values()) == {1, 2}
    for quad in (range(4), range(4, 8)):
        assert all((a, b) in links for a in quad for b in quad if a < b)
    across = sorted(pair for pair in links if pair[0] < 4 <= pair[1])
    assert across == [(0, 4), (1, 5), (2, 6), (3, 7)]
    graph = nx.Graph(links.keys())
    assert nx.diameter(graph) == 2


def test_switches_and_single_devices_have_no_links():
    assert ScaleUp("switch", 8, 1e9, 0.0).links() == []
    for interconnect in ("mesh", "ring"):
        assert ScaleUp(interconnect, 1, 1e9, 0.0).links() == []


@pytest.mark.parametrize(("interconnect", "devices"), [*DIRECT, ("switch", 8)])
def test_the_link_graph_shows_the_inside_of_every_node(interconnect, devices):
    fabric = clos(
        4 * devices, 64, 2, devices_per_node=devices, nics_per_node=1, interconnect=interconnect
    )
    graph = fabric.explicit()
    inside = graph.subgraph(range(fabric.devices))
    expected = {
        (node * devices + a, node * devices + b): bandwidth
        for node in range(4)
        for a, b, bandwidth in fabric.scale_up.links()
    }
    drawn = {(min(a, b), max(a, b)): d["bandwidth_Bps"] for a, b, d in inside.edges(data=True)}
    assert drawn == expected
    assert (("node", 0) in graph) == (interconnect == "switch")


def test_a_missing_device_takes_its_links():
    fabric = clos(16, 64, 2, interconnect="mesh", missing=("device 3",))
    inside = fabric.explicit().subgraph(range(7))
    assert inside.number_of_edges() == 7 * 6 / 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"devices": 4}, "intra_node.interconnect must not be a hybrid cube mesh unless a node"),
        ({"devices": 0}, "intra_node.devices must be a whole number of at least 1"),
        ({"bandwidth_Bps": 0.0}, "intra_node.bandwidth_GBps must be a finite number above 0"),
        ({"latency_s": -1.0}, "intra_node.latency_us must be a finite number of at least 0"),
    ],
)
def test_what_is_no_node_is_refused(change, message):
    figures = {"devices": 8, "bandwidth_Bps": 1e9, "latency_s": 0.0, **change}
    with pytest.raises(InputError, match=message):
        ScaleUp("hybrid_cube_mesh", **figures)
