"""Bisection: textbook formulae, and a maximum flow on the explicit links."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product

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
    Dragonfly("d", 4, 2, 2, 50e9, 20e9, 1e-6),
)


@pytest.mark.parametrize("fabric", UNEVEN, ids=lambda fabric: fabric.name)
def test_uneven_fabrics_agree_with_a_maximum_flow(fabric):
    assert bisection(fabric) == pytest.approx(flow_Bps(fabric), rel=1e-6)


def test_halves_by_number_are_not_the_least_of_a_short_leaf():
    """16 and 7 nodes under the leaves of a rail: 12 and 4 + 7 cross 4 NICs and 5 uplinks, not 5."""
    fabric = clos(kind="rail_only", devices=4 * 23, oversubscription=(3.0,))
    assert bisection(fabric) == pytest.approx(4 * (4 + 5) * 50e9)
    assert flow_Bps(fabric) == pytest.approx(4 * (5 + 5) * 50e9)


def least_Bps(fabric, node_of):
    """Least maximum flow over all halves of whole nodes, by networkx on the explicit links."""
    graph = nx.DiGraph()
    for a, b, data in fabric.explicit().edges(data=True):
        capacity = data["bandwidth_Bps"] * data["count"]
        graph.add_edge(a, b, capacity=capacity)
        graph.add_edge(b, a, capacity=capacity)
    sizes = Counter(node_of)
    sides = [
        dict(zip(sizes, sides, strict=True)) for sides in product((False, True), repeat=len(sizes))
    ]
    uneven = [abs(sum(sizes[n] if far[n] else -sizes[n] for n in far)) for far in sides]
    cuts = []
    for far in (far for far, rest in zip(sides, uneven, strict=True) if rest == min(uneven)):
        both = graph.copy()
        for device, node in enumerate(node_of):
            both.add_edge(*((device, "sink") if far[node] else ("source", device)))
        cuts.append(nx.maximum_flow_value(both, "source", "sink"))
    return min(cuts)


def multihomed(seed):
    """Up to eight nodes with NICs on one to three leaves, which have some links to some spines."""
    dice = random.Random(seed)
    nodes, leaves, spines = dice.randint(3, 8), dice.randint(2, 6), dice.randint(1, 3)
    elements = [Element(f"leaf{n}", "switch") for n in range(leaves)]
    elements += [Element(f"spine{n}", "switch") for n in range(spines)]
    links, node_of = [], []
    for node in range(nodes):
        elements += [Element(f"gpu{node}-{n}", "device") for n in range(2)]
        elements.append(Element(f"inner{node}", "switch"))
        links += [Link(f"gpu{node}-{n}", f"inner{node}", 450e9) for n in range(2)]
        node_of += [node, node]
        for leaf in dice.sample(range(leaves), dice.randint(1, min(leaves, 3))):
            elements.append(Element(f"nic{node}-{leaf}", "nic"))
            links.append(Link(f"inner{node}", f"nic{node}-{leaf}", 100e9))
            links.append(Link(f"nic{node}-{leaf}", f"leaf{leaf}", 25e9, count=dice.randint(1, 4)))
    for leaf, spine in product(range(leaves), range(spines)):
        if count := dice.randint(0 if spine else 1, 6):
            links.append(Link(f"leaf{leaf}", f"spine{spine}", 25e9, count=count))
    return GraphFabric("multihomed", tuple(elements), tuple(links)), node_of


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(40))
def test_no_halves_of_whole_nodes_are_joined_by_less(seed):
    """4.40 TB/s were said of a fabric with a cut of 3.70: halves were those of the numbers."""
    fabric, node_of = multihomed(seed)
    assert bisection(fabric) == pytest.approx(least_Bps(fabric, node_of), rel=1e-9)


RAGGED = (
    clos(devices=36, missing=("node 1", "node 5"), radix=16, oversubscription=(2.0,)),
    clos(devices=40, kind="rail_optimised", missing=("leaf 3", "node 2"), radix=16),
    clos(devices=36, kind="rail_only", radix=8, oversubscription=(3.0,), missing=("spine 1",)),
    clos(devices=36, nics_per_node=2, radix=6, tiers=3, oversubscription=(1.0, 2.0)),
    clos(devices=32, missing=("device 9", "node 4"), radix=16, oversubscription=(4.0,)),
    Hierarchical(
        "racks of one to four nodes",
        (
            Tier("node", 2, 400e9, 1e-6),
            Tier("rack", 0, 50e9, 1e-6, group_sizes=(1, 3, 4, 2)),
            Tier("hall", 4, 70e9, 1e-6, uplink_per="child"),
        ),
    ),
)


@pytest.mark.parametrize("fabric", RAGGED, ids=lambda fabric: fabric.name)
def test_halves_of_ragged_trees_are_the_least(fabric):
    node_of = fabric.node_of() if isinstance(fabric, Clos) else fabric.group_of(0)
    assert bisection(fabric) == pytest.approx(least_Bps(fabric, node_of.tolist()), rel=1e-9)


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
