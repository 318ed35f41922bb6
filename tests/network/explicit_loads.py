"""Loads of every link, found on a fabric's explicit link graph with networkx.

The slow way to the time of a traffic pattern, which shares no code with `LinkMap`: distances by
`networkx`, flows walked one by one. It checks what the fast way counts. The rules are the same:

* shortest paths by NICs crossed, then devices that forward, then hops; a device that may forward
  inside its node does not leave through its own NIC;
* adaptive routing divides a flow over all of them, at every hop in proportion to bandwidth;
  shortest-path routing takes the neighbour listed first; ECMP hashes onto one parallel link with
  a hash of its own, so that its times agree with others only in the mean;
* tori go dimension by dimension, and dragonflies stay within the two groups.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Hashable, Iterable
from functools import cache
from typing import Any

import networkx as nx
import numpy as np

from nest_core.fabric import Dragonfly, Fabric, Torus
from nest_core.fabric.lattice import lattice_of

ENTER = {"device": 1e4, "nic": 1e8, "switch": 0.0}  # beside one per hop
Flow = tuple[int, int, float, float]
Link = tuple[Hashable, ...]


def explicit_seconds(fabric: Fabric, phases: Iterable[list[Flow]], draw: int = 0) -> float:
    """Time of phases that follow one another.

    Parameters
    ----------
    fabric : Fabric
    phases : iterable of lists of (source, target, bytes, steps)
        Flows of one phase run at once; each pays ``steps`` latencies.
    draw : int
        Of the ECMP hash.
    """
    paths = _Paths(fabric, draw)
    seconds = 0.0
    for flows in phases:
        load: dict[Link, float] = defaultdict(float)
        alone = started = 0.0
        for source, target, size, steps in flows:
            latency = 0.0
            for link, share in paths.crossings(source, target).items():
                load[link] += share * size
                alone = max(alone, share * size / paths.one_link[link])
                latency += share * float(paths.graph.edges[link[0], link[1]]["latency_s"])
            started = max(started, steps * latency)
        busiest = max((load[link] / paths.capacity[link] for link in load), default=0.0)
        seconds += max(busiest, alone) + started
    return seconds


def barred(fabric: Fabric, source: int, target: int) -> tuple[Hashable, ...]:
    """Routers of a dragonfly that no route between two devices crosses: those of other groups."""
    if not isinstance(fabric, Dragonfly):
        return ()
    group = fabric.group_of()[[source, target]].tolist()
    size = fabric.routers_per_group
    return tuple(("router", n) for n in range(fabric.routers) if n // size not in group)


class _Paths:
    """The links that a flow crosses, and its share on each."""

    def __init__(self, fabric: Fabric, draw: int) -> None:
        self.fabric, self.draw = fabric, draw
        self.routing = fabric.routing
        lattice = lattice_of(fabric)
        self.torus = lattice.torus if lattice else None
        self.graph: nx.Graph[Any] = fabric.explicit()
        self.places = lattice.elements if lattice else []
        self.capacity: dict[Link, float] = {}
        self.one_link: dict[Link, float] = {}
        self.crossings = cache(self._shortest if self.torus is None else self._by_dimension)
        self._arcs, self._distances = cache(self._directed), cache(self._distances_to)

    def _directed(self, barred: tuple[Any, ...]) -> nx.DiGraph[Any]:
        """Return arcs turned round, so that a search from a target finds distances to it."""
        graph = nx.restricted_view(self.graph, barred, [])
        arcs: nx.DiGraph[Any] = nx.DiGraph()
        for a, b in graph.edges:
            for tail, head in ((a, b), (b, a)):
                arcs.add_edge(head, tail, cost=1.0 + ENTER[graph.nodes[head]["role"]])
        return arcs

    def _shortest(self, source: int, target: int) -> dict[Link, float]:
        away = self._distances(barred(self.fabric, source, target), target)
        shares: dict[Link, float] = defaultdict(float)
        holding = {source: 1.0}
        while holding:
            ahead: dict[Any, float] = defaultdict(float)
            for here, share in holding.items():
                for link, head, part in self._next(here, away, source, target):
                    shares[link] += share * part
                    if head != target:
                        ahead[head] += share * part
            holding = ahead
        return dict(shares)

    def _distances_to(self, barred: tuple[Any, ...], target: int) -> dict[Any, float]:
        """Return distances from everywhere to the target, past what the fabric bars."""
        return dict(
            nx.single_source_dijkstra_path_length(self._arcs(barred), target, weight="cost")
        )

    def _next(
        self, here: Any, away: dict[Any, float], source: int, target: int
    ) -> list[tuple[Link, Any, float]]:
        """Links of the next hop, where they lead, and their parts of what is here."""
        roles = self.graph.nodes
        heads = [
            head
            for head in self.graph[here]
            if head in away
            and here in away
            and away[here] == away[head] + 1.0 + ENTER[roles[head]["role"]]
        ]
        if roles[here]["role"] == "device":
            heads = [head for head in heads if roles[head]["role"] != "nic"] or heads
        if self.routing == "adaptive":
            width = [
                edge["bandwidth_Bps"] * edge["count"]
                for edge in [self.graph.edges[here, head] for head in heads]
            ]
            return [
                (self._link(here, head), head, part / sum(width))
                for head, part in zip(heads, width, strict=True)
            ]
        ports = [(head, one_link) for head in heads for one_link in range(self._count(here, head))]
        head, one_link = ports[0]
        if self.routing == "ecmp":
            text = repr((source, target, here, self.draw, self.fabric.ecmp_seed)).encode()
            number = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
            head, one_link = ports[number % len(ports)]
        return [(self._link(here, head, one_link), head, 1.0)]

    def _count(self, here: Any, head: Any) -> int:
        return int(self.graph.edges[here, head]["count"]) if self.routing == "ecmp" else 1

    def _link(self, tail: Any, head: Any, one_link: int = 0) -> Link:
        """Name of a link; what it carries at most is noted on the way."""
        edge = self.graph.edges[tail, head]
        link_Bps, count = float(edge["bandwidth_Bps"]), int(edge["count"])
        link: Link = (tail, head)
        if self.routing == "ecmp":
            link, count = (tail, head, one_link), 1
        self.capacity[link] = link_Bps * count
        self.one_link[link] = link_Bps * count if self.routing == "adaptive" else link_Bps
        return link

    def _by_dimension(self, source: int, target: int) -> dict[Link, float]:
        """One dimension after the other, ties towards higher coordinates."""
        if self.torus is None:
            return {}
        names = {tuple(_coordinates(self.torus, at)): name for at, name in enumerate(self.places)}
        here, goal = (_coordinates(self.torus, self.places.index(end)) for end in (source, target))
        shares: dict[Link, float] = {}
        for axis, (size, wrapped) in enumerate(zip(self.torus.shape, self.torus.wrap, strict=True)):
            line: nx.Graph[int] = nx.path_graph(size)
            if wrapped and size > 2:
                line.add_edge(size - 1, 0)
            ways = list(nx.all_shortest_paths(line, here[axis], goal[axis]))
            way = min(ways, key=lambda way: (way[1] - way[0]) % size if len(way) > 1 else 0)
            for a, b in nx.utils.pairwise(way):
                shares[
                    self._link(
                        names[(*here[:axis], a, *here[axis + 1 :])],
                        names[(*here[:axis], b, *here[axis + 1 :])],
                    )
                ] = 1.0
            here[axis] = goal[axis]
        return shares


def _coordinates(torus: Torus, place: int) -> list[int]:
    return [int(at) for at in np.unravel_index(place, torus.shape, order="F")]
