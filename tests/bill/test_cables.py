"""Every cable once: as many and as long as the bill says, between ports that are there."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter

import networkx as nx
import pytest
from clos_specs import clos

from nest_core.bill.bill import bill, inventory
from nest_core.bill.cables import COLUMNS, NETBOX_COLUMNS, cable_schedule, csv_lines
from nest_core.bill.prices import load_prices
from nest_core.documents.errors import InputError
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric import Dragonfly, Fabric, Torus, build_fabric
from nest_core.fabric.drawing import drawing_of
from nest_core.network import collapse
from nest_core.scenario import load_fabric

PRICES = load_prices()

FABRICS: dict[str, Fabric] = {
    "leaf-spine": clos(256, 32, 2, 2.0),
    "three tiers, planes, broken out": clos(512, 32, 3, 2.0, 2.0, planes=2),
    "rails": clos(512, 32, 3, kind="rail_optimised", pods="rails"),
    "rails apart": clos(256, 32, 2, kind="rail_only"),
    "one tier": clos(32, 64, 1),
    "failed": clos(
        512, 32, 3, missing=("leaf 3", "spine 1", "core 2", *(f"node {n}" for n in range(6, 10)))
    ),
    "dealt": clos(240, 16, 3, kind="rail_optimised", devices_per_node=6, nics_per_node=6),
    "dealt and failed": clos(
        240,
        16,
        3,
        kind="rail_optimised",
        devices_per_node=6,
        nics_per_node=6,
        missing=("leaf 7", "spine 3", "spine 14", "core 1"),
    ),
    "fast uplinks": clos(512, 64, 2, spine_link_Bps=100e9),
    "fast uplinks of odd leaves": clos(
        60, 32, 2, 2.0, devices_per_node=3, nics_per_node=3, spine_link_Bps=200e9
    ),
    "fast cores": clos(512, 32, 3, 1.0, 2.0, core_link_Bps=100e9, missing=("spine 1",)),
    "faster and slower": clos(512, 64, 3, spine_link_Bps=200e9, core_link_Bps=100e9),
    "dealt in two tiers": clos(1000, 64, 2, 3.0, spread="fewest", missing=("spine 2",)),
    "dragonfly": Dragonfly("dragonfly", 4, 2, 2, 25e9, 12.5e9, 1e-6),
    "few groups": Dragonfly("few", 4, 2, 2, 25e9, 12.5e9, 1e-6, groups=3),
    "dragonfly of several NICs": Dragonfly(
        "nics", 4, 2, 2, 25e9, 12.5e9, 1e-6, devices_per_node=4, nics_per_node=4
    ),
    "torus of NICs": Torus(
        "nics",
        (4, 4),
        (True, True),
        12.5e9,
        1e-6,
        nics_per_device=1,
        nic_bandwidth_Bps=50e9,
        devices_per_node=4,
    ),
    "torus": Torus("torus", (4, 3, 2), (True, False, True), 50e9, 1e-6),
    "mesh with a hole": Torus("mesh", (4, 4), (False, False), 50e9, 1e-6, missing=("device 5",)),
    "twisted": Torus("twisted", (2, 4, 4), (True, True, True), 50e9, 1e-6, twisted=True),
    "cubes": Torus("cubes", (8, 4, 4), (True, True, True), 50e9, 1e-6),
}


def drawn(fabric: Fabric) -> Fabric:
    drawing = drawing_of(fabric, collapse(fabric).nesting)
    return build_fabric(checked(FabricFile, drawing, "fabric."))


FABRICS |= {
    "drawn": drawn(clos(64, 32, 2, 2.0)),
    "drawn torus": drawn(FABRICS["torus"]),
    "drawn dragonfly": drawn(FABRICS["dragonfly"]),
    "drawn without NICs": load_fabric("drawn-8"),
}


@pytest.mark.parametrize("name", FABRICS)
def test_cables_are_those_of_the_bill(name):
    """Number by tier and length, and in all."""
    fabric = FABRICS[name]
    found = cable_schedule(fabric, PRICES)
    rows = list(found.cables)
    assert len(rows) == found.count == bill(fabric, PRICES).cables
    billed: Counter[tuple[str, int]] = Counter()
    for link in inventory(fabric, PRICES).links:
        for metres, count in link.metres:
            billed[link.tier, metres] += count * link.cables_per_link
    assert Counter((row.tier, row.length_m) for row in rows) == billed


@pytest.mark.parametrize("name", FABRICS)
def test_each_port_is_used_once(name):
    ends: Counter[tuple[str, str]] = Counter()
    for row in cable_schedule(FABRICS[name], PRICES).cables:
        ends.update([(row.a, row.a_port), (row.b, row.b_port)])
    assert set(ends.values()) == {1}


@pytest.mark.parametrize(
    "name",
    [
        "leaf-spine",
        "rails",
        "dealt",
        "few groups",
        "dragonfly",
        "fast uplinks",
        "faster and slower",
    ],
)
def test_cables_join_what_the_link_graph_joins(name):
    """As many between the same groups of switches, which the graph draws as one with a count."""
    fabric = FABRICS[name]
    graph = fabric.explicit()
    group: dict[str, object] = {}
    for tier in (*fabric.tier_names, "router"):
        drawn_as_one = sorted(node for node in graph if isinstance(node, tuple) and node[0] == tier)
        boxes = [node for node in drawn_as_one for _ in range(graph.nodes[node].get("count", 1))]
        group |= {f"{tier} {number}": node for number, node in enumerate(boxes)}
    wanted = Counter(
        {
            frozenset((a, b)): data["count"]
            for a, b, data in graph.edges(data=True)
            if {a, b} <= set(group.values())
        }
    )
    rows = cable_schedule(fabric, PRICES).cables
    assert wanted == Counter(
        frozenset((group[row.a], group[row.b])) for row in rows if row.a in group
    )


def test_switch_ports_lie_within_the_radix():
    """Three tiers with every port in use, two ports to a cage."""
    fabric = clos(512, 16, 3)
    for row in cable_schedule(fabric, PRICES).cables:
        for end, port in ((row.a, row.a_port), (row.b, row.b_port)):
            if end.split()[0] in fabric.tier_names:
                cage, _, place = port.removeprefix("port ").partition("/")
                assert 1 <= int(cage) <= 8
                assert place in ("1", "2")


def test_a_failed_switch_takes_its_cables_and_no_others():
    whole = {(row.a, row.a_port): row for row in cable_schedule(clos(512, 32, 3), PRICES).cables}
    lacking = clos(512, 32, 3, missing=("spine 1", "core 2"))
    left = {(row.a, row.a_port): row for row in cable_schedule(lacking, PRICES).cables}
    gone = {"spine 1", "core 2"}
    assert left == {key: row for key, row in whole.items() if not {row.a, row.b} & gone}


def test_dealt_uplinks_differ_by_one_and_fill_every_spine_alike():
    """Six leaves of eight uplinks on six spines of eight ports down; even ones would take eight."""
    fabric = FABRICS["dealt"]
    assert fabric.switch_counts() == {"leaf": 30, "spine": 30, "core": 15}
    rows = [row for row in cable_schedule(fabric, PRICES).cables if row.tier == "spine"]
    pairs = Counter((row.a, row.b) for row in rows)
    assert len(pairs) == 5 * 6 * 6
    assert set(pairs.values()) == {1, 2}
    assert set(Counter(row.a for row in rows).values()) == {8}
    assert set(Counter(row.b for row in rows).values()) == {8}


def test_a_three_tier_clos_is_connected():
    graph: nx.Graph[str] = nx.Graph()
    graph.add_edges_from((row.a, row.b) for row in cable_schedule(clos(512, 32, 3), PRICES).cables)
    assert nx.is_connected(graph)
    assert sum(name.startswith("node") for name in graph) == 64


def test_ports_that_are_broken_out_or_share_a_transceiver_are_said():
    shared = cable_schedule(load_fabric("dgx-superpod-h100"), PRICES)
    broken = cable_schedule(load_fabric("hpn-dual-plane"), PRICES)
    assert "Ports of leaf and spine switches are 2 to a cage" in shared.notes[0]
    assert "broken out" in broken.notes[0]
    assert {row.b_port for row in shared.cables} == {
        f"port {c}/{n}" for c in range(1, 33) for n in (1, 2)
    }


def test_netbox_takes_the_rows():
    """Columns that all versions have, choice values as NetBox spells them, a label of its own."""
    found = cable_schedule(FABRICS["leaf-spine"], PRICES)
    rows = list(csv.DictReader(io.StringIO("".join(csv_lines(found.cables, "netbox")))))
    assert tuple(rows[0]) == NETBOX_COLUMNS
    assert len(rows) == found.count == len({row["label"] for row in rows})
    assert {row["side_a_type"] for row in rows} == {"dcim.interface"}
    assert {row["type"] for row in rows} <= {
        "dac-passive",
        "dac-active",
        "aoc",
        "mmf-om4",
        "smf-os2",
    }
    assert {(row["status"], row["length_unit"]) for row in rows} == {("planned", "m")}


def test_csv_has_every_column_and_quotes_names():
    fabric = FABRICS["drawn without NICs"]
    document = fabric.document()
    text = json.dumps(document).replace('"leaf0"', r'"leaf, \"left\""')
    renamed = build_fabric(checked(FabricFile, json.loads(text), "fabric."))
    lines = "".join(csv_lines(cable_schedule(renamed, PRICES).cables, "csv"))
    rows = list(csv.DictReader(io.StringIO(lines)))
    assert tuple(rows[0]) == COLUMNS
    assert 'leaf, "left"' in {row["b"] for row in rows}


def test_levels_of_groups_have_no_cables():
    with pytest.raises(InputError, match=r"which switches join its devices.*describe it as a Clos"):
        cable_schedule(load_fabric("meta-3tier-7to1"), PRICES)
