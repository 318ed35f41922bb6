"""One shortest path between any two of some devices, element by element, for people to read.

Distance is that of routing (`nest_core.network.link_graph`): NICs, then forwarding devices, then
hops; of equal paths the one that Dijkstra's search finds first. Flows may spread over several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from nest_core.network.link_graph import Links, read_links
from nest_core.network.link_map import FloatArray

__all__ = ["Path", "shortest_paths"]


@dataclass(frozen=True, slots=True)
class Path:
    """A way from one device to another.

    Parameters
    ----------
    elements : tuple
        Names in the graph, both devices included.
    bandwidth_Bps : float
        The narrowest step, all parallel links, one direction.
    latency_s : float
        One way, all steps.
    """

    elements: tuple[Any, ...]
    bandwidth_Bps: float
    latency_s: float


def shortest_paths(graph: nx.Graph[Any], devices: Sequence[int]) -> list[list[Path | None]]:
    """Paths between devices, row by row; None from a device to itself.

    Examples
    --------
    >>> from nest_core.fabric import Hierarchical, Tier
    >>> fabric = Hierarchical("two", (Tier("node", 2, 100e9, 1e-6),))
    >>> shortest_paths(fabric.explicit(), [0, 1])[0][1].elements
    (0, (0, 'node', 0), 1)
    """
    links = read_links(graph)
    size = len(links.elements)
    matrix = csr_array((links.weight, (links.tail, links.head)), shape=(size, size))
    before = dijkstra(matrix, indices=list(devices), return_predecessors=True)[1]
    narrow, late = _reached(links, np.asarray(devices), before)
    return [
        [
            None
            if a == b
            else Path(_walk(links, before[row], a, b), float(narrow[row, b]), float(late[row, b]))
            for b in devices
        ]
        for row, a in enumerate(devices)
    ]


def _reached(links: Links, devices: np.ndarray[Any, Any], before: Any) -> tuple[FloatArray, ...]:
    """Narrowest bandwidth and latency from every device to every element."""
    size = len(links.elements)
    number = links.tail * size + links.head
    rows = np.arange(len(devices))[:, None]
    here = np.broadcast_to(np.arange(size), before.shape).copy()
    narrow, late = np.full(before.shape, np.inf), np.zeros(before.shape)
    while True:
        tail = before[rows, here]
        moving = tail >= 0
        if not moving.any():
            return narrow, late
        arc = np.searchsorted(number, (tail * size + here)[moving])
        narrow[moving] = np.minimum(narrow[moving], links.capacity_Bps[arc])
        late[moving] += links.latency_s[arc]
        here[moving] = tail[moving]


def _walk(links: Links, before: Any, a: int, b: int) -> tuple[Any, ...]:
    path, here = [b], b
    while here != a:
        here = int(before[here])
        path.append(here)
    return tuple(links.elements[element] for element in reversed(path))
