"""Fabrics as built: nodes, devices and switches that are not there."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from clos_specs import clos, link_counts

from nest_core.documents.errors import InputError
from nest_core.fabric import Clos, Hierarchical, Tier, Torus
from nest_core.network import collapse


def rails(*missing: str, devices: int = 32, radix: int = 8, tiers: int = 2, **changes) -> Clos:
    """Nodes of four devices on four rails; a unit has four nodes."""
    figures = {"devices_per_node": 4, "nics_per_node": 4, "kind": "rail_optimised", **changes}
    return clos(devices, radix, tiers, missing=missing, **figures)


def small(*missing: str, **changes) -> Clos:
    """32 hosts on 8 leaves of radix 8, two pods, 8 cores."""
    return clos(32, 8, 3, devices_per_node=1, nics_per_node=1, missing=missing, **changes)


def test_present_devices_are_numbered_in_their_order():
    fabric = rails("node 1", "device 2", "device 31", "node 1")
    assert fabric.devices == 32 - 4 - 2
    natural = fabric.node_of() * 4 + fabric.slot_of()
    assert natural.tolist() == [n for n in range(31) if n not in (2, 4, 5, 6, 7)]
    assert [len(fabric.group_of(height)) for height in (1, 2)] == [26, 26]
    graph = fabric.explicit()
    assert sorted(node for node in graph if isinstance(node, int)) == list(range(26))


def test_nothing_missing_changes_nothing():
    assert rails(devices=32) == replace(rails(devices=32), missing=())
    assert rails(devices=32).installed == 0


def test_what_is_missing_survives_a_change_of_other_figures():
    fabric = rails("node 1", devices=32)
    assert replace(fabric, hop_latency_s=1e-6).devices == fabric.devices == 28
    with pytest.raises(InputError, match=r"clos\.devices must be what is left of 32 devices"):
        replace(fabric, devices=64)
    assert replace(fabric, devices=64, radix=16, installed=0).devices == 60


def test_a_missing_spine_takes_its_share_from_every_leaf_of_its_group():
    """Four spines: each leaf loses a quarter of its four uplinks."""
    fabric = small("spine 0")
    assert small().uplinks(1).tolist() == [4] * 8
    assert fabric.uplinks(1).tolist() == [3] * 4 + [4] * 4
    assert fabric.uplinks(2).tolist() == [12, 16]
    assert fabric.switch_counts() == {"leaf": 8, "spine": 7, "core": 4}
    assert link_counts(fabric) == {"leaf": 32, "spine": 28, "core": 28}


def test_a_missing_core_takes_what_is_dealt_to_it():
    """Four cores, 16 uplinks per pod, dealt in turn: each pod loses four."""
    fabric = small("core 3")
    assert fabric.uplinks(2).tolist() == [12, 12]
    assert fabric.uplinks(1).tolist() == [4] * 8


@pytest.mark.parametrize("core", range(4))
@pytest.mark.parametrize("spine", range(8))
def test_links_between_a_missing_spine_and_a_missing_core_are_lost_once(spine, core):
    """Each spine has one uplink to each core."""
    fabric = small(f"spine {spine}", f"core {core}")
    assert sorted(fabric.uplinks(2).tolist()) == [16 - 4 - 4 + 1, 12]


@pytest.mark.parametrize(("core", "lost"), [(0, [6, 1]), (1, [5, 2]), (2, [5, 1])])
def test_uplinks_are_dealt_to_cores_in_turn(core, lost):
    """20 uplinks, 16 of the first pod, to cores 0, 1, 2, 0, 1, ..."""
    fabric = clos(20, 8, 3, 1.0, 1.0, devices_per_node=1, nics_per_node=1)
    assert fabric.sizing.cores == 3
    left = replace(fabric, missing=(f"core {core}",)).uplinks(2)
    assert (fabric.uplinks(2) - left).tolist() == lost


def test_a_missing_leaf_leaves_the_other_plane():
    fabric = clos(64, 64, 2, planes=2, missing=("leaf 1",))
    assert fabric.leaf_links().tolist() == [8, 16]
    assert fabric.uplinks(1).tolist() == [32, 64]
    assert nx.is_connected(fabric.explicit())


def test_a_missing_leaf_leaves_the_other_rails():
    """Devices of the lost rail are reached through their node."""
    fabric = rails("leaf 1", devices=32)
    assert fabric.leaf_links().tolist() == [1, 0, 1, 1, 1, 1, 1, 1]
    assert fabric.uplinks(1).tolist() == [4, 0] + [4] * 6
    graph = fabric.explicit()
    assert nx.is_connected(graph)
    assert ("leaf", 1) not in graph


REFUSED = [
    (lambda: clos(64, 64, 2, missing=("leaf 0",)), "missing must leave node 0 a leaf, but is"),
    (lambda: rails("leaf 0", "leaf 1", "leaf 2", "leaf 3", devices=32), "must leave node 0 a leaf"),
    (
        lambda: rails(*(f"spine {n}" for n in range(4)), devices=32),
        "must leave a path between the nodes of unit 0 and unit 1",
    ),
    (
        # One unit: its nodes share leaves, but its rails meet above them only.
        lambda: rails("spine 0", "spine 1", devices=16),
        "must leave a path between rails 0 and 1 of unit 0",
    ),
    (
        # Unit 0 has the first plane only, unit 1 the second.
        lambda: clos(64, 64, 2, planes=2, missing=("leaf 1", "leaf 2")),
        "must leave a path between the nodes of unit 0 and unit 1",
    ),
    (
        lambda: rails("leaf 1", "leaf 2", "leaf 3", "leaf 4", devices=32, kind="rail_only"),
        "must leave a path between the nodes of unit 0 and unit 1",
    ),
    (
        # Unit 0 keeps rail 0, unit 1 rail 1; they would meet in the nodes of unit 2 only.
        lambda: rails(*(f"leaf {n}" for n in (1, 2, 3, 4, 6, 7)), devices=48, kind="rail_only"),
        "missing must leave nodes 0 and 4 a rail in common",
    ),
    (
        lambda: rails(*(f"device {n}" for n in (1, 2, 3, 4, 6, 7)), devices=16, kind="rail_only"),
        "missing must leave nodes 0 and 1 a rail in common",
    ),
    (lambda: rails("rack 0"), r"missing\[0\] must be an element's name and its number, but is 'ra"),
    (lambda: rails("core 0", devices=32), r"missing\[0\] must be an element's name and its number"),
    (
        lambda: rails("node"),
        r"missing\[0\] must be an element's name and its number, but is 'node'",
    ),
    (lambda: rails("node x"), r"missing\[0\] must end in a whole number, but is 'node x'"),
    (lambda: rails("node -1"), r"missing\[0\] must end in a whole number, but is 'node -1'"),
    (lambda: rails("node 0", "node ²"), r"missing\[1\] must end in a whole number"),
    (
        lambda: rails("node 16", devices=64, tiers=3),
        r"missing\[0\] must have a number below 16, because",
    ),
    (lambda: rails("leaf 8", devices=32), r"missing\[0\] must have a number below 8, because"),
    (
        lambda: rails(*(f"node {n}" for n in range(8)), devices=32),
        "missing must leave at least one device",
    ),
]


@pytest.mark.parametrize(("build", "message"), REFUSED, ids=[text for _, text in REFUSED])
def test_what_cannot_be_missing_is_refused(build, message):
    with pytest.raises(InputError, match=message) as caught:
        build()
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_nodes_that_are_missing_need_no_path():
    """A rack taken out with its leaf."""
    gone = tuple(f"node {n}" for n in range(4))
    fabric = clos(64, 64, 2, missing=("leaf 0", *gone))
    assert fabric.devices == 32
    assert fabric.switch_counts()["leaf"] == 1
    assert set(fabric.group_of(1).tolist()) == {1}


def test_numbers_run_group_by_group_then_plane_by_plane():
    """Leaves 2g and 2g + 1 are the two ToRs of group g; spines 0..S-1 the first plane's."""
    fabric = clos(64, 64, 2, planes=2, missing=("leaf 2", "spine 0"))
    assert fabric.sizing.spines == (1,)
    # Plane 0 has lost its only spine: every leaf keeps plane 1; group 1 has only that.
    assert fabric.uplinks(1).tolist() == [32, 32]
    assert fabric.leaf_links().tolist() == [16, 8]
    more = clos(128, 64, 2, planes=2, missing=("leaf 0", "spine 1"))
    assert more.sizing.spines == (2,)
    # Both are of plane 0, which group 0 has lost already.
    assert more.uplinks(1).tolist() == [32] + [32 + 16] * 3


TREE = (
    Tier("node", 4, 100e9, 1e-6),
    Tier("rack", 0, 50e9, 2e-6, "device", 1.0, (3, 2)),
    Tier("pod", 2, 200e9, 3e-6, "child", 2.0),
)


def test_unequal_groups_are_counted_from_the_top():
    fabric = Hierarchical("h", TREE)
    assert (fabric.devices, fabric.groups) == (20, (5, 2, 1))
    assert fabric.group_of(0).tolist() == [n // 4 for n in range(20)]
    assert fabric.group_of(1).tolist() == [0] * 12 + [1] * 8
    assert fabric.uplinks(1).tolist() == [4] * 5
    assert fabric.uplinks(2).tolist() == [1, 1]
    assert fabric.capacity_Bps(2).tolist() == [100e9, 100e9]
    sizes = Hierarchical("h", (Tier("node", 0, 1e9, 1e-6, group_sizes=(8, 8, 6)),
                               Tier("top", 3, 1e9, 1e-6)))  # fmt: skip
    assert sizes.devices == 22
    assert np.bincount(sizes.group_of(0)).tolist() == [8, 8, 6]
    assert sizes.uplinks(1).tolist() == [8, 8, 6]


def test_missing_groups_take_their_devices_and_uplinks():
    fabric = Hierarchical("h", TREE, missing=("node 1", "device 0", "rack 1"))
    assert fabric.devices == 7
    assert fabric.group_of(0).tolist() == [0] * 3 + [2] * 4
    assert fabric.uplinks(0).tolist() == [1] * 7
    assert fabric.uplinks(1).tolist() == [3, 0, 4, 0, 0]
    assert fabric.uplinks(2).tolist() == [1, 0]
    graph = fabric.explicit()
    assert nx.is_connected(graph)
    assert graph.number_of_nodes() == 7 + 2 + 1 + 1 + 7
    assert fabric.group_of(1).tolist() == [0] * 7
    assert set(graph[1, "rack", 0]) - {(2, "pod", 0)} == {("nic", 1, place) for place in range(7)}


BAD_LEVELS = [
    (((2, 3, 4),), (), r"level\[0\].group_sizes must have one entry per group, and 1 of them"),
    (((2, 3), (2, 1)), (), r"level\[1\].group_sizes must have one entry per group, and 1 of them"),
    (((2, 0), (2,)), (), r"level\[0\].group_sizes\[1\] must be a whole number of at least 1"),
    (((2, 3), (2,)), ("level0 2",), r"missing\[0\] must have a number below 2"),
    (((2, 3), (2,)), ("level1 0",), "missing must leave at least one device"),
]


@pytest.mark.parametrize(("sizes", "missing", "message"), BAD_LEVELS, ids=str)
def test_groups_that_do_not_add_up_are_refused(sizes, missing, message):
    tiers = tuple(
        Tier(f"level{n}", 0, 1e9, 1e-6, group_sizes=entry) for n, entry in enumerate(sizes)
    )
    with pytest.raises(InputError, match=message):
        Hierarchical("h", tiers, missing=missing)


def test_levels_of_one_name_cannot_be_missing():
    tiers = (Tier("rack", 2, 1e9, 1e-6), Tier("rack", 2, 1e9, 1e-6))
    assert Hierarchical("h", tiers).devices == 4
    with pytest.raises(InputError, match="missing must be absent where two levels"):
        Hierarchical("h", tiers, missing=("rack 0",))


def test_a_missing_chip_still_forwards():
    """Devices are endpoints; the links and routers of a torus stay."""
    whole = Torus("t", (4, 4), (True, True), 50e9, 1e-6)
    fabric = replace(whole, missing=("device 5", "device 0"))
    assert fabric.devices == 14
    assert fabric.place_of().tolist() == [n for n in range(16) if n not in (0, 5)]
    graph, plain = fabric.explicit(), whole.explicit()
    assert graph.number_of_edges() == plain.number_of_edges()
    assert graph.nodes[("router", 5)]["role"] == "switch"
    place = fabric.place_of()
    hops = dict(nx.all_pairs_shortest_path_length(graph))
    pairs = np.array([(a, b) for a in range(14) for b in range(14)])
    assert (collapse(fabric).link_map.level(pairs[:, 0], pairs[:, 1]) + 1).tolist() == [
        hops[a][b] for a, b in pairs.tolist()
    ]
    assert np.array_equal(
        (collapse(fabric).link_map.level(pairs[:, 0], pairs[:, 1]) + 1),
        (collapse(whole).link_map.level(place[pairs[:, 0]], place[pairs[:, 1]]) + 1),
    )
    with pytest.raises(InputError, match=r"missing\[0\] must be an element's name"):
        replace(whole, missing=("node 0",))
    with pytest.raises(InputError, match="missing must leave at least one device"):
        replace(whole, missing=tuple(f"device {n}" for n in range(16)))
