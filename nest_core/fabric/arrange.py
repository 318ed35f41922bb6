"""Places for the elements of a drawing: boxes in boxes, switches above what hangs on them.

Inside a group devices stand in rows at the bottom, then the groups that it holds, side by side
in rows of about twice the width of their height, then its switches, tier by tier upwards. A
switch stands near the mean of what hangs on it.

How far the elements of a graph are from its devices, and which switches serve devices alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import Any, TypeVar

from nest_core.fabric.checks import LinkGraph

__all__ = ["arranged", "heights", "hops", "inner_switches"]

K = TypeVar("K", bound=Hashable)


def hops(
    graph: Mapping[K, Iterable[K]] | LinkGraph,
    sources: Iterable[K],
    enters: Callable[[K], bool] | None = None,
) -> dict[K, int]:
    """Return the links between every element and the nearest source, in the order of reaching it.

    Parameters
    ----------
    graph : mapping of element to its neighbours
    sources : iterable of element
    enters : callable, optional
        Whether an element that is no source is reached at all; else all are.
    """
    result = dict.fromkeys(sources, 0)
    order = list(result)
    for name in order:
        for other in graph[name]:
            if other not in result and (enters is None or enters(other)):
                result[other] = result[name] + 1
                order.append(other)
    return result


def heights(graph: Mapping[K, Iterable[K]] | LinkGraph, devices: Iterable[K]) -> dict[K, int]:
    """Return the links between every element and the nearest device.

    What no device reaches is one above all.
    """
    result = hops(graph, devices)
    above = max(result.values(), default=-1) + 1
    return result | {name: above for name in graph if name not in result}


def inner_switches(graph: Mapping[K, Collection[K]] | LinkGraph, devices: Collection[K]) -> set[K]:
    """Return what has devices alone beside it, as a server's own switch has."""
    ends = set(devices)
    return {
        name for name in graph if name not in ends and graph[name] and ends.issuperset(graph[name])
    }


PITCH = 60.0
MARGIN = 36.0
WIDER = 2.2
"""Width over height that a group of groups aims at."""

FEW = 2
"""Groups that always stand side by side."""

FLAT = 24.0
"""Width over height of a row of switches above groups: room for them to be seen from afar."""

MOST_IN_A_ROW = 16

Places = dict[str, tuple[float, float]]


def arranged(drawing: Mapping[str, Any]) -> dict[str, Any]:
    """Return the drawing with every element's ``x`` and ``y`` set anew, y downwards."""
    import networkx as nx

    graph: LinkGraph = nx.Graph()
    graph.add_nodes_from(entry["id"] for entry in drawing["element"])
    graph.add_edges_from(
        (link["a"], link["b"])
        for link in drawing["link"]
        if link["a"] in graph and link["b"] in graph
    )
    devices = [entry["id"] for entry in drawing["element"] if entry["role"] == "device"]
    height = heights(graph, devices)
    members: dict[str, list[str]] = defaultdict(list)
    inside: dict[str, list[str]] = defaultdict(list)
    groups = {""}
    for entry in drawing["element"]:
        group = entry.get("group") or ""
        members[group].append(entry["id"])
        while group not in groups:
            groups.add(group)
            above = group.rpartition("/")[0]
            inside[above].append(group)
            group = above
    _, _, places = _Boxes(graph, height, members, inside).box("")
    return dict(drawing) | {
        "element": [
            {**entry, "x": round(places[entry["id"]][0], 1), "y": round(places[entry["id"]][1], 1)}
            for entry in drawing["element"]
        ]
    }


class _Boxes:
    """Sizes and places of groups, from the inside out."""

    def __init__(
        self,
        graph: LinkGraph,
        height: Mapping[str, int],
        members: Mapping[str, list[str]],
        inside: Mapping[str, list[str]],
    ) -> None:
        self._graph = graph
        self._height = height
        self._own = members
        self._inside = inside

    def box(self, group: str) -> tuple[float, float, Places]:
        """Width, height and places in a group, its upper left corner at 0, 0."""
        tiers: dict[int, list[str]] = defaultdict(list)
        for name in self._own.get(group, ()):
            tiers[self._height[name]].append(name)
        width, top, places = self._groups(self._inside.get(group, ()))
        if 0 in tiers:
            shift, wide, high, row = self._row(tiers.pop(0), width, {})
            places = {name: (x + shift, y) for name, (x, y) in places.items()}
            places |= {name: (x, y + top) for name, (x, y) in row.items()}
            width, top = wide, top + high
        for tier in sorted(tiers):
            shift, wide, high, row = self._row(tiers[tier], width, places)
            places = {name: (x + shift, y + high) for name, (x, y) in places.items()} | row
            width, top = wide, top + high
        if group:
            places = {name: (x + MARGIN, y + MARGIN) for name, (x, y) in places.items()}
            width, top = width + 2 * MARGIN, top + 2 * MARGIN
        return width, top, places

    def _groups(self, groups: Collection[str]) -> tuple[float, float, Places]:
        boxes = [self.box(group) for group in groups]
        if not boxes:
            return 0.0, 0.0, {}
        wide = max(width for width, _, _ in boxes)
        high = max(height for _, height, _ in boxes)
        wished = round(math.sqrt(len(boxes) * WIDER * high / wide))
        columns = min(len(boxes), max(FEW, wished))
        places: Places = {}
        for index, (_, height, inner) in enumerate(boxes):
            row, column = divmod(index, columns)
            shift_x, shift_y = column * (wide + PITCH / 2), row * (high + PITCH / 2) + high - height
            places |= {name: (x + shift_x, y + shift_y) for name, (x, y) in inner.items()}
        rows = -(-len(boxes) // columns)
        gap = PITCH / 2
        return columns * (wide + gap) - gap, rows * (high + gap) - gap, places

    def _row(
        self, names: list[str], width: float, below: Places
    ) -> tuple[float, float, float, Places]:
        """Names in rows over ``width``: shift of what is there, width, height, places."""
        pitch = max(PITCH, width / FLAT) if below else PITCH
        mean = {name: self._mean(name, below) for name in names}
        order = sorted(names, key=lambda name: mean[name]) if below else names
        columns = min(len(order), max(MOST_IN_A_ROW, int(width // PITCH)))
        rows = -(-len(order) // columns)
        wide = max(width, columns * PITCH)
        step = wide / columns
        places = {
            name: ((index % columns + 0.5) * step, (index // columns + 0.5) * pitch)
            for index, name in enumerate(order)
        }
        last = len(order) - (rows - 1) * columns
        for name in order[len(order) - last :] if rows > 1 else ():
            x, y = places[name]
            places[name] = (x + (columns - last) * step / 2, y)
        return (wide - width) / 2, wide, (rows + 0.4) * pitch, places

    def _mean(self, name: str, below: Places) -> float:
        columns = [below[other][0] for other in self._graph[name] if other in below]
        return sum(columns) / len(columns) if columns else 0.0
