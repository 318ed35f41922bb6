"""GraphML and edge lists: what is written is read back, what is wrong is named."""

from __future__ import annotations

import networkx as nx
import pytest
from fabric_strategies import graph_fabrics
from hypothesis import given, settings

from nest_core.documents.errors import InputError
from nest_core.documents.files import MAX_FILE_BYTES
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric import Element, Fabric, GraphFabric, Link
from nest_core.fabric.files import build_fabric
from nest_core.interop.formats import Assumed, read_fabric, write_fabric
from nest_core.network import collapse
from nest_core.scenario import load_fabric


def read(text: str, name: str, **assumed: float) -> Fabric:
    found = read_fabric(text.encode(), name, assumed=Assumed(**assumed))  # type: ignore[arg-type]
    return build_fabric(checked(FabricFile, found.document))


def notes(text: str, name: str) -> tuple[str, ...]:
    return read_fabric(text.encode(), name).notes


def unordered(fabric: GraphFabric) -> tuple[object, ...]:
    """Elements and links without their order and direction."""
    links = {(frozenset((k.a, k.b)), k.bandwidth_Bps, k.count, k.latency_s) for k in fabric.links}
    return set(fabric.elements), links, fabric.device_ids, fabric.routing, fabric.ecmp_seed


@settings(max_examples=60, deadline=None)
@given(graph_fabrics())
def test_toml_and_graphml_keep_everything(fabric):
    for format, suffix in (("toml", ".toml"), ("graphml", ".graphml")):
        exported = write_fabric(fabric, format)
        assert exported.lost == ()
        assert read(exported.text, f"x{suffix}") == fabric


@settings(max_examples=60, deadline=None)
@given(graph_fabrics())
def test_edge_lists_keep_links_and_say_what_else_is_gone(fabric):
    exported = write_fabric(fabric, "csv")
    again = read(exported.text, "x.csv")
    assert isinstance(again, GraphFabric)
    elements, links, numbered, routing, _ = unordered(fabric)
    found = unordered(again)
    assert found[1] == links
    assert {(e.id, e.role) for e in found[0]} == {(e.id, e.role) for e in elements}
    lost = " ".join(exported.lost)
    assert ("order in which devices" in lost) == (found[2] != numbered)
    assert ("Routing" in lost) == (routing != "adaptive")
    assert ("ports" in lost) == any(e.radix for e in fabric.elements)
    drawn = any(e.group or e.x is not None or e.y is not None for e in fabric.elements)
    assert ("drawn" in lost) == drawn


def test_edge_lists_say_that_loose_elements_are_gone():
    fabric = GraphFabric(
        "f",
        (Element("a", "device"), Element("b", "device"), Element("s", "switch")),
        (Link("a", "b", 1e9),),
    )
    assert "1 element without links." in write_fabric(fabric, "csv").lost
    alone = GraphFabric("f", (Element("a", "device"),), ())
    with pytest.raises(InputError, match="link must list at least one link to be written as an"):
        write_fabric(alone, "csv")
    for format, suffix in (("toml", ".toml"), ("graphml", ".graphml")):
        assert read(write_fabric(alone, format).text, f"x{suffix}") == alone


@pytest.mark.parametrize("format", ["graphml", "csv"])
def test_names_with_control_characters_are_refused(format):
    fabric = GraphFabric(
        "f", (Element("a\x01", "device"), Element("b", "device")), (Link("a\x01", "b", 1e9),)
    )
    with pytest.raises(InputError, match=r"element\[0\].id must be free of control characters"):
        write_fabric(fabric, format)


@pytest.mark.parametrize("name", ["\U0001f600", "<&>\"'", "x" * 200])
def test_odd_names_survive(name):
    fabric = GraphFabric(
        "f", (Element(name, "device"), Element("b", "device")), (Link(name, "b", 1e9),)
    )
    for format, suffix in (("toml", ".toml"), ("graphml", ".graphml"), ("csv", ".csv")):
        assert unordered(read(write_fabric(fabric, format).text, f"x{suffix}")) == unordered(fabric)


def test_networkx_own_graphml_is_read(tmp_path):
    """A graph that someone made with networkx; rates in Gb/s, latencies in ns."""
    graph = nx.Graph()
    graph.add_nodes_from(["leaf0", "gpu0", "gpu1"])
    graph.add_edge("gpu0", "leaf0", gbps=400, latency_ns=500)
    graph.add_edge("gpu1", "leaf0", gbps=400.0, latency_ns=500)
    nx.write_graphml(graph, tmp_path / "x.graphml")
    text = (tmp_path / "x.graphml").read_text()
    fabric = read(text, "x.graphml")
    assert {(k.bandwidth_Bps, k.latency_s) for k in fabric.links} == {(50e9, 0.5e-6)}
    assert fabric.devices == 2
    assert any(
        "Roles of 3 elements follow from their names" in note for note in notes(text, "x.xml")
    )


def test_both_ways_of_a_directed_graph_are_one_link(tmp_path):
    graph = nx.DiGraph()
    for a, b in (("gpu0", "leaf"), ("leaf", "gpu0"), ("gpu1", "leaf")):
        graph.add_edge(a, b, bandwidth_GBps=50.0, latency_us=1.0)
    nx.write_graphml(graph, tmp_path / "x.graphml")
    text = (tmp_path / "x.graphml").read_text()
    fabric = read(text, "x.graphml")
    assert [link.count for link in fabric.links] == [1, 1]
    assert "3 directed edges read as links that work both ways." in notes(text, "x.graphml")


def test_parallel_edges_become_counts():
    text = "a,b,bandwidth_GBps,count,latency_us\ngpu0,s,50,2,1\ns,gpu0,50,3,1\ngpu1,s,50,1,1\n"
    assert [link.count for link in read(text, "x.csv").links] == [5, 1]
    with pytest.raises(InputError, match="line 3 must have parallel links of the same rate"):
        read(text.replace("s,gpu0,50", "s,gpu0,25"), "x.csv")


def test_titles_and_spare_switches_are_left_out():
    """yEd draws a title as a node: levels of the fabric ended in a traceback."""
    edges = [("gpu1", "leaf1"), ("gpu2", "leaf1"), ("gpu3", "leaf2"), ("gpu4", "leaf2")]
    graph = nx.Graph([*edges, ("leaf1", "spine"), ("leaf2", "spine")])
    plain = "\n".join(nx.generate_graphml(graph))
    graph.add_nodes_from(["title", "leaf9"])
    text = "\n".join(nx.generate_graphml(graph))
    assert read(text, "a.graphml") == read(plain, "a.graphml")
    assert "2 elements without a link left out: leaf9, title." in notes(text, "a.graphml")


def test_a_drawn_fabric_with_a_spare_switch_has_the_levels_of_the_others():
    names = [f"leaf{n}" for n in range(3)] + ["spine"]
    elements = [Element(f"gpu{n}", "device") for n in range(12)]
    elements += [Element(name, "switch") for name in names]
    links = [Link(f"gpu{n}", f"leaf{n // 4}", 50e9, 1, 1e-6) for n in range(12)]
    links += [Link(f"leaf{n}", "spine", 100e9, 1, 1e-6) for n in range(3)]
    plain, spare = (
        collapse(GraphFabric("f", (*elements, *more), tuple(links)))
        for more in ((), (Element("aside", "switch"), Element("card", "nic")))
    )
    assert spare.levels == plain.levels


def test_what_is_not_stated_is_assumed_and_told():
    text = "a,b\ngpu0,leaf\ngpu1,leaf\n"
    fabric = read(text, "x.csv", link_bandwidth_GBps=25.0, hop_latency_us=2.0)
    assert {(k.bandwidth_Bps, k.latency_s) for k in fabric.links} == {(25e9, 2e-6)}
    told = notes(text, "x.csv")
    assert "2 links without a rate: 50 GB/s assumed." in told
    assert "2 links without a latency: 0.6 us assumed." in told


HEAD = "a,b,bandwidth_GBps,count,latency_us,a_role,b_role\n"
GRAPHML = (
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    '<key id="r" for="node" attr.name="role" attr.type="string"/>'
    '<key id="w" for="edge" attr.name="bandwidth_GBps" attr.type="double"/>'
    '<graph edgedefault="undirected">{}</graph></graphml>'
)
NODES = '<node id="gpu0"/><node id="gpu1"/>'
EDGE = '<edge source="gpu0" target="gpu1"><data key="w">{}</data></edge>'


BAD = [
    ("x.csv", "", "x.csv must hold a fabric as text, but is 'empty'"),
    ("x.csv", "a,c\n", "line 1 must name known columns, each once, but is 'c'"),
    ("x.csv", "a,a\n", "line 1 must name known columns, each once, but is 'a'"),
    ("x.csv", "a,count\n", "line 1 must have the columns a and b"),
    ("x.csv", "a,b\ngpu0\n", "line 2 must have 2 cells as the header has, but is 1"),
    ("x.csv", 'a,b\n"gpu0,gpu1\n', "line 2 must be valid CSV"),
    ("x.csv", "a,b\nleaf,spine\n", "must have a device, but is '2 elements without one': give rol"),
    ("x.csv", "a,b\ngpu0,gpu0\n", "line 2 must join two different elements, but is 'gpu0'"),
    ("x.csv", "a,b\ngpu0,\n", "line 2 must have names of 1 to 200 characters, but is ''"),
    ("x.csv", HEAD + "gpu0,gpu1,nan,,,,\n", "line 2 must have a finite number above 0 as bandwid"),
    ("x.csv", HEAD + "gpu0,gpu1,-5,,,,\n", "finite number above 0 as bandwidth_GBps, but is '-5'"),
    ("x.csv", HEAD + "gpu0,gpu1,0,,,,\n", "finite number above 0 as bandwidth_GBps, but is '0'"),
    ("x.csv", HEAD + "gpu0,gpu1,inf,,,,\n", "finite number above 0 as bandwidth_GBps, but is 'in"),
    ("x.csv", HEAD + "gpu0,gpu1,5,1.5,,,\n", "must have a whole number above 0 as count, but is"),
    ("x.csv", HEAD + "gpu0,gpu1,5,0,,,\n", "must have a whole number above 0 as count, but is '0'"),
    ("x.csv", HEAD + "gpu0,gpu1,5,1,-1,,\n", "must have a finite number of at least 0 as latency_"),
    ("x.csv", HEAD + "a,b,5,1,1,device,server\n", "line 2 must have device, nic or switch as role"),
    ("x.csv", HEAD + "a,b,5,1,1,device,nic\nb,c,5,1,1,device,\n", "line 3 must give b the role ni"),
    ("x.csv", HEAD + f"gpu0,gpu1,5,{10**400},,,\n", "must have a whole number above 0 as count, b"),
    ("x.csv", "a,b\ngpu0,s\ngpu1,t\n", "link must connect all devices"),
    ("x.graphml", "<graphml>", "line 1 must be valid XML"),
    ("x.graphml", "<a/>", "must hold one graph of GraphML, but is '0 graphs'"),
    ("x.graphml", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "must have no document type or enti"),
    ("x.graphml", "<!DOCTYPE graphml>" + GRAPHML.format(NODES), "must have no document type"),
    ("x.graphml", "<a>" * 50 + "</a>" * 50, "must nest at most 32 XML elements"),
    ("x.graphml", GRAPHML.format(""), "must have a device, but is '0 elements without one'"),
    ("x.graphml", GRAPHML.format(NODES + EDGE.format("x")), r"edge\[0\] must have a finite number"),
    ("x.graphml", GRAPHML.format(NODES + EDGE.format("-1")), r"edge\[0\] must have a finite numbe"),
    ("x.graphml", GRAPHML.format('<node id="gpu0"/>' + EDGE.format("1")), "edges between nodes"),
    ("x.graphml", GRAPHML.format(NODES + '<hyperedge/>'), "must hold nodes and edges only"),
    ("x.graphml", GRAPHML.format('<node id="gpu0"/>' * 2), "node 'gpu0' must be listed once"),
    ("x.graphml", GRAPHML.format("<node/>"), "must give every node an id"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "message"), BAD, ids=[message for *_, message in BAD])
def test_what_is_wrong_is_named_in_one_sentence(name, text, message):
    with pytest.raises(InputError, match=message) as caught:
        read(text, name)
    assert str(caught.value).startswith(("x.", "link must connect"))
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_a_declared_encoding_does_not_change_names(tmp_path):
    """The file is UTF-8, whatever its first line says."""
    head = '<?xml version="1.0" encoding="ISO-8859-1"?>'
    body = GRAPHML.format(NODES.replace("gpu1", "gpu é") + EDGE.format(5).replace("gpu1", "gpu é"))
    assert read(head + body, "x.graphml").device_ids == ("gpu0", "gpu é")


def test_edges_that_share_an_id_are_links_of_their_own():
    edge = EDGE.format(5).replace("<edge", '<edge id="e"')
    (link,) = read(GRAPHML.format(NODES + edge + edge), "x.graphml").links
    assert link.count == 2


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
BOMBS = {
    "billion laughs": ("x.graphml", f'<!DOCTYPE a [<!ENTITY l0 "lol">{LAUGHS}]><a>&l9;</a>'),
    "external entity": ("x.xml", '<!DOCTYPE a [<!ENTITY b SYSTEM "/etc/passwd">]><a>&b;</a>'),
    "deep XML": ("x.graphml", "<a>" * 1_600_000),
    "many columns": ("x.csv", "a," * 2_400_000),
    "one long cell": ("x.csv", 'a,b\n"' + "x" * 4_900_000),
    "attributes": ("x.graphml", "<a " + " ".join(f'b{n}=""' for n in range(300_000)) + "/>"),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_bombs_are_refused(bomb):
    name, text = BOMBS[bomb]
    assert len(text) <= MAX_FILE_BYTES
    with pytest.raises(InputError):
        read(text, name)


PLAIN = "a,b,bandwidth_GBps,count,latency_us\ngpu0,leaf,50,1,1\ngpu1,leaf,50,1,1\n"


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", "\t"),
        PLAIN.replace(",", " , "),
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        "\n" + PLAIN,
        PLAIN.replace("gpu1,leaf", 'gpu1, "leaf"'),
    ],
    ids=["semicolons", "tabs", "spaces", "windows", "mac", "blank line", "space before a quote"],
)
def test_edge_lists_of_spreadsheets_are_read(text):
    fabric = read(text, "x.csv")
    assert fabric.links == read(PLAIN, "x.csv").links


def test_defaults_of_graphml_keys_apply():
    """The rate of every edge that states none; networkx itself leaves such defaults unused."""
    keys = (
        '<key id="w" for="edge" attr.name="gbps" attr.type="double"><default>400</default></key>'
        '<key id="r" for="node" attr.name="role" attr.type="string"><default>device</default></key>'
    )
    text = (
        f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{keys}'
        '<graph edgedefault="undirected"><node id="n0"/><node id="n1"/>'
        '<node id="n2"><data key="r">switch</data></node><edge source="n0" target="n2"/>'
        '<edge source="n1" target="n2"><data key="w">200</data></edge></graph></graphml>'
    )
    fabric = read(text, "x.graphml")
    assert [link.bandwidth_Bps for link in fabric.links] == [50e9, 25e9]
    assert fabric.device_ids == ("n0", "n1")


def test_directions_of_unequal_rate_are_refused(tmp_path):
    graph = nx.DiGraph()
    graph.add_edge("gpu0", "gpu1", gbps=400, weight=1.0)
    graph.add_edge("gpu1", "gpu0", gbps=400, weight=2.0)
    nx.write_graphml(graph, tmp_path / "x.graphml")
    text = (tmp_path / "x.graphml").read_text()
    assert [link.count for link in read(text, "x.graphml").links] == [1]
    with pytest.raises(InputError, match=r"edge\[1\] must have the attributes of its way back"):
        read(text.replace(">400<", ">200<", 1), "x.graphml")


def test_attributes_of_other_programs_are_named_when_they_are_left_out():
    def notes_of(nodes, **attributes):
        graph = nx.Graph()
        graph.add_node("a", role="device", **nodes)
        graph.add_node("b", role="device")
        graph.add_edge("a", "b", gbps=100, **attributes)
        return notes("\n".join(nx.generate_graphml(graph)), "x.graphml")

    assert "Attributes left out: 'weight', 'bandwidth'." in notes_of({}, weight=3, bandwidth=7)
    assert "Attributes left out: 'label', 'weight'." in notes_of({"label": "first"}, weight=3)
    many = notes_of({}, **{f"k{n}": n for n in range(20)})
    assert any(note.endswith("'k7' and 12 more.") for note in many)


def test_links_listed_in_both_directions_are_told():
    text = "a,b\ngpu0,gpu1\ngpu1,gpu0\n"
    assert [link.count for link in read(text, "x.csv").links] == [2]
    assert any("1 pair of elements with links listed" in note for note in notes(text, "x.csv"))


@pytest.mark.parametrize("preset", ["tpu-v4-2x2x4", "dgx-superpod-h100"])
def test_drawings_say_that_levels_and_bill_may_differ(preset):
    lost = write_fabric(load_fabric(preset), "graphml").lost
    assert any("levels, bill and times" in sentence for sentence in lost)


@pytest.mark.parametrize(("a", "b"), [("from", "to"), ("Source", "Target"), ("src", "dst")])
def test_other_names_of_the_two_ends_are_known(a, b):
    found = read_fabric(f"{a},{b}\ngpu0,leaf\ngpu1,leaf\n".encode(), "links.csv")
    assert [entry["a"] for entry in found.document["link"]] == ["gpu0", "gpu1"]
