"""Link maps: directed link groups, and which of them every flow crosses.

A *link group* is what flows share: the parallel links of one direction between two places (a
device's port, a node's NICs, a leaf's uplinks). `LinkMap` is the one thing that the rest of the
network package asks of a fabric: a fabric that can say which link groups a flow crosses can be
priced under any traffic.

Units: bytes/s per direction, seconds one way.

Links inside nodes that have no switch: meshes, rings and hybrid cube meshes.

All nodes are alike, so the shortest paths between slots are tabled once. A flow spreads evenly
over its shortest paths.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from nest_core.documents import summed
from nest_core.fabric import BoolArray, Clos, Dragonfly, IntArray

__all__ = [
    "ECMP_DRAWS",
    "BoolArray",
    "FloatArray",
    "IntArray",
    "LinkMap",
    "Routes",
    "ScaleUpLinkMap",
    "hashed",
    "innermost",
    "joined",
    "node_link_map",
    "rank_within",
    "runs",
    "scale_up_link_map",
    "scrambled",
]


ECMP_DRAWS = 32
"""Hash draws that a time under static ECMP is the mean of: one draw is up to 2x another."""

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Routes:
    """A sparse incidence of flows and link groups, one entry per crossing.

    Parameters
    ----------
    flow, link_group : int array (crossings,)
    share : float array (crossings,)
        Part of the flow's bytes that take this link group; below 1 where a flow spreads.
    latency_s : float array (flows,)
        One way, end to end.
    outside : bool array (flows,)
        Whether the flow leaves its node.
    """

    flow: IntArray
    link_group: IntArray
    share: FloatArray
    latency_s: FloatArray
    outside: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class LinkMap(ABC):
    """Directed link groups and the routes over them.

    A kind sets, when it is made, the four arrays; what it is made of stands in its own fields.

    Parameters
    ----------
    capacity_Bps : (link groups,)
        All links of the group together.
    link_Bps : (link groups,)
        Most that one flow draws from it: one link, unless a flow spreads over several.
    tier : (link groups,)
        Level whose traffic the link group carries first; `Network.faster` scales by it.
    outside : (link groups,)
        Whether the link group lies outside the nodes.
    """

    capacity_Bps: FloatArray = field(init=False, repr=False)
    link_Bps: FloatArray = field(init=False, repr=False)
    tier: IntArray = field(init=False, repr=False)
    outside: BoolArray = field(init=False, repr=False)

    def _settle(self, **found: object) -> None:
        """Set what follows from the fields, once, while the map is made."""
        for name, value in found.items():
            object.__setattr__(self, name, value)

    @property
    @abstractmethod
    def port_Bps(self) -> float:
        """Most that one device sends at once to one other, or to its neighbours on direct links."""

    @property
    def all_ports_Bps(self) -> float:
        """Most that one device sends at once through all of its ports."""
        return self.port_Bps

    @property
    def outlet_Bps(self) -> float:
        """Most that one device sends out of its node at once; infinite where that is not known."""
        return float("inf")

    @property
    def flow_outside_Bps(self) -> float:
        """Most that one flow has out of its node: all that its device has, or one of its links."""
        return self.outlet_Bps

    @property
    @abstractmethod
    def least_latency_s(self) -> float:
        """Between the two nearest devices."""

    @property
    def variants(self) -> int:
        """Hash draws that a time is the mean of; 1 unless routing is static ECMP."""
        return 1

    def apart(self, groups: IntArray) -> bool:
        """Whether groups are known to stay in their nodes and to share nothing there."""
        del groups
        return False

    @abstractmethod
    def faster(self, tier: int, factor: float) -> LinkMap:
        """Return the same link map with the bandwidth of one tier multiplied."""

    def scaled(self, factor: FloatArray) -> LinkMap:
        """Return the same link map with the bandwidth of every link group multiplied.

        Parameters
        ----------
        factor : (link groups,)
            At most 1; at 0 nothing gets through, and only what `routes` leads round it goes on.
        """
        other, capacity_Bps = copy(self), self.capacity_Bps * factor
        other._settle(capacity_Bps=capacity_Bps, link_Bps=np.minimum(self.link_Bps, capacity_Bps))
        return other

    def reverse(self, link_group: int) -> int:
        """Return the other direction of a link; links whose ends are wired alike come in pairs."""
        return link_group ^ 1

    def egress_Bps(self, block: int, *, alike: bool = False) -> float:
        """Most that leaves one block of the nesting at once; infinite where that is not known.

        With ``alike`` also infinite but where all who leave share one way, or have one each.
        """
        del block, alike
        return float("inf")

    @abstractmethod
    def level(self, source: IntArray, target: IntArray) -> IntArray:
        """Level at which devices meet, element by element; −1 for a device and itself."""

    @abstractmethod
    def routes(self, source: IntArray, target: IntArray, variant: int = 0) -> Routes:
        """Link groups that flows cross; ``source`` and ``target`` have shape (flows,)."""


def innermost(nesting: tuple[IntArray, ...], source: IntArray, target: IntArray) -> IntArray:
    """Innermost level whose group holds both devices; −1 for a device and itself."""
    source, target = np.broadcast_arrays(source, target)
    met = np.full(source.shape, len(nesting) - 1, dtype=np.int64)
    for index in range(len(nesting) - 2, -1, -1):
        met[nesting[index][source] == nesting[index][target]] = index
    met[source == target] = -1
    return met


def runs(first: IntArray, count: IntArray) -> tuple[IntArray, IntArray]:
    """Return which run every entry of runs belongs to, and its place: one after another."""
    which = np.repeat(np.arange(len(first)), count)
    return which, first[which] + np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)


def rank_within(group: IntArray) -> IntArray:
    """Return the place of everything among what is in the same group, in order of their numbers."""
    order = np.argsort(group, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(group)) - np.searchsorted(group[order], group[order])
    return rank


def joined(
    parts: list[tuple[IntArray, IntArray, FloatArray]],
) -> tuple[IntArray, IntArray, FloatArray]:
    """Crossings collected part by part, as three arrays."""
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    if len(parts) == 1:
        return parts[0]
    flow, link_group, share = zip(*parts, strict=True)
    return np.concatenate(flow), np.concatenate(link_group), np.concatenate(share)


def hashed(source: IntArray, target: IntArray, seed: int | IntArray) -> IntArray:
    """Return a fixed pseudo-random number per (source, target, seed), as a switch's hash gives.

    Seeds that are an array are broadcast with the others.
    """
    mixed = source.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= target.astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
    if isinstance(seed, int):
        mixed += np.uint64((seed * 0x165667B19E3779F9) % 2**64)
    else:
        mixed = mixed + seed.astype(np.uint64) * np.uint64(0x165667B19E3779F9)
    return (scrambled(mixed) >> np.uint64(1)).astype(np.int64)


def scrambled(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return a fixed pseudo-random number for every number.

    The steps are splitmix64's last (Steele, Lea and Flood, OOPSLA 2014).
    """
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))


@dataclass(frozen=True, slots=True, eq=False)
class ScaleUpLinkMap:
    """Direct links between the slots of every node.

    Parameters
    ----------
    node, slot : int array (devices,)
    links_per_node : int
        Directed.
    capacity_Bps : (nodes * links_per_node,)
    start : int array (slots * slots + 1,)
        Of each slot pair's entries in ``link`` and ``share``.
    distance : int array (slots, slots)
    """

    node: IntArray
    slot: IntArray
    links_per_node: int
    capacity_Bps: FloatArray
    start: IntArray
    link: IntArray
    share: FloatArray
    distance: IntArray

    @property
    def port_Bps(self) -> float:
        """Most that leaves one slot: all of its links."""
        slots = len(self.distance)
        leaves = np.zeros(slots)
        first = self.capacity_Bps[: self.links_per_node]
        for a in range(slots):
            leaves[a] = sum(
                first[self.link[self.start[a * slots + b]]]
                for b in [b for b in range(slots) if self.distance[a, b] == 1]
            )
        return float(leaves.max())

    def faster(self, factor: float) -> ScaleUpLinkMap:
        """Return the same links, wider."""
        return replace(self, capacity_Bps=self.capacity_Bps * factor)

    def hops(self, source: IntArray, target: IntArray) -> IntArray:
        """Links between two devices of one node."""
        return self.distance[self.slot[source], self.slot[target]]

    def crossings(
        self, source: IntArray, target: IntArray
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """Flow, link group and share of every crossing between devices of one node each."""
        pair = self.slot[source] * len(self.distance) + self.slot[target]
        first, count = self.start[pair], self.start[pair + 1] - self.start[pair]
        flow, entry = runs(first, count)
        link_group = self.node[source][flow] * self.links_per_node + self.link[entry]
        return flow, link_group, self.share[entry]


def scale_up_link_map(
    node: IntArray, slot: IntArray, slots: int, links: list[tuple[int, int, float]]
) -> ScaleUpLinkMap:
    """Table the shortest paths of ``links`` (slot, slot, bytes/s each way)."""
    import networkx as nx  # few nodes have links of their own between devices

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(slots))
    ways = [(ends, rate) for a, b, rate in links for ends in ((a, b), (b, a))]
    graph.add_edges_from(ends for ends, _ in ways)
    number = {ends: at for at, (ends, _) in enumerate(ways)}
    start, link, share = [0], [], []
    distance = np.zeros((slots, slots), dtype=np.int64)
    for a in range(slots):
        for b in range(slots):
            if a != b:
                paths = list(nx.all_shortest_paths(graph, a, b))
                distance[a, b] = len(paths[0]) - 1
                parts = summed(
                    (number[hop], 1 / len(paths))
                    for path in paths
                    for hop in itertools.pairwise(path)
                )
                link += list(parts)
                share += list(parts.values())
            start.append(len(link))
    nodes = int(node.max()) + 1
    return ScaleUpLinkMap(
        node,
        slot,
        len(ways),
        np.tile(np.array([rate for _, rate in ways]), nodes),
        np.array(start),
        np.array(link, dtype=np.int64),
        np.array(share),
        distance,
    )


def node_link_map(fabric: Clos | Dragonfly) -> ScaleUpLinkMap | None:
    """Direct links between the devices of every node; None where a switch joins them."""
    links = fabric.scale_up.links()
    return (
        scale_up_link_map(fabric.node_of(), fabric.slot_of(), fabric.devices_per_node, links)
        if links
        else None
    )
