"""Link map of fabrics that are trees of groups: hierarchies and folded Clos networks.

Every tier joins *children* (a device, a NIC, a node, a leaf) into *groups* through one uplink
group per child. Two devices meet at the innermost tier whose group holds both, and their flow
climbs through the uplinks of the source and down those of the target. Groups may be unequal
and need not nest: on rail-optimised fabrics the leaf groups cut across the nodes.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from nest_core.network.kernels import Ways, climbs, meets
from nest_core.network.link_map import (
    BoolArray,
    FloatArray,
    IntArray,
    LinkMap,
    Routes,
    ScaleUpLinkMap,
    hashed,
    joined,
    rank_within,
)

__all__ = ["TreeLinkMap", "TreeTier", "ways_out"]

_DOWN = 7919  # sets the hash of the way down apart from that of the way up


@dataclass(frozen=True, slots=True, eq=False)
class TreeTier:
    """One tier of uplinks.

    Parameters
    ----------
    child, group : int array (devices,)
        The link group that a device climbs through, and the group that it reaches.
    capacity_Bps, link_Bps : (children,)
    latency_s : float
        Between two devices that meet here, in total.
    direct : bool
        Whether every device owns its uplink (a port, a NIC): flows that meet at or above this
        tier then leave by it and cross nothing further in.
    group_links : int
        Parallel links of which a flow takes one, in the largest group; 1 where groups are
        shared ideally.
    links, rank : int array (children,), (devices,); None where each group is one link
        Parallel links of every group, and the place of every device among those of its child,
        by which routes fixed by the target pick a link.
    parallel : int
        How many of them end at one switch above, which hashes anew for the way down.
    """

    child: IntArray
    group: IntArray
    capacity_Bps: FloatArray
    link_Bps: FloatArray
    latency_s: float
    direct: bool = False
    group_links: int = 1
    links: IntArray | None = None
    rank: IntArray | None = None
    parallel: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class TreeLinkMap(LinkMap):
    """A tree of groups.

    Parameters
    ----------
    tiers : tuple of TreeTier
        Innermost first.
    scale_up : InteriorWires or None
        Links inside nodes, where they are not a switch. They replace tier 0.
    rail : int array (devices,) or None
        Where rails never meet above the node: flows between rails are forwarded inside the
        source node by the device ``relay[device, rail of the target]``.
    relay : int array (devices, rails) or None
        -1 where the node has no device on that rail.
    egress : int array (devices,) or None
        The device of the same node through which each one leaves it, where some have lost
        their own way out.
    hashed : bool
        Whether a flow's link is a hash of its ends (static ECMP), or fixed by its target.
    seed, variants : int
        Of the hash; times are means over so many draws.
    """

    tiers: tuple[TreeTier, ...]
    scale_up: ScaleUpLinkMap | None = None
    rail: IntArray | None = None
    relay: IntArray | None = None
    egress: IntArray | None = None
    hashed: bool = False
    seed: int = 0
    variants: int = 1
    ways: Ways = field(init=False, repr=False)

    def __post_init__(self) -> None:
        inside = [] if self.scale_up is None else [self.scale_up.capacity_Bps]
        copies = [2 * entry.group_links for entry in self.tiers]
        alone = [
            entry.capacity_Bps if entry.group_links == 1 else entry.link_Bps for entry in self.tiers
        ]
        capacity = [*inside, *map(np.repeat, alone, copies)]
        one_link = [*inside, *map(np.repeat, (entry.link_Bps for entry in self.tiers), copies)]
        sizes = list(map(len, capacity))
        tier = np.repeat([0] * len(inside) + [*range(len(self.tiers))], sizes)
        self._settle(
            capacity_Bps=np.concatenate(capacity),
            link_Bps=np.concatenate(one_link),
            tier=tier,
            outside=tier > 0,
            ways=self._stacked(np.cumsum([0, *sizes])[len(inside) : -1]),
        )

    def _stacked(self, offsets: IntArray) -> Ways:
        children = np.stack([entry.child for entry in self.tiers])
        links, rank = np.ones_like(children), np.zeros_like(children)
        for index, entry in enumerate(self.tiers):
            if entry.links is not None and entry.rank is not None:
                links[index] = np.maximum(entry.links, 1)[entry.child]
                rank[index] = entry.rank
        return Ways(
            child=children,
            group=np.stack([entry.group for entry in self.tiers]),
            leaves_by=self.leaves_by,
            latency_s=np.array([entry.latency_s for entry in self.tiers]),
            offset=offsets,
            group_links=np.array([entry.group_links for entry in self.tiers], dtype=np.int64),
            parallel=np.array([entry.parallel for entry in self.tiers], dtype=np.int64),
            links=links,
            rank=rank,
        )

    @property
    def leaves_by(self) -> IntArray:
        """The tier by which a flow leaves its device, per tier where it meets its peer."""
        owned = [index if entry.direct else 0 for index, entry in enumerate(self.tiers)]
        return np.maximum.accumulate(np.array(owned, dtype=np.int64))

    @property
    def port_Bps(self) -> float:
        """The widest first link of any device, or all of its links inside a meshed node."""
        inner, *further = self.tiers
        inside = inner.link_Bps.max() if self.scale_up is None else self.scale_up.port_Bps
        return float(max([inside, *(entry.link_Bps.max() for entry in further if entry.direct)]))

    @property
    def all_ports_Bps(self) -> float:
        """What it has inside its node and a port of its own at every tier that gives it one."""
        inner, *further = self.tiers
        inside = inner.capacity_Bps.max() if self.scale_up is None else self.scale_up.port_Bps
        return float(inside + sum(entry.capacity_Bps.max() for entry in further if entry.direct))

    @property
    def outlet_Bps(self) -> float:
        """Its uplink out of the node, and ports of its own further out."""
        if self.rail is not None or self.egress is not None or len(self.tiers) == 1:
            return float("inf")
        beyond = [entry.capacity_Bps.max() for entry in self.tiers[2:] if entry.direct]
        return float(self.tiers[1].capacity_Bps.max() + sum(beyond))

    @property
    def flow_outside_Bps(self) -> float:
        """The widest link by which a flow leaves its node."""
        first = np.unique(np.maximum(self.leaves_by[1:], 1)).tolist()
        return max((float(self.tiers[tier].link_Bps.max()) for tier in first), default=float("inf"))

    def apart(self, groups: IntArray) -> bool:
        """Whether groups stay in their nodes and share nothing there: equal ports of their own."""
        inside = self.tiers[0]
        if self.scale_up is not None or not inside.direct or np.ptp(inside.capacity_Bps) > 0:
            return False
        node = inside.group[groups]
        alone = int(np.bincount(groups.reshape(-1)).max()) == 1
        return alone and bool((node == node[:, :1]).all())

    @property
    def ideal(self) -> bool:
        """Whether groups outside the nodes nest, and all beneath an uplink share it, or own it.

        Some may have lost their way out and use that of another device of their node.
        """
        return (
            self.scale_up is None
            and self.rail is None
            and all(entry.group_links == 1 for entry in self.tiers)
            and _nest(self.tiers[1:])
        )

    @property
    def is_plain(self) -> bool:
        """Whether flows take nothing but uplinks, from their own devices on."""
        return self.scale_up is None and self.rail is None and self.egress is None

    def egress_Bps(self, block: int, *, alike: bool = False) -> float:
        """Uplinks of the widest group of a tier, with the ports that leave it further out.

        Known where the tiers inside are the nesting, that is where groups do not cut across.
        """
        is_known = self.leaves_wholly(block) and (not alike or self._leave_alike(block))
        return float(leaving_Bps(self.tiers, block).max()) if is_known else float("inf")

    def leaves_wholly(self, block: int) -> bool:
        """Whether all that leaves a group of a tier goes through the ports of `leaving_Bps`."""
        return block + 1 < len(self.tiers) and (block == 0 or _nest(self.tiers))

    def _leave_alike(self, block: int) -> bool:
        """Whether the busiest uplink of a group is all of it, or as busy as every device's own.

        Not in pools of ports, on links that flows are bound to, and through other devices: there
        a part of the group may leave by ways that the others leave free.
        """
        entry = self.tiers[block + 1]
        if self.rail is not None or self.egress is not None or entry.group_links > 1:
            return False
        if any(further.direct for further in self.tiers[block + 2 :]):
            return False
        ways = np.unique(np.stack([self.tiers[block].group, entry.child]), axis=1).shape[1]
        return (
            True
            if ways == len(np.unique(self.tiers[block].group))
            else ways == len(entry.child) and bool(np.ptp(entry.capacity_Bps[entry.child]) == 0)
        )

    @property
    def least_latency_s(self) -> float:
        """Of any tier."""
        return min(entry.latency_s for entry in self.tiers)

    def faster(self, tier: int, factor: float) -> TreeLinkMap:
        """Return the same link map with one tier's bandwidth multiplied."""
        entry = self.tiers[tier]
        wider = replace(
            entry,
            capacity_Bps=entry.capacity_Bps * factor,
            link_Bps=entry.link_Bps * factor,
        )
        inside = self.scale_up
        scale_up = inside if inside is None or tier else inside.faster(factor)
        return replace(
            self, tiers=(*self.tiers[:tier], wider, *self.tiers[tier + 1 :]), scale_up=scale_up
        )

    def scaled(self, factor: FloatArray) -> TreeLinkMap:
        """Return the same with uplinks narrower, both ways; whose port is gone leaves by another.

        Of parallel links that flows choose one of, only those at 0 count, which are then fewer.
        """
        tiers, inside = [], self.scale_up
        if inside is not None:
            rates = inside.capacity_Bps * factor[: len(inside.capacity_Bps)]
            inside = replace(inside, capacity_Bps=rates)
        for entry, offset in zip(self.tiers, self.ways.offset.tolist(), strict=True):
            size = len(entry.capacity_Bps), entry.group_links, 2
            shares = factor[offset : offset + 2 * size[0] * size[1]].reshape(size).min(axis=2)
            share, links = shares[:, 0], entry.links
            if links is not None:
                exists = np.arange(size[1]) < links[:, None]
                share = ((shares > 0) & exists).sum(axis=1) / np.maximum(links, 1)
                links = np.round(share * links).astype(np.int64)
            capacity_Bps = entry.capacity_Bps * share
            link_Bps = np.minimum(entry.link_Bps, capacity_Bps)
            tiers.append(replace(entry, capacity_Bps=capacity_Bps, link_Bps=link_Bps, links=links))
        egress = self.egress
        if len(tiers) > 1 and (tiers[1].capacity_Bps < self.tiers[1].capacity_Bps).any():
            egress = ways_out(tiers[1].capacity_Bps[tiers[1].child] > 0, tiers[0].group)
        return replace(self, tiers=tuple(tiers), scale_up=inside, egress=egress)

    def level(self, source: IntArray, target: IntArray) -> IntArray:
        """Innermost tier whose group holds both; −1 for a device and itself."""
        return self._met(*self._ends(*np.broadcast_arrays(source, target)))

    def _met(self, first: IntArray, last: IntArray) -> IntArray:
        """Return the same where flows leave and enter the rails."""
        return meets(self.ways.group, np.ascontiguousarray(first), np.ascontiguousarray(last))

    def routes(self, source: IntArray, target: IntArray, variant: int = 0) -> Routes:
        """Up the source's uplinks and down the target's, below the tier where they meet."""
        flows = np.arange(len(source))
        parts: list[tuple[IntArray, IntArray, FloatArray]] = []
        first, last = self._ends(source, target)
        met = self._met(first, last)
        latency = np.append(self.ways.latency_s, 0.0)[met]
        for a, b in ((source, first), (last, target)):
            forwards = a != b
            if forwards.any():
                parts += self._inside(flows[forwards], a[forwards], b[forwards])
                latency[forwards] += self._inside_s(a[forwards], b[forwards])
        if self.scale_up is not None:
            stays = (met >= 0) & (self.ways.leaves_by[met] == 0)
            a, b = first[stays], last[stays]
            parts += self._inside(flows[stays], a, b)
            latency[stays] = self._inside_s(a, b)
        parts.append(self._climbs(first, last, met, variant))
        flow, link_group, share = joined(parts)
        return Routes(flow, link_group, share, latency, met > 0)

    def _ends(self, source: IntArray, target: IntArray) -> tuple[IntArray, IntArray]:
        """Where flows leave and enter the rails: devices that forward inside their node.

        In the node of the source; of the target, where the source's has none on that rail; in
        both, on the first rail that both have, where neither has the other's.
        """
        inside = self.tiers[0].group[source] == self.tiers[0].group[target]
        if self.egress is not None:
            source = np.where(inside, source, self.egress[source])
            target = np.where(inside, target, self.egress[target])
        if self.rail is None or self.relay is None:
            return source, target
        out = np.where(inside, source, self.relay[source, self.rail[target]])
        back = target.copy()
        lacks = out < 0
        out[lacks] = source[lacks]
        back[lacks] = self.relay[target[lacks], self.rail[source[lacks]]]
        neither = np.flatnonzero(back < 0)
        if len(neither):
            a, b = self.relay[source[neither]], self.relay[target[neither]]
            rail = ((a >= 0) & (b >= 0)).argmax(axis=1)[:, None]  # any fabric leaves them one
            out[neither] = np.take_along_axis(a, rail, axis=1)[:, 0]
            back[neither] = np.take_along_axis(b, rail, axis=1)[:, 0]
        return out, back

    def _inside_s(self, source: IntArray, target: IntArray) -> FloatArray:
        """Latency between devices of one node each."""
        hops = 1 if self.scale_up is None else self.scale_up.hops(source, target)
        return np.asarray(hops * self.tiers[0].latency_s)

    def _inside(
        self, flows: IntArray, source: IntArray, target: IntArray
    ) -> list[tuple[IntArray, IntArray, FloatArray]]:
        if self.scale_up is not None:
            crossing, link_group, share = self.scale_up.crossings(source, target)
            return [(flows[crossing], link_group, share)]
        flow, link_group, share = self._climbs(source, target, np.zeros(len(flows), np.int64), 0)
        return [(flows[flow], link_group, share)]

    def _climbs(
        self, source: IntArray, target: IntArray, met: IntArray, variant: int
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """Crossings of the tiers: flows, link groups and shares, which are all of a flow."""
        first, last = np.ascontiguousarray(source), np.ascontiguousarray(target)
        up, down = self.hashes(source, target, np.array([variant]))
        flow, link_group = climbs(
            self.ways, first, last, met, int(self.scale_up is not None), up[0], down[0]
        )
        return flow, link_group, np.ones(len(flow))

    def hashes(
        self, source: IntArray, target: IntArray, variants: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Hashes of flows on their way up and down, (variants, flows); empty without any."""
        if not self.hashed:
            none = np.zeros((len(variants), 0), dtype=np.int64)
            return none, none
        seeds = self.seed + variants[:, None]
        return hashed(source, target, seeds), hashed(target, source, seeds + _DOWN)


def ways_out(has_port: BoolArray, node: IntArray) -> IntArray | None:
    """Return the device by which each one leaves its node; None where all have their own port.

    Those without one are dealt to the others in turn; of a node that has none each stays itself.
    """
    if has_port.all():
        return None
    survivors = np.flatnonzero(has_port)
    survivors = survivors[np.argsort(node[survivors], kind="stable")]
    count = np.bincount(node[survivors], minlength=int(node.max()) + 1)[node]
    start = np.searchsorted(node[survivors], node)
    at = np.minimum(start + rank_within(node) % np.maximum(count, 1), len(survivors) - 1)
    instead = survivors[at] if len(survivors) else np.arange(len(node))
    return np.where(has_port | (count == 0), np.arange(len(node)), instead)


@lru_cache(maxsize=64)
def leaving_Bps(tiers: tuple[TreeTier, ...], block: int) -> FloatArray:
    """Return what leaves each group of a tier at most, (groups,)."""
    group = tiers[block].group
    total = np.zeros(int(group.max()) + 1)
    for index, entry in enumerate(tiers[block + 1 :]):
        if index == 0 or entry.direct:
            pair = np.unique(np.stack([group, entry.child]), axis=1)
            total += np.bincount(pair[0], entry.capacity_Bps[pair[1]], minlength=len(total))
    return total


@lru_cache(maxsize=64)
def _nest(tiers: tuple[TreeTier, ...]) -> bool:
    """Whether every group lies in one group of the next tier."""
    return all(
        len(np.unique(np.stack([below.group, above.group]), axis=1).T)
        == len(np.unique(below.group))
        for below, above in itertools.pairwise(tiers)
    )
