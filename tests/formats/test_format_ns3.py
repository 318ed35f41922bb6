"""Text topologies of ns-3, and SimAI's: every pair of nodes that is linked, and at what rate."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import pytest

from nest_core.documents.errors import InputError
from nest_core.documents.presets import preset_names
from nest_core.fabric import Element, GraphFabric, Link, Torus
from nest_core.interop.formats.ns3 import write_ns3, write_simai
from nest_core.scenario import load_fabric


def parsed(text: str) -> tuple[list[str], list[int], list[list[str]]]:
    head, switches, *links = text.splitlines()
    return head.split(), [int(word) for word in switches.split()], [line.split() for line in links]


def test_simai_counts_its_switches_and_links():
    """64 GPUs, 8 NVSwitches, then leaves and spines; NICs are parts of links."""
    head, switches, links = parsed(write_simai(load_fabric("h100-spine-leaf-64")).text)
    nodes, per_server, inner, outer, count, kind = head
    assert (int(nodes), int(per_server), int(inner), kind) == (64 + 8 + 3, 8, 8, "H100")
    assert switches == list(range(64, int(nodes)))
    assert (int(outer), int(count)) == (3, len(links))
    inside = [link for link in links if 64 <= int(link[1]) < 72]
    assert {tuple(link[2:]) for link in inside} == {("3600Gbps", "0.00025ms", "0")}
    assert [int(link[0]) // 8 + 64 for link in inside] == [int(link[1]) for link in inside]
    up = [link for link in links if int(link[0]) < 64 and int(link[1]) >= 72]
    assert {(link[2], link[3]) for link in up} == {("400Gbps", "0.0006ms")}
    assert len(up) == 64


@pytest.mark.parametrize("name", preset_names("fabrics"))
@pytest.mark.sampled(5)
def test_ns3_has_every_link_and_reaches_every_device(name):
    fabric = load_fabric(name)
    if fabric.devices > 2048 or isinstance(fabric, Torus):
        pytest.skip("large, or refused")
    head, switches, links = parsed(write_ns3(fabric).text)
    assert [int(word) for word in head] == [
        fabric.devices + len(switches),
        len(switches),
        len(links),
    ]
    graph = nx.Graph([(int(a), int(b)) for a, b, *_ in links])
    assert sorted(graph) == list(range(fabric.devices + len(switches)))
    assert nx.is_connected(graph)
    assert graph.number_of_edges() == len(links)  # ns-3 keeps one link of a pair
    # All that a fabric's switches and NICs offer its devices is there.
    rate = Counter()
    for a, _b, each, *_ in links:
        rate[int(a)] += float(each.removesuffix("Gbps"))
    plain = fabric.explicit()
    if all(plain.nodes[other]["role"] != "nic" or plain.degree(other) == 2 for other in plain):
        for device in range(min(fabric.devices, 32)):
            ends = plain.edges(device, data=True)
            if any(plain.nodes[b]["role"] == "device" for _, b, _ in ends):
                continue
            whole = sum(data["bandwidth_Bps"] * data["count"] for *_, data in ends) * 8e-9
            assert rate[device] == pytest.approx(whole)


def test_shared_nics_become_switches():
    exported = write_ns3(load_fabric("drawn-8"))
    assert any(
        "that several devices or links share: now switches." in text for text in exported.lost
    )


def test_a_nic_passes_on_what_its_narrower_side_carries():
    """PCIe of 64 GB/s before two ports of 25 GB/s: 50 GB/s, over both."""
    elements = [Element(f"gpu{n}", "device") for n in range(2)]
    elements += [Element("nic", "nic"), Element("leaf", "switch")]
    links = [Link("gpu0", "nic", 64e9, 1, 0.25e-6), Link("leaf", "nic", 25e9, 2, 0.5e-6),
             Link("gpu1", "leaf", 50e9)]  # fmt: skip
    text = write_ns3(GraphFabric("f", tuple(elements), tuple(links))).text
    assert text.splitlines()[2:] == ["0 2 400Gbps 0.00075ms 0", "1 2 400Gbps 0ms 0"]


def test_parallel_links_are_one_as_fast_as_all():
    """Two NICs of a device at one leaf, and three cables to the spine; ns-3 keeps one of a pair."""
    elements = [Element(f"gpu{n}", "device") for n in range(2)]
    elements += [Element(f"nic{n}", "nic") for n in range(2)]
    elements += [Element("leaf", "switch"), Element("spine", "switch")]
    links = [Link("gpu0", "nic0", 50e9), Link("nic0", "leaf", 50e9),
             Link("gpu0", "nic1", 25e9), Link("nic1", "leaf", 50e9),
             Link("leaf", "spine", 50e9, 3), Link("spine", "gpu1", 1e-3)]  # fmt: skip
    exported = write_ns3(GraphFabric("f", tuple(elements), tuple(links)))
    assert exported.text.splitlines() == [
        "4 2 3",
        "2 3",
        "0 2 600Gbps 0ms 0",
        "1 3 0.000000000008Gbps 0ms 0",
        "2 3 1200Gbps 0ms 0",
    ]
    assert any(text.startswith("Parallel links: ") for text in exported.lost)


def test_simai_wants_equal_servers():
    elements = [Element(f"gpu{n}", "device") for n in range(3)]
    elements += [Element(f"node{n}", "switch") for n in range(2)] + [Element("leaf", "switch")]
    links = [
        Link("gpu0", "node0", 4e9),
        Link("gpu1", "node0", 4e9),
        Link("gpu2", "node1", 4e9),
        Link("node0", "leaf", 1e9),
        Link("node1", "leaf", 1e9),
    ]
    fabric = GraphFabric("f", tuple(elements), tuple(links))
    with pytest.raises(InputError, match="fabric must have servers of equal size for SimAI"):
        write_simai(fabric)
    assert write_ns3(fabric).text.startswith("6 3 5\n")


@pytest.mark.parametrize("write", [write_simai, write_ns3])
def test_hosts_of_ns3_forward_nothing(write):
    with pytest.raises(InputError, match="must have switches to be written as"):
        write(load_fabric("torus-16x16"))
    assert any(
        "Forwarding by devices" in text for text in write(load_fabric("mi300x-mesh-64")).lost
    )
