"""Link map of dragonflies: minimal routes by index arithmetic, at most one global link per flow.

A flow climbs from its node's port to its router, goes over a local link to a router that owns a
global link to the target's group, over that link, over a local link, and down (Kim, Dally, Scott
and Abts, ISCA 2008, section 3). Of the parallel links between two groups only those that need
the fewest local hops count as minimal. ``adaptive`` divides a flow evenly over the routers that
own such links (where the source's own router does, its links and the local links count by
bandwidth), and there over the links; ``shortest_path`` takes the first link, ``ecmp`` a
hashed one. No route is non-minimal (Valiant).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from nest_core.documents.units import humanise_rate
from nest_core.fabric import Dragonfly, Fabric
from nest_core.network.levels import Level, Network
from nest_core.network.link_map import (
    ECMP_DRAWS,
    FloatArray,
    IntArray,
    LinkMap,
    Routes,
    ScaleUpLinkMap,
    hashed,
    innermost,
    joined,
    node_link_map,
)

__all__ = ["DragonflyLinkMap", "dragonfly_network", "without_detours"]

Parts = list[tuple[IntArray, IntArray, FloatArray]]


@dataclass(frozen=True, slots=True, eq=False)
class DragonflyLinkMap(LinkMap):
    """Link groups: devices' ports or a node's inside, nodes' ports, local links, global links.

    Parameters
    ----------
    fabric : Dragonfly
    nesting : tuple of int array (devices,)
    tiers : tuple of int
        Level of what is inside nodes, of nodes' ports, of local and of global links.
    speed : tuple of float
        Factors on the bandwidths of the same four.
    """

    fabric: Dragonfly
    nesting: tuple[IntArray, ...]
    tiers: tuple[int, int, int, int]
    speed: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    scale_up: ScaleUpLinkMap | None = field(init=False, repr=False)
    _node: IntArray = field(init=False, repr=False)
    _router: IntArray = field(init=False, repr=False)
    _starts: IntArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        fabric, scale_up = self.fabric, node_link_map(self.fabric)
        within = 2 * fabric.devices if scale_up is None else len(scale_up.capacity_Bps)
        counts = (
            within,
            2 * fabric.nodes,
            fabric.routers * fabric.routers_per_group,
            fabric.groups**2 * fabric.links_per_pair,
        )
        capacity = np.repeat(np.array(self.rates_Bps), counts)
        if scale_up is not None:
            capacity[:within] = scale_up.capacity_Bps * self.speed[0]
        self._settle(
            capacity_Bps=capacity,
            link_Bps=capacity,  # every group is one link, or a node's NICs: flows spread over them
            tier=np.repeat(np.array(self.tiers), counts),
            outside=np.arange(len(capacity)) >= within,
            scale_up=scale_up,
            _node=fabric.node_of(),
            _router=fabric.router_of(),
            _starts=np.cumsum([0, *counts]),
        )

    @property
    def rates_Bps(self) -> tuple[float, float, float, float]:
        """One device's port inside, one node's port, one local and one global link."""
        fabric, (a, b, c, d) = self.fabric, self.speed
        return (
            fabric.intra_bandwidth_Bps * a,
            fabric.port_bandwidth_Bps * b,
            fabric.local_bandwidth_Bps * c,
            fabric.global_bandwidth_Bps * d,
        )

    @property
    def port_Bps(self) -> float:
        """All links of a device inside its node, or its node's port."""
        return max(self._ports_Bps)

    @property
    def all_ports_Bps(self) -> float:
        """Both."""
        return sum(self._ports_Bps)

    @property
    def _ports_Bps(self) -> tuple[float, float]:
        inside, port, _, _ = self.rates_Bps
        if self.scale_up is not None:
            inside = self.scale_up.port_Bps * self.speed[0]
        return inside, port

    @property
    def least_latency_s(self) -> float:
        """Inside a node, or through one router."""
        return (
            self.fabric.intra_latency_s
            if self.fabric.devices_per_node > 1
            else (2 + (self.fabric.nodes_per_router == 1)) * self.fabric.hop_latency_s
        )

    @property
    def variants(self) -> int:
        """Hash draws."""
        return ECMP_DRAWS if self.fabric.routing == "ecmp" else 1

    def name(self, link_group: int) -> str:
        """Return the two ends of a link group, in words."""
        part = int(np.searchsorted(self._starts, link_group, side="right")) - 1
        at, fabric = int(link_group - self._starts[part]), self.fabric
        if part == 0 and self.scale_up is not None:
            return f"a link inside node {at // self.scale_up.links_per_node:,}"
        if part < 2:
            place, down = divmod(at, 2)
            inner, outer = (("device", "node"), ("node", "router"))[part]
            inner = f"{inner} {place:,}"
            return f"{outer} down to {inner}" if down else f"{inner} up to {outer}"
        if part == 2:
            router, other = divmod(at, fabric.routers_per_group)
            first = router - router % fabric.routers_per_group
            return f"router {router:,} to router {first + other:,}"
        links = fabric.links_per_pair
        pair, link = divmod(at, links)
        source, target = divmod(pair, fabric.groups)
        name = f"group {source:,} to group {target:,}"
        return f"{name}, link {link + 1:,} of {links:,}" if links > 1 else name

    def reverse(self, link_group: int) -> int:
        """Return the same link from its other end."""
        part = int(np.searchsorted(self._starts, link_group, side="right")) - 1
        at, fabric = int(link_group - self._starts[part]), self.fabric
        if part < 2:
            return link_group ^ 1
        if part == 2:
            router, other = divmod(at, fabric.routers_per_group)
            group, place = divmod(router, fabric.routers_per_group)
            other += group * fabric.routers_per_group
            return int(self._starts[2]) + other * fabric.routers_per_group + place
        pair, link = divmod(at, fabric.links_per_pair)
        source, target = divmod(pair, fabric.groups)
        pair = target * fabric.groups + source
        return int(self._starts[3]) + pair * fabric.links_per_pair + link

    def egress_Bps(self, block: int, *, alike: bool = False) -> float:
        """Return a node's port, which all of its devices share."""
        del alike
        return self.rates_Bps[1] if block == 0 else float("inf")

    def faster(self, tier: int, factor: float) -> DragonflyLinkMap:
        """Return the same dragonfly with the links of one tier wider."""
        a, b, c, d = (
            speed * factor if tier_of == tier else speed
            for tier_of, speed in zip(self.tiers, self.speed, strict=True)
        )
        return replace(self, speed=(a, b, c, d))

    def level(self, source: IntArray, target: IntArray) -> IntArray:
        """Innermost level whose group holds both; −1 for a device and itself."""
        return innermost(self.nesting, source, target)

    def routes(self, source: IntArray, target: IntArray, variant: int = 0) -> Routes:
        """Minimal routes."""
        outside = self._node[source] != self._node[target]
        within = np.flatnonzero(~outside & (source != target))
        flow = np.flatnonzero(outside)
        hop = self.fabric.hop_latency_s
        latency = np.zeros(len(source))
        parts, latency[within] = self._inside(within, source[within], target[within])
        source, target = source[flow], target[flow]
        ports = self._starts[1]
        all_share = np.ones(len(flow))
        parts.append((flow, ports + 2 * self._node[source], all_share))
        parts.append((flow, ports + 2 * self._node[target] + 1, all_share))
        latency[flow] = 2 * hop
        a, b = self._router[source], self._router[target]
        routers = self.fabric.routers_per_group
        near = (a // routers == b // routers) & (a != b)
        parts.append((flow[near], self._local(a[near], b[near]), all_share[near]))
        latency[flow[near]] += hop
        far = a // routers != b // routers
        if far.any():
            draw = hashed(source[far], target[far], self.fabric.ecmp_seed + variant)
            crossings, hops = self._across(flow[far], a[far], b[far], draw)
            parts += crossings
            latency[flow[far]] += hops * hop
        flows, link_group, share = joined(parts)
        return Routes(flows, link_group, share, latency, outside)

    def _inside(
        self, flow: IntArray, source: IntArray, target: IntArray
    ) -> tuple[Parts, FloatArray]:
        latency = self.fabric.intra_latency_s
        if self.scale_up is not None:
            crossing, link_group, share = self.scale_up.crossings(source, target)
            return [(flow[crossing], link_group, share)], self.scale_up.hops(source, target).astype(
                np.float64
            ) * latency
        all_share = np.ones(len(flow))
        parts = [(flow, 2 * source, all_share), (flow, 2 * target + 1, all_share)]
        return parts, np.full(len(flow), latency)

    def _local(self, a: IntArray, b: IntArray) -> IntArray:
        """Link group from router ``a`` to router ``b`` of the same group."""
        routers = self.fabric.routers_per_group
        return np.asarray(self._starts[2] + a * routers + b % routers)

    def _across(
        self, flow: IntArray, a: IntArray, b: IntArray, draw: IntArray
    ) -> tuple[Parts, IntArray]:
        """Local, global, local; and how many hops that takes. Shapes below: (flows, links)."""
        fabric = self.fabric
        routers, links = fabric.routers_per_group, fabric.links_per_pair
        source_group, target_group = (a // routers)[:, None], (b // routers)[:, None]
        link = np.arange(links)[None, :]
        leave = (
            np.asarray(fabric.gateway(source_group, target_group, link)) + source_group * routers
        )
        enter = (
            np.asarray(fabric.gateway(target_group, source_group, link)) + target_group * routers
        )
        detour = (leave != a[:, None]).astype(np.int64) + (enter != b[:, None])
        fewest = detour.min(axis=1, keepdims=True)
        best = detour == fewest
        if fabric.routing == "adaptive":
            together = leave[:, :, None] == leave[:, None, :]
            along = np.maximum((best[:, :, None] & together).sum(axis=1), 1)
            _, _, near, far = self.rates_Bps
            share = best * np.where(leave == a[:, None], far, near / along)
            share /= share.sum(axis=1, keepdims=True)
        else:
            rank = np.cumsum(best, axis=1) * best
            wanted = 1 + (draw % best.sum(axis=1) if fabric.routing == "ecmp" else 0 * draw)
            share = (rank == wanted[:, None]).astype(np.float64)
        link_group = self._starts[3] + (source_group * fabric.groups + target_group) * links + link
        row, column = np.nonzero(share)
        part = share[row, column]
        first, last = leave[row, column], enter[row, column]
        out, into = a[row] != first, b[row] != last
        parts = [
            (flow[row], link_group[row, column], part),
            (flow[row[out]], self._local(a[row[out]], first[out]), part[out]),
            (flow[row[into]], self._local(last[into], b[row[into]]), part[into]),
        ]
        return parts, 1 + fewest[:, 0]


def without_detours(fabric: Fabric) -> str:
    """Return what minimal routes cost a dragonfly; empty for others, and where a link carries a
    node.

    Rings join neighbours, and two routers of a group share one link: per device an all-reduce of
    nodes with eight NICs gets an eighth of a leaf's, which Valiant's or adaptive detours would
    spread over the group.
    """
    if not isinstance(fabric, Dragonfly):
        return ""
    node_Bps = fabric.port_bandwidth_Bps
    ratio = node_Bps / fabric.local_bandwidth_Bps
    if ratio <= 1:
        return ""
    return (
        f"Routes are minimal: between two routers the NICs of a node, {humanise_rate(node_Bps)}, "
        f"share one link of {humanise_rate(fabric.local_bandwidth_Bps)}. Detours (Valiant, UGAL) "
        f"are not modelled, so collectives may be priced up to {ratio:.3g} times too slow."
    )


def dragonfly_network(fabric: Dragonfly) -> Network:
    """Levels node, router, group and global, those left out that join nothing."""
    hop, device = fabric.hop_latency_s, fabric.devices_per_node
    nodes, routers = fabric.nodes_per_router, fabric.routers_per_group
    beyond = (fabric.groups - 1) * fabric.links_per_pair
    uplinks = [
        ("node", device, 1, fabric.intra_bandwidth_Bps, fabric.intra_latency_s),
        ("router", nodes, 1, fabric.port_bandwidth_Bps, 2 * hop),
        ("group", routers, routers - 1, fabric.local_bandwidth_Bps, 3 * hop),
        ("global", fabric.groups, beyond, fabric.global_bandwidth_Bps, 5 * hop),
    ]
    levels: list[Level] = []
    nesting: list[IntArray] = []
    tiers: list[int] = []
    devices, size, least = np.arange(fabric.devices), 1, np.inf
    for index, (name, fan, links, bandwidth, latency) in enumerate(uplinks):
        tiers.append(len(levels))
        if fan == 1 and index:
            # A lone child goes on through this uplink and the next: the lesser of them counts.
            least = min(least, links * bandwidth) if links else least
            continue
        if links * bandwidth > least:
            links, bandwidth = 1, least
        levels.append(
            Level(
                name,
                "nested",
                size * fan,
                fabric.devices // (size * fan),
                links,
                bandwidth,
                latency,
                size,
            )
        )
        size, least = size * fan, np.inf
        nesting.append(devices // size)
    last = len(levels) - 1
    a, b, c, d = (min(tier, last) for tier in tiers)
    link_map = DragonflyLinkMap(fabric, tuple(nesting), (a, b, c, d))
    return Network(fabric.devices, tuple(levels), link_map, tuple(nesting))
