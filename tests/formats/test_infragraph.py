"""InfraGraph: descriptions of the package's own blueprints, of ours, and what is written."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from nest_core.documents import InputError
from nest_core.documents.presets import preset_names
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric import Element, Fabric, GraphFabric, Link, as_graph, build_fabric
from nest_core.interop.formats import Assumed, read_fabric, write_fabric
from nest_core.network import collapse
from nest_core.scenario import load_fabric

DATA = Path(__file__).parents[1] / "data" / "infragraph"


def read(text: str, **assumed: float) -> tuple[GraphFabric, str]:
    result = read_fabric(text.encode(), "x.yaml", assumed=Assumed(**assumed))  # type: ignore[arg-type]
    assert result.format == "infragraph"
    fabric = build_fabric(checked(FabricFile, result.document))
    assert isinstance(fabric, GraphFabric)
    return fabric, " ".join(result.notes)


def contents(fabric: Fabric) -> tuple[Counter[str], Counter[tuple[str, float, float]]]:
    """Elements by role; links by the roles of their ends, GB/s and microseconds."""
    graph = as_graph(fabric)
    roles = {element.id: element.role for element in graph.elements}
    links: Counter[tuple[str, float, float]] = Counter()
    for link in graph.links:
        ends = "-".join(sorted((roles[link.a], roles[link.b])))
        rate, latency = link.bandwidth_Bps / 1e9, round(link.latency_s * 1e6, 6)
        links[ends, round(rate, 3), latency] += link.count
    return Counter(roles.values()), links


class TestBlueprints:
    """Counted with networkx over the graphs that infragraph 3.1.0 makes of them."""

    def test_a_clos_of_four_servers(self):
        """Two xpu and NICs a server; 8 leaf links of 100 Gb/s and 12 spine links of 400."""
        fabric, notes = read((DATA / "closfabric.yaml").read_text())
        elements, links = contents(fabric)
        assert elements == {"device": 8, "nic": 8, "switch": 4 + 4 + 3}
        assert links == {
            ("device-switch", 450.0, 0.25): 8,
            ("device-nic", 12.5, 0.0): 8,
            ("nic-switch", 12.5, 0.6): 8,
            ("switch-switch", 50.0, 0.6): 12,
        }
        assert "8 accelerators whose links state no rate: 450 GB/s over all of them" in notes
        assert {e.radix for e in fabric.elements if e.id.startswith("leafsw")} == {16}

    def test_nics_and_transceivers_are_devices_of_their_own(self):
        """Six NVSwitches; a NIC is reached over the PCIe switch that it shares with two xpu."""
        fabric, _ = read((DATA / "dgx_a100_cx5.yaml").read_text())
        elements, links = contents(fabric)
        assert elements == {"device": 8, "nic": 8, "switch": 6}
        assert links["device-switch", 75.0, 0.25] == 48
        near = {(k.a, k.b) for k in fabric.links if "cx5" in k.b}
        at = "dgx_a100.0.{}.{}".format
        assert near == {(at("xpu", n), at("cx5_100gbe", n)) for n in range(8)}

    def test_components_that_no_device_has(self):
        """The blueprint's NVLinks end at nvlsw, its switches are called nvsw: PCIe is left."""
        fabric, notes = read((DATA / "dgx2.yaml").read_text())
        assert contents(fabric)[0] == {"device": 16, "nic": 8, "switch": 1}
        assert "1 component that its device lacks left out of edges: nvlsw." in notes


SWITCH = """
- name: sw
  components: [{name: asic, choice: switch, count: 1}, {name: p, choice: port, count: 4}]
  links: [{name: ic}]
  edges: [{ep1: {component: asic}, ep2: {component: p}, link: ic, scheme: many2many}]
"""
CARDS = (
    """
name: cards
devices:
- name: box
  components:
  - {name: cpu, choice: cpu, count: 2}
  - {name: gpu, choice: xpu, count: 4}
  - {name: hca, choice: nic, count: 2}
  links:
  - {name: pcie, physical: {bandwidth: {gigabytes_per_second: 32}}}
  edges:
  - {ep1: {component: "cpu[0]"}, ep2: {component: "gpu[:2]"}, link: pcie, scheme: many2many}
  - {ep1: {component: "cpu[1]"}, ep2: {component: "gpu[2:]"}, link: pcie, scheme: many2many}
  - {ep1: {component: cpu}, ep2: {component: hca}, link: pcie, scheme: one2one}
  - {ep1: {component: "cpu[0]"}, ep2: {component: "cpu[-1]"}, link: pcie, scheme: one2one}
"""
    + SWITCH
    + """
links: [{name: eth, physical: {bandwidth: {gigabits_per_second: 200}, latency: {ns: 700}}}]
instances: [{name: n, device: box, count: 2}, {name: leaf, device: sw, count: 1}]
edges:
- ep1: {instance: n, component: hca}
  ep2: {instance: leaf, component: p}
  link: eth
  scheme: one2one
"""
)
RACK = """
name: rack
devices:
- name: tray
  components: [{name: gpu, choice: xpu, count: 2}]
- name: spine
  components: [{name: die, choice: switch, count: 1}]
- name: rack
  components:
  - {name: tray, choice: device, count: 3}
  - {name: spine, choice: device, count: 1}
  links: [{name: nvl, physical: {bandwidth: {gigabytes_per_second: 900}, latency: {us: 0.2}}}]
  edges:
  - ep1: {device: tray, component: gpu}
    ep2: {device: spine, component: die}
    link: nvl
    scheme: many2many
instances: [{name: r, device: rack, count: 1}]
"""
RING = """
name: chips
devices: [{name: chip, components: [{name: xpu, choice: xpu, count: 1}]}]
links: [{name: ici, physical: {bandwidth: {gigabits_per_second: 800}, latency: {us: 1}}}]
instances: [{name: c, device: chip, count: 4}]
edges:
- ep1: {instance: "c[0:3]", component: xpu}
  ep2: {instance: "c[1:4]", component: xpu}
  link: ici
  scheme: one2one
- ep1: {instance: "c[3]", component: xpu}
  ep2: {instance: "c[0]", component: xpu}
  link: ici
  scheme: one2one
"""


class TestDescriptions:
    """Written by hand, with the answer by hand."""

    def test_cards_share_the_nic_of_their_processor(self):
        """No link joins the four cards of a box but PCIe, of 32 GB/s to a NIC of 25."""
        fabric, notes = read(CARDS, link_bandwidth_GBps=40.0)
        assert contents(fabric) == (
            {"device": 8, "nic": 4, "switch": 3},
            {
                ("device-nic", 32.0, 0.0): 8,
                ("device-switch", 40.0, 0.6): 8,
                ("nic-switch", 25.0, 0.7): 4,
            },
        )
        near = {(k.a, k.b) for k in fabric.links if k.a.startswith("n.0.gpu") and "hca" in k.b}
        assert near == {(f"n.0.gpu.{n}", f"n.0.hca.{n // 2}") for n in range(4)}
        assert "8 links without a rate: 40 GB/s assumed." in notes

    def test_the_slowest_link_of_a_path_counts(self):
        """From card to processor 32 GB/s, from there to the NIC 16."""
        slot = "{name: slot, physical: {bandwidth: {gigabits_per_second: 128}}}"
        text = CARDS.replace("  edges:\n", f"  - {slot}\n  edges:\n", 1)
        text = text.replace("component: hca}, link: pcie", "component: hca}, link: slot")
        assert contents(read(text)[0])[1]["device-nic", 16.0, 0.0] == 8

    def test_trays_of_a_rack_on_its_switch(self):
        fabric, _ = read(RACK)
        assert contents(fabric) == (
            {"device": 6, "switch": 1},
            {("device-switch", 900.0, 0.2): 6},
        )
        groups = Counter(element.group for element in fabric.elements)
        assert groups == {"r.0.tray.0": 2, "r.0.tray.1": 2, "r.0.tray.2": 2, "": 1}

    def test_chips_in_a_ring_are_priced_as_one(self):
        fabric, notes = read(RING)
        assert contents(fabric) == ({"device": 4}, {("device-device", 100.0, 1.0): 4})
        assert collapse(fabric).torus is not None
        assert notes == ""

    def test_servers_without_accelerators_are_left_out(self):
        store = "- name: store\n  components: [{name: eth, choice: nic, count: 1}]\n"
        more = (
            '- {ep1: {instance: nas, component: eth}, ep2: {instance: leaf, component: "p[0]"},'
            " link: eth, scheme: one2one}\n"
        )
        text = CARDS.replace("\n- name: sw", f"\n{store}- name: sw")
        text = text.replace(
            "count: 1}]\nedges", "count: 1}, {name: nas, device: store, count: 1}]\nedges"
        )
        fabric, notes = read(text + more)
        assert contents(fabric)[0] == {"device": 8, "nic": 4, "switch": 3}
        assert "1 server without accelerators left out: nas.0." in notes


def test_slices_are_those_of_python():
    """Every second card hangs on a processor; bounds may count from the end."""
    text = CARDS.replace('"gpu[:2]"', '"gpu[-4::2]"').replace('"gpu[2:]"', '"gpu[1:4:2]"')
    near = {k.a: k.b for k in read(text)[0].links if k.a.startswith("n.0.gpu") and "hca" in k.b}
    assert near == {f"n.0.gpu.{n}": f"n.0.hca.{n % 2}" for n in range(4)}


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "name", [n for n in preset_names("fabrics") if load_fabric(n).devices <= 1056]
)
def test_presets_come_back_as_they_are(name):
    """Every element and link, at its rate and latency."""
    fabric = load_fabric(name)
    again, notes = read(write_fabric(fabric, "infragraph").text)
    assert contents(again) == contents(fabric)
    assert notes == ""


def test_hosts_that_are_alike_are_one_device():
    """64 H100: eight hosts of one kind; switches differ by their ports alone."""
    document = json.loads(write_fabric(load_fabric("h100-spine-leaf-64"), "infragraph").text)
    host, *switches = document["devices"]
    counts = {entry["name"]: entry["count"] for entry in host["components"]}
    assert counts == {"xpu": 8, "nic": 8, "switch": 1}
    assert document["instances"][0] == {"name": host["name"], "device": host["name"], "count": 8}
    assert all(device["components"][1]["name"] == "port" for device in switches)


def test_ports_are_taken_once():
    """Edges between the same two ends would be a single one: each cable has ports of its own."""
    document = json.loads(write_fabric(load_fabric("dgx-superpod-h100"), "infragraph").text)
    taken = Counter(
        (end["instance"], port)
        for edge in document["edges"]
        for end in (edge["ep1"], edge["ep2"])
        if end["component"].startswith("port")
        for port in range(*map(int, end["component"][5:-1].split(":")))
    )
    assert set(taken.values()) == {1}


def test_parallel_links_of_a_device_are_one_of_their_sum():
    """Equal edges are a single one, and devices have no ports to tell them apart by."""
    fabric = GraphFabric(
        "f",
        (Element("a", "device"), Element("b", "device")),
        (Link("a", "b", 25e9, 2, 1e-6),),
    )
    exported = write_fabric(fabric, "infragraph")
    assert contents(read(exported.text)[0])[1] == {("device-device", 50.0, 1.0): 1}
    assert any("parallel" in sentence for sentence in exported.lost)
    assert "parallel" not in "".join(write_fabric(load_fabric("drawn-8"), "infragraph").lost)


def cards(*ports: int) -> GraphFabric:
    """A device with a card of so many ports for each, on a leaf of 64."""
    elements = [Element("leaf", "switch", 64)]
    links = []
    for place, count in enumerate(ports):
        elements += [Element(f"d{place}", "device"), Element(f"n{place}", "nic")]
        links += [Link(f"d{place}", f"n{place}", 50e9, 1, 0.0)]
        links += [Link(f"n{place}", "leaf", 25e9, count, 1e-6)]
    return GraphFabric("f", tuple(elements), tuple(links))


def test_ports_of_cards_and_of_switches():
    """A card of two ports has two links; 60 ports of the leaf are free."""
    fabric = cards(2, 2)
    again, _ = read(write_fabric(fabric, "infragraph").text)
    assert contents(again) == contents(fabric)
    assert {element.radix for element in again.elements if element.role == "switch"} == {64}


def test_hosts_that_are_alike_stand_together():
    """Hosts of one, two and two devices; swapped, the last device is in the first host."""
    elements = [Element("leaf", "switch"), *(Element(f"d{n}", "device") for n in range(5))]
    elements += [Element(f"s{n}", "switch") for n in range(3)]
    elements += [Element(f"n{n}", "nic") for n in range(5)]
    host = (0, 1, 1, 2, 2)
    links = [Link(f"d{n}", f"s{host[n]}", 1e11, 1, 0.0) for n in range(5)]
    links += [Link(f"d{n}", f"n{n}", 5e10, 1, 0.0) for n in range(5)]
    links += [Link(f"n{n}", "leaf", 5e10, 1, 0.0) for n in range(5)]
    for swap in (False, True):
        numbers = {"d0": "d4", "d4": "d0"} if swap else {}
        mixed = [replace(e, id=numbers.get(e.id, e.id)) for e in elements]
        graph = GraphFabric("f", tuple(mixed), tuple(links))
        exported = write_fabric(graph, "infragraph")
        assert contents(read(exported.text)[0]) == contents(graph)
        assert any("order of devices" in text for text in exported.lost) == swap


REFUSED = [
    ("a: 1\n", "must be InfraGraph's, a file with instances and devices"),
    (CARDS.replace("count: 4", "count: 0"), "must have a whole number above 0 as count"),
    (CARDS.replace("eth\n  scheme: one2one", "eth\n  scheme: ring"), "as scheme, but is 'ring'"),
    (CARDS.replace('"gpu[2:]"', '"gpu[4]"'), "must have ends as xpu"),
    (
        CARDS.replace("device: box", "device: bix"),
        "must be of a device that is defined, but is 'bix'",
    ),
    (
        CARDS.replace("count: 2}, {name: leaf", "count: 900000}, {name: leaf"),
        "must have at most 500,000",
    ),
    (RACK.replace("name: tray, choice", "name: rack, choice"), "8 devices deep"),
    (CARDS.replace("choice: xpu", "choice: cpu"), "must have a device, but is"),
    ("devices: [1]\ninstances: [1]\n", "must be InfraGraph's, devices with name"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_is_no_infrastructure_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        read_fabric(text.encode(), "x.yaml", format="infragraph")


@pytest.mark.parametrize(("name", "is_said"), [("drawn-8", False), ("mi300x-mesh-64", True)])
def test_switches_that_are_drawn_as_one_are_said(name, is_said):
    """A plane of switches that a fabric uses as one is one element, with the ports of all."""
    lost = write_fabric(load_fabric(name), "infragraph").lost
    assert any("drawn as one" in sentence for sentence in lost) == is_said
