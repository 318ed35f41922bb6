"""GraphML (graphml.graphdrawing.org), read and written element by element.

Attributes of elements: ``role``, ``radix``, ``count``, ``group``, ``x``, ``y``. Of links:
``bandwidth_GBps`` (or ``gbps``, Gb/s), ``count``, ``latency_us`` (or ``latency_ns``). Of the
fabric: ``name``, ``routing``, ``ecmp_seed``. What yEd writes beside nodes and edges are their
names, with their ids where several have one, and rates such as 400G. Document types are forbidden
altogether (entities grow without bound), and elements nest at most 32 deep.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element as XmlElement
from xml.etree.ElementTree import ParseError
from xml.sax.saxutils import escape, quoteattr

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from nest_core.documents import figure_of, gigabytes, microseconds, plural
from nest_core.fabric import Element, Fabric, GraphFabric, as_graph
from nest_core.fabric.drawing import element_names, groups_of
from nest_core.interop.formats.draft import Draft
from nest_core.interop.formats.values import (
    Document,
    FabricText,
    Reading,
    Source,
    check_plain_names,
    listed,
)
from nest_core.network import collapse

__all__ = ["MAX_DEPTH", "read_graphml", "write_graphml"]

MAX_DEPTH = 32
_XMLNS = "http://graphml.graphdrawing.org/xmlns"
_YED = "{http://www.yworks.com/xml/graphml}"
_LABELS = (f"{_YED}NodeLabel", f"{_YED}EdgeLabel")
_LABEL = "y:label"
_RATE = re.compile(
    r"(?:(\d{1,4}) ?[x×] ?)?(\d{1,6}(?:\.\d{1,6})?) ?([GT])(?:(B/s|Bps)|b/s|bps|bit/s|bE|E)?"
    r"(?:, ?(?:\d{1,4}(?:\.\d{1,2})? ?m|DAC|AOC|ACC|AEC))?"
)
"""What people write beside a link: 400G, 0.8 Tb/s, 100GbE, 50 GB/s, 2x400G, 400G, 30 m."""
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


Texts = dict[str, str]
Edge = tuple[str, str, Texts]
"""Its ends, and what the file says of it."""


def read_graphml(source: Source) -> Reading:
    """Return a graph from the one graph of a file; links stand in the file's order."""
    is_directed, of_graph, nodes, edges = _parsed(source)
    draft = Draft(source)
    nodes, edges = _labelled(draft, nodes, edges)
    for name, attributes in nodes.items():
        _add_element(draft, f"node {name!r}", name, attributes)
    if is_directed:
        draft.notes.append(
            f"{plural(len(edges), 'directed edge')} read as links that work both ways."
        )
    seen: Counter[tuple[str, str]] = Counter()
    ways: dict[tuple[str, str], list[dict[str, str]]] = {}
    for index, (a, b, attributes) in enumerate(edges):
        figures = {key: value for key, value in attributes.items() if key in _OF_LINKS}
        seen[a, b] += 1
        ways.setdefault((a, b), []).append(figures)
        # The way back of a link that has been counted is no second link.
        if not is_directed or seen[a, b] > seen[b, a]:
            _add_link(draft, f"edge[{index}]", a, b, attributes)
        elif figures != ways[b, a][seen[a, b] - 1]:
            raise source.wrong(
                f"edge[{index}]",
                "must have the attributes of its way back",
                f"{a} - {b}",
                "make both directions alike, or the graph undirected",
            )
    document, notes = draft.document(source.name)
    return _with_fabric_attributes(source, document, of_graph), notes


def _labelled(
    draft: Draft, nodes: dict[str, Texts], edges: list[Edge]
) -> tuple[dict[str, Texts], list[Edge]]:
    """Name nodes as they are labelled, and take rates from labels of edges."""
    labels = {name: attributes.pop(_LABEL, "") for name, attributes in nodes.items()}
    count = Counter([*labels.values(), *(name for name in labels if labels[name] != name)])
    new_names = {
        name: label if count[label] == 1 and label else f"{label} {name}".strip()
        for name, label in labels.items()
    }
    unread: dict[str, None] = {}
    for *_, attributes in edges:
        label = attributes.pop(_LABEL, "")
        if rate := _RATE.fullmatch(label):
            gbps = float(rate[2]) * (1000 if rate[3] == "T" else 1) * (8 if rate[4] else 1)
            attributes |= {"count": rate[1] or "1", "gbps": str(gbps)} | attributes
        elif label and not {"bandwidth_GBps", "gbps"} & attributes.keys():
            unread[label] = None
    quoted = listed(repr(label[:40]) for label in unread)
    draft.note(len(unread), "label", f" of links not read as a rate: {quoted}.")
    renamed = [(new_names[a], new_names[b], attributes) for a, b, attributes in edges]
    return {new_names[name]: attributes for name, attributes in nodes.items()}, renamed


def _parsed(source: Source) -> tuple[bool, Texts, dict[str, Texts], list[Edge]]:
    """Return what a file says of its graph, every node and every edge between nodes it lists."""
    try:
        root = fromstring(source.text, forbid_dtd=True)
    except DefusedXmlException as error:
        raise source.wrong(
            "", "must have no document type or entities", type(error).__name__, "remove the DOCTYPE"
        ) from error
    except ParseError as error:
        raise source.wrong(
            error.position[0], "must be valid XML", str(error), "correct or complete the file"
        ) from error
    depth, layer = 0, [root]
    while layer:
        depth += 1
        source.require(
            depth <= MAX_DEPTH,
            "",
            f"must nest at most {MAX_DEPTH} XML elements",
            "deeper",
            "flatten it",
        )
        layer = [child for element in layer for child in element]
    for element in root.iter():
        element.tag = element.tag.removeprefix(f"{{{_XMLNS}}}")
        source.require(
            element.tag not in ("hyperedge", "port"),
            "",
            "must hold nodes and edges only",
            element.tag,
            "take it out",
        )
    graphs = root.findall("graph")
    source.require(
        len(graphs) == 1,
        "",
        "must hold one graph of GraphML",
        plural(len(graphs), "graph"),
        "export one graph, with GraphML's namespace",
    )
    keys = [key for key in root.iter("key") if key.get("attr.name")]
    groups: dict[XmlElement, dict[str, str]] = {}
    nodes: dict[str, dict[str, str]] = {}
    for node in graphs[0].iter("node"):
        name = node.get("id", "")
        source.require(name, "", "must give every node an id", "missing", "name the nodes")
        if node.find("graph") is not None:  # a group of yEd's, which comes before what it holds
            group = {"group": _texts(node, []).get(_LABEL) or name}
            groups |= dict.fromkeys(node.iter("node"), group)
            continue
        source.require(
            name not in nodes,
            f"node {name!r}",
            "must be listed once",
            "there twice",
            "remove one of them",
        )
        nodes[name] = groups.get(node, {}) | _texts(node, keys)
    edges = [
        (edge.get("source", ""), edge.get("target", ""), _texts(edge, keys))
        for edge in graphs[0].iter("edge")
    ]
    for end in (end for *ends, _ in edges for end in ends):
        source.require(
            end in nodes,
            "",
            "must have edges between nodes that are listed",
            end or "an edge with one end",
            "list the node or correct its id",
        )
    return graphs[0].get("edgedefault") == "directed", _texts(graphs[0], keys), nodes, edges


def _texts(owner: XmlElement, keys: Sequence[XmlElement]) -> dict[str, str]:
    """Return what data say of an element, by the names of their keys, and how it is labelled."""
    names = {key.get("id"): key.get("attr.name", "") for key in keys}
    defaults = (key for key in keys if key.get("for") == owner.tag and key.findtext("default"))
    texts = {key.get("attr.name", ""): key.findtext("default") or "" for key in defaults}
    for data in owner.iterfind("data"):
        texts |= {names[key]: data.text or "" for key in [data.get("key")] if key in names}
        for label in data.iter():
            if label.tag in _LABELS:
                texts.setdefault(_LABEL, " ".join((label.text or "").split()))
    return {name: text for name, text in texts.items() if text}


def write_graphml(fabric: Fabric) -> FabricText:
    """Return the fabric as an undirected graph with typed keys, in the order of its links."""
    graph, lost = as_graph(fabric), fabric.lost_in_graph
    check_plain_names(graph, "GraphML")
    keys: dict[tuple[str, str], str] = {}

    def data(owner: str, attributes: Mapping[str, Any]) -> str:
        of_owner = {
            keys.setdefault((owner, name), f"d{len(keys)}"): value
            for name, value in attributes.items()
        }
        return "".join(
            f'<data key="{key}">{escape(str(value))}</data>' for key, value in of_owner.items()
        )

    groups = {} if isinstance(fabric, GraphFabric) else _groups(fabric, graph)
    body = [
        f"<node id={quoteattr(element.id)}>"
        + data("node", _element_attributes(element) | groups.get(element.id, {}))
        + "</node>"
        for element in graph.elements
    ]
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
    stated = {key: attributes[key][:200] for key in ("name", "routing") if key in attributes}
    source.check_text("name", "the name of the fabric", stated.get("name", ""))
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
    figure = figure_of(text)
    source.require(
        abs(figure) <= 1e6,
        where,
        f"must have a number from -1e6 to 1e6 as {axis}",
        text,
        "correct it",
    )
    return figure
