"""Racks, pods and rails added to a drawing, and spines over them."""

from __future__ import annotations

import networkx as nx
import pytest

from nest_core.documents.errors import InputError
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric import GraphFabric, build_fabric
from nest_core.fabric.drawing import Drawing, empty_drawing
from nest_core.fabric.tiers import TEMPLATES, TemplatePart, added, open_switches, with_spines


def built(drawing: Drawing) -> GraphFabric:
    found = build_fabric(checked(FabricFile, drawing, "fabric."))
    assert isinstance(found, GraphFabric)
    return found


@pytest.mark.parametrize("template", TEMPLATES)
def test_copies_are_alike_and_apart(template):
    """As many components as copies, all isomorphic; ids are used once, groups lie apart."""
    drawing = added(
        empty_drawing(), TemplatePart(template, copies=3, word="hall", nodes=6, devices=4)
    )
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(entry["id"] for entry in drawing["element"])
    graph.add_edges_from((link["a"], link["b"]) for link in drawing["link"])
    assert graph.number_of_nodes() == len(drawing["element"])
    parts = [sorted(part) for part in nx.connected_components(graph)]
    assert len(parts) == 3
    assert len({tuple(sorted(dict(graph.subgraph(part).degree()).values())) for part in parts}) == 1
    group = {entry["id"]: entry["group"].split("/")[0] for entry in drawing["element"]}
    assert sorted({group[name] for name in part}.pop() for part in parts) == [
        "hall 0",
        "hall 1",
        "hall 2",
    ]


def test_a_rack_of_four_servers_sixty_four_times_is_a_fabric_once_spines_join_it():
    drawing = with_spines(added(empty_drawing(), TemplatePart("rack", 64, nodes=4)), 32, 2.0, 50.0)
    fabric = built(drawing)
    assert fabric.devices == 2048
    spine = next(element for element in fabric.elements if element.id == "spine 0")
    assert spine.count == 32
    assert {link.count for link in fabric.links if "spine 0" in (link.a, link.b)} == {16}
    assert open_switches(drawing).keys() == {"spine 0"}


def test_what_is_there_stays_and_numbers_go_on():
    first = added(empty_drawing(), TemplatePart("rack", 1, nodes=2))
    second = added(first, TemplatePart("rails", 1, "rack", nodes=2))
    assert second["element"][: len(first["element"])] == first["element"]
    assert second["link"][: len(first["link"])] == first["link"]
    leaves = [e["id"] for e in second["element"] if e["id"].startswith("leaf")]
    assert leaves == [f"leaf {number}" for number in range(9)]
    assert {entry["group"].split("/")[0] for entry in second["element"]} == {"rack 0", "rack 1"}


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (TemplatePart("tower"), "template must be one of rack, rails, pod"),
        (TemplatePart("rack", copies=0), "template.copies must be"),
        (TemplatePart("rack", copies=2000), "8,192 devices or fewer, but is '64,000'"),
        (TemplatePart("rack", word="a/b"), "template.names must be"),
        (TemplatePart("rack", word="rack 7"), "without digits"),
        (TemplatePart("rack", nodes=9, radix=64), "exceed radix 64"),
        (TemplatePart("pod", nic_GBps=-1.0), "nic_bandwidth_GBps"),
    ],
)
def test_what_cannot_be_added_is_one_sentence(part, message):
    with pytest.raises(InputError, match=message):
        added(empty_drawing(), part)


def test_spines_need_something_below():
    with pytest.raises(InputError, match="two switches or more with nothing above"):
        with_spines(added(empty_drawing(), TemplatePart("rack")), 4, 1.0, 50.0)
