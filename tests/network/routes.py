"""Flows over a fabric's explicit link graph, routed and counted without the network package.

Trees have one way between two devices, by the innermost level at which they meet; insides of
nodes have several, over which flows spread; tori are walked one dimension after another. Devices
and NICs forward nothing, but devices of a torus do, and on rail-only fabrics those that relay
between rails inside their node.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np

from nest_core.fabric import Clos, Hierarchical, Torus

__all__ = ["Counter", "cut"]

Link = tuple[Any, ...]


@dataclass
class Counter:
    """Routes flows of one fabric; ``way`` gives the directed links and their shares."""

    fabric: Hierarchical | Clos | Torus
    graph: nx.Graph[Any] = field(init=False)
    inner: nx.Graph[Any] = field(init=False)
    outer: nx.Graph[Any] = field(init=False)
    rate: dict[Link, float] = field(init=False, default_factory=dict)
    latency: dict[Link, float] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.graph = self.fabric.explicit()
        role = self.graph.nodes(data="role")
        inside = {
            edge
            for edge in self.graph.edges
            if all(role[end] == "device" or end[0] == "node" for end in edge)
        }
        self.inner = self.graph.edge_subgraph(inside)
        self.outer = self.graph.edge_subgraph(set(self.graph.edges) - inside)
        if isinstance(self.fabric, Hierarchical):
            own = [n for n, tier in enumerate(self.fabric.tiers) if tier.uplink_per == "device"]
            self.outer = self.graph.edge_subgraph(
                edge for edge in self.graph.edges if max(map(_height, edge)) >= max(own, default=0)
            )

    def way(self, source: int, target: int) -> dict[Link, float]:
        """Part of the bytes by directed link."""
        if source == target:
            return {}
        if isinstance(self.fabric, Torus):
            return self._spread([self._by_dimensions(self.fabric, source, target)])
        if isinstance(self.fabric, Hierarchical):
            return self._spread([nx.shortest_path(self.graph, source, target, self._avoid_nics)])
        node = self.fabric.node_of()
        if node[source] == node[target]:
            return self._spread(list(nx.all_shortest_paths(self.inner, source, target)))
        if self.fabric.kind == "rail_only":
            relay = self._relay(self.fabric, source, target)
            if relay != source:
                return self.way(source, relay) | self.way(relay, target)
        return self._spread([nx.shortest_path(self.outer, source, target)])

    def _avoid_nics(self, a: Any, b: Any, _: Any) -> int:
        """Devices that meet further in do not use ports that leave further out."""
        roles = {self.graph.nodes[end]["role"] for end in (a, b)}
        return 100 if "nic" in roles else 1

    def _relay(self, fabric: Clos, source: int, target: int) -> int:
        """The device on the target's rail that stands where the source does in its node."""
        node, slot, rail = fabric.node_of(), fabric.slot_of(), fabric.rail_of()
        place = slot // fabric.rails
        (found,) = np.flatnonzero(
            (node == node[source]) & (rail == rail[target]) & (place == place[source])
        )
        return int(found)

    def _spread(self, paths: list[list[Any]]) -> dict[Link, float]:
        result: dict[Link, float] = defaultdict(float)
        for nodes in paths:
            for link in pairwise(nodes):
                edge = self.graph.edges[link]
                self.rate[link] = edge["bandwidth_Bps"] * edge["count"]
                self.latency[link] = edge["latency_s"]
                result[link] += 1 / len(paths)
        return dict(result)

    def _by_dimensions(self, fabric: Torus, source: int, target: int) -> list[Any]:
        """First dimension first; the shorter way round, upwards where both are equally long."""
        place = fabric.place_of().tolist()
        here = list(np.unravel_index(place[source], fabric.shape, order="F"))
        there = np.unravel_index(place[target], fabric.shape, order="F")
        walked = [source]
        for axis, size in enumerate(fabric.shape):
            ahead = (there[axis] - here[axis]) % size
            back = (here[axis] - there[axis]) % size
            forward = ahead <= back if fabric.wrap[axis] else there[axis] > here[axis]
            while here[axis] != there[axis]:
                here[axis] = (here[axis] + (1 if forward else -1)) % size
                number = int(np.ravel_multi_index(here, fabric.shape, order="F"))
                walked.append(place.index(number) if number in place else ("router", number))
        return walked

    def delays(self, flows: Any) -> list[float]:
        """Seconds that every flow is on its way."""
        return [
            sum(share * self.latency[link] for link, share in self.way(int(a), int(b)).items())
            for a, b in flows
        ]

    def seconds_per_byte(self, flows: Any) -> list[float]:
        """Of every flow, when all send at once: the busiest link on its way."""
        ways = [self.way(int(a), int(b)) for a, b in flows]
        load: dict[Link, float] = defaultdict(float)
        for way in ways:
            for link, share in way.items():
                load[link] += share
        return [max((load[link] / self.rate[link] for link in way), default=0.0) for way in ways]


def cut(graph: nx.Graph[Any], devices: int, inside: Any) -> float:
    """Minimum cut between some devices and all others, over explicit links.

    Devices and their NICs do not forward: both are split into a sending and a receiving side. The
    NIC of a whole node passes on what its switch sends.
    """
    routes: nx.DiGraph[Any] = nx.DiGraph()
    role = dict(graph.nodes(data="role"))
    for nic in [element for element in graph if role[element] == "nic"]:
        if not any(role[other] == "device" for other in graph[nic]):
            role[nic] = "switch"
    for a, b, link in graph.edges(data=True):
        for sender, receiver in ((a, b), (b, a)):
            up = role[sender] == "device" or role[receiver] == "switch"
            ends = [
                end if role[end] == "switch" else ("send" if up else "receive", end)
                for end in (sender, receiver)
            ]
            routes.add_edge(*ends, capacity=round(link["bandwidth_Bps"] * link["count"]))
    for device in range(devices):
        if device in inside:
            routes.add_edge("source", ("send", device))
        else:
            routes.add_edge(("receive", device), "sink")
    return float(nx.maximum_flow_value(routes, "source", "sink"))


def _height(element: Any) -> int:
    """Level of an element of a hierarchy; −1 for devices."""
    if not isinstance(element, tuple):
        return -1
    return int(element[1] if element[0] == "nic" else element[0])
