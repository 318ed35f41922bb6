"""Link map of arbitrary link graphs: every link is counted, every flow takes shortest paths.

Distance is lexicographic: first the NICs on the way, then the devices that forward, then hops.
So traffic between devices of a node stays in it, devices forward only where switches alone do
not connect the pair (tori, meshes, rail-only fabrics), and where a device may either forward
inside its node or leave through its NIC at equal distance it forwards first, as PXN does
(NCCL 2.12). Among the next hops of a shortest path

* ``adaptive`` divides a flow in proportion to their capacity: the ideal of adaptive routing;
* ``shortest_path`` takes the lowest-numbered one;
* ``ecmp`` hashes (source, target) anew at every element onto one link, so that parallel links
  are link groups of their own (RFC 2992).

Inside nodes whose devices are linked to one another flows spread evenly over all shortest paths
(`nest_core.network.clusters`). All others walk together, hop by hop, in vectors. Distances come
from one Dijkstra search per target (`scipy.sparse.csgraph`) and are tabled where they fit.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from nest_core.fabric.checks import Routing
from nest_core.network.kernels import spread
from nest_core.network.link_graph import NIC, TABLE, Links, NextHops, tables
from nest_core.network.link_map import (
    BoolArray,
    FloatArray,
    IntArray,
    LinkMap,
    Routes,
    ScaleUpLinkMap,
    hashed,
    innermost,
    joined,
    runs,
)
from nest_core.network.twins import Twins, reduced, whole

__all__ = ["GraphLinkMap"]


# Without slots: bounds that take a while to find are kept by the instance.
@dataclass(frozen=True, eq=False)
class GraphLinkMap(LinkMap):
    """Every link of a graph, one link group per direction (under ECMP: per link and direction).

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
    scale_up : InteriorWires or None
        The insides of nodes whose devices are linked to one another.
    scale_up_arc : int array or None
        Arc of every link of ``scale_up``.
    alone : bool
        Whether every device is a node of its own, where no NICs say what a node is.
    """

    links: Links
    nesting: tuple[IntArray, ...]
    arc_level: IntArray
    routing: Routing = "adaptive"
    seed: int = 0
    variants: int = 1
    speed: FloatArray | None = None
    scale_up: ScaleUpLinkMap | None = None
    scale_up_arc: IntArray | None = None
    alone: bool = False
    _tabled: list[tuple[list[Twins], NextHops | None]] = field(default_factory=list, repr=False)
    first_group: IntArray = field(init=False, repr=False)
    """Of every arc, (arcs,)."""
    arc: IntArray = field(init=False, repr=False)
    """Of every link group, (link groups,)."""
    node: IntArray = field(init=False, repr=False)
    """Of every device, (devices,): what hangs together without NICs, where there are any."""

    def __post_init__(self) -> None:
        links = self.links
        node, outside = _nodes(links, self.nesting, self.arc_level, alone=self.alone)
        copies = self._copies(outside)
        capacity = links.capacity_Bps * (1.0 if self.speed is None else self.speed)
        arc = np.repeat(np.arange(len(copies)), copies)
        arc_Bps = (capacity / copies)[arc]
        self._settle(
            capacity_Bps=arc_Bps,
            # Of parallel links one, or all where flows spread.
            link_Bps=arc_Bps / links.count if self.routing == "shortest_path" else arc_Bps,
            tier=self.arc_level[arc],
            outside=outside[arc],
            node=node,
            first_group=np.cumsum(copies) - copies,
            arc=arc,
        )

    def _copies(self, outside: BoolArray) -> IntArray:
        """Return link groups of every arc: under ECMP its parallel links, else one."""
        del outside
        return self.links.count if self.routing == "ecmp" else np.ones_like(self.links.count)

    @cached_property
    def _arc_Bps(self) -> FloatArray:
        """All link groups of every arc, (arcs,)."""
        return np.asarray(
            np.bincount(self.arc, self.capacity_Bps, len(self.links.tail)), np.float64
        )

    @cached_property
    def port_Bps(self) -> float:
        """The most that any device sends to one other; in meshed nodes, to all others."""
        is_device = self.links.tail[self.arc] < self.links.devices
        one_link = float(self.link_Bps[is_device].max(initial=0.0))
        most = self._ports_Bps(by_side=True)
        if self.scale_up is not None or one_link == most:
            return most
        if self.routing != "adaptive":
            return one_link
        if (table := self._small[1]) is None:
            return most  # to table all routes for a bound would take longer than it saves
        begins = table.start[:-1][np.diff(table.start) > 0]
        first = np.where(is_device, self.capacity_Bps, 0.0)[self._stays[table.arc]]
        return float(np.add.reduceat(first, begins).max())

    @cached_property
    def all_ports_Bps(self) -> float:
        """The most that any device sends to all others at once."""
        return self._ports_Bps(by_side=False)

    def _ports_Bps(self, *, by_side: bool) -> float:
        """All links of a device; ``by_side``: those inside its node, or those out of it."""
        is_device = self.links.tail[self.arc] < self.links.devices
        key = self.links.tail[self.arc][is_device] * 2 + (self.outside[is_device] if by_side else 0)
        return float(np.bincount(key, self.capacity_Bps[is_device], minlength=1).max(initial=0.0))

    @property
    def outlet_Bps(self) -> float:
        """Its NICs, as wide as what lies behind them; the node's where devices may forward."""
        return self._leaving_Bps[0]

    def egress_Bps(self, block: int, *, alike: bool = False) -> float:
        """Return the NICs of the widest node, where the block is a node."""
        is_node = not alike and np.array_equal(self.nesting[block], self.node)
        return self._leaving_Bps[1] if is_node else float("inf")

    @cached_property
    def _leaving_Bps(self) -> tuple[float, float]:
        """Return what leaves a node at most: of one device, and of all."""
        links, size = self.links, len(self.links.elements)
        part, is_nic = links.node(), links.role == NIC
        home = np.isin(part, part[: links.devices]) & ~is_nic
        outward = np.flatnonzero(home[links.tail] & is_nic[links.head])
        if not np.ptp(part[: links.devices]) or not len(outward):
            return float("inf"), float("inf")
        device, nic = links.tail[outward], links.head[outward]
        way, entry = np.unique(part[device] * size + nic, return_inverse=True)
        bridged = len(way) > len(np.unique(nic))  # by NICs that several nodes are linked to
        onward = np.flatnonzero(is_nic[links.tail] & (~home[links.head] | bridged))
        behind = np.bincount(links.tail[onward], self._arc_Bps[onward], size)
        through = np.minimum(np.bincount(entry, self._arc_Bps[outward]), behind[way % size])
        of_node = float(np.bincount(way // size, through).max())
        # Where the NICs of each device lead to all planes of switches, a way through another
        # device, or a NIC that is not the device's, is longer.
        plane = np.full(size, -1)
        plane[links.tail[onward]] = part[links.head[onward]]
        planes = len(np.unique(part[links.head[onward]]))
        reached = np.unique(np.stack([device, plane[nic]])[:, plane[nic] >= 0], axis=1)
        of_device = np.bincount(device, np.minimum(self._arc_Bps[outward], behind[nic]), size)
        alone = not bridged and device.max() < links.devices
        alone &= reached.shape[1] == links.devices * planes
        return float(of_device.max()) if alone else of_node, of_node

    @cached_property
    def least_latency_s(self) -> float:
        """Between the two devices that are nearest in time, along their route."""
        return (
            0.0
            if self.links.devices == 1
            else float(self.latency_s(*_neighbours(self.links).T).min())
        )

    def faster(self, tier: int, factor: float) -> Self:
        """Return the same links with those of one tier wider; the routes stay."""
        speed = np.ones(len(self.arc_level)) if self.speed is None else self.speed
        return replace(self, speed=np.where(self.arc_level == tier, speed * factor, speed))

    def cable(self, link_group: int) -> tuple[int, int | None]:
        """Return the arc of a link group and, where each cable is one, which of the arc's it is."""
        arc = int(self.arc[link_group])
        cable = link_group - int(self.first_group[arc])
        return arc, cable if np.count_nonzero(self.arc == arc) > 1 else None

    def reverse(self, link_group: int) -> int:
        """Return the same cable the other way."""
        arc, links = int(self.arc[link_group]), self.links
        is_back = (links.tail == links.head[arc]) & (links.head == links.tail[arc])
        cable = link_group - int(self.first_group[arc])
        return int(self.first_group[np.flatnonzero(is_back)[0]]) + cable

    def level(self, source: IntArray, target: IntArray) -> IntArray:
        """Innermost level whose group holds both; −1 for a device and itself."""
        return innermost(self.nesting, source, target)

    def routes(self, source: IntArray, target: IntArray, variant: int = 0) -> Routes:
        """Shortest paths through the graph."""
        outside = self.node[source] != self.node[target]
        latency = np.zeros(len(source))
        parts: list[tuple[IntArray, IntArray, FloatArray]] = []
        stays = np.zeros(len(source), np.bool_)
        if self.scale_up is not None and self.scale_up_arc is not None:
            stays = self.scale_up.node[source] == self.scale_up.node[target]
            flow = np.flatnonzero(stays)
            crossing, link, part = self.scale_up.crossings(source[flow], target[flow])
            parts.append((flow[crossing], self.first_group[self.scale_up_arc[link]], part))
            latency[flow] = self.links.latency_s[self.scale_up_arc[0]] * self.scale_up.hops(
                source[flow], target[flow]
            )
        for table, flow in self._tables(target):
            flow = flow[~stays[flow]]
            if self.routing == "adaptive":
                ends = self._stand_ins(source[flow], target[flow])
                start, end = ends.pop()
                links, every = table.links, np.arange(len(table.links.elements))
                hops = table.start, table.arc, links.head, self._arc_Bps[self._stays]
                pair, alike = np.unique(start * len(every) + end, return_inverse=True)
                first, last = np.divmod(pair, len(every))
                row = table.column[last] * len(every)
                crossing, arc, share = spread(hops, row, every, first, last)
                begin = np.searchsorted(crossing, np.arange(len(pair) + 1))
                walked, place = runs(begin[alike], np.diff(begin)[alike])
                arc = arc[place]
                for step, pairs in zip(reversed(self._small[0]), reversed(ends), strict=True):
                    arc = step.crossed(arc, walked, *pairs)
                parts.append((flow[walked], self.first_group[arc], share[place]))
                latency[flow] = self._along(table, start, end)
                continue
            for walked, arc, link_group in self._single(
                table, flow, source[flow], target[flow], variant
            ):
                latency[walked] += self.links.latency_s[arc]
                parts.append((walked, link_group, np.ones(len(walked))))
        flows, link_group, share = joined(parts)
        return Routes(flows, link_group, share, latency, outside)

    def latency_s(self, source: IntArray, target: IntArray) -> FloatArray:
        """One way along the (first) route, shape of ``source``."""
        latency = np.zeros(len(source))
        for table, flow in self._tables(target):
            if self.routing != "ecmp":
                latency[flow] = self._along(table, *self._stand_ins(source[flow], target[flow])[-1])
                continue
            for walked, arc, _ in self._single(table, flow, source[flow], target[flow], 0):
                latency[walked] += self.links.latency_s[arc]
        return latency

    def _along(self, table: NextHops, source: IntArray, target: IntArray) -> FloatArray:
        """Latency of each flow's first route, where all routes to a target follow one tree."""
        place = table.column[target] * len(table.links.elements) + source
        return np.asarray(table.latency_s[place])

    def _tables(self, target: IntArray) -> Iterator[tuple[NextHops, IntArray]]:
        """Tables that serve all targets, each with its flows; one for all where it fits."""
        if self._small[1] is not None:
            yield self._small[1], np.arange(len(target))
            return
        yield from (
            (table, np.flatnonzero(table.column[target] >= 0))
            for table in tables(self.links, np.unique(target), TABLE)
        )

    @property
    def _small(self) -> tuple[list[Twins], NextHops | None]:
        """Graphs that stand for this one where flows spread, and the table of the smallest."""
        if not self._tabled:
            adaptive = self.routing == "adaptive"
            small = reduced(self.links, (), self.arc_level) if adaptive else ([], whole(self.links))
            self._tabled.append(small)
        return self._tabled[0]

    @property
    def _stays(self) -> IntArray:
        """Arcs that the smallest graph has."""
        arcs = np.arange(len(self.links.tail))
        for step in self._small[0]:
            arcs = arcs[step.kept_arc]
        return arcs

    def _stand_ins(self, source: IntArray, target: IntArray) -> list[tuple[IntArray, IntArray]]:
        """Return the ends of flows, in this graph and in each that stands for it."""
        ends = [(source, target)]
        for step in self._small[0]:
            ends.append(step.stand_ins(*ends[-1]))
        return ends

    def _single(
        self, table: NextHops, flow: IntArray, here: IntArray, target: IntArray, variant: int
    ) -> list[tuple[IntArray, IntArray, IntArray]]:
        """One path per flow: flow, arc and link group of every crossing, hop by hop."""
        size, source = len(self.links.elements), here
        hops = []
        while len(flow):
            going = here != target
            flow, source, here, target = flow[going], source[going], here[going], target[going]
            if not len(flow):
                break
            key = table.column[target] * size + here
            first, last = table.start[key], table.start[key + 1]
            arc, link_group = table.arc[first], self.first_group[table.arc[first]]
            if self.routing == "ecmp":
                # Parallel links are ports of their own: number them over all next hops.
                ports = np.concatenate([[0], np.cumsum(self.links.count[table.arc])])
                draw = hashed(hashed(source, target, self.seed), here, variant)
                port = ports[first] + draw % (ports[last] - ports[first])
                place = np.searchsorted(ports, port, side="right") - 1
                arc = table.arc[place]
                link_group = self.first_group[arc] + port - ports[place]
            hops.append((flow, arc, link_group))
            here = self.links.head[arc]
        return hops


def _nodes(
    links: Links, nesting: tuple[IntArray, ...], arc_level: IntArray, *, alone: bool
) -> tuple[IntArray, BoolArray]:
    """Node of every device, and which arcs lie outside the nodes.

    Where the graph has NICs, a node is what hangs together without them; elsewhere, or where
    that would be everything, it is a device where those are ``alone``, else an innermost group.
    """
    node = links.node()
    number, node_of = np.unique(node[: links.devices], return_inverse=True)
    if (links.role == NIC).any() and len(number) > 1:
        # Leaves and spines hang together without NICs as well, but hold no devices.
        home = np.isin(node, node[: links.devices])
        return node_of, (node[links.tail] != node[links.head]) | ~home[links.tail]
    return (np.arange(links.devices) if alone else nesting[0]), (arc_level > 0) | alone


def _neighbours(links: Links) -> IntArray:
    """Pairs of devices with no third one nearer in time in between, shape (pairs, 2).

    The two devices that are nearest of all are the ends of some arc whose ends are nearest to
    different devices.
    """
    from scipy.sparse import csgraph, csr_array  # few fabrics are drawn

    size = len(links.elements)
    cost = np.maximum(links.latency_s, 1e-18)  # csgraph takes a stored zero for no link
    matrix = csr_array((cost, (links.tail, links.head)), shape=(size, size))
    _, _, nearest = csgraph.dijkstra(
        matrix, indices=np.arange(links.devices), min_only=True, return_predecessors=True
    )
    pairs = np.stack([nearest[links.tail], nearest[links.head]], axis=1).astype(np.int64)
    return np.unique(pairs[(pairs[:, 0] != pairs[:, 1]) & (pairs >= 0).all(axis=1)], axis=0)
