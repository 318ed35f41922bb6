"""Links between switches that are faster than NICs: sizes, ratios, cables and capacity by hand.

Counts are those of cables one by one and of maximum flows; neither knows a formula of sizing.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import networkx as nx
import pytest
from clos_specs import clos
from hypothesis import given, settings
from hypothesis import strategies as st

from nest_core.bill.bill import bill
from nest_core.bill.cables import cable_schedule
from nest_core.bill.prices import load_prices
from nest_core.documents import InputError
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric.files import build_fabric
from nest_core.interop.formats import read_fabric, write_fabric
from nest_core.network import collapse
from nest_core.scenario import fabric_document

PRICES = load_prices()
G = 1e9


@pytest.mark.parametrize(
    ("ratio", "speed", "uplinks", "spines"),
    [(1.0, 50, 64, 8), (1.0, 100, 32, 8), (1.0, 200, 16, 8), (2.0, 100, 16, 4), (3.0, 200, 5, 3)],
)
def test_links_of_twice_the_rate_are_half_as_many(ratio, speed, uplinks, spines):
    """1,024 NICs of 50 GB/s under 16 leaves of 128 ports: 64 down, 64 / ratio of capacity up."""
    fabric = clos(1024, 128, 2, ratio, spine_link_Bps=speed * G, spread="fewest")
    assert fabric.switch_counts() == {"leaf": 16, "spine": spines}
    assert fabric.uplinks(1).tolist() == [uplinks] * 16
    assert fabric.ratios == (64 * 50 / (uplinks * speed),)
    words = f"{uplinks} uplinks{f' of {speed} GB/s' if speed > 50 else ''} per leaf"
    assert fabric.realised_ratios()[0].endswith(words)
    ports = fabric.switch_ports()
    assert (ports[0].down, ports[0].up) == (64, uplinks * speed // 50)
    assert ports[0].realised == fabric.ratios[0]
    assert all(tier.free >= 0 for tier in ports)


def rates(fabric):
    """GB/s of one link into each tier: said in the test, or else that of a NIC over the planes."""
    nic = fabric.nic_bandwidth_Bps / fabric.planes
    spine = fabric.spine_link_Bps or nic
    return dict(zip(fabric.tier_names, (nic, spine, fabric.core_link_Bps or spine), strict=False))


@st.composite
def fabrics(draw):
    tiers, nics = draw(st.integers(2, 3)), draw(st.sampled_from([1, 2, 3, 8]))
    ratio = st.sampled_from([1.0, 1.5, 2.0, 3.0, 7.0])
    figures = {
        "devices_per_node": nics,
        "nics_per_node": nics,
        "spine_link_Bps": draw(st.sampled_from([0, 25, 50, 100])) * G,
        "core_link_Bps": draw(st.sampled_from([0, 25, 50, 200])) * G if tiers == 3 else 0.0,
        "nic_bandwidth_Bps": 25 * G,
        "spread": draw(st.sampled_from([None, "even", "fewest"])),
        "oversubscribe": draw(st.sampled_from(["remove_uplinks", "split_radix"])),
        "kind": draw(st.sampled_from(["leaf_spine", "rail_optimised"])),
    }
    ratios = [draw(ratio) for _ in range(tiers - 1)]
    size, radix = nics * draw(st.integers(1, 60)), draw(st.sampled_from([16, 32, 64]))
    try:
        return clos(size, radix, tiers, *ratios, **figures)
    except InputError:
        return None


@settings(max_examples=60, derandomize=True, database=None, deadline=None)
@given(fabrics().filter(bool))
def test_cables_fit_the_ports_of_every_switch(fabric):
    """By cable: a link of k times a NIC's rate fills k ports, its end has ports of its own."""
    rate, slowest = rates(fabric), fabric.nic_bandwidth_Bps
    used: Counter[str] = Counter()
    up: Counter[str] = Counter()
    ends: Counter[tuple[str, str]] = Counter()
    for row in cable_schedule(fabric, PRICES).cables:
        ends.update([(row.a, row.a_port), (row.b, row.b_port)])
        used.update({row.a: rate[row.tier] / slowest, row.b: rate[row.tier] / slowest})
        up[row.a] += rate[row.tier]
    switches = {name for name in used if not name.startswith("node")}
    assert max(used[name] for name in switches) <= fabric.radix
    assert set(ends.values()) == {1}
    counted = Counter(name.split()[0] for name in switches)
    assert counted == fabric.switch_counts()
    for name, ratio in zip(fabric.tier_names, fabric.ratios, strict=False):
        full = max((s for s in switches if s.startswith(name)), key=used.__getitem__)
        down = used[full] * slowest - up[full]
        if name != "leaf" or fabric.sizing.units > 1:  # the last leaf may have few nodes
            assert down / up[full] == pytest.approx(ratio), name


@pytest.mark.parametrize("ratio", [1.0, 2.0, 3.0])
@pytest.mark.parametrize(("spine", "core"), [(0, 0), (100, 0), (100, 200), (200, 100), (0, 400)])
def test_what_leaves_a_leaf_and_a_pod_is_the_flow_of_the_drawn_graph(ratio, spine, core):
    """Against networkx: levels and drawing carry as much out of a leaf and out of a pod."""
    fabric = clos(
        256, 32, 3, ratio, ratio, nics_per_node=4, devices_per_node=4,
        spine_link_Bps=spine * G, core_link_Bps=core * G,
    )  # fmt: skip
    graph, levels = fabric.explicit(), collapse(fabric).levels
    for _, _, link in graph.edges(data=True):
        link["capacity"] = link["bandwidth_Bps"] * link["count"]
    for height, level in ((1, levels[2]), (2, levels[3])):
        if len(set(fabric.group_of(height).tolist())) < 2:
            continue
        inside = fabric.group_of(height) == 0
        flows = graph.copy()
        flows.add_edges_from(("source", int(d)) for d in inside.nonzero()[0])
        flows.add_edges_from((int(d), "sink") for d in (~inside).nonzero()[0])
        flow = nx.maximum_flow_value(flows, "source", "sink")
        assert level.links * level.link_bandwidth_Bps == pytest.approx(flow)


def test_the_bill_buys_ports_that_are_as_fast_as_their_links():
    """400 Gb/s NICs and 800 Gb/s to spines: 64 ports of 800, though 128 of 400 would be cheaper."""
    slow = clos(1024, 128, 2)
    fast = replace(slow, spine_link_Bps=100 * G)
    found = bill(fast, PRICES)
    assert [(s.item, s.count, s.rate_Gbps, s.used) for s in found.switches] == [
        ("SN5600", 16, 800.0, 16 * (64 // 2 + 32)),
        ("SN5600", 8, 800.0, 16 * 32),
    ]
    assert {s.item for s in bill(slow, PRICES).switches} == {"51.2T Ethernet"}
    assert [(link.tier, link.rate_Gbps, link.count) for link in found.links] == [
        ("leaf", 400.0, 1024),
        ("spine", 800.0, 512),
    ]
    rows = list(cable_schedule(fast, PRICES).cables)
    leaf = {row.b_port for row in rows if row.b == "leaf 0"}
    up = {row.a_port for row in rows if row.a == "leaf 0"}
    # Two ports of 800 Gb/s share a cage, so that a cage has four lanes of a NIC's rate.
    assert leaf == {f"port {cage}/{lane}" for cage in range(1, 17) for lane in (1, 2, 3, 4)}
    assert up == {f"port {cage}/{lane}" for cage in range(17, 33) for lane in (1, 3)}
    spine = {row.b_port for row in rows if row.b == "spine 0"}
    assert spine == {f"port {cage}/{lane}" for cage in range(1, 33) for lane in (1, 3)}


def test_exports_say_what_links_carry():
    """ASTRA-sim has one rate a device: 16 links of 100 GB/s for 64 NICs of 50 are 25 each."""
    fabric = clos(256, 128, 2, 2.0, spine_link_Bps=100 * G)
    assert fabric.uplinks(1).tolist() == [16] * 4
    said = write_fabric(fabric, "astrasim").text
    assert "bandwidth: [ 450.0, 50.0, 25.0 ]" in said
    again = read_fabric(write_fabric(fabric, "toml").text.encode(), "x.toml").document
    assert build_fabric(checked(FabricFile, again)) == fabric


BAD = [
    ({"spine_link_Bps": 75 * G}, "clos.spine_link_GBps must be 1, 2, 4 or 8 times the"),
    ({"spine_link_Bps": 25 * G}, "but is 25.0: use 50, 100, 200, 400 GB/s"),
    ({"spine_link_Bps": -1.0}, "clos.spine_link_GBps must be 1, 2, 4 or 8 times"),
    ({"spine_link_Bps": float("nan")}, "clos.spine_link_GBps must be 1, 2, 4 or 8 times"),
    ({"core_link_Bps": 100 * G}, "must be absent for clos.tiers = 2, but is 100.0: remove it"),
    (
        {"tiers": 1, "oversubscription": (), "spine_link_Bps": 50 * G},
        "clos.spine_link_GBps must be absent for clos.tiers = 1",
    ),
    ({"spine_link_Bps": 100 * G, "radix": 3}, "clos.radix must be a multiple of 4"),
    ({"spine_link_Bps": 400 * G, "radix": 40}, "clos.radix must be a multiple of 16"),
    (
        {"spine_link_Bps": 400 * G, "devices": 512},
        "because 16 leaves exceed radix 64 over the 8 ports of a link",
    ),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[str(change) for change, _ in BAD])
def test_rates_that_no_ports_have_are_refused(change, message):
    with pytest.raises(InputError, match=re.escape(message)):
        replace(clos(64, 64, 2), **change)


def test_a_rate_of_zero_in_a_file_is_refused():
    document = fabric_document("h100-spine-leaf-64")
    document["clos"]["spine_link_GBps"] = 0.0
    with pytest.raises(InputError, match=r"clos\.spine_link_GBps must be"):
        build_fabric(checked(FabricFile, document))
