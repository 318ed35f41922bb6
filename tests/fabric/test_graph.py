"""Drawn fabrics: what the link graph says, and what is refused."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest

import nest_core.fabric.graph as module
from nest_core.documents.errors import InputError
from nest_core.documents.presets import preset_names
from nest_core.fabric import Element, GraphFabric, Link
from nest_core.scenario import load_fabric

ELEMENTS = (
    Element("spine", "switch"),
    Element("b", "device"),
    Element("leaf", "switch", 4),
    Element("a", "device"),
    Element("nic", "nic"),
)
LINKS = (
    Link("b", "leaf", 50e9, 1, 1e-6),
    Link("a", "nic", 25e9),
    Link("nic", "leaf", 25e9, 2, 2e-6),
    Link("leaf", "spine", 100e9),
)


def test_devices_are_numbered_in_the_order_they_are_listed():
    fabric = GraphFabric("g", ELEMENTS, LINKS)
    assert (fabric.devices, fabric.device_ids) == (2, ("b", "a"))
    graph = fabric.explicit()
    assert dict(graph.nodes(data="role")) == {
        0: "device",
        1: "device",
        "spine": "switch",
        "leaf": "switch",
        "nic": "nic",
    }
    assert graph.edges["nic", "leaf"] == {"bandwidth_Bps": 25e9, "count": 2, "latency_s": 2e-6}
    assert graph.number_of_edges() == len(LINKS)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", preset_names("fabrics"))
def test_every_preset_can_be_drawn_again(name):
    """A link graph turned into elements and links gives the same link graph."""
    fabric = load_fabric(name)
    if fabric.devices > 1200:
        pytest.skip("large; smaller ones of every kind are there")
    plain = fabric.explicit()
    elements = tuple(Element(str(node), **data) for node, data in plain.nodes(data=True))
    links = tuple(Link(str(a), str(b), **data) for a, b, data in plain.edges(data=True))
    again = GraphFabric(fabric.name, elements, links)
    assert again.devices == fabric.devices
    names = {
        node: int(node) if role == "device" else str(node)
        for node, role in plain.nodes(data="role")
    }
    assert [int(name) for name in again.device_ids] == list(range(fabric.devices))
    assert nx.utils.graphs_equal(nx.relabel_nodes(plain, names), again.explicit())


GPU = Element("x", "device")
BAD: list[tuple[tuple[Element, ...], tuple[Link, ...], str]] = [
    ((), (), "element must list at least one device, but is 0"),
    ((Element("s", "switch"),), (), "element must list at least one device, but is 0"),
    (
        (*ELEMENTS, Element("a", "nic")),
        LINKS,
        r"element\[5\].id must be used once only, but is 'a'",
    ),
    ((*ELEMENTS, Element("y", "gpu")), LINKS, r"element\[5\].role must be device, nic or switch"),  # type: ignore[arg-type]
    ((*ELEMENTS, GPU), LINKS, "link must connect all devices, x with b, but is 'no path'"),
    (
        ELEMENTS,
        (*LINKS, Link("a", "c", 1e9)),
        r"link\[4\].b must be the id of an element, but is 'c",
    ),
    (
        ELEMENTS,
        (*LINKS, Link("c", "a", 1e9)),
        r"link\[4\].a must be the id of an element, but is 'c",
    ),
    (ELEMENTS, (*LINKS, Link("a", "a", 1e9)), r"link\[4\].b must be another element than a, but"),
    (
        ELEMENTS,
        (*LINKS, Link("leaf", "b", 1e9)),
        r"link\[4\] must be the only one between its ends",
    ),
    (
        ELEMENTS,
        (*LINKS, Link("a", "leaf", 1e9)),
        r"element\[2\].radix must be at least 5, the links",
    ),
    (ELEMENTS, (*LINKS[:3], Link("leaf", "spine", 1e9, 3)), r"radix must be at least 6, the links"),
    (ELEMENTS, (*LINKS, Link("a", "b", 0.0)), r"link\[4\].bandwidth_GBps must be a finite number"),
    (ELEMENTS, (*LINKS, Link("a", "b", 1e9, 0)), r"link\[4\].count must be a whole number of at"),
    (ELEMENTS, (*LINKS, Link("a", "b", 1e9, 1, -1.0)), r"link\[4\].latency_us must be a finite"),
    (
        tuple(Element(str(n), "device") for n in range(16_385)),
        (),
        "element must list at most 16,384 devices, but is 16385",
    ),
]


@pytest.mark.parametrize(("elements", "links", "message"), BAD, ids=[text for *_, text in BAD])
def test_what_is_no_fabric_is_refused(elements: Any, links: Any, message: str):
    with pytest.raises(InputError, match=message) as caught:
        GraphFabric("g", elements, links)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_links_have_a_limit(monkeypatch):
    assert module.MAX_LINKS == 200_000
    monkeypatch.setattr(module, "MAX_LINKS", 3)
    with pytest.raises(InputError, match="link must list at most 3 links, but is 4"):
        GraphFabric("g", ELEMENTS, LINKS)
