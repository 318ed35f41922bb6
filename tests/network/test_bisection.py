"""Bisection: textbook formulae, and a maximum flow on the explicit links."""

from __future__ import annotations

import networkx as nx
import pytest

from nest_core.documents.presets import preset_names
from nest_core.fabric import (
    Clos,
    Dragonfly,
    Element,
    GraphFabric,
    Hierarchical,
    Link,
    Tier,
    Torus,
)
from nest_core.network import collapse
from nest_core.network.bisection import bisection_Bps, full_bisection_Bps, last_half
from nest_core.scenario import load_fabric

FEW = 1200


def clos(**changes):
    common = {
        "name": "c",
        "kind": "leaf_spine",
        "devices": 256,
        "devices_per_node": 4,
        "nics_per_node": 4,
        "nic_bandwidth_Bps": 50e9,
        "radix": 32,
        "tiers": 2,
        "oversubscription": (1.0,),
        "hop_latency_s": 1e-6,
        "intra_bandwidth_Bps": 450e9,
        "intra_latency_s": 1e-6,
    }
    return Clos(**(common | changes))


def bisection(fabric):
    return bisection_Bps(fabric, collapse(fabric))


def flow_Bps(fabric):
    """A maximum flow between the halves, found by networkx on the explicit links."""
    graph = fabric.explicit()
    both = nx.DiGraph()
    for a, b, data in graph.edges(data=True):
        capacity = data["bandwidth_Bps"] * data["count"]
        both.add_edge(a, b, capacity=capacity)
        both.add_edge(b, a, capacity=capacity)
    for device, late in enumerate(last_half(collapse(fabric))):
        both.add_edge(*((device, "sink") if late else ("source", device)))
    return nx.maximum_flow_value(both, "source", "sink")


@pytest.mark.parametrize("k", [4, 8, 16])
def test_a_k_ary_fat_tree_has_full_bisection(k):
    hosts = k**3 // 4
    fabric = clos(
        kind="fat_tree",
        devices=hosts,
        devices_per_node=1,
        nics_per_node=1,
        radix=k,
        tiers=3,
        oversubscription=(1.0, 1.0),
    )
    assert bisection(fabric) == pytest.approx(hosts / 2 * 50e9)
    assert full_bisection_Bps(collapse(fabric)) == pytest.approx(hosts / 2 * 50e9)


@pytest.mark.parametrize("ratio", [1.0, 2.0, 4.0, 8.0])
@pytest.mark.parametrize("kind", ["leaf_spine", "rail_optimised"])
def test_oversubscription_divides_the_bisection(kind, ratio):
    fabric = clos(kind=kind, devices=512, oversubscription=(ratio,))
    assert bisection(fabric) == pytest.approx(512 / 2 * 50e9 / ratio)


def test_rails_of_one_unit_need_no_spine():
    """All nodes hang on the same leaves, so halves of them meet below the thin spine."""
    fabric = clos(kind="rail_optimised", devices=64, oversubscription=(8.0,))
    assert bisection(fabric) == pytest.approx(32 * 50e9)


@pytest.mark.parametrize(
    ("shape", "links"), [((16, 16), 32), ((4, 4, 4), 32), ((8, 4), 8), ((16, 16, 16), 512)]
)
def test_a_torus_has_two_n_over_n_max_links(shape, links):
    fabric = Torus("t", shape, (True,) * len(shape), 50e9, 1e-6)
    assert bisection(fabric) == pytest.approx(links * 50e9)


def test_a_mesh_has_half_of_them():
    assert bisection(Torus("m", (8, 8), (False, False), 50e9, 1e-6)) == pytest.approx(8 * 50e9)


# Halves by number are not the least cut of a twisted torus.
SMALL = {
    name: fabric
    for name in preset_names("fabrics")
    if (fabric := load_fabric(name)).devices <= FEW and not getattr(fabric, "twisted", False)
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fabric", SMALL.values(), ids=list(SMALL))
def test_every_small_preset_agrees_with_a_maximum_flow(fabric):
    assert bisection(fabric) == pytest.approx(flow_Bps(fabric), rel=1e-6)


UNEVEN = (
    Hierarchical(
        "short last rack",
        (
            Tier("node", 4, 400e9, 1e-6),
            Tier("rack", 3, 50e9, 1e-6, uplink_per="device"),
            Tier("hall", 5, 70e9, 1e-6, uplink_per="child"),
        ),
    ),
    clos(devices=4 * 23, nics_per_node=2, oversubscription=(2.0,)),
    clos(devices=4 * 23, missing=("node 3", "spine 1")),
    clos(kind="rail_only", devices=4 * 23, oversubscription=(3.0,)),
    Dragonfly("d", 4, 2, 2, 50e9, 20e9, 1e-6),
)


@pytest.mark.parametrize("fabric", UNEVEN, ids=lambda fabric: fabric.name)
def test_uneven_fabrics_agree_with_a_maximum_flow(fabric):
    assert bisection(fabric) == pytest.approx(flow_Bps(fabric), rel=1e-6)


@pytest.mark.parametrize("interconnect", ["switch", "mesh", "ring"])
def test_one_node_is_cut_through_its_own_links(interconnect):
    fabric = clos(devices=4, interconnect=interconnect, tiers=1, oversubscription=())
    each = {"switch": 2 * 450e9, "mesh": 4 * 150e9, "ring": 2 * 225e9}
    assert bisection(fabric) == pytest.approx(each[interconnect])


def test_a_drawn_dumbbell_is_cut_at_its_waist():
    elements = [Element(f"d{i}", "device") for i in range(6)]
    elements += [Element("left", "switch"), Element("right", "switch")]
    links = [Link(f"d{i}", "left" if i < 3 else "right", 50e9) for i in range(6)]
    links.append(Link("left", "right", 10e9, count=4))
    assert bisection(GraphFabric("dumbbell", tuple(elements), tuple(links))) == 40e9


def test_there_is_no_bisection_of_one_device():
    assert bisection(Hierarchical("one", (Tier("node", 1, 1e11, 1e-6),))) is None


def test_large_fabrics_are_counted_not_listed():
    tiers = (Tier("node", 8, 450e9, 1e-6), Tier("hall", 16_384, 50e9, 1e-6))
    assert bisection(Hierarchical("large", tiers)) == pytest.approx(65_536 * 50e9)


@pytest.mark.parametrize("name", preset_names("fabrics"))
def test_halves_are_even_and_divide_no_node(name):
    network = collapse(load_fabric(name))
    late = last_half(network)
    assert 0.3 < late.mean() < 0.7
    if network.torus is None:
        node = network.nesting[0]
        assert not set(node[late].tolist()) & set(node[~late].tolist())
