"""Drawings: any fabric can become one, and it is the same fabric; copies are wired as originals."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import pytest

from nest_core.documents.errors import InputError
from nest_core.documents.presets import preset_names
from nest_core.documents.schema import FabricFile, checked
from nest_core.fabric.arrange import heights
from nest_core.fabric.drawing import (
    MAX_DRAWN,
    MAX_ELEMENTS,
    drawing_of,
    duplicated,
    edited,
    empty_drawing,
    tabled,
)
from nest_core.fabric.files import build_fabric
from nest_core.network import collapse
from nest_core.scenario import load_fabric

FABRICS = {name: load_fabric(name) for name in preset_names("fabrics")}
DRAWN = [name for name, fabric in FABRICS.items() if fabric.devices <= MAX_DRAWN]
SMALL = [name for name in DRAWN if FABRICS[name].devices <= 600]


def drawn(name):
    fabric = FABRICS[name]
    return drawing_of(fabric, collapse(fabric).nesting)


def built(drawing):
    return build_fabric(checked(FabricFile, drawing))


def wiring(graph):
    """Degrees and rates of all links, whatever elements are called."""
    return Counter(
        (
            round(data["bandwidth_Bps"]),
            data["count"],
            f"{data['latency_s']:.9e}",
            frozenset((graph.nodes[a]["role"], graph.nodes[b]["role"])),
            frozenset((graph.degree[a], graph.degree[b])),
        )
        for a, b, data in graph.edges(data=True)
    )


@pytest.mark.sampled(30)
@pytest.mark.parametrize("name", DRAWN)
def test_a_drawn_preset_has_the_presets_links(name):
    """A failure: an element or a link is lost, doubled or renamed onto another."""
    drawing = drawn(name)
    found, meant = built(drawing).explicit(), FABRICS[name].explicit()
    assert wiring(found) == wiring(meant)
    assert len(found) == len(meant)


@pytest.mark.parametrize("name", SMALL)
def test_elements_have_places_of_their_own(name):
    """A torus says where its devices stand; else the canvas arranges all that has no place."""
    places = [(entry.get("x"), entry.get("y")) for entry in drawn(name)["element"]]
    assert len(set(places)) in (1, len(places))
    assert (places[0] == (None, None)) == (not FABRICS[name].drawn_places())


@pytest.mark.parametrize("name", ["h100-spine-leaf-64", "unequal-racks-88", "v100-pods-64"])
def test_groups_hold_what_meets_inside_them(name):
    """Every link that stays in a group's devices' reach is drawn inside it, spines outside."""
    drawing = drawn(name)
    group = {entry["id"]: entry.get("group", "") for entry in drawing["element"]}
    roles = {entry["id"]: entry["role"] for entry in drawing["element"]}
    graph = nx.Graph((link["a"], link["b"]) for link in drawing["link"])
    height = heights(graph, [name for name, role in roles.items() if role == "device"])
    for name_, path in group.items():
        below = [group[other] for other in graph[name_] if height[other] < height[name_]]
        assert all(inside == path or inside.startswith(f"{path}/") or not path for inside in below)
    top = max(height, key=lambda name_: height[name_])
    assert group[top] == ""
    assert all(group[name_].count("/") == 1 for name_, role in roles.items() if role == "device")


def test_a_large_fabric_is_not_drawn():
    with pytest.raises(
        InputError, match=r"drawing must have at most 8,192 devices, but is '15,360'"
    ):
        drawn("hpn-dual-plane")


def rack():
    """A leaf with two nodes of two devices, and a spine outside."""
    drawing = empty_drawing()
    elements = [{"id": "spine 0", "role": "switch", "group": "", "x": 0.0, "y": 0.0}]
    links = []
    elements.append({"id": "leaf 0", "role": "switch", "group": "rack 0", "x": 0.0, "y": 60.0})
    links.append({"a": "leaf 0", "b": "spine 0", "bandwidth_GBps": 50.0, "count": 2})
    for node in range(2):
        for slot in range(2):
            name = f"gpu {2 * node + slot}"
            group = f"rack 0/node {node}"
            elements.append({"id": name, "role": "device", "group": group, "x": 60.0 * slot})
            links.append({"a": name, "b": "leaf 0", "bandwidth_GBps": 50.0, "latency_us": 1.0})
    return edited(drawing, elements, links)


def test_a_copied_rack_hangs_on_the_same_spine():
    drawing = rack()
    members = [entry["id"] for entry in drawing["element"] if entry.get("group")]
    bigger, copies = duplicated(drawing, members)
    assert copies == ("leaf 1", "gpu 4", "gpu 5", "gpu 6", "gpu 7")
    assert {entry["group"] for entry in bigger["element"] if entry["id"] in copies} == {
        "rack 1",
        "rack 1/node 2",
        "rack 1/node 3",
    }
    fabric = built(bigger)
    assert fabric.devices == 8
    graph = fabric.explicit()
    assert graph.edges["leaf 1", "spine 0"]["count"] == 2
    assert len(collapse(fabric).levels) == 2
    assert drawing == rack(), "the original must stay as it was"


def test_a_copied_part_of_a_group_stays_in_it():
    bigger, copies = duplicated(rack(), ["gpu 3"])
    assert copies == ("gpu 4",)
    assert bigger["element"][-1]["group"] == "rack 0/node 1"
    assert built(bigger).devices == 5


def test_copies_of_nothing_change_nothing():
    assert duplicated(rack(), ["nobody"]) == (rack(), ())


def test_edits_keep_known_keys_and_drop_what_is_not_stated():
    drawing = edited(
        empty_drawing("mine") | {"routing": "ecmp"},
        [{"id": "a", "role": "device", "radix": 0, "group": "", "x": 1, "colour": "red"}],
        [{"a": "a", "b": "b", "bandwidth_GBps": None}],
    )
    assert drawing["element"] == [{"id": "a", "role": "device", "x": 1}]
    assert drawing["link"] == [{"a": "a", "b": "b"}]
    assert drawing["routing"] == "ecmp"
    assert drawing["name"] == "mine"


@pytest.mark.parametrize(
    ("elements", "message"),
    [
        (["gpu"], "element must be a list of tables"),
        ([{}] * (MAX_ELEMENTS + 1), "element must have at most 40,000 entries"),
    ],
)
def test_a_canvas_that_sends_something_else_is_refused(elements, message):
    with pytest.raises(InputError, match=message):
        edited(empty_drawing(), elements, [])


def test_links_follow_an_element_that_a_table_renames():
    drawing = tabled(rack(), "element", {"edited_rows": {1: {"id": "tor"}, "2": {"radix": 8}}})
    assert [entry["id"] for entry in drawing["element"]][:2] == ["spine 0", "tor"]
    assert drawing["element"][2]["radix"] == 8
    assert built(drawing).explicit().degree["tor"] == 5


def test_links_go_with_an_element_that_a_table_deletes():
    drawing = tabled(rack(), "element", {"deleted_rows": [2, 3]})
    assert built(drawing).devices == 2
    assert len(drawing["link"]) == 3


def test_rows_that_a_table_adds_have_what_new_things_have():
    drawing = tabled(rack(), "element", {"added_rows": [{"id": "leaf 9"}, {"radix": None}]})
    assert drawing["element"][-2:] == [{"role": "switch", "id": "leaf 9"}, {"role": "switch"}]
    drawing = tabled(drawing, "link", {"added_rows": [{"a": "leaf 9", "b": "spine 0"}]})
    new = {"bandwidth_GBps": 50.0, "count": 1, "latency_us": 0.6, "a": "leaf 9", "b": "spine 0"}
    assert drawing["link"][-1] == new


def test_a_table_edits_and_deletes_links():
    edits = {"edited_rows": {0: {"bandwidth_GBps": 400.0}}, "deleted_rows": [4]}
    drawing = tabled(rack(), "link", edits)
    assert drawing["link"][0]["bandwidth_GBps"] == 400.0
    with pytest.raises(InputError, match="must connect all devices, gpu 3 with gpu 0"):
        built(drawing)


def test_many_copies_are_named_as_one_by_one():
    ids = [f"gpu {number}" for number in range(4000)] + ["leaf", "rack 7 a", "gpu 9000"]
    drawing = empty_drawing() | {"element": [{"id": name, "role": "device"} for name in ids]}
    _, copies = duplicated(drawing, ids)
    assert copies == (
        *(f"gpu {number}" for number in range(4000, 8000)),
        "leaf 1",
        "rack 8 a",
        "gpu 9001",
    )
    # Below, between and above the numbers that were tried.
    few = empty_drawing() | {"element": [{"id": f"n{k}", "role": "device"} for k in (5, 6, 2, 9)]}
    assert duplicated(few, ["n5", "n6", "n2", "n9"])[1] == ("n7", "n8", "n3", "n10")
