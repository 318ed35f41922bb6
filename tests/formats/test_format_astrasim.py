"""ASTRA-sim: analytical products in and out."""

from __future__ import annotations

import itertools

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nest_core.documents.errors import InputError
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric import Fabric, Hierarchical, Tier, Torus
from nest_core.fabric.files import build_fabric
from nest_core.interop.formats import read_fabric, write_fabric
from nest_core.network import collapse
from nest_core.scenario import load_fabric


def read(text: str) -> Fabric:
    found = read_fabric(text.encode(), "network.yml")
    assert found.format == "astrasim"
    return build_fabric(checked(FabricFile, found.document))


def product(*dimensions: tuple[str, int, float, float]) -> str:
    columns = list(zip(*dimensions, strict=True))
    keys = ("topology", "npus_count", "bandwidth", "latency")
    return "".join(
        f"{key}: [ {', '.join(map(str, column))} ]  # {key}\n"
        for key, column in zip(keys, columns, strict=True)
    )


def test_the_validated_h100_has_one_switch():
    """936.25 ns stored is half of what two devices see through the switch."""
    fabric = read(product(("Switch", 8, 400.0, 936.25)))
    assert isinstance(fabric, Hierarchical)
    assert fabric.devices == 8
    level = collapse(fabric).levels[0]
    assert level.bandwidth_Bps == 400e9
    assert level.latency_s == pytest.approx(1872.5e-9)


def test_a_tpu_is_a_torus():
    fabric = read(product(("Ring", 4, 80, 1000), ("Ring", 8, 80, 1000)))
    assert isinstance(fabric, Torus)
    assert (fabric.shape, fabric.wrap) == ((4, 8), (True, True))
    assert (fabric.link_bandwidth_Bps, fabric.hop_latency_s) == (80e9, 1e-6)


BLOCKS = ["Ring", "FullyConnected", "Switch"]


@pytest.mark.parametrize("kinds", list(itertools.product(BLOCKS, repeat=2)))
@pytest.mark.parametrize("sizes", [(2, 4), (3, 5)])
def test_products_join_what_their_blocks_join(kinds, sizes):
    """NPUs that differ in one dimension are as near as the block says, whatever it became."""
    rates = (100.0, 50.0)
    text = product(*zip(kinds, sizes, rates, (500.0, 500.0), strict=True))
    graph = read(text).explicit()
    assert set(nx.get_edge_attributes(graph, "count").values()) == {1}
    switches = [n for n, d in graph.nodes(data=True) if d["role"] != "device"]
    for a, b in itertools.combinations(range(sizes[0] * sizes[1]), 2):
        here, there = divmod(a, sizes[0])[::-1], divmod(b, sizes[0])[::-1]
        apart = [axis for axis in (0, 1) if here[axis] != there[axis]]
        if len(apart) > 1:
            continue
        (axis,) = apart
        gap = abs(here[axis] - there[axis])
        hops = {"Ring": min(gap, sizes[axis] - gap), "FullyConnected": 1, "Switch": 0}[kinds[axis]]
        if hops:
            inside = graph.subgraph(
                n
                for n in graph
                if not isinstance(n, int) or divmod(n, sizes[0])[::-1][1 - axis] == here[1 - axis]
            )
            plain = inside.subgraph(n for n in inside if n not in switches)
            assert nx.shortest_path_length(plain, a, b) == hops
        else:
            near = [set(graph[n]) & set(switches) for n in (a, b)]
            nics = [{o for n in s for o in {n, *graph[n]}} & set(switches) for s in near]
            assert nics[0] & nics[1]


tiers = st.tuples(
    st.integers(2, 6), st.sampled_from([400.0, 50.0, 100 / 3, 0.7]),
    st.sampled_from([0.0, 0.5, 1.2, 10 / 7]),
)  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(st.lists(tiers, min_size=1, max_size=4))
def test_levels_of_devices_uplinks_come_back(drawn):
    fabric = Hierarchical(
        "network.yml",
        tuple(
            Tier(f"dimension {index}", size, rate * 1e9, latency * 1e-6)
            for index, (size, rate, latency) in enumerate(drawn, start=1)
        ),
    )
    exported = write_fabric(fabric, "astrasim")
    assert read(exported.text) == fabric
    assert exported.lost == ("The fabric's name.", "The names of levels.")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(2, 6), min_size=2, max_size=3), st.sampled_from([50.0, 100 / 3]))
def test_tori_come_back(shape, rate):
    fabric = Torus("network.yml", tuple(shape), (True,) * len(shape), rate * 1e9, 1e-6)
    exported = write_fabric(fabric, "astrasim")
    assert read(exported.text) == fabric
    assert exported.lost == ("The fabric's name.",)


def test_what_levels_lose_is_said():
    fabric = Hierarchical("h", (
        Tier("node", 8, 450e9, 0.5e-6), Tier("single", 1, 50e9, 1e-6),
        Tier("rack", 4, 400e9, 2e-6, "child", 2.0),
    ))  # fmt: skip
    exported = write_fabric(fabric, "astrasim")
    assert "Level rack: uplinks that a group shares are given out to devices." in exported.lost
    assert "Level rack: oversubscription is taken off the rate." in exported.lost
    assert "Level single, whose groups have one child." in exported.lost
    again = read(exported.text)
    assert again.devices == 32
    # A node's uplink of 400 GB/s, halved, is 25 GB/s for each of eight.
    assert [level.bandwidth_Bps for level in collapse(again).levels] == [450e9, 25e9]


@pytest.mark.parametrize(
    "name", ["h100-spine-leaf-1024-4to1", "dgx-superpod-h100", "hpn-dual-plane"]
)
def test_a_clos_keeps_its_levels_rates(name):
    """Per level of the product: the bandwidth of one device when its whole group sends."""
    fabric = load_fabric(name)
    again = read(write_fabric(fabric, "astrasim").text)
    assert again.devices == fabric.devices
    mine = [level for level in collapse(fabric).levels if level.kind == "nested"]
    theirs = {level.group_size: level for level in collapse(again).levels}
    for level in mine:
        if level.group_size in theirs:
            assert theirs[level.group_size].bandwidth_Bps == pytest.approx(level.bandwidth_Bps)


REFUSED = [
    ("mesh-8x8", "but is 'a mesh without wrap-around links'"),
    ("tpu-v4-4x4x8-twisted", "but is 'a twisted torus'"),
    ("dragonfly-1056", "but is 'a dragonfly'"),
    ("drawn-8", "but is 'a drawn graph'"),
    ("unequal-racks-88", "but is 'groups of unequal size'"),
    ("dgx1-v100-64", "but is 'nodes of a hybrid cube mesh'"),
]


@pytest.mark.parametrize(("name", "message"), REFUSED)
def test_what_is_no_product_is_refused(name, message):
    with pytest.raises(InputError, match=message):
        write_fabric(load_fabric(name), "astrasim")


GOOD = product(("Ring", 4, 80, 1000), ("Switch", 8, 40, 500))
BAD = [
    (
        GOOD.replace("Ring", "Mesh"),
        "line 1 must be a product of Ring, FullyConnected and Switch, bu",
    ),
    (
        GOOD.replace("[ 80", "[ nan"),
        "line 3 must have a finite number above 0 as bandwidth, but is",
    ),
    (
        GOOD.replace("[ 80", "[ -8"),
        "line 3 must have a finite number above 0 as bandwidth, but is '",
    ),
    (
        GOOD.replace("[ 80", "[ 1e-12"),
        "line 3 must have a rate of 1e-09 to 1e.18 GB/s as bandwidth",
    ),
    (GOOD.replace("[ 4,", "[ 4.5,"), "line 2 must have a whole number above 0 as npus_count"),
    (GOOD.replace("[ 4,", "[ 4, 4,"), "must have as many entries in npus_count as in topology"),
    (
        GOOD.replace("[ 4,", "[ 1000000,"),
        "must have a product of at most 1,048,576, but is 8000000",
    ),
    (
        GOOD.replace("[ 4,", "[ 9000,"),
        "must give at most 16,384 NPUs for this product, but is 72000",
    ),
    (GOOD.replace("latency", "delay"), "line 1 must have known keys, but is 'delay'"),
    (
        GOOD.partition("latency")[0],
        "must have a list of 1 to 16 entries as latency, but is 'missin",
    ),
    ("npus_count: 8\ntopology: [Ring]\n", "must have a list of 1 to 16 entries as npus_count"),
    (product(("Ring", 1, 80, 1000)), "npus_count must have two NPUs, but is 1"),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=[message for _, message in BAD])
def test_what_is_no_network_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        read(text)


def test_a_list_is_no_network():
    with pytest.raises(InputError, match=r"x must be a mapping, but is 'none'"):
        read_fabric(b"- npus_count:", "x", format="astrasim")


def test_a_full_mesh_of_too_many_links_is_refused_before_it_is_drawn():
    text = product(("FullyConnected", 16384, 50.0, 5.0))
    with pytest.raises(InputError, match=r"must give at most 200,000 links .* but is 134209536"):
        read(text)
    # 500 links of the ring, 2 x 500 x 499 / 2 of the mesh.
    with pytest.raises(InputError, match="links for this product, but is 250000"):
        read(product(("Ring", 2, 50.0, 5.0), ("FullyConnected", 500, 50.0, 5.0)))
