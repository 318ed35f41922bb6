"""Sizing of leaf-spine fabrics and fat trees in whole ports, against published bills."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from clos_specs import clos, counts, link_counts
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nest_core.documents.errors import InputError
from nest_core.fabric import MAX_DEVICES, Clos


@pytest.mark.parametrize("k", [4, 6, 8, 16])
def test_a_full_fat_tree_has_the_textbook_counts(k):
    """Al-Fares et al. 2008: k^3/4 hosts, k^2/2 edge and aggregation switches, k^2/4 cores."""
    fabric = clos(k**3 // 4, k, 3, devices_per_node=1, nics_per_node=1, kind="fat_tree")
    switches, cables = counts(fabric)
    assert switches == [k * k // 2, k * k // 2, k * k // 4]
    assert cables == [k**3 // 4] * 3
    assert fabric.tier_names == ("edge", "aggregation", "core")
    assert len(np.unique(fabric.group_of(2))) == k  # pods


@pytest.mark.parametrize(
    ("ratio", "uplinks"), [(1.0, 32), (2.0, 16), (3.0, 11), (4.0, 8), (7.0, 5), (100.0, 1)]
)
def test_oversubscription_takes_whole_uplinks_from_a_fixed_leaf(ratio, uplinks):
    """32 ports down, the nearest whole number to 32 / ratio up, and the ratio that this makes."""
    fabric = clos(1024, 64, 2, ratio)
    assert np.bincount(fabric.group_of(1)).tolist() == [32] * 32
    assert fabric.uplinks(1).tolist() == [uplinks] * 32
    assert fabric.ratios == (32 / uplinks,)


@st.composite
def fabrics(draw: st.DrawFn) -> Clos:
    """Any fabric that the sizing accepts, of every kind."""
    kind = draw(st.sampled_from(["leaf_spine", "fat_tree", "rail_optimised", "rail_only"]))
    rails = draw(st.integers(1, 4)) if kind.startswith("rail") else 1
    links = draw(st.integers(1, 5))  # of one node to one leaf
    pods = draw(st.sampled_from(["units", "rails"])) if kind == "rail_optimised" else "units"
    radix = draw(st.integers(2 * max(links, rails), 160))
    tiers = draw(st.integers(2 if kind == "rail_optimised" else 1, 3))
    together = rails if kind == "rail_optimised" else 1
    half, per_leaf = radix // 2, radix // 2 // links
    units = [1, radix // together, half // together * radix]
    if pods == "rails":
        units[2] = radix // rails * half
    assume(units[tiers - 1] >= 1)
    most = radix // links if tiers == 1 else per_leaf * units[tiers - 1]
    per_node = rails * draw(st.integers(1, 3))
    nodes = draw(st.integers(1, min(most, MAX_DEVICES // per_node)))
    return clos(
        nodes * per_node,
        radix,
        tiers,
        *[draw(st.floats(1, 40, allow_nan=False)) for _ in range(tiers - 1)],
        kind=kind,
        devices_per_node=per_node,
        nics_per_node=rails * links,
        rails=rails,
        pods=pods,
        planes=draw(st.sampled_from((1, 2, 4))),
        spread=draw(st.sampled_from([None, "even", "fewest"])),
    )


@settings(max_examples=100, derandomize=True, database=None, deadline=None)
@given(fabrics())
def test_no_switch_has_more_links_than_ports_and_none_is_spare(fabric):
    """What any sizing must keep: ports suffice, links differ by one, no switch can be dropped.

    A failure: a fabric that could not be cabled, or a bill with too many switches.
    """
    radix, size = fabric.radix, fabric.sizing
    links = fabric.nics_per_node // fabric.rails
    assert size.nodes_per_unit * links <= radix
    assert (size.units - 1) * size.nodes_per_unit < fabric.nodes <= size.units * size.nodes_per_unit
    assert (
        link_counts(fabric)[fabric.tier_names[0]]
        == fabric.nodes * fabric.nics_per_node * fabric.planes
    )
    if fabric.tiers == 1:
        return
    half = radix // 2
    assert half - links < size.down <= half
    assert size.up == 1 or abs(size.up - size.down / fabric.oversubscription[0]) <= 0.5
    assert sum(size.leaves) == len(size.pod_of) == size.units * fabric.rails
    ports = half if fabric.tiers == 3 else radix
    uplinks = [0] * len(set(size.top_of))
    for pod, (leaves, spines, up) in enumerate(
        zip(size.leaves, size.spines, size.spine_up, strict=True)
    ):
        assert 1 <= leaves <= ports
        down, spare = divmod(leaves * size.up, spines)
        assert spare == 0 or (fabric.spread == "fewest" and fabric.tiers == 2)
        assert down + (spare > 0) <= ports
        even = fabric.spread == "even" or (fabric.spread is None and fabric.tiers == 2)
        shared = size.up if even else leaves * size.up if fabric.tiers == 3 else 0
        assert shared % spines == 0
        fewer = [n for n in range(1, spines) if shared % n == 0]
        assert all(leaves * size.up > n * ports for n in fewer)
        if fabric.tiers == 3:
            assert up == 1 or abs(up - down / fabric.oversubscription[1]) <= 0.5
            uplinks[size.top_of[pod]] += spines * up
    for total in uplinks:
        assert (size.cores - 1) * radix < total <= size.cores * radix
    if fabric.tiers == 3:
        assert link_counts(fabric)["core"] == sum(uplinks) * fabric.planes


@settings(max_examples=60, derandomize=True, database=None, deadline=None)
@given(fabrics().filter(lambda fabric: fabric.devices <= 2000))
def test_the_link_graph_agrees_with_the_counts(fabric):
    """Links of every tier, added up over the drawn edges, are those of the bill."""
    graph = fabric.explicit()
    drawn = dict.fromkeys(fabric.tier_names, 0)
    for a, b, link in graph.edges(data=True):
        tiers = [end[0] for end in (a, b) if isinstance(end, tuple) and end[0] in drawn]
        if tiers:
            upper = max(tiers, key=fabric.tier_names.index)
            drawn[upper] += link["count"]
            assert link["bandwidth_Bps"] == fabric.nic_bandwidth_Bps / fabric.planes
    assert drawn == link_counts(fabric)
    assert sum(role == "device" for _, role in graph.nodes(data="role")) == fabric.devices


@settings(max_examples=40, derandomize=True, database=None, deadline=None)
@given(
    fabrics().filter(lambda fabric: 8 <= fabric.devices <= 400 and fabric.kind != "rail_only"),
    st.randoms(use_true_random=False),
)
def test_two_devices_meet_where_their_groups_first_agree(fabric, random):
    """Twice as many links as the height of their lowest common group, found in the graph."""
    slow_inside = replace(fabric, intra_latency_s=1.0)  # so that no path leads through a node
    graph = slow_inside.explicit()
    groups = [fabric.group_of(height) for height in range(1, fabric.tiers + 1)]
    nodes = fabric.node_of()
    for _ in range(10):
        a, b = random.sample(range(fabric.devices), 2)
        if nodes[a] == nodes[b]:
            continue
        height = 1 + [bool(group[a] == group[b]) for group in groups].index(True)
        latency = nx.shortest_path_length(graph, a, b, weight="latency_s")
        assert latency == pytest.approx(2 * height * fabric.hop_latency_s)


@pytest.mark.parametrize("k", [4, 6])
def test_a_fat_tree_has_full_bisection(k):
    """Any half of the hosts sends to the other at full rate: the textbook's defining property."""
    fabric = clos(k**3 // 4, k, 3, devices_per_node=1, nics_per_node=1, kind="fat_tree")
    graph = fabric.explicit()
    for _, _, link in graph.edges(data=True):
        link["capacity"] = link["bandwidth_Bps"] * link["count"]
    half = fabric.devices // 2
    graph.add_edges_from(("source", device) for device in range(half))
    graph.add_edges_from((device, "sink") for device in range(half, fabric.devices))
    flow = nx.maximum_flow_value(graph, "source", "sink")
    assert flow == pytest.approx(half * fabric.nic_bandwidth_Bps)


def test_the_last_pod_has_only_the_switches_that_its_leaves_need():
    """5 leaves of radix 8 make a pod of 4 and one of 1; the short one needs fewer spines."""
    fabric = clos(20, 8, 3, devices_per_node=1, nics_per_node=1)
    assert fabric.sizing.leaves == (4, 1)
    assert fabric.sizing.spines == (4, 1)
    assert counts(fabric) == ([5, 5, 3], [20, 20, 20])
    assert fabric.uplinks(2).tolist() == [16, 4]


@pytest.mark.parametrize(
    ("devices", "leaves", "last"), [(64, 2, 32), (72, 3, 8), (40, 2, 8), (8, 1, 8), (32, 1, 32)]
)
def test_the_last_rack_may_be_short(devices, leaves, last):
    """Leaves of four nodes; what is left over stands under a leaf of its own."""
    fabric = clos(devices, 64, 2)
    assert np.bincount(fabric.group_of(1)).tolist() == [32] * (leaves - 1) + [last]
    graph = fabric.explicit()
    nodes_below = {
        number: sum(1 for nic in graph[("leaf", number)] if nic[0] == "nic")
        for number in range(leaves)
    }
    assert nodes_below[leaves - 1] == last  # one NIC per device


BAD: list[tuple[dict[str, Any], str]] = [
    ({"devices": 60}, "clos.devices must be a multiple of clos.devices_per_node = 8, but is 60"),
    ({"devices": 0}, "clos.devices must be a whole number of at least 1, but is 0"),
    ({"devices": -8}, "clos.devices must be a whole number of at least 1, but is -8"),
    ({"devices": MAX_DEVICES + 8}, "must not exceed 1,048,576 devices, but is 1048584"),
    ({"radix": 1}, "clos.radix must be a whole number of at least 2, but is 1"),
    ({"radix": 15}, "must leave ports for one node of 8 NICs on half of the leaf, but is 15"),
    ({"nics_per_node": 0}, "clos.nics_per_node must be a whole number of at least 1"),
    ({"tiers": 0}, "clos.tiers must be 1, 2 or 3, but is 0"),
    ({"tiers": 4}, "clos.tiers must be 1, 2 or 3, but is 4"),
    (
        {"tiers": 1, "oversubscription": (), "devices": 128},
        "must be more than 1, because 128 NICs exceed radix 64",
    ),
    ({"devices": 8192}, "must be more than 2, because 256 leaves exceed radix 64, but is 2"),
    (
        {"devices": 32768, "radix": 32, "tiers": 3, "oversubscription": (1.0, 1.0)},
        "clos.devices must not need more than 32 pods, but is '128 pods'",
    ),
    ({"oversubscription": ()}, r"must have one entry per switch tier but the top one \(1\)"),
    ({"oversubscription": (1.0, 1.0)}, r"must have one entry per switch tier but the top one"),
    ({"oversubscription": (0.5,)}, r"clos.oversubscription\[0\] must be at least 1"),
    ({"oversubscription": (float("nan"),)}, "must be a finite number above 0, but is nan"),
    ({"nic_bandwidth_Bps": float("nan")}, "clos.nic_bandwidth_GBps must be a finite number"),
    ({"nic_bandwidth_Bps": 0.0}, "clos.nic_bandwidth_GBps must be a finite number above 0"),
    ({"nic_bandwidth_Bps": float("inf")}, "must be a finite number above 0, but is inf"),
    ({"intra_bandwidth_Bps": -1.0}, "intra_node.bandwidth_GBps must be a finite number above 0"),
    ({"hop_latency_s": -1e-9}, "clos.hop_latency_us must be a finite number of at least 0"),
    ({"intra_latency_s": float("nan")}, "intra_node.latency_us must be a finite number of at"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[str(change) for change, _ in BAD])
def test_what_cannot_be_built_is_refused_with_field_rule_value_and_remedy(change, message):
    """A failure: a fabric exists that has no cabling, or its message does not say why."""
    with pytest.raises(InputError, match=message) as caught:
        replace(clos(64, 64, 2), **change)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_zero_latency_is_allowed():
    """An ideal network is a legal question."""
    assert clos(64, 64, 2, hop_latency_s=0.0, intra_latency_s=0.0).devices == 64
