"""Bills against closed forms and published tables; every oracle is written out here again."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from clos_specs import clos

from nest_core.bill.bill import Bill, bill
from nest_core.bill.prices import Prices, load_prices
from nest_core.documents.presets import preset_names
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric import (
    Clos,
    Dragonfly,
    Element,
    Fabric,
    GraphFabric,
    Hierarchical,
    Link,
    Tier,
    Torus,
)
from nest_core.fabric.drawing import drawing_of
from nest_core.fabric.files import build_fabric
from nest_core.network import collapse
from nest_core.scenario import load_fabric

LIST = load_prices()
PRESETS = preset_names("fabrics")


def billed(fabric: Fabric, *settings: str) -> Bill:
    return bill(fabric, load_prices("2026", settings) if settings else LIST)


def switches(found: Bill) -> list[int]:
    return [total.count for total in found.switches]


def links(found: Bill) -> list[int]:
    return [total.count for total in found.links]


@pytest.mark.parametrize("k", [8, 16, 64, 128])
@pytest.mark.parametrize(("tiers", "per_port"), [(1, 1), (2, 3), (3, 5)])
def test_a_full_clos_has_the_textbook_totals(k, tiers, per_port):
    """N endpoints: (2 t - 1) N / k switches, N links per tier, 2 N t transceivers.

    A failure puts every quotation off by whole switches.
    """
    most = {1: k, 2: k * k // 2, 3: k**3 // 4}[tiers]
    N = min(most, 65_536)
    fabric = clos(N, k, tiers, devices_per_node=1, nics_per_node=1)
    found = billed(fabric)
    assert sum(switches(found)) == per_port * N // k
    assert links(found) == [N] * tiers
    assert found.cables == tiers * N
    assert found.transceivers == 2 * tiers * N
    assert found.nics == N


# 32,768 endpoints: radix, devices per node; tiers, switches and transceivers in full and per rail.
RAIL_ONLY = [
    (64, 8, 3, 2560, 196_608, 3, 2560, 196_608),
    (64, 256, 3, 2560, 196_608, 2, 1536, 131_072),
    (128, 8, 3, 1280, 196_608, 2, 768, 131_072),
    (128, 256, 3, 1280, 196_608, 1, 256, 65_536),
    (256, 256, 2, 384, 131_072, 1, 256, 65_536),
]


@pytest.mark.parametrize("row", RAIL_ONLY, ids=lambda row: f"k={row[0]}, HB={row[1]}")
def test_what_rails_alone_save(row):
    radix, node, tiers, full, full_ends, rail_tiers, alone, alone_ends = row
    flat = billed(clos(32768, radix, tiers, devices_per_node=1, nics_per_node=1))
    assert (sum(switches(flat)), flat.transceivers) == (full, full_ends)
    rails = clos(
        32768, radix, rail_tiers, kind="rail_only", devices_per_node=node, nics_per_node=node
    )
    found = billed(rails)
    assert (sum(switches(found)), found.transceivers) == (alone, alone_ends)
    assert (found.price_usd.typical < flat.price_usd.typical) == (alone < full)


def test_what_rails_alone_save_with_nodes_of_72():
    """455 whole nodes of 72 come nearest to 32,768; their rails need two tiers of either radix."""
    for radix in (64, 128):
        N = 455 * 72
        fabric = clos(N, radix, 2, kind="rail_only", devices_per_node=72, nics_per_node=72)
        found = billed(fabric)
        leaves = -(-455 // (radix // 2))  # per rail; the last is short and keeps its uplinks
        spines = -(-leaves // 2)
        assert switches(found) == [72 * leaves, 72 * spines]
        assert found.transceivers == 2 * N + 72 * leaves * radix


# Scalable units of NVIDIA's reference architectures: GPUs, switches, cables.
NVIDIA = [
    (64, 400, 512, (16, 8), 512),
    (64, 400, 1024, (32, 16), 1024),
    (64, 400, 2048, (64, 32), 2048),
    (64, 400, 4096, (128, 128, 64), 4096),
    (64, 400, 8192, (256, 256, 128), 8192),
    (64, 400, 16384, (512, 512, 256), 16384),
    (144, 800, 576, (8, 4), 576),
    (144, 800, 1152, (16, 8), 1152),
    (144, 800, 2304, (32, 18), 2304),
    (144, 800, 4608, (64, 36), 4608),
    (144, 800, 10368, (144, 72), 10368),
]


@pytest.mark.parametrize("row", NVIDIA, ids=lambda row: f"{row[0]} ports, {row[2]} GPUs")
def test_the_reference_architectures_are_billed_as_printed(row):
    """Switch and cable counts, the switch by name, and no port used twice."""
    radix, rate, devices, counts, cables = row
    fabric = clos(
        devices, radix, len(counts), kind="rail_optimised", nic_bandwidth_Bps=rate / 8 * 1e9
    )
    found = billed(fabric)
    assert switches(found) == list(counts)
    assert links(found) == [cables] * len(counts)
    assert {total.item for total in found.switches} == {"QM9700" if radix == 64 else "Q3400-RA"}
    assert all(total.free >= 0 for total in found.switches)
    assert not found.checks


def test_four_units_take_the_printed_number_of_switch_modules():
    """NVIDIA's bill for 4 units of H100 has 1,536 twin-port modules for switches."""
    found = billed(clos(1024, 64, 2, kind="rail_optimised"))
    twin = [line for line in found.lines if line.item.startswith("2x400G")]
    assert sum(line.count for line in twin) == (1024 + 2 * 1024) // 2 == 1536
    assert found.modules == 1536 + 1024


@pytest.mark.parametrize("shape", [(4, 4, 4), (4, 4, 8), (8, 8, 8), (16, 16, 16)])
def test_cubes_stand_behind_48_optical_switches(shape):
    """3 dimensions of 16 links per face, two ports per cube; 96 optical links per cube."""
    chips = shape[0] * shape[1] * shape[2]
    found = billed(Torus("t", shape, (True,) * 3, 46e9, 1e-6))
    (optical,) = found.switches
    assert optical.count == 3 * 16
    assert optical.used == 2 * 48 * chips // 64
    assert sum(links(found)) == 3 * chips
    assert [run.count for run in found.links[1].runs] == [96 * chips // 64]
    assert found.transceivers == 96 * chips // 64
    assert found.nics == 0


@pytest.mark.parametrize(
    ("shape", "wrap", "expected"),
    [
        ((16, 16), (True, True), 512),
        ((8, 8), (False, False), 2 * 8 * 7),
        ((5, 3), (True, False), 5 * 3 + 5 * 2),
        ((6, 6, 6), (True, True, True), 3 * 216),
        ((2, 4), (True, True), 4 + 8),
    ],
)
def test_a_torus_has_a_link_per_neighbour(shape, wrap, expected):
    torus = Torus("t", shape, wrap, 50e9, 1e-6)
    assert sum(links(billed(torus))) == expected == torus.explicit().number_of_edges()


@pytest.mark.parametrize(("a", "p", "h"), [(4, 2, 2), (8, 4, 4), (6, 3, 3)])
def test_a_dragonfly_has_the_links_of_kim_et_al(a, p, h):
    """N = a p (a h + 1) nodes, a g routers, g a (a - 1) / 2 local and g a h / 2 global links."""
    found = billed(Dragonfly("d", a, p, h, 50e9, 50e9, 1e-6))
    g = a * h + 1
    assert switches(found) == [a * g]
    assert links(found) == [a * p * g, g * a * (a - 1) // 2, g * a * h // 2]
    assert found.switches[0].used == a * g * (p + a - 1 + h)
    assert found.nics == a * p * g


def count_edges(fabric: Fabric) -> Counter[frozenset[str]]:
    """Links of the drawn fabric, by the roles of their ends."""
    graph = fabric.explicit()
    found: Counter[frozenset[str]] = Counter()
    for a, b, data in graph.edges(data=True):
        found[frozenset((graph.nodes[a]["role"], graph.nodes[b]["role"]))] += data["count"]
    return found


@pytest.mark.parametrize(
    "missing",
    [(), ("node 3",), ("leaf 2",), ("spine 1",), ("leaf 0", "spine 0", "node 9")],
    ids=str,
)
@pytest.mark.parametrize("planes", [1, 2])
@pytest.mark.parametrize("kind", ["rail_optimised", "rail_only"])
def test_what_failed_is_not_billed(kind, planes, missing):
    """Links are those of the link graph, drawn one by one."""
    fabric = clos(256, 32, 2, 2.0, kind=kind, planes=planes, missing=missing)
    found, drawn = billed(fabric), count_edges(fabric)
    assert found.links[0].count == drawn[frozenset(("nic", "switch"))]
    assert found.links[1].count == drawn[frozenset(("switch",))]
    assert switches(found) == list(fabric.switch_counts().values())
    assert found.nics == fabric.devices
    ends = sum(total.used for total in found.switches)
    assert ends == found.links[0].count + 2 * found.links[1].count


def graph(switch_radix: int = 0) -> GraphFabric:
    """Two nodes of two devices on a switch each, a card per device, two leaves and a spine."""
    devices = [Element(f"gpu{i}", "device") for i in range(4)]
    cards = [Element(f"nic{i}", "nic") for i in range(4)]
    boxes = [Element(name, "switch") for name in ("nv0", "nv1")]
    boxes += [Element(name, "switch", switch_radix) for name in ("leaf0", "leaf1", "spine")]
    link_map = [Link(f"gpu{i}", f"nv{i // 2}", 450e9) for i in range(4)]
    link_map += [Link(f"gpu{i}", f"nic{i}", 50e9) for i in range(4)]
    link_map += [Link(f"nic{i}", f"leaf{i % 2}", 50e9) for i in range(4)]
    link_map += [Link(f"leaf{i}", "spine", 100e9, 3) for i in range(2)]
    return GraphFabric("g", (*devices, *cards, *boxes), tuple(link_map))


def test_a_drawn_fabric_is_billed_without_the_insides_of_its_nodes():
    found = billed(graph(8))
    assert [(total.tier, total.count, total.rate_Gbps) for total in found.links] == [
        ("leaf", 4, 400.0),
        ("spine", 6, 800.0),
    ]
    assert [(t.role, t.count, t.used, t.free) for t in found.switches] == [
        ("leaf", 2, 10, 6),
        ("spine", 1, 6, 2),
    ]
    assert found.nics == 4
    assert not any("no NICs" in check for check in found.checks)


def test_a_drawing_without_nics_says_that_nodes_are_billed_too():
    boxes = (Element("nv", "switch"), Element("leaf", "switch"))
    devices = tuple(Element(f"gpu{i}", "device") for i in range(2))
    link_map = tuple(Link(f"gpu{i}", "nv", 450e9) for i in range(2))
    found = billed(GraphFabric("g", (*devices, *boxes), (*link_map, Link("nv", "leaf", 50e9))))
    assert [total.role for total in found.switches] == ["leaf"], "an NVSwitch is no network switch"
    (inner,) = (line for line in found.lines if line.part == "scale-up switch")
    assert (inner.count, inner.price_usd.typical) == (1, 0.0)
    assert any("The drawing has no NICs" in check for check in found.checks)


def test_what_is_owned_costs_nothing_and_draws_power():
    """Forty switches of one kind, ten there already: they are taken tier by tier."""
    fabric = clos(1024, 64, 2)
    full = billed(fabric)
    assert switches(full) == [32, 16]
    found = load_prices("2026", ("switch.0.owned=40", "nic.0.owned=100"))
    assert (found.switch[0].name, found.nic[0].rate_Gbps) == ("QM9700", 400.0)
    found = bill(fabric, found)
    assert switches(found) == [32, 16]
    lines = {(line.part, line.place): line for line in found.lines}
    leaf, spine, cards = (
        lines[key] for key in (("switch", "leaf"), ("switch", "spine"), ("nic", "node"))
    )
    assert (leaf.owned, leaf.price_usd.typical) == (32, 0.0)
    assert (spine.owned, spine.price_usd.typical) == (8, 8 * 38_000)
    assert (cards.count, cards.owned, cards.price_usd.typical) == (1024, 100, 924 * 1750)
    assert spine.unit_usd.typical == 38_000
    assert spine.source.endswith("; 8 of 16 are owned already")
    saved = full.price_usd.typical - found.price_usd.typical
    assert saved == pytest.approx(40 * 38_000 + 100 * 1750)
    assert found.power_W == full.power_W


def test_used_parts_have_a_price_of_their_own():
    used = '{typical=9000,kind="second-hand",date="2026-11",source="a broker"}'
    found = bill(clos(1024, 64, 2), load_prices("2026", (f"switch.0.price_usd={used}",)))
    (leaf,) = (line for line in found.lines if line.place == "leaf" and line.part == "switch")
    assert leaf.price_usd.typical == 32 * 9000
    assert leaf.source == "second-hand, 2026-11: a broker"


def test_a_hierarchy_has_cables_for_what_climbs():
    """32 devices at 2:1 leave a node's eight four cables; a fast uplink is several cables."""
    tiers = (
        Tier("node", 8, 450e9, 1e-6),
        Tier("rack", 4, 50e9, 2e-6),
        Tier("pod", 2, 50e9, 3e-6, oversubscription=2.0),
        Tier("hall", 2, 400e9, 4e-6, uplink_per="child"),
    )
    found = billed(Hierarchical("h", tiers))
    assert [(t.tier, t.count, t.rate_Gbps) for t in found.links] == [
        ("rack", 128, 400.0),
        ("pod", 4 * 16, 400.0),
        ("hall", 2 * 4, 800.0),
    ]
    assert found.nics == 128
    assert all(total.estimate for total in found.switches)
    assert any("Levels do not say which switches" in check for check in found.checks)


def test_unequal_groups_and_missing_ones():
    tiers = (
        Tier("node", 8, 450e9, 1e-6),
        Tier("rack", 0, 50e9, 2e-6, group_sizes=(4, 4, 3)),
        Tier("hall", 3, 800e9, 3e-6, uplink_per="child"),
    )
    whole = billed(Hierarchical("h", tiers))
    assert links(whole) == [88, 3 * 8]
    assert links(billed(Hierarchical("h", tiers, missing=("rack 2", "device 0")))) == [63, 2 * 8]


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.sampled(4)
def test_every_preset_adds_up(name):
    """Lines make the totals, ends of cables the ports, and no switch has more than it has."""
    fabric = load_fabric(name)
    found = billed(fabric)
    for field in ("price_usd", "power_W"):
        for end in ("low", "typical", "high"):
            parts = [getattr(getattr(line, field), end) for line in found.lines]
            assert getattr(getattr(found, field), end) == pytest.approx(sum(parts))
        total = getattr(found, field)
        assert 0 <= total.low <= total.typical <= total.high
    assert found.cables == sum(line.count for line in found.lines if line.part == "cable")
    assert found.cables == sum(run.count for total in found.links for run in total.runs)
    assert all(total.free >= 0 for total in found.switches)
    assert all(check.endswith(".") and ": " in check for check in found.checks)
    if isinstance(fabric, Clos):
        assert found.transceivers == 2 * sum(links(found))
        ends = sum(total.used for total in found.switches)
        assert ends == 2 * sum(links(found)) - links(found)[0]


@pytest.mark.parametrize(
    "fabric",
    [
        clos(131_072, 128, 3, kind="rail_optimised"),
        clos(131_072, 128, 3, devices_per_node=1, nics_per_node=1),
        Torus("t", (64, 64, 32), (True,) * 3, 50e9, 1e-6),
        Dragonfly("d", 16, 8, 8, 50e9, 50e9, 1e-6),
    ],
    ids=["rails", "single devices", "torus", "dragonfly"],
)
def test_large_fabrics_are_counted_too(fabric):
    """By arithmetic: how fast, `benchmarks/test_bill.py` shows."""
    found = billed(fabric)
    assert found.cables >= sum(total.count for total in found.links) >= fabric.devices
    assert 0 < found.price_usd.low <= found.price_usd.typical <= found.price_usd.high


@pytest.mark.parametrize("kind", ["leaf_spine", "rail_optimised"])
@pytest.mark.parametrize("ratio", [1.0, 2.0, 4.0, 8.0, 16.0])
def test_the_bill_follows_oversubscription(kind, ratio):
    """1,024 devices, 32 leaves: 1,024 / o uplinks on 16 / o spines."""
    found = billed(clos(1024, 64, 2, ratio, kind=kind))
    assert links(found) == [1024, int(1024 / ratio)]
    assert switches(found) == [32, max(1, int(16 / ratio))]
    full = billed(clos(1024, 64, 2, 1.0, kind=kind))
    assert found.price_usd.typical <= full.price_usd.typical
    assert found.switches[0].free == 32 * (32 - int(32 / ratio))


@pytest.mark.parametrize(
    ("spread", "spines", "words"),
    [
        ("even", 11, 'buy evenness: .* take 11 spine .* of 6 would do: clos.spread = "fewest"'),
        ("fewest", 6, "6 spine switches are the fewest .* 1 or 2 .* at worst.* take 11, .* more"),
    ],
)
def test_the_price_of_evenness_is_said(spread, spines, words):
    """32 leaves of 11 uplinks: evenly on 11 spines; the ports of six would do."""
    found = billed(clos(1024, 64, 2, 3.0, spread=spread))
    assert switches(found) == [32, spines]
    (check,) = found.checks
    assert re.search(words, check)
    assert f"${5 * 38_000 / 1e3:.0f} k" in check
    assert not billed(clos(1024, 64, 2, 2.0, spread=spread)).checks


def test_cheapest_cabling_costs_less_and_counts_transceivers_of_fibres_only():
    fabric = clos(1024, 64, 2)
    optical, cheap = billed(fabric), billed(fabric, 'cabling.media="cheapest"')
    assert cheap.price_usd.typical < optical.price_usd.typical
    kinds = Counter(run.kind for total in cheap.links for run in total.runs)
    assert kinds["DAC"] >= 1
    fibres = sum(r.count for t in cheap.links for r in t.runs if r.kind in ("MMF", "SMF"))
    assert cheap.transceivers == 2 * fibres < optical.transceivers


def test_switches_are_listed_broken_out_or_estimated():
    """64 x 400G is listed, 128 x 200G its break-out, 40 x 200G priced by capacity and said so."""
    cases: list[tuple[dict[str, Any], str, bool]] = [
        ({"radix": 64}, "QM9700", True),
        ({"radix": 128, "nic_bandwidth_Bps": 25e9}, "QM9700", True),
        ({"radix": 40, "nic_bandwidth_Bps": 25e9}, "", False),
    ]
    for change, item, listed in cases:
        radix = change.pop("radix")
        found = billed(clos(512, radix, 2, **change))
        assert {total.item for total in found.switches} == {item}
        told = [check for check in found.checks if check.startswith("No listed switch has")]
        assert bool(told) != listed
        assert all(line.estimate for line in found.lines if line.part == "switch") != listed


def test_ports_of_a_tier_add_up_to_the_radix():
    for tier in clos(4096, 64, 3, 2.0, 4.0, kind="rail_optimised").switch_ports():
        assert tier.down + tier.up + tier.free == tier.radix == 64
        assert min(tier.down, tier.free + 1) > 0
    (router,) = Dragonfly("d", 8, 4, 4, 50e9, 50e9, 1e-6).switch_ports()
    assert (router.down, router.up, router.free) == (4, 7 + 4, 0)


def own(tmp_path: Any, text: str) -> Prices:
    path = tmp_path / "own.toml"
    path.write_text('schema = 1\nname = "own"\nbase = "2026"\n' + text)
    return load_prices("own.toml", folder=tmp_path)


OFFER = 'kind = "vendor", date = "2026-01", source = "an offer"'


def test_a_list_of_ones_own_states_what_differs(tmp_path):
    prices = own(
        tmp_path,
        f'[[switch]]\nname = "QM9700"\nprice_usd = {{ typical = 1000, {OFFER} }}\n'
        "[floor]\nnodes_per_rack = 2\n",
    )
    assert [switch.name for switch in prices.switch] == [switch.name for switch in LIST.switch]
    before, after = billed(clos(1024, 64, 2)), bill(clos(1024, 64, 2), prices)
    assert after.nodes_per_rack == 2
    lines = [line for line in after.lines if line.part == "switch"]
    assert [line.price_usd.high for line in lines] == [32_000, 16_000]
    assert [line.source for line in lines] == ["vendor, 2026-01: an offer"] * 2
    assert after.price_usd.typical < before.price_usd.typical


BAD = [
    ("[[switch]]\nname = 'QM9700'\nports = 0\n", "prices.switch[0].ports must be at least 1"),
    ("[[nic]]\nname = 'mine'\n", "prices.nic[0].rate_Gbps is required"),
    ("[cabling]\nmedia = 'string'\n", "prices.cabling.media must be optical, cheapest or a listed"),
    (
        "[floor]\nserver = 'abacus'\n",
        "prices.floor.server must be a listed server, but is 'abacus'",
    ),
    (
        f"[floor]\nrack_units = {{ typical = 0, {OFFER} }}\n",
        "prices.floor.rack_units.typical must be at least 0.001",
    ),
    (
        f"[floor]\nrack_units = {{ typical = 40, high = 30, {OFFER} }}\n",
        "prices.floor.rack_units must be low <= typical <= high",
    ),
    (
        f"[floor]\nracks_per_row = {{ typical = 0.5, {OFFER} }}\n",
        "prices.floor.racks_per_row.typical must be a whole number of at least 1, but is 0.5",
    ),
    (
        f"[floor]\nchips_per_rack = {{ typical = 2.5, {OFFER} }}\n",
        "prices.floor.chips_per_rack.typical must be a whole number of at least 1, but is 2.5",
    ),
    (
        "[optical_switch]\nused_ports = 137\n",
        "prices.optical_switch.used_ports must be at most 136",
    ),
    ("[[switch]]\nname = [1]\n", "prices.switch[0].name must be text"),
    ("[floor]\nrows = 3\n", "prices.floor.rows is not a known key, but is 3"),
    (
        f"[optical_switch]\nprice_usd_per_port = {{ typical = -1, {OFFER} }}\n",
        "prices.optical_switch.price_usd_per_port.typical must be at least 0",
    ),
]


@pytest.mark.parametrize(("text", "sentence"), BAD, ids=[sentence[:40] for _, sentence in BAD])
def test_lists_that_cannot_be_are_refused(tmp_path, text, sentence):
    with pytest.raises(ValueError, match="^" + sentence.replace("[", r"\[")) as caught:
        own(tmp_path, text)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize("name", ["1999", "none.toml"])
def test_lists_that_are_not_there_are_refused(name):
    with pytest.raises(ValueError, match=r"must be a (preset|readable file)"):
        load_prices(name, folder=Path())


def test_every_figure_of_the_list_has_its_source_without_a_machine():
    for line in billed(clos(1024, 64, 2)).lines:
        kind, told = line.source.split(", ", 1)
        assert kind in ("vendor", "third-party", "estimate", "recalled")
        assert ": " in told


def test_a_drawn_copy_has_the_nodes_of_its_original():
    """A failure: every device is taken for a node, or an unlisted switch is invented."""
    original = load_fabric("h100-spine-leaf-64")
    drawing = drawing_of(original, collapse(original).nesting)
    copy = build_fabric(checked(FabricFile, drawing))
    one, other = bill(original, load_prices()), bill(copy, load_prices())
    assert (other.nodes, other.nics) == (one.nodes, one.nics) == (8, 64)
    assert other.server == one.server
    drawing["link"][-1]["count"] = 5
    fewer = bill(build_fabric(checked(FabricFile, drawing)), load_prices())
    assert not any("No listed switch" in check for check in fewer.checks)
