"""Link graphs as arrays, and shortest paths over them.

Distance is lexicographic: first the NICs on the way, then the devices that forward, then hops.
`shortest_paths` lists one between any two of some devices, for people to read: of equal ones that
which Dijkstra's search finds first. Flows may spread over several.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nest_core.documents.errors import InputError, require
from nest_core.fabric.checks import LinkGraph
from nest_core.network.link_map import FloatArray, IntArray

__all__ = [
    "DEVICE",
    "NIC",
    "SWITCH",
    "TABLE",
    "Links",
    "NextHops",
    "Path",
    "next_hops",
    "parts",
    "read_links",
    "shortest_paths",
    "tables",
]

DEVICE, NIC, SWITCH = 0, 1, 2
ROLES = {"device": DEVICE, "nic": NIC, "switch": SWITCH}
FORWARD = 2.0**16  # more than any number of hops
LEAVE = 2.0**32  # more than any number of forwarding devices
TABLE = 2**24  # (element, target) pairs that are tabled at once
ARCS = 2**10


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """A link graph as arrays: one arc per link and direction, sorted by tail, then head.

    Parameters
    ----------
    elements : tuple
        Names; devices come first, in the graph's order.
    devices : int
    role : int array (elements,)
        0 device, 1 NIC, 2 switch.
    tail, head : int array (arcs,)
    bandwidth_Bps, latency_s : float array (arcs,)
        Of one of ``count`` parallel links.
    count : int array (arcs,)
    """

    elements: tuple[Any, ...]
    devices: int
    role: IntArray
    tail: IntArray
    head: IntArray
    bandwidth_Bps: FloatArray
    count: IntArray
    latency_s: FloatArray

    @property
    def capacity_Bps(self) -> FloatArray:
        """All parallel links of an arc, shape (arcs,)."""
        return np.asarray(self.bandwidth_Bps * self.count)

    @property
    def weight(self) -> FloatArray:
        """Distance of an arc: one hop, and what entering its head adds."""
        return 1.0 + np.array([FORWARD, LEAVE, 0.0])[self.role[self.head]]

    def node(self) -> IntArray:
        """Node of every element: what hangs together without NICs; NICs are nodes apart."""
        inside = (self.role[self.tail] != NIC) & (self.role[self.head] != NIC)
        return parts(self.tail[inside], self.head[inside], len(self.elements))


def parts(tail: IntArray, head: IntArray, size: int) -> IntArray:
    """Return the connected part of every element, shape (size,)."""
    from scipy.sparse import csgraph, csr_array

    matrix = csr_array((np.ones(len(tail)), (tail, head)), shape=(size, size))
    return np.asarray(csgraph.connected_components(matrix, directed=False)[1], np.int64)


def read_links(graph: LinkGraph) -> Links:
    """Return the arrays of a link graph.

    Parameters
    ----------
    graph : networkx.Graph
        Nodes carry ``role`` (device, nic or switch), edges ``bandwidth_Bps`` and ``latency_s``
        of one of ``count`` parallel links. Devices are whole numbers from 0, or are numbered in
        the order of the graph.

    Raises
    ------
    InputError
        For a graph without devices, or one whose devices are not all connected.
    """
    role = {element: ROLES[str(data["role"])] for element, data in graph.nodes(data=True)}
    elements = tuple(sorted(graph, key=lambda element: role[element] != DEVICE))
    device_ids = [element for element in elements if role[element] == DEVICE]
    if set(device_ids) == set(range(len(device_ids))):
        elements = (*range(len(device_ids)), *elements[len(device_ids) :])
    number = {element: index for index, element in enumerate(elements)}
    require(device_ids, "element", "must include a device", 0, "add one")
    ends = np.array([(number[a], number[b]) for a, b in graph.edges], np.int64).reshape(-1, 2)
    figures = np.array(
        [(e["bandwidth_Bps"], e["count"], e["latency_s"]) for _, _, e in graph.edges(data=True)]
    ).reshape(-1, 3)
    tail, head = np.concatenate([ends, ends[:, ::-1]]).T
    order = np.lexsort((head, tail))
    bandwidth, count, latency = np.concatenate([figures, figures])[order].T
    links = Links(
        elements,
        len(device_ids),
        np.array([role[element] for element in elements]),
        tail[order],
        head[order],
        bandwidth,
        count.astype(np.int64),
        latency,
    )
    _check_connected(links)
    return links


def _check_connected(links: Links) -> None:
    part = parts(links.tail, links.head, len(links.elements))[: links.devices]
    unreachable = np.flatnonzero(part != part[0])
    if len(unreachable):
        raise InputError(
            "link",
            "must connect all devices",
            str(links.elements[unreachable[0]]),
            f"link it with {links.elements[0]}",
        )


# Without slots: latencies are found once, where they are asked for.
@dataclass(frozen=True, eq=False)
class NextHops:
    """Arcs that shortest paths towards some targets take.

    Parameters
    ----------
    links : Links
    column : int array (devices,)
        Place of every target among those tabled; −1 elsewhere.
    start : int array (targets * elements + 1,)
        Where the arcs of (target, element) begin in ``arc``, in ascending order of heads.
    arc : int array
    """

    links: Links
    column: IntArray
    start: IntArray
    arc: IntArray

    @cached_property
    def latency_s(self) -> FloatArray:
        """From every element to every target along first next hops, (targets x elements,).

        Each round doubles how far every entry looks, so long lines take few rounds; 0 where there
        is no way.
        """
        size = len(self.links.elements)
        key = np.arange(len(self.start) - 1)
        if not len(self.arc):
            return np.zeros(len(key))
        ends = self.start[:-1] == self.start[1:]  # at the target, or where no path begins
        arc = self.arc[np.where(ends, 0, self.start[:-1])]
        latency = np.where(ends, 0.0, self.links.latency_s[arc])
        onward = np.where(ends, key, key - key % size + self.links.head[arc])
        while not np.array_equal(ahead := onward[onward], onward):
            latency = latency + latency[onward]
            onward = ahead
        return np.asarray(latency)


def next_hops(links: Links, targets: IntArray) -> NextHops:
    """Table the next hops from every element to some devices, shape (targets,)."""
    from scipy.sparse import csgraph, csr_array

    size, weight = len(links.elements), links.weight
    matrix = csr_array((weight, (links.head, links.tail)), shape=(size, size))
    distance = np.ascontiguousarray(np.atleast_2d(csgraph.dijkstra(matrix, indices=targets)).T)
    distance[np.isinf(distance)] = np.nan  # elements that hang nowhere equal nothing
    taken = np.empty((len(weight), len(targets)), np.bool_)
    for begin in range(0, len(weight), ARCS):
        some = slice(begin, begin + ARCS)
        ahead = weight[some, None] + distance[links.head[some]]
        np.equal(distance[links.tail[some]], ahead, out=taken[some])
    # Forward inside the node first: drop a device's own NIC where another next hop is as near.
    device_arcs = int(np.searchsorted(links.tail, links.devices))  # arcs of devices come first
    leaves = links.role[links.head[:device_arcs]] == NIC
    if leaves.any():
        opens = np.diff(links.tail[:device_arcs], prepend=-1) != 0
        forwards = np.logical_or.reduceat(
            taken[:device_arcs] & ~leaves[:, None], np.flatnonzero(opens)
        )
        taken[:device_arcs] &= ~(leaves[:, None] & forwards[np.cumsum(opens) - 1])
    row, arc = np.nonzero(np.ascontiguousarray(taken.T))
    start = np.zeros(len(targets) * size + 1, np.int64)
    np.cumsum(np.bincount(row * size + links.tail[arc], minlength=len(start) - 1), out=start[1:])
    column = np.full(links.devices, -1, np.int64)
    column[targets] = np.arange(len(targets))
    return NextHops(links, column, start, arc)


def tables(links: Links, targets: IntArray, room: int) -> Iterator[NextHops]:
    """Table the next hops towards some devices, as many (element, target) pairs at once."""
    block = max(1, room // len(links.elements))
    yield from (
        next_hops(links, targets[start : start + block]) for start in range(0, len(targets), block)
    )


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


def shortest_paths(graph: LinkGraph, devices: Sequence[int]) -> list[list[Path | None]]:
    """Paths between devices, row by row; None from a device to itself.

    Examples
    --------
    >>> from nest_core.fabric import Hierarchical, Tier
    >>> fabric = Hierarchical("two", (Tier("node", 2, 100e9, 1e-6),))
    >>> shortest_paths(fabric.explicit(), [0, 1])[0][1].elements
    (0, (0, 'node', 0), 1)
    """
    from scipy.sparse import csgraph, csr_array

    links = read_links(graph)
    size = len(links.elements)
    matrix = csr_array((links.weight, (links.tail, links.head)), shape=(size, size))
    before = csgraph.dijkstra(matrix, indices=list(devices), return_predecessors=True)[1]
    return [
        [None if a == b else _path(links, before[row], a, b) for b in devices]
        for row, a in enumerate(devices)
    ]


def _path(links: Links, before: IntArray, a: int, b: int) -> Path:
    """Walk back from the target to where a search began."""
    way = [b]
    while way[-1] != a:
        way.append(int(before[way[-1]]))
    head, tail = np.array(way[:-1]), np.array(way[1:])
    arcs = np.searchsorted(links.tail * len(before) + links.head, tail * len(before) + head)
    names = tuple(links.elements[element] for element in reversed(way))
    return Path(names, float(links.capacity_Bps[arcs].min()), float(links.latency_s[arcs].sum()))
