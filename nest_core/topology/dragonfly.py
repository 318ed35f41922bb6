"""Dragonfly fabrics: groups of fully connected routers, joined pairwise by global links.

Kim, Dally, Scott and Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008:
``a`` routers per group, ``p`` nodes and ``h`` global links per router, at most ``a h + 1``
groups. Every pair of groups has ``m = floor(a h / (groups - 1))`` links; ports left over stay
dark. Group ``i`` reaches its ``t``-th other group (in ascending order) over its global ports
``t m .. t m + m - 1``, router by router: the consecutive arrangement.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np

from nest_core.errors import InputError
from nest_core.topology.checks import (
    IntArray,
    Routing,
    check_devices,
    check_explicit_size,
    check_routing,
    positive,
    whole,
)
from nest_core.topology.interior import Interconnect, Interior

__all__ = ["Dragonfly"]


@dataclass(frozen=True, slots=True)
class Dragonfly:
    """A dragonfly; devices are numbered node by node, router by router, group by group.

    Parameters
    ----------
    routers_per_group, nodes_per_router, global_links_per_router : int
        ``a``, ``p`` and ``h``; a node has one port on its router, which its devices share.
    local_bandwidth_Bps, global_bandwidth_Bps : float
        One link inside a group, one between groups; one direction.
    hop_latency_s : float
        One link and the router behind it.
    intra_bandwidth_Bps, intra_latency_s, interconnect
        The node, as in `Interior`.
    groups : int
        0: the most there can be, ``a h + 1``.
    devices_per_node : int
    nic_bandwidth_Bps : float
        A node's port, one direction; 0: that of a local link.
    routing, ecmp_seed
        How flows choose among paths.
    """

    name: str
    routers_per_group: int
    nodes_per_router: int
    global_links_per_router: int
    local_bandwidth_Bps: float
    global_bandwidth_Bps: float
    hop_latency_s: float
    intra_bandwidth_Bps: float = 1e12
    intra_latency_s: float = 0.0
    interconnect: Interconnect = "switch"
    groups: int = 0
    devices_per_node: int = 1
    nic_bandwidth_Bps: float = 0.0
    routing: Routing = "adaptive"
    ecmp_seed: int = 0

    def __post_init__(self) -> None:
        for field in (
            "routers_per_group",
            "nodes_per_router",
            "global_links_per_router",
            "devices_per_node",
        ):
            whole(f"dragonfly.{field}", getattr(self, field))
        ports = self.routers_per_group * self.global_links_per_router
        if self.groups == 0:
            object.__setattr__(self, "groups", ports + 1)
        if self.nic_bandwidth_Bps == 0:
            object.__setattr__(self, "nic_bandwidth_Bps", self.local_bandwidth_Bps)
        whole("dragonfly.groups", self.groups)
        if self.groups > ports + 1:
            raise InputError(
                "dragonfly.groups",
                f"must not exceed {ports + 1}, one more than a group's {ports} global links",
                self.groups,
                "drop groups or add global links",
            )
        positive("dragonfly.local_bandwidth_GBps", self.local_bandwidth_Bps)
        positive("dragonfly.global_bandwidth_GBps", self.global_bandwidth_Bps)
        positive("dragonfly.nic_bandwidth_GBps", self.nic_bandwidth_Bps)
        positive("dragonfly.hop_latency_us", self.hop_latency_s, zero=True)
        check_routing(self.routing, self.ecmp_seed)
        check_devices("dragonfly", self.devices)
        _ = self.interior

    @property
    def interior(self) -> Interior:
        """The inside of a node."""
        return Interior(
            self.interconnect, self.devices_per_node, self.intra_bandwidth_Bps, self.intra_latency_s
        )

    @property
    def routers(self) -> int:
        """Routers in all groups."""
        return self.groups * self.routers_per_group

    @property
    def nodes(self) -> int:
        """Servers."""
        return self.routers * self.nodes_per_router

    @property
    def devices(self) -> int:
        """Number of devices."""
        return self.nodes * self.devices_per_node

    @property
    def radix(self) -> int:
        """Ports of a router: ``p + h + a - 1``."""
        return self.nodes_per_router + self.global_links_per_router + self.routers_per_group - 1

    @property
    def links_per_pair(self) -> int:
        """Global links between two groups, ``m``; 0 if there is one group."""
        if self.groups == 1:
            return 0
        return self.routers_per_group * self.global_links_per_router // (self.groups - 1)

    def node_of(self) -> IntArray:
        """Node of every device, shape (devices,)."""
        return np.arange(self.devices, dtype=np.int64) // self.devices_per_node

    def slot_of(self) -> IntArray:
        """Place of every device in its node, shape (devices,)."""
        return np.arange(self.devices, dtype=np.int64) % self.devices_per_node

    def router_of(self) -> IntArray:
        """Router of every device, counted over all groups, shape (devices,)."""
        return self.node_of() // self.nodes_per_router

    def group_of(self) -> IntArray:
        """Group of every device, shape (devices,)."""
        return self.router_of() // self.routers_per_group

    def gateway(self, group: Any, target: Any, link: Any = 0) -> Any:
        """The router, counted within ``group``, that owns a global link to ``target``.

        Parameters
        ----------
        group, target : int or int array
            Different groups; arrays broadcast.
        link : int or int array
            Which of the `links_per_pair` links.
        """
        place = target - (np.asarray(target) > group)
        router = (place * self.links_per_pair + link) // self.global_links_per_router
        return int(router) if np.ndim(router) == 0 else router

    def explicit(self) -> nx.Graph[Any]:
        """The link graph: devices are integers, routers ``("router", number)``.

        Edges carry ``bandwidth_Bps`` (one link, one direction), ``count`` and ``latency_s``.

        Raises
        ------
        InputError
            Over 16,384 devices.
        """
        check_explicit_size(self.devices)
        graph: nx.Graph[Any] = nx.Graph(name=self.name)
        graph.add_nodes_from(range(self.devices), role="device")
        self._add_nodes(graph)
        routers = self.routers_per_group
        for group in range(self.groups):
            for a, b in combinations(range(group * routers, (group + 1) * routers), 2):
                self._join(graph, a, b, self.local_bandwidth_Bps)
        for group, target in combinations(range(self.groups), 2):
            for link in range(self.links_per_pair):
                a = group * routers + self.gateway(group, target, link)
                b = target * routers + self.gateway(target, group, link)
                self._join(graph, a, b, self.global_bandwidth_Bps)
        return graph

    def _join(self, graph: nx.Graph[Any], a: int, b: int, bandwidth_Bps: float) -> None:
        ends = ("router", a), ("router", b)
        count = graph.edges[ends]["count"] + 1 if graph.has_edge(*ends) else 1
        graph.add_edge(
            *ends, bandwidth_Bps=bandwidth_Bps, count=count, latency_s=self.hop_latency_s
        )

    def _add_nodes(self, graph: nx.Graph[Any]) -> None:
        for router in range(self.routers):
            graph.add_node(("router", router), role="switch", radix=self.radix)
        for node in range(self.nodes):
            first = node * self.devices_per_node
            devices = dict(enumerate(range(first, first + self.devices_per_node)))
            self.interior.draw(graph, node, devices)
            graph.add_node(("nic", node, 0), role="nic")
            graph.add_edge(
                ("nic", node, 0),
                ("router", node // self.nodes_per_router),
                bandwidth_Bps=self.nic_bandwidth_Bps,
                count=1,
                latency_s=self.hop_latency_s,
            )
            for device in devices.values():
                graph.add_edge(
                    device,
                    ("nic", node, 0),
                    bandwidth_Bps=self.nic_bandwidth_Bps,
                    count=1,
                    latency_s=0.0,
                )
