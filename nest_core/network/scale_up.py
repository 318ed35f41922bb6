"""Links inside nodes that have no switch: meshes, rings and hybrid cube meshes.

All nodes are alike, so the shortest paths between slots are tabled once. A flow spreads evenly
over its shortest paths.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

from nest_core.network.link_map import FloatArray, IntArray, runs

__all__ = ["ScaleUpLinkMap", "scale_up_link_map"]


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
    number: dict[tuple[int, int], int] = {}
    rate: list[float] = []
    for a, b, bandwidth in links:
        graph.add_edge(a, b)
        for pair in ((a, b), (b, a)):
            number[pair] = len(rate)
            rate.append(bandwidth)
    start, link, share = [0], [], []
    distance = np.zeros((slots, slots), dtype=np.int64)
    for a in range(slots):
        for b in range(slots):
            if a != b:
                paths = list(nx.all_shortest_paths(graph, a, b))
                distance[a, b] = len(paths[0]) - 1
                parts: dict[int, float] = {}
                for path in paths:
                    for hop in itertools.pairwise(path):
                        parts[number[hop]] = parts.get(number[hop], 0.0) + 1 / len(paths)
                link += list(parts)
                share += list(parts.values())
            start.append(len(link))
    nodes = int(node.max()) + 1
    return ScaleUpLinkMap(
        node,
        slot,
        len(rate),
        np.tile(np.array(rate), nodes),
        np.array(start),
        np.array(link, dtype=np.int64),
        np.array(share),
        distance,
    )
