"""Any fabric as named elements and links: what every graph format writes."""

from __future__ import annotations

import re
from typing import Any

from nest_core.errors import InputError
from nest_core.topology import Clos, Dragonfly, Fabric
from nest_core.topology.checks import MAX_EXPLICIT_DEVICES
from nest_core.topology.formats.values import plural
from nest_core.topology.graph import Element, GraphFabric, Link

__all__ = ["as_graph", "check_plain_names"]

# What XML 1.0 cannot hold, or holds only as a reference.
_UNWRITABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def as_graph(fabric: Fabric) -> tuple[GraphFabric, tuple[str, ...]]:
    """The fabric as a graph, and what the drawing loses.

    Devices become ``gpu0``, ``gpu1``, ...; NICs and switches are named after their place, as
    in ``explicit()``: ``nic3.1``, ``leaf0``.

    Raises
    ------
    InputError
        Over 16,384 devices.
    """
    if isinstance(fabric, GraphFabric):
        return fabric, ()
    if fabric.devices > MAX_EXPLICIT_DEVICES:
        raise InputError(
            "fabric",
            f"must have at most {MAX_EXPLICIT_DEVICES:,} devices to be written link by link",
            fabric.devices,
            "choose TOML, or a format of groups",
        )
    graph = fabric.explicit()
    names: dict[Any, str] = {}
    for node in graph:
        names[node] = f"gpu{node}" if isinstance(node, int) else _name(node)
    if len(set(names.values())) < len(names) or max(map(len, names.values())) > 200:
        # Two tiers of one name, one that is called gpu, or one with a very long name.
        for number, (node, role) in enumerate(graph.nodes(data="role")):
            names[node] = f"{'gpu' if role == 'device' else role}{number}"
    elements = tuple(
        Element(names[node], data["role"], data.get("radix", 0), count=data.get("count", 1))
        for node, data in graph.nodes(data=True)
    )
    links = tuple(
        Link(names[a], names[b], data["bandwidth_Bps"], int(data["count"]), data["latency_s"])
        for a, b, data in graph.edges(data=True)
    )
    if isinstance(fabric, Clos | Dragonfly):
        drawn = GraphFabric(fabric.name, elements, links, fabric.routing, fabric.ecmp_seed)
    else:
        drawn = GraphFabric(fabric.name, elements, links)
    return drawn, _lost(fabric)


def _lost(fabric: Fabric) -> tuple[str, ...]:
    """What a drawing of a counted fabric no longer says."""
    lost = [
        "The counts and rules that make up the fabric: it is written element by element, link by"
        " link; levels, bill and times are found from these, and may differ.",
    ]
    if isinstance(fabric, Clos):
        lost.append(
            "Switches of a tier that the fabric uses as one are written as one, with their number."
        )
    return tuple(lost)


def check_plain_names(fabric: GraphFabric, format_name: str) -> None:
    """Refuse names with control characters, which text formats cannot hold."""
    if _UNWRITABLE.search(fabric.name):
        raise InputError(
            "name",
            f"must be free of control characters to be written as {format_name}",
            fabric.name,
            "rename the fabric",
        )
    for index, element in enumerate(fabric.elements):
        if _UNWRITABLE.search(element.id + element.group):
            raise InputError(
                f"element[{index}].id",
                f"must be free of control characters to be written as {format_name}",
                element.id,
                f"rename one of the {plural(len(fabric.elements), 'element')}",
            )


def _name(node: tuple[Any, ...]) -> str:
    """``("nic", 3, 1)`` is nic3.1; hierarchies put a tier's number before its name."""
    words = node[1:] if isinstance(node[0], int) else node
    return f"{words[0]}{'.'.join(map(str, words[1:]))}"
