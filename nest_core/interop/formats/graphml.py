"""GraphML (graphml.graphdrawing.org), read by networkx once the XML is known to be harmless.

Attributes of elements: ``role``, ``radix``, ``count``, ``group``, ``x``, ``y``. Of links:
``bandwidth_GBps`` (or ``gbps``, Gb/s), ``count``, ``latency_us`` (or ``latency_ns``). Of the
fabric: ``name``, ``routing``, ``ecmp_seed``. Document types are forbidden altogether (entities grow
without bound), and elements nest at most 32 deep.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from xml.etree.ElementTree import Element as XmlElement
from xml.etree.ElementTree import ParseError
from xml.sax.saxutils import escape, quoteattr

import networkx as nx
from defusedxml import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from nest_core.documents.units import gigabytes, microseconds, plural
from nest_core.fabric import Element, Fabric, GraphFabric, Link, as_graph
from nest_core.interop.formats.draft import Draft
from nest_core.interop.formats.values import (
    Document,
    FabricText,
    Reading,
    Source,
    check_plain_names,
)

__all__ = ["read_graphml", "write_graphml"]

MAX_DEPTH = 32
_XMLNS = "http://graphml.graphdrawing.org/xmlns"
_GRAPHS = f"{{{_XMLNS}}}"
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


def read_graphml(source: Source) -> Reading:
    """Return a graph from the one graph of a file; links stand in the file's order."""
    ends = _check_xml(source)
    graph = _parsed(source)
    draft = Draft(source)
    # networkx reads the defaults of keys, but does not apply them.
    of_nodes, of_edges = (graph.graph.get(f"{owner}_default", {}) for owner in ("node", "edge"))
    for name, attributes in graph.nodes(data=True):
        _add_element(draft, f"node {name!r}", name, of_nodes | attributes)
    attributes_of: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for a, b, attributes in graph.edges(data=True):
        # The id of an edge is its key as well.
        stated = {key: value for key, value in attributes.items() if key != "id"}
        attributes_of.setdefault(_pair(graph, a, b), []).append(of_edges | stated)
    if graph.is_directed():
        draft.notes.append(
            f"{plural(len(ends), 'directed edge')} read as links that work both ways."
        )
    seen: Counter[tuple[str, str]] = Counter()
    ways: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for index, (a, b) in enumerate(ends):
        waiting = attributes_of.get(_pair(graph, a, b))
        if not waiting:
            raise source.wrong(
                f"edge[{index}]",
                "must be an edge of the graph with an id of its own",
                f"{a} - {b}",
                "rename the edge",
            )
        attributes = waiting.pop(0)
        seen[a, b] += 1
        ways.setdefault((a, b), []).append(attributes)
        # The way back of a link that has been counted is no second link.
        if not graph.is_directed() or seen[a, b] > seen[b, a]:
            _add_link(draft, f"edge[{index}]", a, b, attributes)
        elif _figures(attributes) != _figures(ways[b, a][seen[a, b] - 1]):
            raise source.wrong(
                f"edge[{index}]",
                "must have the attributes of its way back",
                f"{a} - {b}",
                "make both directions alike, or the graph undirected",
            )
    document, notes = draft.document(source.name)
    return _with_fabric_attributes(source, document, graph.graph), notes


def _figures(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in attributes.items() if key in _OF_LINKS}


def _pair(graph: nx.Graph[Any], a: str, b: str) -> tuple[str, str]:
    return (a, b) if graph.is_directed() or a < b else (b, a)


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

    for element in graph.elements:
        cells = data("node", _element_attributes(element))
        body.append(f"<node id={quoteattr(element.id)}>{cells}</node>")
    for link in graph.links:
        cells = data("edge", _link_attributes(link))
        ends = f"source={quoteattr(link.a)} target={quoteattr(link.b)}"
        body.append(f"<edge {ends}>{cells}</edge>")
    graph_data = data("graph", _fabric_attributes(graph))
    kinds = (
        f'<key id="{key}" for="{owner}" attr.name="{name}" attr.type="{_TYPES[name]}"/>'
        for (owner, name), key in keys.items()
    )
    head = ['<?xml version="1.0" encoding="UTF-8"?>', f'<graphml xmlns="{_XMLNS}">', *kinds]
    lines = [*head, '<graph edgedefault="undirected">', *body, graph_data, "</graph>", "</graphml>"]
    return FabricText("\n".join(lines) + "\n", lost)


class _Scan:
    """A parser's target that keeps depth and names; networkx would make up nodes for edges."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.depth = self.graphs = 0
        self.nodes: set[str] = set()
        self.ends: list[tuple[str, str]] = []

    def start(self, tag: str, attributes: dict[str, str]) -> XmlElement | None:
        self.depth += 1
        self.graphs += tag == f"{_GRAPHS}graph"
        if self.depth > MAX_DEPTH:
            raise self.source.wrong(
                "", f"must nest at most {MAX_DEPTH} XML elements", "deeper", "flatten it"
            )
        if tag == f"{_GRAPHS}node":
            self._node(attributes.get("id", ""))
        if tag == f"{_GRAPHS}edge":
            self.ends.append((attributes.get("source", ""), attributes.get("target", "")))
        return None

    def _node(self, name: str) -> None:
        if not name:
            raise self.source.wrong("", "must give every node an id", "missing", "name the nodes")
        if name in self.nodes:
            raise self.source.wrong(
                f"node {name!r}", "must be listed once", "there twice", "remove one of them"
            )
        self.nodes.add(name)

    def end(self, tag: str) -> None:
        self.depth -= 1

    def close(self) -> None:
        return None


def _check_xml(source: Source) -> list[tuple[str, str]]:
    """Return ends of the edges, in order.

    Refuses what is not XML, what could grow while it is parsed, and what holds no one graph.
    """
    target = _Scan(source)
    parser = DefusedXMLParser(target=target, forbid_dtd=True)
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
    if target.graphs != 1:
        raise source.wrong(
            "",
            "must hold one graph of GraphML",
            plural(target.graphs, "graph"),
            "export one graph, with GraphML's namespace and no nested graphs",
        )
    every = (end for pair in target.ends for end in pair)
    unknown = next((end for end in every if end not in target.nodes), None)
    if unknown is not None:
        raise source.wrong(
            "",
            "must have edges between nodes that are listed",
            unknown or "an edge with one end",
            "list the node or correct its id",
        )
    return target.ends


def _parsed(source: Source) -> nx.Graph[Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return nx.parse_graphml(source.text, node_type=str, force_multigraph=True)
    except (nx.NetworkXException, KeyError, TypeError, ValueError, AttributeError) as error:
        raise source.wrong(
            "",
            "must be GraphML that networkx reads",
            str(error) or type(error).__name__,
            "correct the keys and their types",
        ) from error


def _add_element(draft: Draft, where: str, name: str, attributes: Mapping[str, Any]) -> None:
    """Add an element with what its attributes say; other attributes are not the studio's."""
    source, drawn = draft.source, {}
    draft.leave_out(key for key in attributes if key not in _OF_ELEMENTS)
    for axis in ("x", "y"):
        if attributes.get(axis) is not None:
            drawn[axis] = _coordinate(source, where, axis, attributes[axis])
    group = _text(source, where, "group", attributes.get("group", ""))
    role = attributes.get("role")
    radix = attributes.get("radix") or 0
    count = int(source.number(where, "count", attributes.get("count", 1), whole=True))
    drawn |= {"count": count} if count > 1 else {}
    draft.element(
        where,
        name,
        None if role is None else _text(source, where, "role", role),
        int(source.number(where, "radix", radix, zero=True, whole=True)),
        group=group,
        **drawn,
    )


def _add_link(draft: Draft, where: str, a: str, b: str, attributes: Mapping[str, Any]) -> None:
    """Add a link with what its attributes say."""
    source = draft.source
    draft.leave_out(key for key in attributes if key not in _OF_LINKS)
    bandwidth = latency = None
    if attributes.get("bandwidth_GBps") is not None:
        bandwidth = source.rate(where, "bandwidth_GBps", attributes["bandwidth_GBps"])
    elif attributes.get("gbps") is not None:
        bandwidth = source.rate(where, "gbps", attributes["gbps"], 1 / 8)
    if attributes.get("latency_us") is not None:
        latency = source.number(where, "latency_us", attributes["latency_us"], zero=True)
    elif attributes.get("latency_ns") is not None:
        latency = source.number(where, "latency_ns", attributes["latency_ns"], zero=True) / 1000
    count = source.number(where, "count", attributes.get("count", 1), whole=True)
    draft.link(where, a, b, bandwidth, latency, int(count))


def _with_fabric_attributes(
    source: Source, document: Document, attributes: Mapping[str, Any]
) -> Document:
    """Return the document with the name, routing and seed that a file states."""
    stated: Document = {}
    name = attributes.get("name")
    if isinstance(name, str) and name:
        source.check_text("name", "the name of the fabric", name)
        stated["name"] = name[:200]
    if attributes.get("routing") is not None:
        stated["routing"] = attributes["routing"]
    if attributes.get("ecmp_seed"):
        stated["ecmp_seed"] = int(
            source.number("", "ecmp_seed", attributes["ecmp_seed"], whole=True)
        )
    return document | stated


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


def _link_attributes(link: Link) -> dict[str, Any]:
    """Return what `_add_link` reads back."""
    return {
        "bandwidth_GBps": gigabytes(link.bandwidth_Bps),
        "count": link.count,
        "latency_us": microseconds(link.latency_s),
    }


def _fabric_attributes(fabric: GraphFabric) -> dict[str, Any]:
    """Return what `_with_fabric_attributes` reads back."""
    attributes: dict[str, Any] = {"name": fabric.name, "routing": fabric.routing}
    return attributes | ({"ecmp_seed": fabric.ecmp_seed} if fabric.ecmp_seed else {})


def _coordinate(source: Source, where: str, axis: str, value: object) -> float:
    figure = None
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        with suppress(ValueError, OverflowError):  # refused below, with everything else
            figure = float(value)
    if figure is None or not abs(figure) <= 1e6:
        raise source.wrong(
            where, f"must have a number from -1e6 to 1e6 as {axis}", value, "correct it"
        )
    return figure


def _text(source: Source, where: str, field: str, value: object) -> str:
    if not isinstance(value, str):
        raise source.wrong(where, f"must have text as {field}", value, "write it in quotes")
    source.check_text(where, field, value)
    return value
