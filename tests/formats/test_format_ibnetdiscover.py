"""ibnetdiscover: hosts, rails, rates and parallel links as the subnet has them."""

from __future__ import annotations

import re

import pytest
from ibnet_sample import ibnetdiscover_text

from nest_core.bill.bill import bill
from nest_core.bill.prices import load_prices
from nest_core.documents.errors import InputError
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric import GraphFabric
from nest_core.fabric.files import build_fabric
from nest_core.interop.formats import Assumed, read_fabric
from nest_core.network import collapse
from nest_core.network.bisection import bisection_Bps


def read(text: str, **assumed: float) -> tuple[GraphFabric, tuple[str, ...]]:
    found = read_fabric(text.encode(), "ib.out", assumed=Assumed(**assumed))  # type: ignore[arg-type]
    assert found.format == "ibnetdiscover"
    fabric = build_fabric(checked(FabricFile, found.document))
    assert isinstance(fabric, GraphFabric)
    return fabric, found.notes


def test_six_hundred_nodes_become_hosts_leaves_and_spines():
    """64 hosts of 8 HCAs, 16 leaves and 16 spines, and a SHARP node per switch: 576 blocks."""
    text = ibnetdiscover_text(64, spines=16)
    assert len(re.findall(r"^(?:Switch|Ca)\t", text, re.M)) == 64 * 8 + 32 + 32
    fabric, notes = read(text)
    roles = [element.role for element in fabric.elements]
    assert fabric.devices == 512
    assert roles.count("nic") == 512
    assert roles.count("switch") == 64 + 16 + 16
    assert "32 SHARP aggregation nodes skipped." in notes
    leaf = {link.a: link for link in fabric.links if "IBLEAF" in link.b}
    assert leaf["a01-p1-dgx-001-c01 nic3"].b == "A01-P1-IBLEAF-01-04"
    up = [link for link in fabric.links if "IBSPINE" in link.a + link.b]
    assert len(up) == 16 * 16
    assert {(link.count, link.bandwidth_Bps, link.latency_s) for link in up} == {(2, 50e9, 0.6e-6)}
    radix = {element.radix for element in fabric.elements if element.id.startswith("A01-P1-IBLEAF")}
    assert radix == {64}


def test_devices_follow_the_names_of_their_hosts():
    """Subnets are printed as they are discovered; ranks are given from node to node."""
    blocks = re.split(
        r"\n(?=vendid)", ibnetdiscover_text(12, hosts_per_unit=4, spines=2, sharp=False)
    )
    backwards = "\n".join([blocks[0], *reversed(blocks[1:])])
    backwards = re.sub(r"-c01", "", re.sub(r"a\d\d-p1-dgx-0*(\d+)", r"dgx\1", backwards))
    fabric, _ = read(backwards, devices_per_node=2)
    expected = [f"dgx{host + 1} gpu{place}" for host in range(12) for place in range(2)]
    assert list(fabric.device_ids) == expected


def test_a_subnet_of_hosts_is_a_rail_optimised_fabric():
    fabric, _ = read(ibnetdiscover_text(8, hosts_per_unit=4, spines=2))
    graph = fabric.explicit()
    for number, name in enumerate(fabric.device_ids):
        nic = next(other for other in graph[number] if graph.nodes[other]["role"] == "nic")
        leaves = [other for other in graph[nic] if "IBLEAF" in str(other)]
        assert len(leaves) == 1
        assert leaves[0].endswith(f"{int(name[-1]) + 1:02d}"), "device k is on the leaf of rail k"
    levels = [level.group_size for level in collapse(fabric).levels if level.kind == "nested"]
    assert levels[:2] == [8, 32]


@pytest.mark.parametrize(
    ("speed", "gbps"),
    [("4xQDR", 32), ("4xFDR10", 40), ("4xFDR", 54.5454), ("4xEDR", 100), ("4xHDR", 200),
     ("2xHDR", 100), ("4xNDR", 400), ("4xXDR", 800), ("1xSDR", 2)],
)  # fmt: skip
def test_rates_are_what_lanes_carry_after_their_code(speed, gbps):
    fabric, _ = read(ibnetdiscover_text(2, spines=1, hosts_per_unit=4, speed=speed))
    rates = {link.bandwidth_Bps for link in fabric.links if "IBLEAF" in link.a + link.b}
    assert list(rates) == [pytest.approx(gbps * 1e9 / 8, rel=1e-5)]


@pytest.mark.parametrize(
    ("rails", "devices", "served"),
    [(8, 8, [(k,) for k in range(8)]), (4, 8, [(0,), (0,), (1,), (1,), (2,), (2,), (3,), (3,)]),
     (4, 2, [(0, 1), (2, 3)]), (1, 4, [(0,)] * 4), (3, 2, [(0, 1), (2,)])],
)  # fmt: skip
def test_devices_are_spread_over_the_rails_of_their_host(rails, devices, served):
    text = ibnetdiscover_text(2, rails=rails, spines=1, hosts_per_unit=4, adapter="HCA-{rail}")
    fabric, notes = read(text, devices_per_node=devices)
    graph = fabric.explicit()
    for number in range(devices):
        nics = sorted(int(str(other)[-1]) for other in graph[number] if "nic" in str(other))
        assert tuple(nics) == served[number]
    assert any("spread" in note for note in notes) == (rails != devices)


def test_the_real_lines_of_the_format_are_read():
    """Switch and adapter lines as infiniband-diags and topograph's sample print them."""
    text = (
        "vendid=0x2c9\nswitchguid=0x2c5eab0300b87b40(2c5eab0300b87b40)\n"
        'Switch\t65 "S-2c5eab0300b87b40"\t\t# "MF0;A09-P1-IBLEAF-04-04:MQM9701/U1" enhanced port 0'
        " lid 73 lmc 0\n"
        '[1]\t"H-e09d7303007a4bd8"[1](e09d7303007a4bd8) \t\t# "a08-p1-dgx-04-c01 mlx5_5" lid 647'
        " 4xNDR\n"
        '[2]\t"H-0008f10403961354"[1](8f10403961355) \t\t# "MT23108 InfiniHost Mellanox" lid 4'
        " 4xSDR\n\n"
        'Ca\t1 "H-e09d7303007a4bd8"\t\t# "a08-p1-dgx-04-c01 mlx5_5"\n'
        '[1](e09d7303007a4bd8) \t"S-2c5eab0300b87b40"[1]\t\t# lid 647 lmc 0'
        ' "MF0;A09-P1-IBLEAF-04-04:MQM9701/U1" lid 73 4xNDR\n\n'
        'Ca\t2 "H-0008f10403961354"\t\t# "MT23108 InfiniHost Mellanox"\n'
        '[1](8f10403961355) \t"S-2c5eab0300b87b40"[2]\t\t# lid 4 lmc 1 "x" lid 6 4xSDR\n'
    )
    fabric, notes = read(text, devices_per_node=1)
    assert fabric.device_ids == ("a08-p1-dgx-04-c01 gpu0", "MT23108 gpu0")
    assert "a08-p1-dgx-04-c01 nic5" in [element.id for element in fabric.elements]
    assert not any("one end" in note for note in notes)


SMALL = ibnetdiscover_text(2, spines=1, hosts_per_unit=4, rails=2)
LINK = re.compile(r"^\[1\].*$", re.M)


def without_adapters(text: str) -> str:
    return text[: text.index("caguid")]


BAD = [
    (without_adapters(SMALL), "must lead to a node that the file describes, but is 'H-"),
    (SMALL.replace("4xNDR", "4x"), "must state a link's ports and its width and speed"),
    (SMALL.replace("4xNDR", "0xNDR"), "must have a width above 0"),
    (SMALL + SMALL, "must describe a node once"),
    (LINK.sub(lambda m: "\n" + m[0], SMALL, count=1), "must have links below the node"),
    ("# Topology file: generated on x\nhello\n", "line 2 must be a line of ibnetdiscover"),
    (SMALL.replace("Ca\t1", "Rt\t1"), "must describe a host with links"),
    (SMALL[: len(SMALL) // 2], "(must lead to|must state|must be a line)"),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=[message for _, message in BAD])
def test_what_is_no_output_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        read(text)


def test_hosts_without_links_and_one_sided_links_are_told():
    """A host whose cable is pulled is left out; a link that only one block states is kept."""
    lonely = 'Ca\t1 "H-00000000deadbeef"\t\t# "storage-1 mlx5_0"\n'
    _, notes = read(SMALL + "\n" + lonely)
    assert "1 host without links left out: storage-1." in notes
    block = SMALL.rindex("[1](")
    _, notes = read(SMALL[:block])
    assert "1 link stated by one end only: kept." in notes


def test_too_many_devices_are_refused_before_they_are_drawn():
    with pytest.raises(
        InputError, match="must have at most 16,384 devices, but is '2 hosts of 9000"
    ):
        read(SMALL, devices_per_node=9000)


@pytest.mark.check
def test_a_large_subnet_is_read_whole():
    text = ibnetdiscover_text(600, spines=32, parallel=1)
    assert len(text) < 5_000_000
    fabric, _ = read(text)
    assert fabric.devices == 4800


def test_grouped_and_full_output_is_read():
    """``-g`` adds headings and external ports, ``-f`` figures; two adapters may share a cable."""
    grouped = SMALL.replace("vendid", "Non-Chassis Nodes\n\nvendid", 1)
    grouped = grouped.replace("\n\n", "\n\nChassis 1 (guid 0x2c9)\nHostname: a\n# Spine Nodes\n", 1)
    grouped = grouped.replace("[1]\t", "[1][ext 7]\t").replace(" 4xNDR", " 4xNDR s=4 w=2 v=3 e=8")
    assert read(grouped) == read(SMALL)
    pair = "".join(
        f'Ca\t1 "H-000000000000000{a}"\t\t# "h{a} mlx5_0"\n'
        f'[1](1{a}) \t"H-000000000000000{b}"[1] (1{b}) \t\t# lid {a} lmc 0 "h{b} mlx5_0" lid {b}'
        " 4xNDR\n\n"
        for a, b in ((1, 2), (2, 1))
    )
    fabric, _ = read(pair, devices_per_node=1)
    assert fabric.devices == 2


def test_adapters_that_do_not_name_their_host_are_hosts_of_their_own():
    text = re.sub(r"a01-p1-dgx-00\d-c01 mlx5_\d", "MT4129 ConnectX7   Mellanox Technologies", SMALL)
    fabric, notes = read(text, devices_per_node=1)
    assert fabric.devices == 4
    assert any(note.startswith("4 adapters without a host's name") for note in notes)


def test_hosts_of_one_name_are_told():
    text = SMALL.replace("a01-p1-dgx-002", "a01-p1-dgx-001")
    fabric, notes = read(text, devices_per_node=1)
    assert fabric.device_ids == ("a01-p1-dgx-001-c01-1 gpu0", "a01-p1-dgx-001-c01-2 gpu0")
    assert any(note.startswith("2 hosts with the name of another") for note in notes)


def carded(text: str) -> str:
    """Adapters 0 and 1, 2 and 3, ... of a host are the two ports of one card."""
    head, *blocks = re.split(r"(?=^vendid=)", text, flags=re.M)
    for place, block in enumerate(blocks):
        if re.search(r" mlx5_\d*[13579]\"$", block, re.M) and "\nCa\t" in block:
            first = re.search(r"^sysimgguid=.*$", blocks[place - 1], re.M)[0]  # type: ignore[index]
            blocks[place] = re.sub(r"^sysimgguid=.*$", first, block, flags=re.M)
    return head + "".join(blocks)


def nics(fabric: GraphFabric) -> dict[str, float]:
    """Of every NIC, what a device puts through it, GB/s."""
    names = [element.id for element in fabric.elements if element.role == "nic"]
    inside = [link for link in fabric.links if "gpu" in link.a]
    rates = {link.b: link.bandwidth_Bps * 1e-9 for link in inside}
    return {name: rates[name] for name in names}


@pytest.mark.parametrize("devices", [2, 4, 8])
def test_the_ports_of_one_card_are_one_nic(devices):
    """Half as many cards in the bill, each twice as fast; links, switches and cables as before."""
    text = ibnetdiscover_text(8, rails=4, hosts_per_unit=4, spines=2)
    apart, _ = read(text, devices_per_node=devices)
    fabric, notes = read(carded(text), devices_per_node=devices)
    assert nics(fabric) == {f"a0{h // 4 + 1}-p1-dgx-00{h + 1}-c01 nic{r}": 100.0
                            for h in range(8) for r in (0, 2)}  # fmt: skip
    assert any(note.startswith("16 adapters on the card of another") for note in notes)
    graph = fabric.explicit()
    leaves = {str(end)[-2:] for end in graph["a01-p1-dgx-001-c01 nic2"] if "LEAF" in str(end)}
    assert leaves == {"03", "04"}
    before, after = (bill(one, load_prices()) for one in (apart, fabric))
    assert (before.nics, after.nics) == (32, 16)
    assert (before.cables, before.switches) == (after.cables, after.switches)
    crossing = [bisection_Bps(one, collapse(one)) for one in (apart, fabric)]
    assert crossing[0] == pytest.approx(crossing[1])


def test_cards_of_their_own_stay_apart():
    """Without system images, with none of their own (0x0), and on a card of several hosts."""
    fabric, notes = read(SMALL, devices_per_node=2)
    assert len(nics(fabric)) == 4
    assert set(nics(fabric).values()) == {50.0}
    assert not any("card of another" in note for note in notes)
    for image in ("", "sysimgguid=0x0\n"):
        text = re.sub(r"^sysimgguid=.*\n", image, SMALL, flags=re.M)
        assert read(text, devices_per_node=2) == (fabric, notes)
    shared = re.sub(r"^sysimgguid=.*$", "sysimgguid=0xb8cef6", SMALL, flags=re.M)
    fabric, _ = read(shared, devices_per_node=2)
    assert nics(fabric) == {f"a01-p1-dgx-00{host}-c01 nic0": 100.0 for host in (1, 2)}


def test_an_adapter_of_two_ports_has_the_rate_of_both():
    text = "".join(
        f'vendid=0x2c9\nSwitch\t2 "S-000000000000000{leaf}"\t\t# "leaf{leaf}"\n'
        + "".join(
            f'[{host}]\t"H-00000000000000a{host}"[{leaf}] \t\t# "h{host} mlx5_0" lid 1 4xHDR\n'
            for host in (1, 2)
        )
        + "\n"
        for leaf in (1, 2)
    )
    for host in (1, 2):
        text += f'Ca\t2 "H-00000000000000a{host}"\t\t# "h{host} mlx5_0"\n' + "".join(
            f'[{leaf}] \t"S-000000000000000{leaf}"[{host}]\t\t# lid 1 lmc 0 "leaf" lid 1 4xHDR\n'
            for leaf in (1, 2)
        )
        text += "\n"
    fabric, _ = read(text, devices_per_node=1)
    assert nics(fabric) == {"h1 nic0": 50.0, "h2 nic0": 50.0}
    assert bisection_Bps(fabric, collapse(fabric)) == pytest.approx(50e9)


def test_a_card_without_a_hosts_name_is_one_host():
    text = re.sub(r"a01-p1-dgx-00\d-c01 mlx5_\d", "MT4129 Mellanox Technologies", carded(SMALL))
    fabric, _ = read(text, devices_per_node=1)
    assert fabric.devices == 2
    assert set(nics(fabric).values()) == {100.0}
