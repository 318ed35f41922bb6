"""Sizing of leaf-spine fabrics and fat trees in whole ports, against published bills."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nest_core.errors import InputError
from nest_core.topology import MAX_DEVICES, Clos

NODE = {
    "devices_per_node": 8,
    "nics_per_node": 8,
    "nic_bandwidth_Bps": 50e9,
    "hop_latency_s": 0.6e-6,
    "intra_bandwidth_Bps": 450e9,
    "intra_latency_s": 0.5e-6,
}


def clos(devices: int, radix: int, tiers: int, *ratios: float, **changes: Any) -> Clos:
    """A leaf-spine fabric of nodes with eight devices and eight NICs."""
    figures: dict[str, Any] = {**NODE, **changes}
    return Clos(
        name="clos",
        kind=figures.pop("kind", "leaf_spine"),
        devices=devices,
        radix=radix,
        tiers=tiers,
        oversubscription=ratios or (1.0,) * (tiers - 1),
        **figures,
    )


def counts(fabric: Clos) -> tuple[list[int], list[int]]:
    """Switches of every tier, and cables into every tier, innermost first, last group whole."""
    tiers = fabric.switch_tiers
    switches = [tier.groups * tier.switches_per_group for tier in tiers]
    children = [fabric.nodes] + [tier.groups for tier in tiers[:-1]]
    cables = [count * tier.links_from_child for count, tier in zip(children, tiers, strict=True)]
    return switches, cables


# NVIDIA DGX SuperPOD reference architectures, compute fabric. Nodes there are wired rail by rail
# (GPU i to leaf i of its scalable unit) and here all to one leaf: the same numbers of leaves,
# spines, cores and cables, other switches at their ends.
B200 = [  # Quantum-2 QM9700, radix 64: GPUs, tiers, (leaf, spine, core), cables into each
    (512, 2, (16, 8), (512, 512)),
    (1024, 2, (32, 16), (1024, 1024)),
    (2048, 2, (64, 32), (2048, 2048)),
    (4096, 3, (128, 128, 64), (4096, 4096, 4096)),
    (8192, 3, (256, 256, 128), (8192, 8192, 8192)),
    (16384, 3, (512, 512, 256), (16384, 16384, 16384)),
]
B300 = [  # Quantum-X800 Q3400, radix 144
    (576, 2, (8, 4), (576, 576)),
    (1152, 2, (16, 8), (1152, 1152)),
    (2304, 2, (32, 18), (2304, 2304)),
    (4608, 2, (64, 36), (4608, 4608)),
    # 1,296 nodes of eight; the page prints 9,216 GPUs, and 10,368 cables.
    (10368, 2, (144, 72), (10368, 10368)),
]
SPECTRUM = [  # Spectrum-4, radix 64. Its rows of 8 and 16 units (128 and 256 leaves in two tiers)
    # take two planes, which one Clos of radix 64 is not: see the test below.
    (512, 2, (16, 8), (512, 512)),
    (1024, 2, (32, 16), (1024, 1024)),
    (2048, 2, (64, 32), (2048, 2048)),
]


@pytest.mark.parametrize(
    ("radix", "row"),
    [(64, row) for row in B200] + [(144, row) for row in B300] + [(64, row) for row in SPECTRUM],
    ids=str,
)
def test_switches_and_cables_are_those_of_the_reference_architectures(radix, row):
    """Every full row of the 1:1 tables.

    As-built rows, one node short for the fabric manager, keep their leaves at full size and are
    left out; so are GB200 (racks of 72, rails) and A100 (its switch counts are recalled only).
    """
    devices, tiers, switches, cables = row
    assert counts(clos(devices, radix, tiers)) == (list(switches), list(cables))


def test_two_planes_are_not_one_fabric():
    """Eight Spectrum units have 128 leaves: more than a spine of radix 64 can reach."""
    with pytest.raises(InputError, match="128 leaves exceed radix 64, but is 2: use 3 tiers"):
        clos(4096, 64, 2)


@pytest.mark.parametrize("k", [4, 6, 8, 16])
def test_a_full_fat_tree_has_the_textbook_counts(k):
    """Al-Fares et al. 2008: k^3/4 hosts, k^2/2 edge and aggregation switches, k^2/4 cores."""
    fabric = clos(k**3 // 4, k, 3, devices_per_node=1, nics_per_node=1, kind="fat_tree")
    switches, cables = counts(fabric)
    assert switches == [k * k // 2, k * k // 2, k * k // 4]
    assert cables == [k**3 // 4] * 3
    assert [tier.name for tier in fabric.switch_tiers] == ["edge", "aggregation", "core"]
    assert fabric.switch_tiers[1].groups == k  # pods


@pytest.mark.parametrize(
    ("ratio", "uplinks"), [(1.0, 32), (2.0, 16), (3.0, 11), (4.0, 8), (7.0, 5), (100.0, 1)]
)
def test_oversubscription_takes_whole_uplinks_from_a_fixed_leaf(ratio, uplinks):
    """32 ports down, the nearest whole number to 32 / ratio up, and the ratio that this makes."""
    leaf, spine = clos(1024, 64, 2, ratio).switch_tiers
    assert leaf.devices_below == 32
    assert spine.links_from_child == uplinks
    assert spine.oversubscription == 32 / uplinks


@st.composite
def fabrics(draw: st.DrawFn) -> Clos:
    """Any fabric that the sizing accepts."""
    nics = draw(st.integers(1, 9))
    radix = draw(st.integers(2 * nics, 160))
    tiers = draw(st.integers(1, 3))
    per_leaf = radix // 2 // nics
    most = [radix // nics, per_leaf * radix, per_leaf * (radix // 2) * radix][tiers - 1]
    nodes = draw(st.integers(1, max(1, most)))
    per_node = draw(st.integers(1, 8))
    ratio = st.floats(1, 40, allow_nan=False)
    return clos(
        min(nodes, MAX_DEVICES // per_node) * per_node,
        radix,
        tiers,
        *[draw(ratio) for _ in range(tiers - 1)],
        devices_per_node=per_node,
        nics_per_node=nics,
    )


@settings(max_examples=200, derandomize=True, database=None, deadline=None)
@given(fabrics())
def test_no_switch_has_more_links_than_ports_and_every_leaf_reaches_every_spine(fabric):
    """What any sizing must keep: ports suffice, links spread evenly, and nothing is spare.

    A failure: a fabric that could not be cabled, or a bill with too many switches.
    """
    radix, nics = fabric.radix, fabric.nics_per_node
    tiers = fabric.switch_tiers
    leaf = tiers[0]
    assert tiers[-1].groups == 1
    assert leaf.links_from_child == nics
    assert leaf.groups == -(-fabric.devices // leaf.devices_below)
    if fabric.tiers == 1:
        assert fabric.nodes * nics <= radix
        return
    nodes_per_leaf = radix // 2 // nics
    down = nodes_per_leaf * nics
    assert nodes_per_leaf * fabric.devices_per_node >= leaf.devices_below
    for number, (below, tier) in enumerate(pairwise(tiers)):
        top = tier is tiers[-1]
        asked = fabric.oversubscription[number]
        # One child switch: its own uplinks. (A pod's uplinks are those of all its spines.)
        up, spare = divmod(tier.links_from_child, below.switches_per_group)
        assert spare == 0
        assert down + up <= radix
        assert up == 1 or abs(up - down / asked) <= 0.5
        assert tier.oversubscription == pytest.approx(down / up)
        # Children of one group, and the ports that its switches turn to them. Pods are sized
        # whole: radix/2 leaves, and half of the ports for the cores.
        children = below.groups if top else radix // 2
        ports = radix if top else radix // 2
        links = children * tier.links_from_child
        assert links <= tier.switches_per_group * ports
        if number == 0:
            assert up % tier.switches_per_group == 0
            spread = [n for n in range(1, up + 1) if up % n == 0 and n * ports >= links]
            assert tier.switches_per_group == spread[0]
            down = children * up // tier.switches_per_group
        else:
            assert tier.switches_per_group == -(-links // radix)


@pytest.mark.parametrize(
    ("devices", "leaves", "last"), [(64, 2, 32), (72, 3, 8), (40, 2, 8), (8, 1, 8), (32, 1, 32)]
)
def test_the_last_rack_may_be_short(devices, leaves, last):
    """Leaves of four nodes; what is left over stands under a leaf of its own."""
    fabric = clos(devices, 64, 2)
    leaf = fabric.switch_tiers[0]
    assert leaf.groups == leaves
    assert devices - (leaves - 1) * leaf.devices_below == last
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
        "must not need more than 32 pods of 256 devices, but is 32768",
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
