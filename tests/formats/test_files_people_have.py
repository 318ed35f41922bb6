"""Files of clusters that people have: what each says, read by hand, and what is wrong with it.

The files of `../shared/inputs`, the small ones in `tests/data/inputs`, and three others of each
kind; skipped where they are absent.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ibnet_sample import ibnetdiscover_text

from nest_core.documents import InputError
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric import Fabric, build_fabric
from nest_core.interop.formats import Assumed, read_fabric
from nest_core.network import collapse

TESTS = Path(__file__).parents[1]
FOLDERS = (TESTS / "data" / "inputs", TESTS.parents[1] / "shared" / "inputs")


def shared(name: str) -> str:
    path = next((folder / name for folder in FOLDERS if (folder / name).is_file()), None)
    if path is None:
        pytest.skip("the files of others are not beside the repository (../shared/inputs)")
    return path.read_text()


def read(text: str, name: str, **assumed: float) -> tuple[Fabric, str]:
    """The fabric of a file, and all that its reader says, in one text."""
    result = read_fabric(text.encode(), name, assumed=Assumed(**assumed))  # type: ignore[arg-type]
    return build_fabric(checked(FabricFile, result.document)), " ".join(result.notes)


def hosts(fabric: Fabric) -> list[str]:
    return list(dict.fromkeys(fabric.group_labels(0)))


class TestSubnetFiles:
    """Four hosts of eight NICs on two leaves under two spines, in three forms; 96 hosts of four."""

    def test_hosts_of_one_name_are_told_apart(self):
        """32 adapters "localhost mlx5_0" to 7 were one host of 32 NICs and 8 devices."""
        fabric, notes = read(shared("ib_localhost.txt"), "ib.txt")
        assert fabric.devices == 32
        assert hosts(fabric) == [f"localhost-{number}" for number in range(1, 5)]
        assert "4 hosts with the name of another (localhost)" in notes
        near = {link.a: link.b for link in fabric.links if "nic" in link.a and "leaf" in link.b}
        leaf = {host: {near[f"{host} nic{rail}"] for rail in range(8)} for host in hosts(fabric)}
        assert [leaf[host] for host in hosts(fabric)] == [{"leaf-0"}] * 2 + [{"leaf-1"}] * 2

    def test_storage_and_management_have_no_devices(self):
        """stor0 to stor2 and ufm-01 have a NIC each: they had eight GPUs each, 64 in all."""
        fabric, notes = read(shared("ib_storage.txt"), "ib.txt")
        assert fabric.devices == 32
        assert hosts(fabric) == ["node00", "node01", "node02", "node03"]
        assert "4 hosts left out" in notes
        assert "stor0, stor1, stor2, ufm-01" in notes

    def test_a_warning_of_a_library_before_the_first_line(self):
        fabric, notes = read(shared("ib_warn.txt"), "ib.txt")
        assert fabric.devices == 32
        assert "query_smp.c:197" in notes
        assert "may be missing here" in notes

    def test_ninety_six_hosts_of_four_nics(self):
        fabric, notes = read(shared("ib_768_a100.txt"), "ib.txt")
        assert fabric.devices == 768
        assert hosts(fabric) == [f"gpu{number:03d}" for number in range(96)]
        assert "left out" not in notes


SMALL = ibnetdiscover_text(4, spines=2, hosts_per_unit=2, rails=4, sharp=False)


class TestOtherSubnets:
    """Other files of the same kinds."""

    def test_hosts_of_one_name_on_rails(self):
        """Adapter k of each host hangs on leaf k: the order of their ports is that of hosts."""
        text = re.sub(r"a\d\d-p1-dgx-\d+-c01", "localhost", SMALL)
        fabric, _ = read(text, "ib.txt", devices_per_node=4)
        apart, _ = read(SMALL, "ib.txt", devices_per_node=4)
        assert fabric.devices == apart.devices == 16
        assert collapse(fabric).levels == collapse(apart).levels
        ends = [
            [
                sorted((link.a[-4:], link.b))
                for link in one.links
                if " nic" in link.a and "LEAF" in link.b
            ]
            for one in (fabric, apart)
        ]
        assert sorted(ends[0]) == sorted(ends[1])

    @pytest.mark.parametrize("name", ["dgx h100 {}", "GPU node {} rack", "gpu {}"])
    def test_names_of_several_words(self, name):
        """All hosts were called as the first of their words, and were one."""
        text = re.sub(r"a\d\d-p1-dgx-(\d+)-c01", lambda found: name.format(found[1]), SMALL)
        fabric, _ = read(text, "ib.txt", devices_per_node=4)
        assert hosts(fabric) == [name.format(f"00{number}") for number in range(1, 5)]

    @pytest.mark.parametrize("name", ["nas-1", "login01", "mgmt", "lustre-oss2", "head"])
    def test_a_server_with_as_many_nics(self, name):
        text = SMALL.replace("a01-p1-dgx-004-c01", name)
        fabric, notes = read(text, "ib.txt", devices_per_node=4)
        assert fabric.devices == 12
        assert f"1 host left out, by their names or few NICs no nodes of devices: {name}." in notes

    @pytest.mark.parametrize("name", ["storm1", "headnode-gpu", "master-chief", "osscar1"])
    def test_a_name_that_only_begins_as_one(self, name):
        fabric, _ = read(SMALL.replace("a01-p1-dgx-001-c01", name), "ib.txt", devices_per_node=4)
        assert fabric.devices == 16

    @pytest.mark.parametrize("down", ["3", "13", "123"])
    def test_nics_that_are_down(self, down):
        """The cables of a host's adapters are pulled, and the adapters are no longer found.

        With half of them gone, a host whose name is as the others' was taken for a file server.
        """
        gone = rf'(?m)^.*"a01-p1-dgx-002-c01 mlx5_[{down}]".*\n(?:\[1\]\(.*\n)?'
        fabric, notes = read(re.sub(gone, "", SMALL), "ib.txt", devices_per_node=4)
        assert fabric.devices == 16
        assert f"{len(down)} NIC{'s' if len(down) > 1 else ''} without a link" in notes
        assert all(f"a01-p1-dgx-002-c01 nic{rail}" in notes for rail in down)

    @pytest.mark.parametrize(
        ("down", "uses"),
        [("2", (0, 1, 1, 3)), ("0", (1, 1, 2, 3)), ("23", (0, 1, 1, 0)), ("012", (3, 3, 3, 3))],
    )
    def test_devices_stay_on_their_rails_beside_a_nic_that_is_down(self, down, uses):
        """All were spread anew over what was left; a device's NIC leads to the leaf of its rail."""
        gone = rf'(?m)^.*"a01-p1-dgx-002-c01 mlx5_[{down}]".*\n(?:\[1\]\(.*\n)?'
        fabric, notes = read(re.sub(gone, "", SMALL), "ib.txt", devices_per_node=4)
        near = {link.a: link.b for link in fabric.links if "gpu" in link.a and "nic" in link.b}
        for host, rails in (("001", (0, 1, 2, 3)), ("002", uses)):
            name = f"a01-p1-dgx-{host}-c01"
            used = [near[f"{name} gpu{place}"] for place in range(4)]
            assert used == [f"{name} nic{rail}" for rail in rails]
        assert "1 host with NICs that are down: devices of those share the NIC" in notes
        assert "spread" not in notes

    def test_of_two_hosts_the_smaller_lacks_a_nic(self):
        text = ibnetdiscover_text(2, spines=1, hosts_per_unit=2, rails=4, sharp=False)
        for host in ("001", "002"):
            gone = rf'(?m)^.*"a01-p1-dgx-{host}-c01 mlx5_2".*\n(?:\[1\]\(.*\n)?'
            _, notes = read(re.sub(gone, "", text), "ib.txt", devices_per_node=4)
            assert f"that other hosts have: a01-p1-dgx-{host}-c01 nic2." in notes

    def test_nics_and_cables_that_are_slow(self):
        slow = re.sub(r'(?m)^(.*"a01-p1-dgx-002-c01 mlx5_3".*) 4xNDR$', r"\1 1xNDR", SMALL)
        block = slow.index('"a01-p1-dgx-002-c01 mlx5_3"\n')
        end = slow.index("\n\n", block) if "\n\n" in slow[block:] else len(slow)
        slow = slow[:block] + slow[block:end].replace("4xNDR", "1xNDR") + slow[end:]
        _, notes = read(slow, "ib.txt", devices_per_node=4)
        assert "1 NIC slower than the usual 50 GB/s: a01-p1-dgx-002-c01 nic3 at 12.5 GB/s." in notes
        assert "cable" not in notes

    def test_one_slow_cable_among_equals_was_refused(self):
        """Of two cables to a spine one runs at half its width: the sum of both is left."""
        up = re.search(r'(?m)^\[(\d+)\]\t"(S-[0-9a-f]+)"\[(\d+)\].*IBSPINE.*4xNDR$', SMALL)
        assert up is not None
        leaf = re.findall(r'Switch\t\d+ "(S-[0-9a-f]+)"', SMALL[: up.start()])[-1]
        text = SMALL.replace(up[0], up[0].replace("4xNDR", "2xNDR"))
        for line in re.findall(rf'(?m)^\[{up[3]}\]\t"{leaf}"\[{up[1]}\].*$', text):
            text = text.replace(line, line.replace("4xNDR", "2xNDR"))
        fabric, notes = read(text, "ib.txt", devices_per_node=4)
        assert "1 cable slower than the usual 50 GB/s" in notes
        rates = {link.bandwidth_Bps * link.count for link in fabric.links if "SPINE" in link.b}
        assert rates == {100e9, 75e9}

    def test_a_warning_between_two_lines(self):
        line = "ibwarn: [4711] mad_rpc: _do_madrpc failed; dport (DR path slid 0; dlid 0; 0,1)\n"
        lines = SMALL.splitlines(keepends=True)
        _, notes = read("".join([*lines[:9], line, *lines[9:]]), "ib.txt", devices_per_node=4)
        assert "1 line that ibnetdiscover does not print skipped" in notes


class TestSlurmTopologies:
    """Topologies that Slurm 24.11 and 26.05 take, and what stands for nothing in them."""

    def test_padding_nodes_are_no_nodes(self):
        """30 nodes, and six that topograph adds to fill blocks of 18: 36 were read."""
        fabric, notes = read(shared("sl_fake.conf"), "topology.conf")
        assert fabric.devices == 240
        assert hosts(fabric) == [f"n{number}" for number in range(1, 31)]
        assert "6 padding nodes, as their names say, left out: fake[100-105]." in notes
        assert "fewer nodes than the base" not in notes

    def test_a_flat_default_beside_blocks(self):
        fabric, notes = read(shared("topo_flat_default.yaml"), "topology.yaml")
        assert fabric.devices == 36 * 8
        assert "Topology nvl72 of the file was read; left out: default (flat" in notes

    def test_a_block_without_nodes(self):
        fabric, notes = read(shared("topo_phantom.yaml"), "topology.yaml")
        assert fabric.devices == 18 * 8
        assert "1 block without nodes left out: g0_phantom1." in notes

    @pytest.mark.parametrize(
        ("sizes", "short"), [("", "b"), ("BlockSizes=4\n", "b"), ("BlockSizes=3\n", "")]
    )
    def test_a_short_block_is_read_as_it_stands(self, sizes, short):
        """Without sizes the base is that of the first block, as Slurm has it."""
        text = "BlockName=a Nodes=n[1-4]\nBlockName=b Nodes=n[5-7]\n" + sizes
        fabric, notes = read(text, "topology.conf", devices_per_node=1)
        assert fabric.devices == 7
        assert ("which Slurm 24.11 refuses and 26.05 takes: b." in notes) == bool(short)

    def test_a_block_of_padding_alone_has_no_nodes(self):
        text = "BlockName=a Nodes=n[1-2]\nBlockName=b Nodes=fake[1-2]\nBlockSizes=2\n"
        fabric, notes = read(text, "topology.conf", devices_per_node=1)
        assert fabric.devices == 2
        assert "1 block without nodes left out: b." in notes

    def test_a_leaf_under_two_parents(self):
        """Both spines list every leaf, as a Clos is: one logical parent is left."""
        text = "SwitchName=l1 Nodes=n[1-2]\nSwitchName=l2 Nodes=n[3-4]\n"
        text += "SwitchName=s1 Switches=l[1-2]\nSwitchName=s2 Switches=l[1-2]\n"
        fabric, notes = read(text, "topology.conf", devices_per_node=1)
        assert [tier.group_size for tier in fabric.tiers] == [2, 2]
        assert "2 switches or nodes below several switches read below the last: l1, l2." in notes

    def test_nodes_under_the_leaves_of_their_rails(self):
        """What slurmibtopology writes of rails: every node under every leaf of its unit."""
        text = "".join(
            f"SwitchName=u{unit}r{rail} Nodes=n[{4 * unit}-{4 * unit + 3}]\n"
            for unit in range(2)
            for rail in range(8)
        )
        text += "SwitchName=top Switches=u[0-1]r[0-7]\n"
        fabric, notes = read(text, "topology.conf", devices_per_node=1)
        assert [tier.group_size for tier in fabric.tiers] == [4, 2]
        assert "8 switches or nodes below several switches" in notes

    def test_the_first_of_two_defaults_counts(self):
        block = "  cluster_default: true\n  block: {{blocks: [{{block: b, nodes: 'n[1-{}]'}}]}}\n"
        text = "- topology: one\n" + block.format(2) + "- topology: two\n" + block.format(3)
        fabric, notes = read(text, "topology.yaml", devices_per_node=1)
        assert fabric.devices == 2
        assert "Topology one of the file was read; left out: two." in notes

    def test_all_nodes_are_not_named(self):
        with pytest.raises(InputError, match=r"must name its nodes here, where no slurm\.conf"):
            read("SwitchName=s Nodes=ALL\n", "topology.conf")

    @pytest.mark.parametrize(
        ("text", "devices", "levels"),
        [
            # 18 hosts and two that fill the second block up; a block for racks to come.
            (
                "- topology: tree\n  cluster_default: false\n  tree:\n    switches:\n"
                "      - {switch: s, nodes: 'r[1-2]t[01-18]'}\n"
                "- topology: nvl\n  cluster_default: true\n  block:\n    block_sizes: [18]\n"
                "    blocks:\n      - {block: r1, nodes: 'r1t[01-18]'}\n"
                "      - {block: r2, nodes: 'r2t[01-16],pad[1-2]'}\n"
                "      - {block: r3, nodes: ''}\n",
                34 * 4,
                ["node", "block", "cluster"],
            ),
            # Neither is the default: the first that says something.
            (
                "- topology: all\n  flat: true\n- topology: leaves\n  tree:\n    switches:\n"
                "      - {switch: top, children: 'l[0-2]'}\n"
                "      - {switch: l0, nodes: 'n[1-4]'}\n      - {switch: l1, nodes: 'n[5-8]'}\n"
                "      - {switch: l2, nodes: n9}\n",
                9 * 4,
                ["node", "leaf", "spine"],
            ),
            # One topology, not in a list, with two sizes.
            (
                "topology: b\nblock:\n  block_sizes: [2, 4]\n  blocks:\n"
                + "".join(
                    f"    - {{block: b{n}, nodes: 'n[{2 * n + 1}-{2 * n + 2}]'}}\n"
                    for n in range(6)
                ),
                12 * 4,
                ["node", "block", "2 blocks", "cluster"],
            ),
        ],
        ids=["padding", "no default", "sizes"],
    )
    def test_several_topologies(self, text, devices, levels):
        fabric, _ = read(text, "topology.yaml", devices_per_node=4)
        assert fabric.devices == devices
        assert [tier.name for tier in fabric.tiers] == levels


YED = """<?xml version="1.0" encoding="UTF-8" standalone="no"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:y="http://www.yworks.com/xml/graphml">
  <key attr.name="description" attr.type="string" for="node" id="d5"/>
  <key for="node" id="d6" yfiles.type="nodegraphics"/>
  <key for="edge" id="d10" yfiles.type="edgegraphics"/>
  <graph edgedefault="directed" id="G">{}</graph>
</graphml>
"""
NODE = (
    '<node id="n{0}"><data key="d5"/><data key="d6"><y:ShapeNode><y:Geometry height="30.0"/>'
    '<y:NodeLabel alignment="center" fontSize="12">{1}<y:LabelModel><y:SmartNodeLabelModel/>'
    '</y:LabelModel></y:NodeLabel><y:Shape type="rectangle"/></y:ShapeNode></data></node>\n'
)
EDGE = (
    '<edge id="e{0}" source="n{0}" target="n{1}"><data key="d10"><y:PolyLineEdge>'
    "<y:EdgeLabel>{2}<y:LabelModel/></y:EdgeLabel></y:PolyLineEdge></data></edge>\n"
)


class TestDrawings:
    """Drawings of yEd, whose ids are n0, n1, ... and whose words are labels."""

    def test_labels_are_names_and_rates(self):
        fabric, _ = read(shared("yed.graphml"), "yed.graphml")
        assert fabric.devices == 2
        ends = {(link.a, link.b, link.bandwidth_Bps) for link in fabric.links}
        names = {("leaf1", "spine1"), ("gpu1", "leaf1"), ("gpu2", "leaf1")}
        assert ends == {(a, b, 50e9) for a, b in names}

    def drawn(self, *labels: str, rate: str = "400G", nodes: str = NODE) -> str:
        """A star: all others hang on the first."""
        body = [nodes.format(place, label) for place, label in enumerate(labels)]
        body += [EDGE.format(place, 0, rate) for place in range(1, len(labels))]
        return YED.format("".join(body))

    def test_models_of_labels_hide_no_names(self):
        """yEd writes where a label stands inside of it, and its text was lost."""
        fabric, _ = read(self.drawn("leaf1", "gpu1", "gpu2"), "a.graphml")
        assert set(fabric.device_ids) == {"gpu1", "gpu2"}

    def test_labels_that_repeat_still_say_what_they_are(self):
        fabric, _ = read(self.drawn("leaf", "GPU", "GPU", "GPU"), "a.graphml")
        assert fabric.devices == 3
        assert list(fabric.device_ids) == ["GPU n1", "GPU n2", "GPU n3"]

    def test_several_links_in_one_label(self):
        fabric, _ = read(self.drawn("leaf", "gpu1", "gpu2", rate="2x200 Gb/s"), "a.graphml")
        assert {(link.count, link.bandwidth_Bps) for link in fabric.links} == {(2, 25e9)}

    @pytest.mark.parametrize(
        ("rate", "GBps"),
        [("0.8 Tb/s", 100), ("400GbE", 50), ("50 GB/s", 50), ("400G, 30 m", 50), ("1.6T", 200),
         ("200 Gb/s, DAC", 25), ("100Gbps", 12.5), ("25GBps", 25)],
    )  # fmt: skip
    def test_rates_as_people_write_them(self, rate, GBps):
        """Terabits were none, nor bytes, nor a rate with a cable's length behind it."""
        fabric, notes = read(self.drawn("leaf", "gpu1", "gpu2", rate=rate), "a.graphml")
        assert [link.bandwidth_Bps for link in fabric.links] == [pytest.approx(GBps * 1e9)] * 2
        assert "rate" not in notes

    def test_labels_that_are_no_rates_are_quoted(self):
        """They were said to state none. What is counted behind a comma would be lost."""
        text = self.drawn("leaf", "gpu1", "gpu2", "gpu3", "gpu4", rate="NDR")
        for place, label in ((2, "HDR200"), (3, "400G, 2 cables"), (4, "400G")):
            text = text.replace(EDGE.format(place, 0, "NDR"), EDGE.format(place, 0, label))
        _, notes = read(text, "a.graphml")
        unread = "'NDR', 'HDR200', '400G, 2 cables'"
        assert f"3 labels of links not read as a rate: {unread}." in notes
        stated = EDGE.replace("</edge>", '<data key="w">25</data></edge>').format(1, 0, "uplink")
        head = '<key id="w" for="edge" attr.name="gbps"/><graph'
        text = self.drawn("leaf", "gpu1").replace(EDGE.format(1, 0, "400G"), stated)
        _, notes = read(text.replace("<graph ", head + " ", 1), "a.graphml")
        assert "rate" not in notes

    def test_groups_of_nodes_are_groups(self):
        rack = (
            '<node id="n9" yfiles.foldertype="group"><data key="d6"><y:ProxyAutoBoundsNode>'
            "<y:Realizers active=\"0\"><y:GroupNode><y:NodeLabel>rack A</y:NodeLabel></y:GroupNode>"
            '</y:Realizers></y:ProxyAutoBoundsNode></data><graph edgedefault="directed" id="n9:">'
            + NODE.format(1, "gpu1") + NODE.format(2, "gpu2") + "</graph></node>"
        )  # fmt: skip
        text = YED.format(
            NODE.format(0, "leaf") + rack + EDGE.format(1, 0, "") + EDGE.format(2, 0, "")
        )
        fabric, _ = read(text, "a.graphml")
        groups = {element.id: element.group for element in fabric.elements}
        assert groups == {"leaf": "", "gpu1": "rack A", "gpu2": "rack A"}
