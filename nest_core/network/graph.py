"""Wires of arbitrary link graphs: every link is counted, every flow takes shortest paths.

Distance is lexicographic: first the NICs on the way, then the devices that forward, then hops.
So traffic between devices of a node stays in it, devices forward only where switches alone do
not connect the pair (tori, meshes, rail-only fabrics), and where a device may either forward
inside its node or leave through its NIC at equal distance it forwards first, as PXN does
(NCCL 2.12). Among the next hops of a shortest path

* ``adaptive`` divides a flow in proportion to their capacity: the ideal of adaptive routing;
* ``shortest_path`` takes the lowest-numbered one;
* ``ecmp`` hashes (source, target) anew at every element onto one link, so that parallel links
  are bundles of their own (RFC 2992).

All flows walk together, hop by hop, in vectors. Distances come from one Dijkstra search per
target (`scipy.sparse.csgraph`) and are tabled where they fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import networkx as nx
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from nest_core.errors import InputError
from nest_core.network.wires import BoolArray, FloatArray, IntArray, Routes, hashed, joined

__all__ = ["GraphWires", "Links", "NextHops", "next_hops", "read_links"]

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
        size = len(self.elements)
        ends = self.tail[inside], self.head[inside]
        matrix = csr_array((np.ones(int(inside.sum())), ends), shape=(size, size))
        part = connected_components(matrix, directed=False)[1]
        return np.asarray(part, np.int64)


def read_links(graph: nx.Graph[Any]) -> Links:
    """The arrays of a link graph.

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
    own = [element for element in elements if role[element] == DEVICE]
    if set(own) == set(range(len(own))):
        elements = (*range(len(own)), *elements[len(own) :])
    number = {element: index for index, element in enumerate(elements)}
    if not own:
        raise InputError("element", "must include a device", 0, "add one")
    ends = np.array([(number[a], number[b]) for a, b in graph.edges], np.int64).reshape(-1, 2)
    figures = np.array(
        [(e["bandwidth_Bps"], e["count"], e["latency_s"]) for _, _, e in graph.edges(data=True)]
    ).reshape(-1, 3)
    tail, head = np.concatenate([ends, ends[:, ::-1]]).T
    order = np.lexsort((head, tail))
    bandwidth, count, latency = np.concatenate([figures, figures])[order].T
    links = Links(
        elements, len(own), np.array([role[element] for element in elements]),
        tail[order], head[order], bandwidth, count.astype(np.int64), latency,
    )  # fmt: skip
    _check_connected(links)
    return links


def _check_connected(links: Links) -> None:
    size = len(links.elements)
    matrix = csr_array((np.ones(len(links.tail)), (links.tail, links.head)), shape=(size, size))
    part = connected_components(matrix, directed=False)[1][: links.devices]
    apart = np.flatnonzero(part != part[0])
    if len(apart):
        raise InputError(
            "link", "must connect all devices", str(links.elements[apart[0]]),
            f"link it with {links.elements[0]}",
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class NextHops:
    """Arcs that shortest paths towards some targets take.

    Parameters
    ----------
    column : int array (devices,)
        Place of every target among those tabled; −1 elsewhere.
    start : int array (targets * elements + 1,)
        Where the arcs of (target, element) begin in ``arc``, in ascending order of heads.
    arc : int array
    """

    column: IntArray
    start: IntArray
    arc: IntArray


def next_hops(links: Links, targets: IntArray) -> NextHops:
    """Table the next hops from every element to some devices, shape (targets,)."""
    size, weight = len(links.elements), links.weight
    matrix = csr_array((weight, (links.head, links.tail)), shape=(size, size))
    distance = np.ascontiguousarray(np.atleast_2d(dijkstra(matrix, indices=targets)).T)
    distance[np.isinf(distance)] = np.nan  # elements that hang nowhere equal nothing
    taken = np.empty((len(weight), len(targets)), np.bool_)
    for begin in range(0, len(weight), ARCS):
        some = slice(begin, begin + ARCS)
        ahead = weight[some, None] + distance[links.head[some]]
        np.equal(distance[links.tail[some]], ahead, out=taken[some])
    # Forward inside the node first: drop a device's own NIC where another next hop is as near.
    own = int(np.searchsorted(links.tail, links.devices))  # arcs of devices come first
    leaves = links.role[links.head[:own]] == NIC
    if leaves.any():
        opens = np.diff(links.tail[:own], prepend=-1) != 0
        forwards = np.logical_or.reduceat(taken[:own] & ~leaves[:, None], np.flatnonzero(opens))
        taken[:own] &= ~(leaves[:, None] & forwards[np.cumsum(opens) - 1])
    taken = np.ascontiguousarray(taken.T)
    row, arc = np.nonzero(taken)
    start = np.zeros(len(targets) * size + 1, np.int64)
    np.cumsum(np.bincount(row * size + links.tail[arc], minlength=len(start) - 1), out=start[1:])
    column = np.full(links.devices, -1, np.int64)
    column[targets] = np.arange(len(targets))
    return NextHops(column, start, arc)


@dataclass(frozen=True, slots=True, eq=False)
class GraphWires:
    """Every link of a graph, one bundle per direction (under ECMP: per link and direction).

    Parameters
    ----------
    links : Links
    nesting : tuple of int array (devices,)
        Groups of devices, innermost first; the last one holds everything.
    arc_level : int array (arcs,)
        Level whose traffic crosses an arc first.
    routing : {"adaptive", "shortest_path", "ecmp"}
    seed, variants : int
        Of the hash.
    speed : float array (arcs,) or None
        Factors on the bandwidths of ``links``; None: 1.
    """

    links: Links
    nesting: tuple[IntArray, ...]
    arc_level: IntArray
    routing: Literal["adaptive", "shortest_path", "ecmp"] = "adaptive"
    seed: int = 0
    variants: int = 1
    speed: FloatArray | None = None
    _tabled: dict[str, NextHops] = field(default_factory=dict, repr=False)
    _first: IntArray = field(init=False, repr=False)
    _arc: IntArray = field(init=False, repr=False)
    _capacity: FloatArray = field(init=False, repr=False)
    _outside: BoolArray = field(init=False, repr=False)
    _node: IntArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        links = self.links
        copies = links.count if self.routing == "ecmp" else np.ones_like(links.count)
        capacity = links.capacity_Bps * (1.0 if self.speed is None else self.speed)
        arc = np.repeat(np.arange(len(copies)), copies)
        node, outside = _nodes(links, self.nesting, self.arc_level)
        object.__setattr__(self, "_first", np.cumsum(copies) - copies)
        object.__setattr__(self, "_arc", arc)
        object.__setattr__(self, "_capacity", (capacity / copies)[arc])
        object.__setattr__(self, "_node", node)
        object.__setattr__(self, "_outside", outside[arc])

    @property
    def capacity_Bps(self) -> FloatArray:
        """(bundles,)."""
        return self._capacity

    @property
    def lane_Bps(self) -> FloatArray:
        """(bundles,): one link, or all where flows spread."""
        if self.routing != "shortest_path":
            return self._capacity
        return np.asarray(self._capacity / self.links.count)

    @property
    def tier(self) -> IntArray:
        """(bundles,)."""
        return self.arc_level[self._arc]

    @property
    def outside(self) -> BoolArray:
        """(bundles,)."""
        return self._outside

    @property
    def port_Bps(self) -> float:
        """The most that any device sends inside its node, or out of it."""
        own = self.links.tail[self._arc] < self.links.devices
        key = self.links.tail[self._arc][own] * 2 + self._outside[own]
        return float(np.bincount(key, self._capacity[own], minlength=1).max(initial=0.0))

    def exit_Bps(self, block: int) -> float:
        """Not told."""
        del block
        return float("inf")

    @property
    def least_latency_s(self) -> float:
        """Between the two devices that are nearest in time, along their route."""
        if self.links.devices == 1:
            return 0.0
        return float(self.latency_s(*_neighbours(self.links).T).min())

    def faster(self, tier: int, factor: float) -> GraphWires:
        """The same links with those of one tier wider; the routes stay."""
        speed = np.ones(len(self.arc_level)) if self.speed is None else self.speed
        return replace(self, speed=np.where(self.arc_level == tier, speed * factor, speed))

    def level(self, source: IntArray, target: IntArray) -> IntArray:
        """Innermost level whose group holds both; −1 for a device and itself."""
        source, target = np.broadcast_arrays(source, target)
        met = np.full(source.shape, len(self.nesting) - 1, dtype=np.int64)
        for index in range(len(self.nesting) - 2, -1, -1):
            group = self.nesting[index]
            met[group[source] == group[target]] = index
        met[source == target] = -1
        return met

    def routes(self, source: IntArray, target: IntArray, variant: int = 0) -> Routes:
        """Shortest paths through the graph."""
        outside = self._node[source] != self._node[target]
        latency = np.zeros(len(source))
        parts: list[tuple[IntArray, IntArray, FloatArray]] = []
        for table, flow in self._tables(target):
            if self.routing == "adaptive":
                parts += self._spread(table, flow, source[flow], target[flow])
            for walked, arc, bundle in self._single(
                table, flow, source[flow], target[flow], variant
            ):
                latency[walked] += self.links.latency_s[arc]
                if self.routing != "adaptive":
                    parts.append((walked, bundle, np.ones(len(walked))))
        flows, bundle, share = joined(parts)
        return Routes(flows, bundle, share, latency, outside)

    def latency_s(self, source: IntArray, target: IntArray) -> FloatArray:
        """One way along the (first) route, shape of ``source``."""
        latency = np.zeros(len(source))
        for table, flow in self._tables(target):
            for walked, arc, _ in self._single(table, flow, source[flow], target[flow], 0):
                latency[walked] += self.links.latency_s[arc]
        return latency

    def _tables(self, target: IntArray) -> Iterator[tuple[NextHops, IntArray]]:
        """Tables that serve all targets, each with its flows; one for all where it fits."""
        block = max(1, TABLE // len(self.links.elements))
        if self.links.devices <= block:
            if "all" not in self._tabled:
                self._tabled["all"] = next_hops(self.links, np.arange(self.links.devices))
            yield self._tabled["all"], np.arange(len(target))
            return
        wanted = np.unique(target)
        for begin in range(0, len(wanted), block):
            table = next_hops(self.links, wanted[begin : begin + block])
            yield table, np.flatnonzero(table.column[target] >= 0)

    def _spread(
        self, table: NextHops, flow: IntArray, here: IntArray, target: IntArray
    ) -> list[tuple[IntArray, IntArray, FloatArray]]:
        """Every shortest path, in proportion to capacity at each hop."""
        size = len(self.links.elements)
        share = np.ones(len(flow))
        goal = {"flow": flow, "target": target}
        parts = []
        going = here != target
        index = np.arange(len(flow))[going]
        here, share = here[going], share[going]
        while len(index):
            key = table.column[goal["target"][index]] * size + here
            first, fan = table.start[key], table.start[key + 1] - table.start[key]
            entry = np.repeat(np.arange(len(index)), fan)
            arc = table.arc[
                first[entry] + np.arange(len(entry)) - np.repeat(np.cumsum(fan) - fan, fan)
            ]
            rate = self._capacity[arc]
            total = np.bincount(entry, rate, minlength=len(index))
            moved = share[entry] * rate / total[entry]
            index = index[entry]
            parts.append((goal["flow"][index], arc, moved))
            here = self.links.head[arc]
            going = here != goal["target"][index]
            index, here, share = index[going], here[going], moved[going]
            if len(index) and fan.max() > 1:
                merged, place = np.unique(index * size + here, return_inverse=True)
                share = np.asarray(np.bincount(place, share), np.float64)
                index, here = merged // size, merged % size
        return parts

    def _single(
        self, table: NextHops, flow: IntArray, here: IntArray, target: IntArray, variant: int
    ) -> list[tuple[IntArray, IntArray, IntArray]]:
        """One path per flow: flow, arc and bundle of every crossing, hop by hop."""
        size, source = len(self.links.elements), here
        hops = []
        while len(flow):
            going = here != target
            flow, source, here, target = flow[going], source[going], here[going], target[going]
            if not len(flow):
                break
            key = table.column[target] * size + here
            first, last = table.start[key], table.start[key + 1]
            arc, bundle = table.arc[first], self._first[table.arc[first]]
            if self.routing == "ecmp":
                # Parallel links are ports of their own: number them over all next hops.
                ports = np.concatenate([[0], np.cumsum(self.links.count[table.arc])])
                draw = hashed(hashed(source, target, self.seed), here, variant)
                port = ports[first] + draw % (ports[last] - ports[first])
                place = np.searchsorted(ports, port, side="right") - 1
                arc = table.arc[place]
                bundle = self._first[arc] + port - ports[place]
            hops.append((flow, arc, bundle))
            here = self.links.head[arc]
        return hops


def _nodes(
    links: Links, nesting: tuple[IntArray, ...], arc_level: IntArray
) -> tuple[IntArray, BoolArray]:
    """Node of every device, and which arcs lie outside the nodes.

    Where the graph has NICs, a node is what hangs together without them; elsewhere, or where
    that would be everything, it is an innermost group.
    """
    node = links.node()
    if (links.role == NIC).any() and len(np.unique(node[: links.devices])) > 1:
        return node[: links.devices], node[links.tail] != node[links.head]
    return nesting[0], arc_level > 0


def _neighbours(links: Links) -> IntArray:
    """Pairs of devices with no third one nearer in time in between, shape (pairs, 2).

    The two devices that are nearest of all are the ends of some arc whose ends are nearest to
    different devices.
    """
    size = len(links.elements)
    cost = np.maximum(links.latency_s, 1e-18)  # csgraph takes a stored zero for no link
    matrix = csr_array((cost, (links.tail, links.head)), shape=(size, size))
    every = np.arange(links.devices)
    _, _, nearest = dijkstra(matrix, indices=every, min_only=True, return_predecessors=True)
    pairs = np.stack([nearest[links.tail], nearest[links.head]], axis=1).astype(np.int64)
    return np.unique(pairs[(pairs[:, 0] != pairs[:, 1]) & (pairs >= 0).all(axis=1)], axis=0)
