"""Rails and planes: NVIDIA's bills row by row, rail-only savings, dual-plane pods."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from clos_specs import clos, counts, link_counts

from nest_core.documents.errors import InputError
from nest_core.fabric import Clos
from nest_core.network import collapse

# NVIDIA DGX SuperPOD reference architectures, compute fabric: scalable units, nodes, GPUs,
# switches (leaf, spine, core), cables (node-leaf, leaf-spine, spine-core).
B200 = [  # Quantum-2 QM9700, radix 64; also H100 and H200
    (2, 64, 512, (16, 8), (512, 512)),
    (4, 128, 1024, (32, 16), (1024, 1024)),
    (8, 256, 2048, (64, 32), (2048, 2048)),
    (16, 512, 4096, (128, 128, 64), (4096, 4096, 4096)),
    (32, 1024, 8192, (256, 256, 128), (8192, 8192, 8192)),
    (64, 2048, 16384, (512, 512, 256), (16384, 16384, 16384)),
]
B300 = [  # Quantum-X800 Q3400, radix 144
    (1, 72, 576, (8, 4), (576, 576)),
    (2, 144, 1152, (16, 8), (1152, 1152)),
    (4, 288, 2304, (32, 18), (2304, 2304)),
    (8, 576, 4608, (64, 36), (4608, 4608)),
    # The page prints 9,216 GPUs, a misprint: 1,296 nodes of eight, and 10,368 cables.
    (18, 1296, 10368, (144, 72), (10368, 10368)),
]


@pytest.mark.parametrize(
    ("radix", "row"), [(64, row) for row in B200] + [(144, row) for row in B300], ids=str
)
@pytest.mark.parametrize("kind", ["rail_optimised", "leaf_spine"])
def test_switches_and_cables_are_those_of_the_reference_architectures(radix, row, kind):
    """Every row; as leaf-spine the same numbers, with other switches at the cables' ends."""
    units, nodes, devices, switches, cables = row
    fabric = clos(devices, radix, len(switches), kind=kind)
    assert fabric.nodes == nodes
    if kind == "rail_optimised":
        assert fabric.sizing.units == units
    assert counts(fabric) == (list(switches), list(cables))


SPECTRUM = [  # B300 on Spectrum-4: GPUs, (leaf, spine), (node-leaf, leaf-spine)
    (512, (16, 8), (512, 512)),
    (1024, (32, 16), (1024, 1024)),
    (2048, (64, 32), (2048, 2048)),
    (4096, (128, 64), (4096, 4096)),
    (8192, (256, 128), (8192, 8192)),
]


@pytest.mark.parametrize("row", SPECTRUM, ids=str)
def test_ethernet_rows_are_two_planes(row):
    """Two planes of radix 128 at half the rate; one cable carries a link of each plane."""
    devices, switches, cables = row
    fabric = clos(devices, 128, 2, kind="rail_optimised", planes=2)
    made, links = counts(fabric)
    assert (made, [count // 2 for count in links]) == (list(switches), list(cables))


def test_the_largest_two_tier_row_takes_two_planes():
    with pytest.raises(InputError, match="128 leaves exceed radix 64, but is 2: use 3 tiers"):
        clos(4096, 64, 2)


def test_as_built_rows_lose_a_node_and_no_switch():
    """127 of 128 nodes; 31 of 32 in one unit: leaves and their uplinks stay whole."""
    four = clos(1024, 64, 2, kind="rail_optimised", missing=("node 31",))
    assert (four.devices, counts(four)) == (1016, ([32, 16], [1016, 1024]))
    one = clos(256, 64, 2, kind="rail_optimised", missing=("node 0",))
    assert (one.devices, counts(one)) == (248, ([8, 4], [248, 256]))


def test_pods_may_gather_rails():
    """DGX SuperPOD A100, seven units of radix 40: 80 spines in a group of ten per rail.

    Seven leaves' uplinks fill the ports of seven, dealt in turn; NVIDIA's tables spread evenly.
    """
    fabric = clos(1120, 40, 3, kind="rail_optimised", pods="rails", spread="even")
    assert counts(fabric) == ([56, 80, 28], [1120, 1120, 1120])
    fewest = clos(1120, 40, 3, kind="rail_optimised", pods="rails")
    assert counts(fewest) == ([56, 56, 28], [1120, 1120, 1120])
    assert np.array_equal(fabric.group_of(2), fabric.rail_of())


def gb200(**changes):
    """16,416 GB200: 228 racks of 72 on 18 rails, pods of one unit of 18 leaves."""
    node = {"devices_per_node": 72, "nics_per_node": 72, "rails": 18}
    return clos(16416, 64, 3, kind="rail_optimised", **node, **changes)


def test_pods_take_the_spines_that_their_ports_need():
    """928 spines with 28 of 64 ports free were sized; 18 in each of 29 pods carry every uplink.

    What a pod sends up, and so every bandwidth above it, is the same.
    """
    fewest, even = gb200(), gb200(spread="even")
    assert counts(fewest)[0] == [522, 18 * 29, 261]
    assert counts(even)[0] == [522, 32 * 29, 261]
    assert counts(fewest)[1] == counts(even)[1] == [16416, 522 * 32, 522 * 32]
    assert fewest.ratios == even.ratios == (1.0, 1.0)
    assert [tier.free for tier in fewest.switch_ports()] == [0, 0, 0]
    assert collapse(fewest).levels == collapse(even).levels
    links = fewest.sizing.spine_links(0)
    assert set(links.sum(axis=0)) == set(links.sum(axis=1)) == {32}


@pytest.mark.parametrize("routing", ["ecmp", "shortest_path"])
def test_routing_that_does_not_adapt_needs_even_uplinks(routing):
    assert counts(gb200(routing=routing)) == counts(gb200(spread="even"))
    with pytest.raises(InputError, match=f'spread must be even for routing = "{routing}"'):
        gb200(routing=routing, spread="fewest")


def test_an_hpn_pod_is_two_planes():
    """Alibaba HPN 7.0 as SimAI has it: 15,360 GPUs, 240 ToRs, 120 aggregation switches."""
    fabric = clos(15360, 256, 2, 1.0666667, kind="rail_optimised", planes=2)
    assert list(fabric.switch_counts().values()) == [240, 120]
    assert fabric.sizing.units == 15
    assert fabric.link_bandwidth_Bps == 25e9


# Switches and transceivers (two per link) for 32,768 devices: radix, devices per node, tiers.
RAIL_ONLY = [
    (64, 8, 3, 2560, 196_608),
    (64, 256, 2, 1536, 131_072),
    (128, 8, 2, 768, 131_072),
    (128, 256, 1, 256, 65_536),
    (256, 256, 1, 256, 65_536),
]


@pytest.mark.parametrize("row", RAIL_ONLY, ids=str)
def test_rail_only_saves_a_tier_where_nodes_are_large(row):
    radix, node, tiers, switches, transceivers = row
    fabric = clos(32768, radix, tiers, kind="rail_only", devices_per_node=node, nics_per_node=node)
    assert sum(fabric.switch_counts().values()) == switches
    assert 2 * sum(link_counts(fabric).values()) == transceivers


@pytest.mark.parametrize("tiers", [1, 2, 3])
def test_rails_of_a_rail_only_fabric_meet_inside_nodes_only(tiers):
    """Without the nodes' switches, what is left falls into one network per rail."""
    radix = 4 if tiers == 3 else 8  # three tiers: four leaves and two pods per rail
    fabric = clos(32, radix, tiers, kind="rail_only", devices_per_node=4, nics_per_node=4)
    graph = fabric.explicit()
    assert nx.is_connected(graph)
    graph.remove_nodes_from(
        [node for node in graph if isinstance(node, tuple) and node[0] == "node"]
    )
    rail = fabric.rail_of()
    parts = list(nx.connected_components(graph))
    assert len(parts) == 4
    for part in parts:
        devices = [node for node in part if isinstance(node, int)]
        assert len(devices) == 8
        assert len(set(rail[devices])) == 1


def test_a_rail_optimised_leaf_holds_one_rail_of_one_unit():
    fabric = clos(1024, 64, 2, kind="rail_optimised")
    leaf = fabric.group_of(1)
    assert np.bincount(leaf).tolist() == [32] * 32
    unit = fabric.node_of() // 32
    assert np.array_equal(leaf, unit * 8 + fabric.slot_of() % 8)


def test_bandwidth_per_tier_is_the_published_one():
    """1,024 H100: 12.8 TB/s up from a unit, 51.2 TB/s in the spine, 400 GB/s per node."""
    fabric = clos(1024, 64, 2, kind="rail_optimised")
    per_leaf = fabric.uplinks(1) * fabric.link_bandwidth_Bps
    assert per_leaf[:8].sum() == 12.8e12
    assert per_leaf.sum() == 51.2e12
    assert fabric.leaf_links()[:8].sum() * fabric.link_bandwidth_Bps == 400e9


def test_more_devices_than_rails_share_them_in_turn():
    """An NVL72 rack on 18 rails: slots 0, 18, 36 and 54 have the first; eight racks a leaf."""
    fabric = clos(
        576, 64, 2, kind="rail_optimised", devices_per_node=72, nics_per_node=72, rails=18
    )
    assert np.flatnonzero(fabric.rail_of()[:72] == 0).tolist() == [0, 18, 36, 54]
    assert fabric.sizing.nodes_per_unit == 8
    assert fabric.leaf_links().tolist() == [4] * 18


@pytest.mark.parametrize("planes", [1, 2, 4])
def test_planes_divide_a_nic_and_multiply_links(planes):
    """Bandwidth of every link group stays; links and switches multiply."""
    fabric = clos(256, 64, 2, 2.0, kind="rail_optimised", planes=planes)
    plain = clos(256, 64, 2, 2.0, kind="rail_optimised")
    assert fabric.link_bandwidth_Bps == 50e9 / planes
    assert np.array_equal(fabric.uplinks(1), plain.uplinks(1) * planes)
    assert np.array_equal(fabric.leaf_links(), plain.leaf_links() * planes)
    for one, many in zip(counts(plain), counts(fabric), strict=True):
        assert many == [count * planes for count in one]


def test_arrays_of_the_largest_fabrics_are_quick_and_consistent():
    """131,072 devices; every group lies in one group of the tier above."""
    fabric = clos(131_072, 128, 3, kind="rail_optimised")
    groups = [fabric.group_of(height) for height in (1, 2, 3)]
    for inner, outer in pairwise(groups):
        pairs = np.unique(np.stack((inner, outer)), axis=1)
        assert pairs.shape[1] == np.unique(inner).size
    assert fabric.uplinks(1).sum() == fabric.uplinks(2).sum() == 131_072


BAD = [
    ({"kind": "leaf_spine", "rails": 8}, 'clos.rails must be absent for kind = "leaf_spine", but'),
    ({"rails": 3}, "clos.rails must divide clos.nics_per_node = 8, but is 3"),
    ({"devices_per_node": 4, "rails": 8}, "clos.rails must divide clos.devices_per_node = 4"),
    ({"tiers": 1}, 'clos.tiers must be more than 1 for kind = "rail_optimised", whose rails'),
    ({"planes": 0}, "clos.planes must be a whole number of at least 1, but is 0"),
    ({"rails": -1}, "clos.rails must be a whole number of at least 0, but is -1"),
    ({"routing": "random"}, "routing must be one of adaptive, .*, but is 'random'"),
    ({"ecmp_seed": 3}, 'ecmp_seed must be absent or 0 unless routing is "ecmp", but is 3'),
    ({"radix": 8, "tiers": 3, "rails": 8}, "clos.rails must be at most 4, because a pod of whole"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[str(change) for change, _ in BAD])
def test_rails_that_cannot_be_are_refused(change, message):
    figures = {"devices": 64, "radix": 64, "tiers": 2, "kind": "rail_optimised", **change}
    with pytest.raises(InputError, match=message) as caught:
        clos(figures.pop("devices"), figures.pop("radix"), figures.pop("tiers"), **figures)
    assert str(caught.value).endswith(".")


def test_the_default_is_one_rail_per_nic_as_far_as_devices_go():
    assert clos(64, 64, 2, kind="rail_optimised").rails == 8
    two = clos(64, 64, 2, kind="rail_optimised", devices_per_node=4)
    assert (two.rails, two.leaf_links().tolist()[0]) == (4, 2)
    assert isinstance(two, Clos)
