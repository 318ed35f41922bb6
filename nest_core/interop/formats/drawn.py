"""What drawings lose of a fabric, and which of their names text formats cannot hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from nest_core.documents.errors import InputError
from nest_core.documents.units import plural
from nest_core.fabric import Fabric, GraphFabric

__all__ = ["check_plain_names", "unsaid", "unsaid_counts"]

# What XML 1.0 cannot hold, or holds only as a reference.
_UNWRITABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def unsaid(
    fabric: Fabric, document: Mapping[str, Any] | None, *, hosts: bool = True
) -> tuple[str, ...]:
    """What only the studio's own documents of counted fabrics say; ``hosts``: of hosts too."""
    lost = []
    if hosts and fabric.devices_per_host:
        lost.append(f"Hosts: each has {fabric.devices_per_host} of the devices of a node.")
    if document is not None and document.get("source"):
        lost.append("The remark on where the fabric's figures are from.")
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


def unsaid_counts(graph: GraphFabric) -> list[str]:
    """What a list of links does not say of the elements, one sentence each."""
    lost = {
        "How many ports switches have.": any(element.radix for element in graph.elements),
        "How many switches or NICs are drawn as one.": any(
            element.count > 1 for element in graph.elements
        ),
    }
    return [sentence for sentence, holds in lost.items() if holds]
