"""InfiniBand's forwarding tables: flows take the ports that they name, and no others.

`tests/data/opensm` holds what ibnetdiscover (infiniband-diags 44.0) and OpenSM 3.3.23 on ibsim 0.10
printed of drawn subnets (`benchmarks/outside/opensm.py`), remarks cut off: a leaf-spine of two
adapters a host, parallel cables and a cable lost, two addresses a port; a torus.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from nest_core.documents.errors import InputError
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric import Fabric, GraphFabric, build_fabric
from nest_core.interop.formats import Assumed, read_fabric, write_fabric
from nest_core.network import collapse
from nest_core.network.forwarding import TabledLinkMap, stated_ports, stated_subnet
from nest_core.network.link_graph import read_links
from nest_core.network.opensm import engine_ports, routing_notes, single_switches
from nest_core.scenario import load_scenario

DATA = Path(__file__).parent.parent / "data" / "opensm"
DUMPS = [("leaf_spine", "minhop", 2), ("leaf_spine", "updn", 2), ("torus", "dor", 1)]
FAT_TREE = {
    "schema": 1,
    "name": "fat tree",
    "kind": "fat_tree",
    "clos": {
        "devices": 64,
        "devices_per_node": 4,
        "nics_per_node": 4,
        "nic_bandwidth_GBps": 50.0,
        "radix": 16,
        "tiers": 2,
        "oversubscription": [1.0],
        "hop_latency_us": 0.6,
    },
    "intra_node": {"bandwidth_GBps": 450.0, "latency_us": 0.5},
}


def texts(subnet: str, engine: str) -> tuple[str, str]:
    return (DATA / f"{subnet}.txt").read_text(), (DATA / f"{subnet}_{engine}.txt").read_text()


def read(topology: str, tables: str, per_host: int, routing: str = "tables") -> GraphFabric:
    document = read_fabric(
        topology.encode(),
        "net.txt",
        assumed=Assumed(devices_per_node=per_host),
        tables=tables.encode(),
    ).document
    fabric = build_fabric(checked(FabricFile, document | {"routing": routing}))
    assert isinstance(fabric, GraphFabric)
    return fabric


def walks(topology: str, tables: str) -> dict[tuple[str, str], list[tuple[str, int]]]:
    """Switches and ports between adapters by what they are called, read anew from the texts."""
    name, address, behind, names = "", {}, {}, {}
    for line in topology.splitlines():
        if opened := re.match(r'(?:Switch|Ca)\s+\d+ "(\S+)"\s+# "(.*?)"', line):
            name, shown = opened[1], opened[2]
            names[name] = shown
        elif link := re.match(r'\[(\d+)\]\S*\s+"(\S+)"\[(\d+)\].*?lid (\d+)', line):
            behind[name, int(link[1])] = link[2]
            if name[0] == "H":
                address[name] = int(link[4])
    forwards: dict[str, dict[int, int]] = {}
    for line in tables.splitlines():
        if opened := re.match(r"Unicast lids .* guid 0x(\S+)", line):
            forwards[f"S-{opened[1]}"] = table = {}
        elif line.startswith("0x"):
            lid, port = line.split()[:2]
            table[int(lid, 16)] = int(port)
    result = {}
    for source, goal in permutations(address, 2):
        at, way = behind[source, 1], []
        while at != goal:
            way.append((names[at], forwards[at][address[goal]]))
            at = behind[at, way[-1][1]]
        result[names[source], names[goal]] = way
    return result


@pytest.mark.parametrize(("subnet", "engine", "per_host"), DUMPS)
def test_flows_cross_the_cables_that_the_tables_name(subnet: str, engine: str, per_host: int):
    """Every pair of devices, cable by cable: as many link groups as ports, and the same shared."""
    topology, tables = texts(subnet, engine)
    fabric = read(topology, tables, per_host)
    link_map = collapse(fabric).link_map
    assert isinstance(link_map, TabledLinkMap)
    expected = walks(topology, tables)
    users: dict[object, set[tuple[str, str]]] = defaultdict(set)
    for (a, b), way in expected.items():
        for crossing in way:
            users[crossing].add((a, b))
    adapter = {n: re.sub(r" gpu", " mlx5_", name) for n, name in enumerate(fabric.device_ids)}
    crossed: dict[int, set[tuple[str, str]]] = defaultdict(set)
    for a, b in permutations(range(fabric.devices), 2):
        if a // per_host == b // per_host:
            continue
        routes = link_map.routes(np.array([a]), np.array([b]))
        assert (routes.share == 1).all()
        assert len(routes.link_group) == 3 + len(expected[adapter[a], adapter[b]])
        for group in routes.link_group[2:-1].tolist():
            crossed[group].add((adapter[a], adapter[b]))
    known = {pair for pairs in crossed.values() for pair in pairs}
    theirs = Counter(frozenset(pairs & known) for pairs in users.values() if pairs & known)
    assert Counter(map(frozenset, crossed.values())) == theirs


@pytest.mark.parametrize(("subnet", "engine", "per_host"), DUMPS)
def test_engines_fill_the_tables_that_opensm_fills(subnet: str, engine: str, per_host: int):
    fabric = read(*texts(subnet, engine), per_host)
    state = stated_subnet(read_links(fabric.explicit()), fabric.forwarding)
    ends = np.flatnonzero(state.peer < 0)
    theirs = stated_ports(fabric.forwarding, state.lid[ends])
    assert (engine_ports(state, engine) == theirs).all()
    others = {"minhop", "updn", "dor"} - {engine}
    assert any((engine_ports(state, other) != theirs).any() for other in others)


def test_tables_survive_being_written():
    fabric = read(*texts("leaf_spine", "updn"), 2)
    text = write_fabric(fabric, "toml").text
    again = build_fabric(checked(FabricFile, read_fabric(text.encode(), "x.toml").document))
    assert again == fabric


def test_tables_may_stand_behind_the_topology():
    topology, tables = texts("torus", "dor")
    document = read_fabric((topology + "\n" + tables).encode(), "net.txt").document
    beside = read_fabric(topology.encode(), "net.txt", tables=tables.encode()).document
    assert document == beside


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda top, lft: (top, lft.replace("guid 0x", "guid 0x9")), "of the switches of this sub"),
        (lambda top, lft: (top, lft[: lft.rindex("Unicast")]), "the table of every switch, but is"),
        (lambda top, lft: (top, "nothing\n"), "each below a line with Unicast lids"),
        (lambda top, lft: (top, lft.replace("0x0002 ", "0xz002 ")), "0x001f and a port such as 00"),
        (lambda top, lft: (lft, ""), "must hold a topology, with forwarding tables beside it"),
        (lambda top, lft: (top + "\n" + lft, lft), "must come once"),
    ],
)
def test_tables_that_cannot_be_read_are_refused(change, error):
    topology, tables = change(*texts("leaf_spine", "minhop"))
    with pytest.raises(InputError, match=error) as refused:
        read(topology, tables, 2)
    assert str(refused.value).count("\n") == 0


def test_tables_come_beside_a_subnet_alone():
    with pytest.raises(InputError, match="must come beside what ibnetdiscover prints"):
        read_fabric(b"a,b\ngpu0,leaf\ngpu1,leaf\n", "links.csv", tables=b"Unicast lids")


@pytest.mark.parametrize(
    ("port", "how"), [("040", "ends at a switch"), ("back", "goes round in a loop")]
)
def test_tables_must_lead_everywhere(port: str, how: str):
    topology, tables = texts("leaf_spine", "minhop")
    fabric = read(topology, tables, 2)
    leaf, spine = (
        next(entry for entry in fabric.forwarding if entry.switch.startswith(kind))
        for kind in ("leaf", "spine")
    )
    far = next(
        lid
        for entry in fabric.forwarding
        if entry.switch.startswith("leaf") and entry is not leaf
        for _, lid, _ in entry.ports
        if lid
    )
    # Send one address to the spine and, on the spine, nowhere or back.
    to_spine, back = (
        next(port for port, _, end in here.ports if end == other.switch)
        for here, other in ((leaf, spine), (spine, leaf))
    )
    blocks = re.split(r"(?=Unicast)", tables)
    for guid, out in ((leaf.guid, to_spine), (spine.guid, back if port == "back" else int(port))):
        at = next(n for n, block in enumerate(blocks) if f"{guid:016x}" in block)
        blocks[at] = re.sub(rf"0x{far:04x} \d+", f"0x{far:04x} {out:03}", blocks[at])
    with pytest.raises(InputError, match=f"must not have a way that {how}.*to {far:#06x}"):
        collapse(read(topology, "".join(blocks), 2))


def test_ports_must_be_those_of_the_links():
    fabric = read(*texts("torus", "dor"), 1)
    first, *others = fabric.forwarding
    short = replace(first, ports=first.ports[1:])
    with pytest.raises(InputError, match="a port for every link of a switch"):
        replace(fabric, forwarding=(short, *others))
    with pytest.raises(InputError, match="must list every switch"):
        replace(fabric, forwarding=tuple(others))
    with pytest.raises(InputError, match="must have the forwarding table of every switch"):
        replace(fabric, forwarding=())
    with pytest.raises(InputError, match="packed by zlib and written in base 64"):
        collapse(replace(fabric, forwarding=(replace(first, table="AAAA"), *others)))
    # What is drawn by hand may lose its tables where nothing follows them.
    assert replace(fabric, forwarding=(), routing="adaptive").devices == fabric.devices


def own(routing: str, **changes: object) -> Fabric:
    clos = FAT_TREE["clos"] | changes
    return build_fabric(checked(FabricFile, FAT_TREE | {"clos": clos, "routing": routing}))


@pytest.mark.parametrize("engine", ["minhop", "updn", "dor"])
def test_own_fabrics_are_routed_switch_by_switch(engine: str):
    """Ways have the length of shortest ones; minhop's loads are even where the fabric is."""
    fabric = own(engine)
    network, ideal = collapse(fabric), collapse(own("adaptive"))
    source, target = (np.array(ends) for ends in zip(*permutations(range(64), 2), strict=True))
    routes, shortest = (entry.link_map.routes(source, target) for entry in (network, ideal))
    assert routes.latency_s == pytest.approx(shortest.latency_s)
    assert [level.name for level in network.levels] == [level.name for level in ideal.levels]
    load = np.bincount(routes.link_group, routes.share)
    switches = len(single_switches(fabric.explicit()))
    assert switches > len(fabric.explicit())
    assert (load.max() <= 64) == (engine != "dor")  # which takes one spine of all


def test_engines_need_switches():
    torus = {"schema": 1, "name": "t", "kind": "torus", "routing": "minhop"}
    torus["torus"] = {"shape": [4, 4], "wrap": [True, True], "link_bandwidth_GBps": 1.0}
    torus["torus"]["hop_latency_us"] = 1.0
    with pytest.raises(InputError, match="must be adaptive or shortest_path for kind"):
        build_fabric(checked(FabricFile, torus))


@pytest.mark.parametrize("engine", ["ftree", "dfsssp", "lash"])
def test_other_engines_want_their_tables(engine: str):
    with pytest.raises(InputError, match=f"save what dump_lfts prints.*but is '{engine}'"):
        checked(FabricFile, FAT_TREE | {"routing": engine})


def test_a_subnet_without_tables_says_what_is_assumed():
    topology, tables = texts("leaf_spine", "minhop")
    document = read_fabric(
        topology.encode(), "net.txt", assumed=Assumed(devices_per_node=2)
    ).document
    fabric = build_fabric(checked(FabricFile, document))
    network = collapse(fabric)
    (words, *_) = routing_notes(fabric, network)
    assert words.startswith("Routing is assumed to be adaptive: no forwarding tables were read.")
    source = np.arange(16)
    target = np.roll(source, -8)
    seconds = {}
    for routing in ("adaptive", "minhop", "updn", "dor"):
        changed = build_fabric(checked(FabricFile, document | {"routing": routing}))
        link_map = collapse(changed).link_map
        routes = link_map.routes(source, target)
        load = np.bincount(routes.link_group, routes.share, len(link_map.capacity_Bps))
        seconds[routing] = (load / link_map.capacity_Bps).max()
    for routing, value in seconds.items():
        assert f"{routing} {value / min(seconds.values()):.3g}" in words
    by_tables = read(topology, tables, 2)
    assert routing_notes(by_tables, collapse(by_tables)) == ()


@pytest.mark.parametrize("fabric", ["h100-spine-leaf-64", "dragonfly-1056"])
def test_a_fabric_that_holds_no_tables_follows_none(fabric):
    with pytest.raises(InputError, match=r"routing must not be tables for kind = .*, which holds"):
        load_scenario("llama2-7b-64-h100", (f'fabric="{fabric}"', 'fabric.routing="tables"'))
