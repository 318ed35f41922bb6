"""Fabrics without elements that people name."""

from __future__ import annotations

import re

import pytest
from clos_specs import clos

from nest_core.documents.errors import InputError
from nest_core.fabric import Torus, counted_element, element_kinds, without
from nest_core.scenario import load_fabric


def rails(**changes):
    """Nodes of four devices on four rails and two planes; a unit has four nodes."""
    figures = {"devices_per_node": 4, "nics_per_node": 4, "kind": "rail_optimised", "planes": 2}
    return clos(64, 16, 2, **(figures | changes))


def test_a_name_may_be_written_in_many_ways():
    kinds = element_kinds(rails())
    ways = ("leaf 3", "leaf3", "Leaf-3", " leaf:3 ", "leaf_3")
    assert {counted_element(way, kinds) for way in ways} == {"leaf 3"}
    assert counted_element("gpu5", kinds) == "device 5"
    assert counted_element("leaf 999", kinds) is None


@pytest.mark.parametrize("kind", ["leaf", "spine", "node", "device"])
def test_what_is_counted_is_missing(kind):
    fabric = rails()
    assert without(fabric, [f"{kind} 1"]).missing == (f"{kind} 1",)


def test_a_rail_is_its_leaf_of_every_unit_in_every_plane():
    fabric = rails()
    links = without(fabric, ["rail 1"]).leaf_links().reshape(fabric.sizing.units, 4)
    assert (links[:, 1] == 0).all()
    assert (links[:, [0, 2, 3]] == fabric.leaf_links().reshape(-1, 4)[:, [0, 2, 3]]).all()


def test_a_plane_takes_half_of_every_link_of_two():
    fabric = rails()
    rest = without(fabric, ["plane 0"])
    assert (2 * rest.leaf_links() == fabric.leaf_links()).all()
    assert (2 * rest.uplinks(1) == fabric.uplinks(1)).all()
    with pytest.raises(InputError):
        without(fabric, ["plane 0", "plane 1"])


def test_nodes_go_with_their_only_leaf():
    fabric = clos(32, 8, 2, devices_per_node=2, nics_per_node=2)
    rest = without(fabric, ["leaf 1"])
    size = fabric.sizing.nodes_per_unit
    gone = range(size, 2 * size)
    assert set(rest.missing) == {"leaf 1", *(f"node {node}" for node in gone)}
    assert rest.devices == 32 - 2 * size


def test_what_failed_before_stays_away():
    fabric = without(without(rails(), ["node 1"]), ["node 2"])
    assert fabric == without(rails(), ["node 1", "node 2"])


def test_an_element_that_there_is_not_has_the_nearest_named():
    last = element_kinds(rails())["leaf"] - 1
    for name, nearest in (
        ("leef 3", "leaf 3"),
        ("leaf 999", f"leaf {last}"),
        ("spines 0", "spine 0"),
    ):
        with pytest.raises(InputError, match=re.escape(f'the nearest named is "{nearest}"')):
            without(rails(), [name])


def test_without_its_spines_a_fabric_is_refused_in_one_sentence():
    fabric = rails(planes=1)
    spines = [f"spine {n}" for n in range(element_kinds(fabric)["spine"])]
    with pytest.raises(InputError) as refused:
        without(fabric, spines)
    assert str(refused.value).count(". ") == 0
    assert "must leave a path between" in str(refused.value)


def test_other_kinds_lose_what_they_count():
    torus = Torus("t", (4, 4), (True, True), 1e9, 1e-6)
    assert without(torus, ["device 3"]).devices == 15
    racks = load_fabric("unequal-racks-88")
    assert without(racks, ["rack 0"]).devices < 88


def test_a_drawn_graph_loses_elements_and_links_by_their_names():
    fabric = load_fabric("drawn-8")
    first = fabric.elements[2]
    assert without(fabric, [first.id]).devices == fabric.devices - 1
    link = next(link for link in fabric.links if link.a == first.id)
    ends = {(one.a, one.b) for one in without(fabric, [f"{link.b} to {link.a}"]).links}
    assert (link.count == 1) == ((link.a, link.b) not in ends)
    with pytest.raises(InputError, match=re.escape(f'"{first.id}"')):
        without(fabric, [f"{first.id}x"])
