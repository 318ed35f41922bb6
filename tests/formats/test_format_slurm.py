"""Slurm's topology.conf and topology.yaml: trees, blocks, rings and tori of hosts."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nest_core.documents.errors import InputError
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric import Fabric, Hierarchical, Tier
from nest_core.fabric.files import build_fabric
from nest_core.fabric.graph import as_graph
from nest_core.interop.formats import Assumed, read_fabric, write_fabric
from nest_core.interop.formats.slurm import compressed, expanded
from nest_core.interop.formats.values import Source
from nest_core.scenario import load_fabric


def read(text: str, name: str = "topology.conf", **assumed: float) -> Fabric:
    found = read_fabric(text.encode(), name, assumed=Assumed(**assumed))  # type: ignore[arg-type]
    return build_fabric(checked(FabricFile, found.document))


def nested(fabric: Fabric) -> list[list[int]]:
    """Per level of a hierarchy, groups of devices."""
    assert isinstance(fabric, Hierarchical)
    return [fabric.group_of(level).tolist() for level in range(len(fabric.tiers))]


TREE = """
# from the manual
SwitchName=s0 Nodes=dev[0-5] LinkSpeed=900
switchname=s1 NODES=dev[6-11]  # case does not matter
SwitchName=s2 \\
  Nodes=dev[12-17]
SwitchName=s3 Switches=s[0-2]
"""
BLOCKS = """
BlockName=block1 Nodes=node[1-32]
BlockName=block2 Nodes=node[33-64]
BlockSizes=30,120
"""


def test_the_manuals_tree_is_three_leaves_of_six():
    fabric = read(TREE)
    assert fabric.devices == 18 * 8
    assert [tier.name for tier in fabric.tiers] == ["node", "leaf", "spine"]
    assert [tier.group_size for tier in fabric.tiers] == [8, 6, 3]
    assert [tier.latency_s for tier in fabric.tiers] == pytest.approx([0.5e-6, 1.2e-6, 2.4e-6])
    told = read_fabric(TREE.encode(), "t.conf").notes
    assert (
        "Slurm states no rates, latencies or numbers of links: no oversubscription assumed." in told
    )
    assert any("LinkSpeed left out" in note for note in told)


def test_the_manuals_blocks_are_two_of_32():
    fabric = read(BLOCKS, devices_per_node=4)
    assert [(tier.name, tier.group_size) for tier in fabric.tiers] == [
        ("node", 4),
        ("block", 32),
        ("cluster", 2),
    ]


def test_block_sizes_gather_blocks():
    text = "".join(f"BlockName=b{n} Nodes=n{n}[1-4]\n" for n in range(6)) + "BlockSizes=4,8,16\n"
    fabric = read(text, devices_per_node=1)
    assert [tier.name for tier in fabric.tiers] == ["block", "2 blocks", "4 blocks", "cluster"]
    assert [tier.group_size for tier in fabric.tiers][:2] == [4, 2]
    assert fabric.tiers[2].group_sizes == (2, 1)


def test_leaves_at_unequal_depth_keep_their_grouping():
    text = "SwitchName=top Switches=mid,low\nSwitchName=mid Switches=a,b\n"
    text += "SwitchName=a Nodes=x[1-2]\nSwitchName=b Nodes=x3\nSwitchName=low Nodes=x[4-5]\n"
    fabric = read(text, devices_per_node=1)
    assert nested(fabric) == [[0, 0, 1, 2, 2], [0, 0, 0, 1, 1], [0] * 5]
    assert any("unequal depth" in note for note in read_fabric(text.encode(), "t.conf").notes)


@st.composite
def trees(draw):
    """Hierarchies of unequal groups, at least two children wherever groups are joined."""
    row = [draw(st.integers(2, 4))]
    sizes = [row]
    for _ in range(draw(st.integers(0, 2))):
        row = draw(st.lists(st.integers(2, 3), min_size=sum(row), max_size=sum(row)))
        sizes.append(row)
    per_node = draw(st.integers(1, 3))
    tiers = [Tier("node", per_node, 450e9, 0.5e-6)] if per_node > 1 else []
    for height, each in enumerate(reversed(sizes), start=1):
        tiers.append(Tier(f"t{height}", 0, 50e9, 2 * height * 0.6e-6, group_sizes=tuple(each)))
    return Hierarchical("h", tuple(tiers)), per_node


@settings(max_examples=60, deadline=None)
@given(trees(), st.booleans())
def test_trees_keep_their_grouping(tree, drawn):
    """Also when all that is known is the link graph, which says what a host is by its switch."""
    fabric, per_node = tree
    written = as_graph(fabric) if drawn and per_node > 1 else _with_nodes(fabric, per_node)
    exported = write_fabric(written, "slurm-tree")
    assert nested(read(exported.text, devices_per_node=per_node)) == nested(fabric)
    assert exported.lost


def _with_nodes(fabric: Hierarchical, per_node: int) -> Hierarchical:
    """The innermost level is taken for nodes; nodes of one device need a level too."""
    if per_node > 1:
        return fabric
    return Hierarchical("h", (Tier("node", 1, 450e9, 0.0), *fabric.tiers))


@settings(max_examples=60, deadline=None)
@given(trees())
def test_blocks_keep_the_innermost_grouping(tree):
    fabric, per_node = tree
    fabric = _with_nodes(fabric, per_node)
    again = read(write_fabric(fabric, "slurm-block").text, devices_per_node=per_node)
    levels = nested(again)
    first = 0 if per_node == 1 else 1
    assert levels[first] == nested(fabric)[1]
    assert set(levels[-1]) == {0}


@pytest.mark.parametrize(
    "name",
    ["h100-spine-leaf-64", "fat-tree-k16", "dgx-superpod-a100", "leaf-spine-3tier-4096-2to1"],
)
def test_a_clos_is_one_logical_parent_per_level(name):
    """Also when all that is known is its link graph."""
    fabric = load_fabric(name)
    text = write_fabric(fabric, "slurm-tree").text
    assert write_fabric(as_graph(fabric), "slurm-tree").text == text
    again = read(text, devices_per_node=fabric.devices_per_node)
    assert again.devices == fabric.devices
    level = 0 if fabric.devices_per_node == 1 else 1
    leaves = fabric.node_of() // fabric.sizing.nodes_per_unit
    assert np.array_equal(again.group_of(level), leaves)


def expand(text: str, most: int = 1000) -> list[str]:
    return expanded(Source("", "x", Assumed()), 1, text, most)


LISTS = [
    ("a", ["a"]),
    ("a,b2", ["a", "b2"]),
    ("n[1-3,7]", ["n1", "n2", "n3", "n7"]),
    ("n[08-11]", ["n08", "n09", "n10", "n11"]),
    ("n[8-11]", ["n8", "n9", "n10", "n11"]),
    ("n[098-101]", ["n098", "n099", "n100", "n101"]),
    ("r[1-2]n[0-1]-x,z", ["r1n0-x", "r1n1-x", "r2n0-x", "r2n1-x", "z"]),
]


@pytest.mark.parametrize(("text", "names"), LISTS, ids=[text for text, _ in LISTS])
def test_host_lists_are_expanded(text, names):
    assert expand(text) == names


@given(
    st.lists(st.from_regex(r"[a-c]{1,2}(0?[0-9]{1,3})?", fullmatch=True), min_size=1, unique=True)
)
def test_compressed_lists_expand_to_the_same_names(names):
    assert expand(compressed(names)) == names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n[1-", "must have a host list such as"),
        ("n[1-3]]", "must have a host list such as"),
        ("a,,b", "must have a host list such as"),
        ("", "must have a host list such as"),
        ("n[a-b]", "must have numbers and ranges in brackets"),
        ("n[]", "must have numbers and ranges in brackets"),
        ("n[5-1]", "must have ranges that ascend"),
        ("n1,n[1-2]", "must list every name once"),
        ("n[1-999999999]", "must list at most 1,000 names"),
        ("n[1-999][1-999][1-999]", "must list at most 1,000 names"),
        ("n[" + ",".join(["1-900"] * 99) + "]", "must list at most 1,000 names"),
    ],
)
def test_what_is_no_host_list_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        expand(text)


RING = "- topology: r\n  ring:\n    rings:\n      - ring: r0\n        nodes: node[01-08]\n"
MANY = """---
- topology: topo1
  tree:
    switches:
      - {switch: s1, nodes: "node[01-02]"}
- topology: topo2
  cluster_default: true
  block:
    block_sizes: [2, 4]
    blocks:
      - block: b1
        nodes: node[01-02]
      - block: b2
        nodes: node[03-04]
"""


def test_yaml_trees_are_those_of_the_conf_file():
    text = """---
- topology: topo1
  cluster_default: true
  tree:
    switches:
      - switch: s3
        children: s[0-2]
      - {switch: s0, nodes: "dev[0-5]"}
      - {switch: s1, nodes: "dev[6-11]"}
      - {switch: s2, nodes: "dev[12-17]"}
"""
    conf, yaml = read(TREE), read(text, "topology.yaml")
    assert (yaml.tiers, yaml.devices) == (conf.tiers, conf.devices)


def test_the_default_topology_of_several_is_read():
    found = read_fabric(MANY.encode(), "topology.yaml")
    assert found.format == "slurm-yaml"
    assert [level["name"] for level in found.document["level"]] == ["node", "block", "cluster"]
    assert "Topology topo2 of the file was read; left out: topo1." in found.notes


BAD = [
    ("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\n", "must join all switches under one, but is"),
    ("SwitchName=a Switches=b\nSwitchName=b Switches=a\n", "must have a switch without a parent"),
    (
        "SwitchName=r Nodes=n1\nSwitchName=a Switches=b\nSwitchName=b Switches=a\n",
        "line 2 must hang on the root, but is 'a, on a cycle'",
    ),
    ("SwitchName=a Switches=a\n", "must have a switch without a parent, but is 'a cycle'"),
    ("SwitchName=a Switches=b\n", "line 1 must list switches that exist below a, but is 'b'"),
    ("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n", "line 2 must define a switch once"),
    ("SwitchName=a\n", "line 1 must give a switch either switches or nodes, but is 'a with neithe"),
    ("SwitchName=a Nodes=n1 Switches=b\n", "either switches or nodes, but is 'a with both'"),
    ("SwitchName=a Nodes=n1 Colour=red\n", "line 1 must consist of keys of topology.conf and thei"),
    ("SwitchName=a Nodes=n1 Nodes=n2\n", "line 1 must state a key once, but is 'nodes'"),
    ("SwitchName=a Nodes=n1\nNodes=n2\n", "line 2 must start with switchname="),
    ("SwitchName=a Nodes=n1\nBlockName=b Nodes=n2\n", "must define either switches or blocks"),
    ("SwitchName=a Nodes=n[1-3\n", r"line 1 must have a host list such as node\[01-32\],login"),
    ("SwitchName=a Nodes=n[1-999999999]\n", "line 1 must list at most 1,048,576 names"),
    ("SwitchName=a Nodes=n[1-200000]\n", "must have at most 1,048,576 devices, but is '200,000 no"),
    ("SwitchName=a Nodes=n1 \\\n", "line 1 must end after its last line"),
    ("RingName=r Nodes=n[1-4]\n", "must define switches or blocks, but is 'rings'"),
    ("BlockName=a Nodes=n1\nBlockName=a Nodes=n2\n", "line 2 must define a block once, but is 'a'"),
    ("BlockName=a\n", "must define a block with nodes, but is 'a'"),
    ("BlockName=a Nodes=n1\nBlockName=b Nodes=n1\n", "line 2 must put node n1 into one block"),
    ("BlockSizes=4\n", "must define a block with nodes, but is 'none'"),
    ("BlockName=a Nodes=n1\nBlockSizes=4,12\n", "line 2 must have block sizes that are the first"),
    ("BlockName=a Nodes=n1\nBlockSizes=8,4\n", "line 2 must have block sizes that are the first"),
    ("BlockName=a Nodes=n1\nBlockSizes=4,4\n", "line 2 must have block sizes that ascend"),
    ("BlockName=a Nodes=n1\nBlockSizes=0\n", "line 2 must have a whole number above 0 as BlockSiz"),
    (
        "".join(f"SwitchName=s{n} Switches=s{n + 1}\n" for n in range(20))
        + "SwitchName=s20 Nodes=n",
        "line 1 must have at most 15 switches above each other, but is 21",
    ),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=[message for _, message in BAD])
def test_what_is_no_topology_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        read(text)


TOP = "- topology: t\n"
BAD_YAML = [
    (TOP + "  flat: true\n", "line 1 must be read as tree or block, but is 'flat'"),
    (TOP + "  flat: true\n  ring: 1\n", "must have exactly one plugin, such as tree or bl"),
    ("- tree: 1\n  topology: t\n", "line 1 must start with topology:, but is 'tree'"),
    (RING, "line 1 must be read as tree or block, but is 'ring'"),
    (MANY.replace("block: b2", "block: b1"), "must define a block once, but is 'b1'"),
    (MANY.replace("[2, 4]", "[2, 6]"), "must have block sizes that are the first one times powers"),
    (MANY.replace("nodes: node[03-04]", "node: x"), "must have known keys beside block, but is 'n"),
    (TOP + "  tree: {switches: []}\n", "must list switches in tree, but is 'none'"),
    (TOP + "  tree:\n    switches:\n      - switch: a\n        nodes: n[1-\n", "line 5 must have"),
    (TOP + "  tree: &a {}\n", "line 2 must have no anchors and aliases, but is 'a'"),
    (TOP + "  tree: *a\n", "line 2 must have no anchors and aliases, but is 'a'"),
    (TOP + "  tree: !!python/object:os.system {}\n", "line 2 must have no tags"),
    (TOP + "  tree: 1\n  tree: 2\n", "line 3 must state every key once, but is 'tree'"),
    (TOP + "  tree: [1\n", "must be valid YAML"),
    (TOP + "  tree: " + "[" * 40 + "\n", "line 2 must nest at most 32 lists and mappings"),
    (TOP + "---\n" + TOP, "line 2 must hold one YAML document"),
    (TOP + "  ? [a]\n  : b\n", "must have text as keys"),
]


@pytest.mark.parametrize(("text", "message"), BAD_YAML, ids=[message for _, message in BAD_YAML])
def test_what_is_no_yaml_topology_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        read(text, "topology.yaml")


LAUGHS = "topology: &a0 [x]\n" + "".join(
    f"k{n}: &a{n} [{f'*a{n - 1},' * 9}]\n" for n in range(1, 9)
)
BOMBS = {
    "laughs": LAUGHS,
    "deep flow": "topology: " + "[" * 4_900_000,
    "deep blocks": "topology:\n" + "".join(" " * n + "-\n" for n in range(1, 2000)),
    "many values": "topology: [" + "a," * 2_400_000 + "]",
    "node lists": "- topology: t\n  block:\n    blocks:\n"
    + "".join(f"      - {{block: b{n}, nodes: 'n{n}[1-1000000]'}}\n" for n in range(90_000)),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("bomb", BOMBS)
def test_yaml_bombs_are_refused(bomb):
    assert len(BOMBS[bomb]) <= 5_000_000
    with pytest.raises(InputError):
        read(BOMBS[bomb], "t.yaml")


def test_tori_have_no_tree():
    for format in ("slurm-tree", "slurm-block"):
        with pytest.raises(InputError, match="fabric must have switches to be written as"):
            write_fabric(load_fabric("torus-16x16"), format)


@pytest.mark.parametrize(
    "text",
    [
        "SwitchName = a  Nodes = n[1-2]\nSwitchName=b Nodes=n3\nSwitchName=c Switches= a,b\n",
        'SwitchName="a" Nodes="n1, n2"\nSwitchName="b" Nodes="n3"\nSwitchName=c Switches="a b"\n',
    ],
    ids=["blanks", "quotes"],
)
def test_blanks_and_quotes_are_those_of_slurms_parser(text):
    assert nested(read(text, devices_per_node=1)) == [[0, 0, 1], [0, 0, 0]]


@pytest.mark.parametrize("line", ['SwitchName="a Nodes=n1', 'SwitchName="a"b Nodes=n1', "=a", '""'])
def test_broken_quotes_are_refused(line):
    with pytest.raises(InputError, match="must consist of keys of"):
        read_fabric((line + "\n").encode(), "topology.conf", format="slurm-tree")


def test_blocks_below_the_base_size_are_told():
    text = "BlockName=a Nodes=n[1-4]\nBlockName=b Nodes=n[5-7]\nBlockSizes=4\n"
    told = read_fabric(text.encode(), "topology.conf").notes
    assert any("1 block with fewer nodes than the base block size of 4" in note for note in told)


def test_assumptions_name_what_is_used():
    text = b"SwitchName=a Nodes=n[1-4]\n"
    alone = read_fabric(text, "t.conf", assumed=Assumed(devices_per_node=1)).notes
    assert not any("450 GB/s" in note for note in alone)
    several = read_fabric(text, "t.conf").notes
    assert any(re.search(r"8 devices per node at .*450 GB/s.* 0.5 us", note) for note in several)


def test_yaml_keys_stand_in_any_order_and_quotes():
    text = "- topology: t\n  tree:\n    switches:\n      - {switch: s1, nodes: 'n[1-2]'}\n"
    turned = text.replace("{switch: s1, nodes: 'n[1-2]'}", "{nodes: 'n[1-2]', \"switch\": s1}")
    assert turned != text
    assert read(turned.replace("- topology:", '- "topology":'), "t.yaml") == read(text, "t.yaml")


def test_yaml_speeds_are_told_to_be_left_out():
    text = TOP + "  tree:\n    switches:\n      - {switch: a, nodes: n1, link_speed: 100}\n"
    told = read_fabric(text.encode(), "topology.yaml").notes
    assert any("LinkSpeed left out" in note for note in told)


def test_the_hosts_of_a_drawing_are_all_that_nics_do_not_join():
    """Two devices on one NIC of four that one switch joins are half of a host, not a host."""
    text = write_fabric(load_fabric("drawn-8"), "slurm-tree").text
    assert text == "SwitchName=leaf0 Nodes=node[0000-0001]\n"


def test_what_yaml_calls_null_is_no_node():
    text = TOP + "  tree:\n    switches:\n      - {switch: a, children: null, nodes: 'n[1-2]'}\n"
    assert read(text, "topology.yaml", devices_per_node=1).devices == 2
    for nothing in ("null", "~", ""):
        with pytest.raises(InputError, match="must give a switch either switches or nodes"):
            read(
                TOP + f"  tree:\n    switches:\n      - switch: a\n        nodes: {nothing}\n",
                "t.yaml",
            )
    quoted = TOP + "  tree:\n    switches:\n      - {switch: a, nodes: 'null'}\n"
    assert read(quoted, "topology.yaml", devices_per_node=1).devices == 1


@pytest.mark.parametrize("name", ["h100-nvl-pairs-16", "l40s-pcie-16"])
def test_servers_of_cards_are_hosts(name):
    """NICs hang on the PCIe switches there: pairs of cards, or single ones, counted as hosts."""
    assert write_fabric(load_fabric(name), "slurm-tree").text == (
        "SwitchName=leaf0 Nodes=node[0000-0001]\n"
    )


def test_islands_are_no_hosts():
    """Nodes of four bridged pairs were written as four nodes each, numbered and not named."""
    text = "SwitchName=leaf0 Nodes=n[1-2]\nSwitchName=leaf1 Nodes=n[3-4]\n"
    text += "SwitchName=spine0 Switches=leaf[0-1]\n"
    fabric = read(text, devices_per_node=8, devices_per_island=2)
    assert write_fabric(fabric, "slurm-tree").text == text


def test_the_last_of_several_parents_counts():
    """Slurm notes the switch that listed a child last: c hangs on s2, and d stays on s1."""
    text = "".join(f"SwitchName={leaf} Nodes={leaf}[1-2]\n" for leaf in "abcd")
    text += "SwitchName=s1 Switches=a,c,d\nSwitchName=s2 Switches=b,c\n"
    text += "SwitchName=top Switches=s1,s2\n"
    fabric = read(text, devices_per_node=1)
    assert isinstance(fabric, Hierarchical)
    assert list(dict.fromkeys(fabric.group_labels(0))) == ["a", "d", "b", "c"]
    assert nested(fabric)[1] == [0] * 4 + [1] * 4
