"""Attributes of elements and links, as GraphML carries them.

Elements: ``role``, ``radix``, ``count``, ``group``, ``x``, ``y``. Links: ``bandwidth_GBps`` (or
``gbps``, Gb/s), ``count``, ``latency_us`` (or ``latency_ns``). The fabric: ``name``, ``routing``,
``ecmp_seed``.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from nest_core.documents.units import gigabytes, microseconds
from nest_core.fabric import Element, GraphFabric, Link
from nest_core.interop.formats.draft import Draft
from nest_core.interop.formats.values import Document, Source

__all__ = [
    "OF_LINKS",
    "add_element",
    "add_link",
    "element_attributes",
    "fabric_attributes",
    "link_attributes",
    "with_fabric_attributes",
]

_OF_ELEMENTS = ("role", "radix", "count", "group", "x", "y")
OF_LINKS = ("bandwidth_GBps", "gbps", "count", "latency_us", "latency_ns")


def add_element(draft: Draft, where: str, name: str, attributes: Mapping[str, Any]) -> None:
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


def add_link(draft: Draft, where: str, a: str, b: str, attributes: Mapping[str, Any]) -> None:
    """Add a link with what its attributes say."""
    source = draft.source
    draft.leave_out(key for key in attributes if key not in OF_LINKS)
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


def with_fabric_attributes(
    source: Source, document: Document, attributes: Mapping[str, Any]
) -> Document:
    """The document with the name, routing and seed that a file states."""
    found: Document = {}
    name = attributes.get("name")
    if isinstance(name, str) and name:
        source.check_text("name", "the name of the fabric", name)
        found["name"] = name[:200]
    if attributes.get("routing") is not None:
        found["routing"] = attributes["routing"]
    if attributes.get("ecmp_seed"):
        found["ecmp_seed"] = int(
            source.number("", "ecmp_seed", attributes["ecmp_seed"], whole=True)
        )
    return document | found


def element_attributes(element: Element) -> dict[str, Any]:
    """What `add_element` reads back, without what is not stated."""
    every = {
        "role": element.role,
        "radix": element.radix or None,
        "count": None if element.count == 1 else element.count,
        "group": element.group or None,
        "x": element.x,
        "y": element.y,
    }
    return {key: value for key, value in every.items() if value is not None}


def link_attributes(link: Link) -> dict[str, Any]:
    """What `add_link` reads back."""
    return {
        "bandwidth_GBps": gigabytes(link.bandwidth_Bps),
        "count": link.count,
        "latency_us": microseconds(link.latency_s),
    }


def fabric_attributes(fabric: GraphFabric) -> dict[str, Any]:
    """What `with_fabric_attributes` reads back."""
    found: dict[str, Any] = {"name": fabric.name, "routing": fabric.routing}
    return found | ({"ecmp_seed": fabric.ecmp_seed} if fabric.ecmp_seed else {})


def _coordinate(source: Source, where: str, axis: str, value: object) -> float:
    found = None
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        with suppress(ValueError, OverflowError):  # refused below, with everything else
            found = float(value)
    if found is None or not abs(found) <= 1e6:
        raise source.wrong(
            where, f"must have a number from -1e6 to 1e6 as {axis}", value, "correct it"
        )
    return found


def _text(source: Source, where: str, field: str, value: object) -> str:
    if not isinstance(value, str):
        raise source.wrong(where, f"must have text as {field}", value, "write it in quotes")
    source.check_text(where, field, value)
    return value
