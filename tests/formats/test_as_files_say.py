"""A fabric that was read is what its files say: rates, names of hosts, roles of switches."""

from __future__ import annotations

import re

import pytest

from nest_core.documents import toml_document
from nest_core.documents.presets import preset_names
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric import build_fabric
from nest_core.fabric.drawing import drawing_of
from nest_core.hardware import load_accelerator
from nest_core.interop.formats import Assumed, read_fabric, write_fabric
from nest_core.network import collapse
from nest_core.report.picture import picture
from nest_core.report.picture.marks import Words
from nest_core.scenario import Scenario
from nest_core.scenario.values import scenario_document

SLURM = b"BlockName=b1 Nodes=n[1-14],aux[100-103]\nBlockName=b2 Nodes=n[15-32]\nBlockSizes=18\n"
HOSTS = [*(f"n{at}" for at in range(1, 15)), *(f"aux{at}" for at in range(100, 104))]
HOSTS += [f"n{at}" for at in range(15, 33)]


def subnet(leaf: str, spine: str, storage: bool = False) -> bytes:
    """Four hosts of two NICs on two leaves below a spine; optionally a host on the spine."""
    blocks: dict[str, list[str]] = {}

    def link(a: str, b: str, words: tuple[str, str]) -> None:
        ports = len(blocks.setdefault(a, [])) + 1, len(blocks.setdefault(b, [])) + 1
        for here, there, port, other, text in (
            (a, b, *ports, words[1]),
            (b, a, *ports[::-1], words[0]),
        ):
            blocks[here].append(f'[{port}]\t"{there}"[{other}]\t\t# "{text}" lid 1 4xHDR')

    guids = [f"S-{at:016x}" for at in (1, 2, 3)]
    names = [f"{leaf}0", f"{leaf}1", f"{spine}0"]
    words = {
        guid: f"MF0;{name}:MQM8700/U1" if leaf else ""
        for guid, name in zip(guids, names, strict=True)
    }
    *lows, up = guids
    for host in range(5 if storage else 4):
        low = up if host == 4 else lows[host // 2]
        for rail in range(2):
            card = f"H-{16 * (host + 1) + rail:016x}"
            words[card] = f"box{host} mlx5_{rail}"
            link(card, low, (words[card], words[low]))
    for low in lows:
        link(low, up, (words[low], words[up]))
    heads = {
        guid: f'{"Ca" if guid[0] == "H" else "Switch"}\t40 "{guid}"\t\t# "{words[guid]}"'
        for guid in blocks
    }
    return "\n\n".join("\n".join([heads[guid], *lines]) for guid, lines in blocks.items()).encode()


def planned(document, accelerator, **more):
    job, _ = scenario_document("llama3-70b-1024-h100")
    return Scenario(job, {"fabric": document, "accelerator": accelerator, **more})


def inside(scenario):
    return collapse(scenario.values.fabric).levels[0].bandwidth_Bps / 1e9


@pytest.mark.parametrize("text", [(SLURM, "topology.conf"), (subnet("leaf", "spine"), "net.txt")])
@pytest.mark.parametrize("name", ["a100-80gb", "h100-80gb", "b200-180gb", "mi300x-192gb"])
def test_rates_inside_nodes_follow_the_accelerator(text, name):
    """An A100 was chosen for a subnet that was read, and 450 GB/s stayed inside its nodes."""
    document = read_fabric(*text).document
    scenario = planned(document, name)
    rate = load_accelerator(name).scale_up_Bps / 1e9
    assert inside(scenario) == pytest.approx(rate)
    assert f"{rate:g} GB/s" in scenario.values.fabric.assumed[0]
    # Also once it was built and taken along, and chosen anew for another.
    assert inside(planned(scenario.values.fabric.document(), "gb200-186gb")) == pytest.approx(900.0)


@pytest.mark.parametrize("text", [(SLURM, "topology.conf"), (subnet("leaf", "spine"), "net.txt")])
def test_a_rate_that_is_stated_stays(text):
    document = read_fabric(*text, assumed=Assumed(intra_bandwidth_GBps=450.0)).document
    scenario = planned(document, "a100-80gb")
    assert inside(scenario) == pytest.approx(450.0)
    assert scenario.values.fabric.assumed == ()


def test_a_person_s_own_rate_goes_before():
    document = read_fabric(SLURM, "topology.conf").document
    assert inside(planned(document, "a100-80gb", **{"fabric.level.0.bandwidth_GBps": 77.0})) == 77.0
    assert inside(planned(document, "a100-80gb", **{"accelerator.scale_up_GBps": 99.0})) == 99.0


def test_links_that_leave_nodes_keep_their_rate():
    """NICs of 4x HDR carry 25 GB/s each, whatever is chosen."""
    document = read_fabric(subnet("leaf", "spine"), "net.txt").document
    for link in planned(document, "a100-80gb").values.fabric.links:
        is_inside = {link.a, link.b} & {f"box{host}" for host in range(4)}
        assert link.bandwidth_Bps == (300e9 if is_inside else 25e9)


@pytest.mark.parametrize("name", preset_names("accelerators"))
def test_every_accelerator_has_the_rate_of_its_links(name):
    assert load_accelerator(name).scale_up_Bps > 0


@pytest.mark.parametrize(
    ("leaf", "spine", "expected"),
    [
        ("leaf", "spine", ["node", "leaf", "spine"]),
        ("A09-IBLEAF-", "IBSPINE-", ["node", "IBLEAF", "IBSPINE"]),
        ("", "", ["node", "leaf", "spine"]),
    ],
)
@pytest.mark.parametrize("storage", [False, True])
def test_levels_are_called_as_the_switches_or_by_their_role(leaf, spine, expected, storage):
    """One storage host on a spine, and all leaves were "level 1"."""
    fabric = build_fabric(
        checked(FabricFile, read_fabric(subnet(leaf, spine, storage), "net.txt").document)
    )
    assert [level.name for level in collapse(fabric).levels] == expected


def test_hosts_and_blocks_have_their_names_everywhere():
    document = read_fabric(SLURM, "topology.conf").document
    fabric = build_fabric(checked(FabricFile, document))
    again = build_fabric(checked(FabricFile, fabric.document()))
    assert again == fabric
    assert list(dict.fromkeys(again.group_labels(0))) == HOSTS
    drawing = drawing_of(fabric, collapse(fabric).nesting)
    groups = {entry["group"] for entry in drawing["element"] if entry["role"] == "device"}
    assert groups == {f"{'b2' if at >= 18 else 'b1'}/{name}" for at, name in enumerate(HOSTS)}
    texts = {mark.text for mark in picture(fabric).marks if isinstance(mark, Words)}
    assert {"b1", "b2"} <= texts
    slurm = write_fabric(fabric, "slurm-tree").text
    assert "Nodes=n[1-14],aux[100-103]" in slurm
    assert "Names" not in " ".join(write_fabric(fabric, "slurm-tree").lost)
    assert read_fabric(toml_document(document).encode(), "f.toml").document == document


def test_names_have_to_be_as_many_as_groups():
    document = read_fabric(SLURM, "topology.conf").document
    document["level"][1]["names"] = ["b1"]
    with pytest.raises(ValueError, match=r"level\[1\].names must name every group, 2 of them"):
        build_fabric(checked(FabricFile, document))


def test_a_block_without_nodes_is_left_out_and_said():
    read = read_fabric(b"BlockName=a Nodes=t[1-4]\nBlockName=phantom\n", "topology.conf")
    assert read.document["level"][1]["names"] == ["a"]
    assert "1 block without nodes left out: phantom." in read.notes


def test_a_flat_default_leaves_the_topology_that_says_something():
    text = b"""- topology: default
  cluster_default: true
  flat: true
- topology: nvl
  block:
    block_sizes: [2]
    blocks:
      - block: b1
        nodes: t[1-2]
"""
    read = read_fabric(text, "topology.yaml")
    assert read.document["level"][1]["names"] == ["b1"]
    assert any("nvl of the file was read; left out: default (flat" in note for note in read.notes)


def test_labels_of_a_drawing_program_are_names_and_rates():
    """What yEd writes: ids n0 to n2, names and rates beside them only."""
    node = '<node id="n{0}"><data key="d6"><y:NodeLabel>{1}</y:NodeLabel></data></node>'
    label = '<data key="d10"><y:EdgeLabel>{1}</y:EdgeLabel></data>'
    edge = '<edge source="n{0}" target="n0">' + label + "</edge>"
    text = (
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"'
        ' xmlns:y="http://www.yworks.com/xml/graphml"><key for="node" id="d6"/>'
        '<key for="edge" id="d10"/><graph edgedefault="undirected">'
        + "".join(node.format(at, name) for at, name in enumerate(("leaf1", "gpu1", "gpu2")))
        + edge.format(1, "400G")
        + edge.format(2, "100 Gb/s")
        + "</graph></graphml>"
    )
    document = read_fabric(text.encode(), "drawn.graphml").document
    assert [entry["id"] for entry in document["element"]] == ["leaf1", "gpu1", "gpu2"]
    assert [link["bandwidth_GBps"] for link in document["link"]] == [50.0, 12.5]
    assert not re.search(r"\bn\d\b", str(document))


@pytest.mark.parametrize("text", [(SLURM, "topology.conf"), (subnet("leaf", "spine"), "net.txt")])
@pytest.mark.parametrize("is_stated", [False, True])
def test_the_picture_says_which_rate_is_assumed(text, is_stated):
    assumed = Assumed(intra_bandwidth_GBps=300.0 if is_stated else None)
    document = read_fabric(*text, assumed=assumed).document
    drawn = picture(planned(document, "a100-80gb").values.fabric, width=900)
    inside = [words for label in drawn.labels for words in label.words if "300\u00a0GB/s" in words]
    assert len(inside) == 1
    assert inside[0].endswith(", assumed") == (not is_stated)
