"""NetJSON NetworkGraph, the neutral format of graphs (netjson/netjson, network-graph.json).

Required are ``type``, ``protocol``, ``version``, ``metric``, ``nodes`` and ``links``; a link has
``source``, ``target`` and ``cost``. What the studio adds stands in ``properties``
(`nest_core.formats.attributes`), the fabric's own at the top.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from nest_core.formats.attributes import (
    add_element,
    add_link,
    element_attributes,
    fabric_attributes,
    link_attributes,
    with_fabric_attributes,
)
from nest_core.formats.draft import Draft
from nest_core.formats.values import Document, Exported, Source
from nest_core.topology import Fabric, as_graph

__all__ = ["read_netjson", "write_netjson"]

MAX_DEPTH = 32
_OF_NODES = ("id", "properties")
_OF_LINKS = ("source", "target", "cost", "properties")


def read_netjson(source: Source) -> tuple[Document, tuple[str, ...]]:
    """A graph from a NetworkGraph object."""
    graph = _object(source, "", _parsed(source))
    if graph.get("type") != "NetworkGraph":
        raise source.wrong(
            "type",
            'must be "NetworkGraph"',
            graph.get("type", "missing"),
            "export the topology as a NetJSON NetworkGraph",
        )
    draft = Draft(source)
    for index, node in enumerate(_list(source, graph, "nodes")):
        where = f"nodes[{index}]"
        entry = _object(source, where, node)
        draft.leave_out(key for key in entry if key not in _OF_NODES)
        add_element(
            draft, where, _id(source, where, entry, "id"), _properties(source, where, entry)
        )
    for index, link in enumerate(_list(source, graph, "links")):
        where = f"links[{index}]"
        entry = _object(source, where, link)
        draft.leave_out(key for key in entry if key not in _OF_LINKS)
        a, b = (_id(source, where, entry, end) for end in ("source", "target"))
        add_link(draft, where, a, b, _properties(source, where, entry))
    own = _properties(source, "properties", graph)
    if isinstance(graph.get("label"), str):
        own = {"name": graph["label"]} | own
    document, notes = draft.document(source.name)
    return with_fabric_attributes(source, document, own), notes


def write_netjson(fabric: Fabric) -> Exported:
    """The fabric as a NetworkGraph; one node or link per line."""
    graph, lost = as_graph(fabric), fabric.lost_in_graph
    own = fabric_attributes(graph)
    head = {
        "type": "NetworkGraph",
        "protocol": "static",
        "version": None,
        "metric": None,
        "label": own.pop("name"),
        "properties": own,
    }
    nodes = [
        {"id": element.id, "properties": element_attributes(element)} for element in graph.elements
    ]
    links = [
        {"source": link.a, "target": link.b, "cost": 1.0, "properties": link_attributes(link)}
        for link in graph.links
    ]
    lines = [f" {json.dumps(key)}: {_json(value)}," for key, value in head.items()]
    text = "\n".join(["{", *lines, ' "nodes": [', _lines(nodes), " ],"])
    return Exported("\n".join([text, ' "links": [', _lines(links), " ]", "}"]) + "\n", lost)


def _lines(entries: list[dict[str, Any]]) -> str:
    return ",\n".join(f"  {_json(entry)}" for entry in entries)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _parsed(source: Source) -> object:
    _check_depth(source)

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
            raise source.wrong("", "must have every key of an object once", twice, "remove one")
        return found

    def constant(text: str) -> float:
        raise source.wrong("", "must hold finite numbers only", text, "correct the figure")

    try:
        return json.loads(source.text, object_pairs_hook=once, parse_constant=constant)
    except json.JSONDecodeError as error:
        raise source.wrong(
            error.lineno, "must be valid JSON", error.msg, "correct or complete the file"
        ) from error
    except ValueError as error:
        if error.__class__ is not ValueError:
            raise
        raise source.wrong("", "must hold shorter numbers", "a very long one", "shorten it") from (
            error
        )


def _check_depth(source: Source) -> None:
    """Refuse deep nesting before the parser recurses into it; strings are skipped."""
    depth = 0
    quoted = escaped = False
    for sign in source.text:
        if quoted:
            if escaped:
                escaped = False
            elif sign == "\\":
                escaped = True
            elif sign == '"':
                quoted = False
        elif sign == '"':
            quoted = True
        elif sign in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise source.wrong(
                    "", f"must nest at most {MAX_DEPTH} lists and objects", "deeper", "flatten it"
                )
        elif sign in "]}":
            depth -= 1


def _object(source: Source, where: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise source.wrong(where, "must be a JSON object", value, "write it in braces")
    return value


def _list(source: Source, graph: dict[str, Any], key: str) -> list[Any]:
    found = graph.get(key, "missing")
    if not isinstance(found, list):
        raise source.wrong(key, "must be a list", found, f"write {key} in brackets")
    return found


def _id(source: Source, where: str, entry: dict[str, Any], key: str) -> str:
    found = entry.get(key, "missing")
    if isinstance(found, int) and not isinstance(found, bool):
        return str(found)
    if not isinstance(found, str) or key not in entry:
        raise source.wrong(where, f"must have text as {key}", found, "name the element")
    return found


def _properties(source: Source, where: str, entry: dict[str, Any]) -> dict[str, Any]:
    return _object(source, where, entry.get("properties") or {})
