"""GraphML (graphml.graphdrawing.org), read and written element by element.

Attributes of elements: ``role``, ``radix``, ``count``, ``group``, ``x``, ``y``. Of links:
``bandwidth_GBps`` (or ``gbps``, Gb/s), ``count``, ``latency_us`` (or ``latency_ns``). Of the
fabric: ``name``, ``routing``, ``ecmp_seed``. What yEd writes beside nodes and edges are their
names, where each has its own, and rates such as 400G. Document types are forbidden altogether
(entities grow without bound), and elements nest at most 32 deep.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from xml.etree.ElementTree import ParseError
from xml.sax.saxutils import escape, quoteattr

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from nest_core.documents import gigabytes, microseconds, plural
from nest_core.fabric import Element, Fabric, GraphFabric, as_graph
from nest_core.fabric.drawing import element_names, groups_of
from nest_core.interop.formats.draft import Draft
from nest_core.interop.formats.values import (
    Document,
    FabricText,
    Reading,
    Source,
    check_plain_names,
)
from nest_core.network import collapse

__all__ = ["MAX_DEPTH", "read_graphml", "write_graphml"]

MAX_DEPTH = 32
_XMLNS = "http://graphml.graphdrawing.org/xmlns"
_YED = "{http://www.yworks.com/xml/graphml}"
_LABELS = (f"{_YED}NodeLabel", f"{_YED}EdgeLabel")
_LABEL = "y:label"
_RATE = re.compile(r"(\d{1,6}(?:\.\d{1,6})?) ?G(?:b/s|bps|bit/s|bE|E)?")
"""What people write beside a link: 400G, 400 Gb/s, 100GbE."""
_OF_ELEMENTS = ("role", "radix", "count", "group", "x", "y")
_OF_LINKS = ("bandwidth_GBps", "gbps", "count", "latency_us", "latency_ns")
_TYPES = {
    "name": "string",
    "routing": "string",
    "ecmp_seed": "long",
    "role": "string",
    "radix": "int",
    "group": "string",
    "x": "double",
    "y": "double",
    "bandwidth_GBps": "double",
    "count": "int",
    "latency_us": "double",
}


class _GraphParser:
    """A parser's target that keeps what a file says of its graph, of every node and every edge."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.depth = self.graphs = 0
        self.is_directed = False
        self.attributes: dict[str, str] = {}
        self.nodes: dict[str, dict[str, str]] = {}
        self.edges: list[tuple[str, str, dict[str, str]]] = []
        self._defaults: dict[str, dict[str, str]] = {"node": {}, "edge": {}}
        self._names: dict[str, str] = {}
        self._key, self._text = "", [""]
        self._owners: list[dict[str, str]] = [{}]

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Begin an element; what data say belongs to the last graph, node or edge around them."""
        self.depth += 1
        self._text = []
        self.source.require(
            self.depth <= MAX_DEPTH,
            "",
            f"must nest at most {MAX_DEPTH} XML elements",
            "deeper",
            "flatten it",
        )
        match tag.removeprefix(f"{{{_XMLNS}}}"):
            case "key":
                self._key = attributes.get("id", "")
                self._names[self._key] = attributes.get("attr.name", "")
                self._owners.append(self._defaults.setdefault(attributes.get("for", ""), {}))
            case "data":
                self._key = attributes.get("key", "")
            case "graph":
                self.graphs += 1
                self.is_directed = attributes.get("edgedefault") == "directed"
                self._owners.append(self.attributes)
            case "node":
                self._owners.append(self._node(attributes.get("id", "")))
            case "edge":
                ends = attributes.get("source", ""), attributes.get("target", "")
                self._owners.append({**self._defaults["edge"]})
                self.edges.append((*ends, self._owners[-1]))
            case "hyperedge" | "port" as kind:
                raise self.source.wrong("", "must hold nodes and edges only", kind, "take it out")

    def _node(self, name: str) -> dict[str, str]:
        self.source.require(name, "", "must give every node an id", "missing", "name the nodes")
        self.source.require(
            name not in self.nodes,
            f"node {name!r}",
            "must be listed once",
            "there twice",
            "remove one of them",
        )
        self.nodes[name] = {**self._defaults["node"]}
        return self.nodes[name]

    def data(self, text: str) -> None:
        """Take a part of the text inside an element."""
        self._text.append(text)

    def end(self, tag: str) -> None:
        """End an element."""
        self.depth -= 1
        kind, text = tag.removeprefix(f"{{{_XMLNS}}}"), "".join(self._text)
        if kind in ("data", "default") and text and self._names.get(self._key):
            self._owners[-1][self._names[self._key]] = text
        if kind in _LABELS:
            self._owners[-1].setdefault(_LABEL, text.strip())
        if kind in ("key", "graph", "node", "edge"):
            self._owners.pop()

    def close(self) -> None:
        """End the file."""


def read_graphml(source: Source) -> Reading:
    """Return a graph from the one graph of a file; links stand in the file's order."""
    graph = _parsed(source)
    _use_labels(graph)
    draft = Draft(source)
    for name, attributes in graph.nodes.items():
        _add_element(draft, f"node {name!r}", name, attributes)
    if graph.is_directed:
        draft.notes.append(
            f"{plural(len(graph.edges), 'directed edge')} read as links that work both ways."
        )
    seen: Counter[tuple[str, str]] = Counter()
    ways: dict[tuple[str, str], list[dict[str, str]]] = {}
    for index, (a, b, attributes) in enumerate(graph.edges):
        figures = {key: value for key, value in attributes.items() if key in _OF_LINKS}
        seen[a, b] += 1
        ways.setdefault((a, b), []).append(figures)
        # The way back of a link that has been counted is no second link.
        if not graph.is_directed or seen[a, b] > seen[b, a]:
            _add_link(draft, f"edge[{index}]", a, b, attributes)
        elif figures != ways[b, a][seen[a, b] - 1]:
            raise source.wrong(
                f"edge[{index}]",
                "must have the attributes of its way back",
                f"{a} - {b}",
                "make both directions alike, or the graph undirected",
            )
    document, notes = draft.document(source.name)
    return _with_fabric_attributes(source, document, graph.attributes), notes


def _use_labels(graph: _GraphParser) -> None:
    """Name nodes as they are labelled, and take rates from labels of edges."""
    labels = {name: attributes.pop(_LABEL, "") for name, attributes in graph.nodes.items()}
    if all(labels.values()) and len({*labels.values()}) == len(labels):
        graph.nodes = {labels[name]: attributes for name, attributes in graph.nodes.items()}
        graph.edges = [(labels[a], labels[b], attributes) for a, b, attributes in graph.edges]
    for *_, attributes in graph.edges:
        if rate := _RATE.fullmatch(attributes.pop(_LABEL, "")):
            attributes.setdefault("gbps", rate[1])


def _parsed(source: Source) -> _GraphParser:
    """Return the one graph of a file, whose edges join nodes that it lists."""
    graph = _GraphParser(source)
    parser = DefusedXMLParser(target=graph, forbid_dtd=True)
    try:
        parser.feed(source.text)
        parser.close()
    except DefusedXmlException as error:
        raise source.wrong(
            "", "must have no document type or entities", type(error).__name__, "remove the DOCTYPE"
        ) from error
    except ParseError as error:
        raise source.wrong(
            error.position[0], "must be valid XML", str(error), "correct or complete the file"
        ) from error
    source.require(
        graph.graphs == 1,
        "",
        "must hold one graph of GraphML",
        plural(graph.graphs, "graph"),
        "export one graph, with GraphML's namespace and no nested graphs",
    )
    for end in (end for *ends, _ in graph.edges for end in ends):
        source.require(
            end in graph.nodes,
            "",
            "must have edges between nodes that are listed",
            end or "an edge with one end",
            "list the node or correct its id",
        )
    return graph


def write_graphml(fabric: Fabric) -> FabricText:
    """Return the fabric as an undirected graph with typed keys, in the order of its links."""
    graph, lost = as_graph(fabric), fabric.lost_in_graph
    check_plain_names(graph, "GraphML")
    keys: dict[tuple[str, str], str] = {}
    body: list[str] = []

    def data(owner: str, attributes: Mapping[str, Any]) -> str:
        cells = []
        for name, value in attributes.items():
            key = keys.setdefault((owner, name), f"d{len(keys)}")
            cells.append(f'<data key="{key}">{escape(str(value))}</data>')
        return "".join(cells)

    groups = {} if any(element.group for element in graph.elements) else _groups(fabric, graph)
    for element in graph.elements:
        cells = data("node", _element_attributes(element) | groups.get(element.id, {}))
        body.append(f"<node id={quoteattr(element.id)}>{cells}</node>")
    for link in graph.links:
        cells = data(
            "edge",
            {
                "bandwidth_GBps": gigabytes(link.bandwidth_Bps),
                "count": link.count,
                "latency_us": microseconds(link.latency_s),
            },
        )
        ends = f"source={quoteattr(link.a)} target={quoteattr(link.b)}"
        body.append(f"<edge {ends}>{cells}</edge>")
    seed = {"ecmp_seed": graph.ecmp_seed} if graph.ecmp_seed else {}
    graph_data = data("graph", {"name": graph.name, "routing": graph.routing, **seed})
    kinds = (
        f'<key id="{key}" for="{owner}" attr.name="{name}" attr.type="{_TYPES[name]}"/>'
        for (owner, name), key in keys.items()
    )
    head = ['<?xml version="1.0" encoding="UTF-8"?>', f'<graphml xmlns="{_XMLNS}">', *kinds]
    lines = [*head, '<graph edgedefault="undirected">', *body, graph_data, "</graph>", "</graphml>"]
    return FabricText("\n".join(lines) + "\n", lost)


def _groups(fabric: Fabric, graph: GraphFabric) -> dict[str, dict[str, str]]:
    """Return the attribute with each element's group, those of the fabric's copy on the canvas.

    Racks are groups, and cables within them shorter.
    """
    links = fabric.explicit()
    group_of = groups_of(links, collapse(fabric).nesting, fabric)
    ids = (
        element_names(links, fabric).values()
        if fabric is graph
        else (element.id for element in graph.elements)
    )
    return {
        name: {"group": group_of[node]} if group_of[node] else {}
        for name, node in zip(ids, links, strict=True)
    }


def _add_element(draft: Draft, where: str, name: str, attributes: Mapping[str, str]) -> None:
    """Add an element with what its attributes say; other attributes are not the studio's."""
    source = draft.source
    draft.leave_out(key for key in attributes if key not in _OF_ELEMENTS)
    drawn: dict[str, Any] = {
        axis: _coordinate(source, where, axis, attributes[axis])
        for axis in ("x", "y")
        if axis in attributes
    }
    role, group = attributes.get("role"), attributes.get("group", "")
    for field, text in (("role", role or ""), ("group", group)):
        source.check_text(where, field, text)
    count = int(source.number(where, "count", attributes.get("count", 1), whole=True))
    drawn |= {"count": count} if count > 1 else {}
    radix = int(source.number(where, "radix", attributes.get("radix", 0), zero=True, whole=True))
    draft.element(where, name, role, radix, group=group, **drawn)


def _add_link(draft: Draft, where: str, a: str, b: str, attributes: Mapping[str, str]) -> None:
    """Add a link with what its attributes say."""
    source = draft.source
    draft.leave_out(key for key in attributes if key not in _OF_LINKS)
    bandwidth = latency = None
    for key, scale in (("bandwidth_GBps", 1.0), ("gbps", 1 / 8)):
        if bandwidth is None and key in attributes:
            bandwidth = source.rate(where, key, attributes[key], scale)
    for key, divisor in (("latency_us", 1), ("latency_ns", 1000)):
        if latency is None and key in attributes:
            latency = source.number(where, key, attributes[key], zero=True) / divisor
    count = source.number(where, "count", attributes.get("count", 1), whole=True)
    draft.link(where, a, b, bandwidth, latency, int(count))


def _with_fabric_attributes(
    source: Source, document: Document, attributes: Mapping[str, str]
) -> Document:
    """Return the document with the name, routing and seed that a file states."""
    stated = {key: attributes[key] for key in ("name", "routing") if key in attributes}
    source.check_text("name", "the name of the fabric", stated.get("name", ""))
    if "name" in stated:
        stated["name"] = stated["name"][:200]
    seed = int(
        source.number("", "ecmp_seed", attributes.get("ecmp_seed", 0), whole=True, zero=True)
    )
    return document | stated | ({"ecmp_seed": seed} if seed else {})


def _element_attributes(element: Element) -> dict[str, Any]:
    """Return what `_add_element` reads back, without what is not stated."""
    every = {
        "role": element.role,
        "radix": element.radix or None,
        "count": None if element.count == 1 else element.count,
        "group": element.group or None,
        "x": element.x,
        "y": element.y,
    }
    return {key: value for key, value in every.items() if value is not None}


def _coordinate(source: Source, where: str, axis: str, text: str) -> float:
    figure = math.nan
    with suppress(ValueError, OverflowError):  # refused below, with everything else
        figure = float(text)
    source.require(
        abs(figure) <= 1e6,
        where,
        f"must have a number from -1e6 to 1e6 as {axis}",
        text,
        "correct it",
    )
    return figure
