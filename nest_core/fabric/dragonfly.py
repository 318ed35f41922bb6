"""Dragonfly fabrics: groups of fully connected routers, joined pairwise by global links.

Kim, Dally, Scott and Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008:
``a`` routers per group, ``p`` nodes and ``h`` global links per router, at most ``a h + 1``
groups. Every pair of groups has ``m = floor(a h / (groups - 1))`` links; ports left over stay
dark. Group ``i`` reaches its ``t``-th other group (in ascending order) over its global ports
``t m .. t m + m - 1``, router by router: the consecutive arrangement.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import Any, Self

import numpy as np

from nest_core.documents import (
    from_gbps_bytes,
    from_microseconds,
    gigabytes,
    humanise_rate,
    microseconds,
    require,
)
from nest_core.documents.schema import FabricFile
from nest_core.documents.schema.fabric import DragonflyTable, IntraNodeTable
from nest_core.fabric.checks import (
    IntArray,
    LinkGraph,
    check_devices,
    check_routing,
    positive,
    whole,
)
from nest_core.fabric.fabric import Document, Fabric, SwitchPorts
from nest_core.fabric.scale_up import Interconnect, ScaleUp

__all__ = ["Dragonfly"]

MAX_LINKS = 20_000_000
"""Between routers, each way: the largest balanced dragonfly has 3.3 million."""


@dataclass(frozen=True, slots=True)
class Dragonfly(Fabric):
    """A dragonfly; devices are numbered node by node, router by router, group by group.

    Parameters
    ----------
    routers_per_group, nodes_per_router, global_links_per_router : int
        ``a``, ``p`` and ``h``; a node's NICs all go to its router; its devices share
        them, and a flow spreads over all of them.
    local_bandwidth_Bps, global_bandwidth_Bps : float
        One link inside a group, one between groups; one direction.
    hop_latency_s : float
        One link and the router behind it.
    intra_bandwidth_Bps, intra_latency_s, interconnect
        The node, as in `ScaleUp`.
    groups : int
        0: the most there can be, ``a h + 1``.
    devices_per_node : int
    nic_bandwidth_Bps : float
        One NIC, one direction; 0: that of a local link.
    routing, ecmp_seed
        How flows choose among paths.
    optics : tuple of (str, str)
        Kind of cable or optics by kind of link: node, local, global.
    nics_per_node : int
        Ports that a node takes on its router.
    """

    kind = "dragonfly"
    noun = "dragonfly"

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
    nics_per_node: int = 1

    def __post_init__(self) -> None:
        for field in (
            "routers_per_group",
            "nodes_per_router",
            "global_links_per_router",
            "devices_per_node",
            "nics_per_node",
        ):
            whole(f"dragonfly.{field}", getattr(self, field))
        ports = self.routers_per_group * self.global_links_per_router
        if self.groups == 0:
            object.__setattr__(self, "groups", ports + 1)
        if self.nic_bandwidth_Bps == 0:
            object.__setattr__(self, "nic_bandwidth_Bps", self.local_bandwidth_Bps)
        whole("dragonfly.groups", self.groups)
        require(
            self.groups <= ports + 1,
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
        links = self.routers * self.routers_per_group + self.groups**2 * self.links_per_pair
        require(
            links <= MAX_LINKS,
            "dragonfly",
            f"must have at most {MAX_LINKS:,} links between routers",
            links,
            "take fewer routers per group, or fewer groups",
        )
        _ = self.scale_up

    @classmethod
    def from_file(
        cls, file: FabricFile, table: DragonflyTable, node: IntraNodeTable | None
    ) -> Self:
        """Return the fabric of a file's ``[dragonfly]`` and, for larger nodes, ``[intra_node]``."""
        require(
            node is not None or table.devices_per_node <= 1,
            "intra_node",
            "is required for nodes of several devices",
            "absent",
            "add it",
        )
        nic = table.nic_bandwidth_GBps
        # A node of one device has no inside; its figures are never read.
        inside = nic or table.local_bandwidth_GBps
        return cls(
            name=file.name,
            routers_per_group=table.routers_per_group,
            nodes_per_router=table.nodes_per_router,
            global_links_per_router=table.global_links_per_router,
            local_bandwidth_Bps=from_gbps_bytes(table.local_bandwidth_GBps),
            global_bandwidth_Bps=from_gbps_bytes(table.global_bandwidth_GBps),
            hop_latency_s=from_microseconds(table.hop_latency_us),
            intra_bandwidth_Bps=from_gbps_bytes(node.bandwidth_GBps if node else inside),
            intra_latency_s=from_microseconds(node.latency_us if node else 0.0),
            interconnect=node.interconnect if node else "switch",
            groups=table.groups or 0,
            devices_per_node=table.devices_per_node,
            nic_bandwidth_Bps=0.0 if nic is None else from_gbps_bytes(nic),
            nics_per_node=table.nics_per_node,
            routing=file.routing,
            ecmp_seed=file.ecmp_seed,
            optics=tuple(file.optics.items()),
        )

    def tables(self) -> Document:
        """``[dragonfly]`` and ``[intra_node]``."""
        table = {
            "routers_per_group": self.routers_per_group,
            "nodes_per_router": self.nodes_per_router,
            "global_links_per_router": self.global_links_per_router,
            "local_bandwidth_GBps": gigabytes(self.local_bandwidth_Bps),
            "global_bandwidth_GBps": gigabytes(self.global_bandwidth_Bps),
            "hop_latency_us": microseconds(self.hop_latency_s),
            "groups": self.groups,
            "devices_per_node": self.devices_per_node,
            "nic_bandwidth_GBps": gigabytes(self.nic_bandwidth_Bps),
        }
        more = {"nics_per_node": self.nics_per_node} if self.nics_per_node > 1 else {}
        return {"dragonfly": table | more, "intra_node": self.scale_up.table()}

    def switch_ports(self) -> tuple[SwitchPorts, ...]:
        """Ports of a router; up are those to other routers."""
        lit = self.links_per_pair * (self.groups - 1)
        up = self.routers_per_group - 1 + min(self.global_links_per_router, lit)
        down = self.nodes_per_router * self.nics_per_node
        return (SwitchPorts("router", self.routers, self.radix, down, up, None),)

    def extent(self) -> str:
        """Return groups and their routers."""
        return f"{self.groups:,} groups of {self.routers_per_group} routers"

    def contents(self) -> str:
        """Return groups, routers, nodes and links."""
        return (
            f"{self.extent()} of radix {self.radix}, {self.nodes_per_router} nodes each; "
            f"local links of {humanise_rate(self.local_bandwidth_Bps)}, global ones of "
            f"{humanise_rate(self.global_bandwidth_Bps)}."
        )

    @property
    def group_names(self) -> tuple[str, ...]:
        """From the node outwards."""
        return ("node", "router", "group", "all")

    @property
    def scale_up(self) -> ScaleUp:
        """The inside of a node."""
        return ScaleUp(
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
        """Ports of a router: ``p + h + a - 1``, where ``p`` counts NICs."""
        nodes = self.nodes_per_router * self.nics_per_node
        return nodes + self.global_links_per_router + self.routers_per_group - 1

    @property
    def port_bandwidth_Bps(self) -> float:
        """All NICs of a node, one direction."""
        return self.nics_per_node * self.nic_bandwidth_Bps

    @property
    def links_per_pair(self) -> int:
        """Global links between two groups, ``m``; 0 if there is one group."""
        return (
            0
            if self.groups == 1
            else self.routers_per_group * self.global_links_per_router // (self.groups - 1)
        )

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
        """Return the router, counted within ``group``, that owns a global link to ``target``.

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

    def explicit(self) -> LinkGraph:
        """Return the link graph: devices are integers, routers ``("router", number)``.

        Edges carry ``bandwidth_Bps`` (one link, one direction), ``count`` and ``latency_s``.

        Raises
        ------
        InputError
            Over 16,384 devices.
        """
        graph = self._devices_alone()
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

    def _join(self, graph: LinkGraph, a: int, b: int, bandwidth_Bps: float) -> None:
        ends = ("router", a), ("router", b)
        count = graph.edges[ends]["count"] + 1 if graph.has_edge(*ends) else 1
        graph.add_edge(
            *ends, bandwidth_Bps=bandwidth_Bps, count=count, latency_s=self.hop_latency_s
        )

    def _add_nodes(self, graph: LinkGraph) -> None:
        for router in range(self.routers):
            graph.add_node(("router", router), role="switch", radix=self.radix)
        for node in range(self.nodes):
            first = node * self.devices_per_node
            devices = dict(enumerate(range(first, first + self.devices_per_node)))
            self.scale_up.draw(graph, node, devices)
            several = {"count": self.nics_per_node} if self.nics_per_node > 1 else {}
            graph.add_node(("nic", node, 0), role="nic", **several)
            graph.add_edge(
                ("nic", node, 0),
                ("router", node // self.nodes_per_router),
                bandwidth_Bps=self.nic_bandwidth_Bps,
                count=self.nics_per_node,
                latency_s=self.hop_latency_s,
            )
            for device in devices.values():
                graph.add_edge(
                    device,
                    ("nic", node, 0),
                    bandwidth_Bps=self.port_bandwidth_Bps,
                    count=1,
                    latency_s=0.0,
                )
