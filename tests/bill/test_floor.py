"""Racks, distances and what does not fit or reach."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from clos_specs import clos

from nest_core.bill.bill import bill
from nest_core.bill.counts import clos_parts, dragonfly_parts
from nest_core.bill.counts_drawn import graph_parts
from nest_core.bill.inventory import Hall, LinkCount, node_hall
from nest_core.bill.lines import choose
from nest_core.bill.ownership import owned
from nest_core.bill.prices import Prices, load_prices
from nest_core.fabric import Clos, Dragonfly, Element, GraphFabric, Link
from nest_core.scenario import load_fabric


def prices(*settings: str) -> Prices:
    return load_prices("2026", settings)


def hall(nodes: int, *settings: str) -> Hall:
    return node_hall(prices(*settings), nodes, 8)


@pytest.mark.parametrize(
    ("settings", "per_rack"),
    [
        ((), 4),  # 44 kW over 10.2
        (("floor.rack_power_limit_kW.typical=21",), 2),
        (("floor.rack_power_limit_kW.typical=1000",), 6),  # 48 units over 8
        (('floor.server="DGX B200"',), 3),
        (("floor.nodes_per_rack=5",), 5),
        (("floor.rack_power_limit_kW.typical=5",), 1),  # a node has to stand somewhere
    ],
)
def test_power_and_height_bound_a_rack(settings, per_rack):
    found = hall(64, *settings)
    assert found.per_rack == per_rack
    assert found.racks == -(-64 // per_rack)
    assert found.rack_power_kW == pytest.approx(per_rack * found.node_power_kW.typical)


def racked(groups: list[str]) -> GraphFabric:
    """Nodes of two devices and a NIC under one leaf, in groups of the drawing."""
    elements, links = [Element("leaf", "switch")], []
    for node, group in enumerate(groups):
        ids = [f"gpu{node}-{slot}" for slot in range(2)]
        elements += [Element(name, "device", group=f"{group}node {node}") for name in ids]
        elements.append(Element(f"nic{node}", "nic", group=f"{group}node {node}"))
        links += [Link(name, f"nic{node}", 50e9) for name in ids]
        links += [Link(f"nic{node}", "leaf", 50e9)]
    return GraphFabric("drawn", tuple(elements), tuple(links))


def test_racks_are_those_of_the_file():
    """Racks were counted four nodes to one, whatever the file called a rack."""
    lists = prices()
    drawn = racked(["row 1/rack 7/", "row 1/rack 9/", "row 1/rack 7/", "row 2/rack 7/"])
    found = bill(drawn, lists)
    assert (found.racks, found.nodes_per_rack) == (3, 2)
    assert graph_parts(drawn, lists).hall.rack_of(np.arange(4)).tolist() == [0, 1, 0, 2]
    assert bill(racked(["", "rack 9/", "rack 7/"]), lists).racks == 1, "one node has none"
    unequal = bill(load_fabric("unequal-racks-88"), lists)
    assert (unequal.racks, unequal.nodes_per_rack) == (3, 4)
    meta = bill(load_fabric("meta-3tier-7to1"), lists)
    assert (meta.racks, meta.nodes_per_rack) == (1536, 2)
    pairs = bill(clos(256, 64, 2, nodes_per_rack=2), lists)
    assert (pairs.racks, pairs.nodes_per_rack) == (16, 2)
    by_hand = bill(clos(256, 64, 2, nodes_per_rack=2), prices("floor.nodes_per_rack=8"))
    assert (by_hand.racks, by_hand.nodes_per_rack) == (4, 8)


@pytest.mark.parametrize(
    ("fabric", "devices", "accelerator", "each_kW"),
    [
        (clos(1024, 64, 2, devices_per_node=16, nics_per_node=16), 16, "A100", 6.5 / 8),
        (load_fabric("torus-16x16"), 1, "H100", 10.2 / 8),
    ],
)
def test_nodes_of_no_listed_size_draw_a_share_of_the_named_server(
    fabric, devices, accelerator, each_kW
):
    """A page took 0.25 kW for an H100 on a torus, and 1.275 for an A100 in nodes of 16."""
    named = replace(fabric, name=f"those of {accelerator}, 1:1")
    found = bill(named, prices())
    assert found.node_power_W == pytest.approx(1e3 * devices * each_kW)
    assert owned(named, prices(), f"{accelerator} 80 GB").network == found
    other = bill(named, prices('floor.server="DGX B200"'))
    assert other.node_power_W == pytest.approx(1e3 * devices * 14.3 / 8)


def test_racks_over_their_limits_are_told():
    fabric = clos(256, 64, 2)
    assert not bill(fabric, prices()).checks
    (told,) = bill(fabric, prices("floor.nodes_per_rack=5")).checks
    assert told.startswith("A rack of 5 DGX H100 draws 51.0 kW, over the limit of 44.0 kW: lower")
    power, height = bill(fabric, prices("floor.nodes_per_rack=7")).checks
    assert "71.4 kW" in power
    assert height.startswith("7 DGX H100 take 56 rack units, a rack has 48: lower floor.nodes")
    nvl = clos(144, 64, 2, kind="rail_optimised", devices_per_node=72, nics_per_node=72, rails=18)
    assert any(
        "A rack of 1 GB200 NVL72 draws 120 kW" in check and "raise floor.rack_power" in check
        for check in bill(nvl, prices()).checks
    )


def by_hand(found: Hall, a: int, b: int) -> int:
    """Metres between two racks, written out."""
    columns = 16
    if a == b:
        return 2
    across, down = abs(a % columns - b % columns), abs(a // columns - b // columns)
    return int(np.ceil(4 + 0.6 * across + 3 * down + 1 - 1e-9))


def test_lengths_are_those_over_the_tray():
    found = hall(400)
    racks = np.arange(found.racks)
    for a, b in combinations(range(0, found.racks, 7), 2):
        assert found.lengths_m(racks[a : a + 1], racks[b : b + 1]) == by_hand(found, a, b)


@pytest.mark.parametrize("count", [1, 2, 33, 100])
def test_pairs_are_counted_by_distance(count):
    """Autocorrelation against every pair one by one."""
    found = hall(4000)
    rng = np.random.default_rng(count)
    racks = rng.integers(0, found.racks, count)
    expected: dict[int, int] = {}
    for a, b in combinations(racks.tolist(), 2):
        metres = by_hand(found, a, b)
        expected[metres] = expected.get(metres, 0) + 1
    assert dict(found.spread_m(racks)) == expected


@pytest.mark.parametrize(("first", "last"), [(0, 3), (0, 127), (5, 90), (100, 399), (396, 399)])
def test_a_switch_stands_amid_those_it_serves(first, last):
    """Nowhere else among the racks is much closer to the furthest of them."""
    found = hall(400)
    racks = np.arange(first // 4, last // 4 + 1)
    middle = found.middle(np.array([first]), np.array([last]))

    def furthest(rack: int) -> int:
        return int(found.lengths_m(np.full_like(racks, rack), racks).max())

    best = min(furthest(rack) for rack in range(found.racks))
    assert furthest(int(middle[0])) <= best + 3  # one row


def link_lengths(fabric: Clos) -> dict[tuple[int, int], int]:
    """Links of a two-tier fabric by (tier, metres), element by element."""
    found = hall(fabric.nodes)
    size = fabric.sizing
    counts: dict[tuple[int, int], int] = {}

    def amid(first: int, last: int) -> int:
        return int(found.middle(np.array([first]), np.array([last]))[0])

    units = [
        amid(u * size.nodes_per_unit, min((u + 1) * size.nodes_per_unit, fabric.nodes) - 1)
        for u in range(size.units)
    ]
    for node in range(fabric.nodes):
        metres = by_hand(found, node // found.per_rack, units[node // size.nodes_per_unit])
        counts[0, metres] = counts.get((0, metres), 0) + fabric.nics_per_node * fabric.planes
    spine = amid(0, fabric.nodes - 1)
    for leaf, up in enumerate(fabric.uplinks(1).tolist()):
        metres = by_hand(found, units[leaf // size.rails], spine)
        counts[1, metres] = counts.get((1, metres), 0) + up
    return counts


@pytest.mark.parametrize("kind", ["leaf_spine", "rail_optimised", "rail_only"])
@pytest.mark.parametrize("planes", [1, 2])
def test_every_cable_has_its_length(kind, planes):
    """Histograms against one cable after the other."""
    fabric = clos(1000, 64, 2, 2.0, kind=kind, planes=planes)
    found = clos_parts(fabric, prices()).links
    made = {(tier, m): n for tier, link in enumerate(found) for m, n in link.metres}
    assert made == link_lengths(fabric)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("metres", [1, 2, 3, 5, 6, 7, 8, 30, 31, 50, 51, 500, 501, 2000])
@pytest.mark.parametrize("media", ["optical", "cheapest"])
@pytest.mark.parametrize("rate", [100.0, 400.0, 800.0])
def test_the_cable_reaches_and_no_other_that_does_is_cheaper(media, metres, rate):
    listed = prices(f'cabling.media="{media}"')
    link = LinkCount("leaf", rate, ((metres, 1),), "nic")
    found = choose(listed, link, metres)
    assert found.reaches
    assert found.cable.reach_m.typical >= metres
    assert bool(found.lower) == bool(found.upper) == bool(found.cable.optics)
    usual = [cable for cable in listed.cable if not cable.on_request]
    for kind in {cable.kind for cable in usual if media == "cheapest" or cable.optics}:
        other = choose(prices(f'cabling.media="{kind}"'), link, metres)
        if other.reaches and not other.stretched:
            assert found.total_usd(metres) <= other.total_usd(metres) * (1 + 1e-12)


def test_copper_is_out_of_reach_across_the_hall():
    found = bill(clos(1024, 64, 2), prices('cabling.media="DAC"'))
    (told,) = found.checks
    assert told.startswith("992 links to the spine tier are up to 13 m long, beyond the 2.5 m of")
    assert "cabling.media" in told
    assert {run.kind for total in found.links for run in total.runs} == {"DAC"}
    assert found.transceivers == 0


def test_rows_far_apart_take_single_mode_fibre():
    near, far = (
        bill(clos(4096, 64, 3, kind="rail_optimised"), prices(f"floor.row_pitch_m.typical={pitch}"))
        for pitch in (3.0, 40.0)
    )
    kinds = [{run.kind for total in found.links for run in total.runs} for found in (near, far)]
    assert kinds[0] == {"MMF"}
    assert "SMF" in kinds[1]
    assert far.price_usd.typical > near.price_usd.typical


def test_delay_is_that_of_the_longest_cable():
    for total in bill(clos(1024, 64, 2), prices()).links:
        for run in total.runs:
            assert run.latency_s == pytest.approx(4.9e-9 * run.longest_m)
            assert run.count <= run.metres <= run.count * run.longest_m


def test_a_dragonflys_nodes_reach_their_own_group():
    """Cables to routers amid the group, one node after the other."""
    fabric = Dragonfly("d", 8, 4, 4, 50e9, 50e9, 1e-6, devices_per_node=8)
    found = node_hall(prices(), fabric.nodes, 8)
    expected: dict[int, int] = {}
    for node in range(fabric.nodes):
        first = node // 32 * 32
        amid = found.middle(np.array([first]), np.array([first + 31]))
        metres = by_hand(found, node // found.per_rack, int(amid[0]))
        expected[metres] = expected.get(metres, 0) + 1
    assert dict(dragonfly_parts(fabric, prices()).links[0].metres) == expected


def test_a_listed_module_comes_before_a_cheaper_one_that_is_too_slow():
    """At 800G multimode would cost less in proportion, but is listed at 400G only."""
    link = LinkCount("leaf", 800.0, ((10, 1),), "nic")
    found = choose(prices(), link, 10)
    assert (found.cable.optics, found.stretched) == ("DR", False)
    slow = choose(prices('cabling.media="MMF"'), link, 10)
    assert slow.stretched
    assert slow.estimate
    assert slow.total_usd(10) < found.total_usd(10)


def test_a_new_typical_figure_has_ends_of_its_own():
    found = prices("switch.0.price_usd.typical=9").switch[0].price_usd.range
    assert (found.low, found.typical, found.high) == (9, 9, 9)
    ends = prices("switch.0.price_usd.typical=9", "switch.0.price_usd.high=10").switch[0]
    assert ends.price_usd.range.high == 10


@pytest.mark.parametrize(
    "setting", ["floor.rack_width_m.typical=1e9", "floor.racks_per_row.typical=1e9"]
)
def test_halls_of_any_size_take_no_memory(setting):
    dragonfly = load_fabric("dragonfly-1056")
    tracemalloc.start()
    found = bill(dragonfly, prices(setting))
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()
    assert [total.count for total in found.links] == [1056, 924, 528]
    if "row" in setting:  # one row is as long as the hall needs
        one_row = bill(dragonfly, prices("floor.racks_per_row.typical=10000"))
        assert one_row.links == found.links


@pytest.mark.parametrize("media", ["DAC", "AOC", "cheapest", "optical", "SMF"])
def test_optical_switches_take_fibres_only(media):
    found = bill(load_fabric("tpu-v4-4x4x8-twisted"), prices(f'cabling.media="{media}"'))
    kinds = {total.tier: [run.kind for run in total.runs] for total in found.links}
    assert kinds["cube"] == ["DAC"]
    assert kinds["between cubes"] == ["SMF" if media == "SMF" else "MMF"]


@pytest.mark.parametrize(
    ("fabric", "server"),
    [
        ("8,192 B300, two Ethernet planes", "DGX B300"),
        ("DGX SuperPOD A100", "DGX A100"),
        ("1,024 H100, spine-leaf 1:1", "DGX H100"),
        ("My fabric", "DGX H100"),
    ],
)
def test_a_fabrics_name_tells_its_servers(fabric, server):
    assert node_hall(prices(), 16, 8, fabric).server == server
    set_by_hand = node_hall(prices('floor.server="DGX B200"'), 16, 8, fabric)
    assert set_by_hand.server == "DGX B200"
