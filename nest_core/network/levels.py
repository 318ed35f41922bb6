"""Levels: classes of device pairs that communicate alike.

A *nested* level groups devices: two that share a group at level ``l`` but at none inside it
meet there. Each group below level ``l`` (a *child*; below level 0 a child is one device)
reaches it through its uplink, a group of ``links`` equal links. What counts is who shares
that group, so a level states both the capacity of the whole group and the most that one
device alone can draw from it. Groups may be unequal; a level then describes the largest group
and the child with the least bandwidth per device.

An *affinity* level classes pairs without grouping them: hops on a torus, or the leaves of a
rail-optimised fabric, which cut across its nodes (NEST, MLSys 2026, appendix B.2).

Levels are what people read and what names a stage's link to its producer. Times are counted
on the `LinkMap` beneath them.

Units: bytes/s per direction, seconds one way. Level 0 is the innermost.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self

import numpy as np
import numpy.typing as npt

from nest_core.network.link_map import IntArray, LinkMap
from nest_core.network.torus import TorusLinkMap, TorusShape

__all__ = ["Level", "Network", "Outline"]


@dataclass(frozen=True, slots=True)
class Level:
    """One class of device pairs.

    Parameters
    ----------
    name : str
        What people call it: node, leaf, spine, 2 hops.
    kind : {"nested", "affinity"}
    group_size : int
        Devices in the largest group of this level; 0 for affinity levels.
    groups : int
        Number of groups; for torus levels the number of devices (each sees its own class).
    links : int
        Parallel links in the uplink group of one child.
    link_bandwidth_Bps : float
        One of those links, one direction, oversubscription applied.
    latency_s : float
        One way between two devices that meet at this level, in total.
    child_size : int
        Devices below one uplink group.
    """

    name: str
    kind: Literal["nested", "affinity"]
    group_size: int
    groups: int
    links: float
    link_bandwidth_Bps: float
    latency_s: float
    child_size: int

    @property
    def where(self) -> str:
        """For sentences: level node, or level 2 where nothing names it better."""
        return self.name if self.name.startswith("level ") else f"level {self.name}"

    @property
    def capacity_Bps(self) -> float:
        """The uplink group of one child, bytes/s, shared by all of its devices."""
        return self.links * self.link_bandwidth_Bps

    @property
    def bandwidth_Bps(self) -> float:
        """What one device gets when all devices of its child send at once, bytes/s."""
        return self.capacity_Bps / self.child_size

    @property
    def single_flow_Bps(self) -> float:
        """What one device gets when it sends alone: one link, or its share of several."""
        return max(self.link_bandwidth_Bps, self.bandwidth_Bps)


@dataclass(frozen=True, slots=True)
class Outline:
    """What words and headline figures tell of a network, without the link map, which may be large.

    Parameters
    ----------
    levels, node_size
        As the network's.
    """

    levels: tuple[Level, ...]
    node_size: int


@dataclass(frozen=True, eq=False)
class Network:
    """What costs read of a fabric: devices numbered consecutively, levels, and a link map.

    Parameters
    ----------
    devices : int
    levels : tuple of Level
        Innermost first.
    link_map : LinkMap
        Who shares which link.
    nesting : tuple of int array (devices,)
        Blocks that hierarchical collectives climb, innermost first: nodes, racks, …, all. On a
        torus the rows, planes, … of its dimensions.
    torus : TorusShape or None
        Set where collectives run over the dimensions of a torus.
    hosts : int array (devices,) or None
        Host of every device, where a node has several.
    algorithm : str
        The only reduce-scatter that libraries run on it; empty: whichever is fastest.
    """

    devices: int
    levels: tuple[Level, ...]
    link_map: LinkMap
    nesting: tuple[IntArray, ...]
    torus: TorusShape | None = None
    hosts: IntArray | None = None
    algorithm: str = ""

    @property
    def meshed_nodes(self) -> bool:
        """Whether devices of a node are linked to one another and not to a switch."""
        return getattr(self.link_map, "scale_up", None) is not None

    @property
    def place(self) -> IntArray:
        """Where on its torus every device sits; devices themselves elsewhere."""
        return (
            self.link_map.place
            if isinstance(self.link_map, TorusLinkMap)
            else np.arange(self.devices)
        )

    @cached_property
    def node(self) -> IntArray:
        """Node of every device, shape (devices,): the link map's, else the innermost block."""
        return np.asarray(getattr(self.link_map, "node", self.nesting[0]))

    @property
    def host(self) -> IntArray:
        """Host of every device, shape (devices,): its node, unless that has several.

        Where devices have links of their own (tori), each is a host.
        """
        if self.hosts is not None:
            return self.hosts
        return self.node if self.torus is None else np.arange(self.devices)

    @cached_property
    def node_size(self) -> int:
        """Devices of a node where all have as many, and sit side by side; else 0."""
        return _size(self.node)

    @property
    def outline(self) -> Outline:
        """The little of it that is told."""
        return Outline(self.levels, self.node_size)

    @cached_property
    def regular(self) -> bool:
        """Whether the blocks of every level are equally large and follow one another."""
        return all(_size(block) > 0 for block in self.nesting)

    @cached_property
    def egress_rates(self) -> tuple[tuple[int, float], ...]:
        """Devices of each kind of block, and the most that leaves one; where blocks are alike."""
        return self._egress_rates(alike=False)

    @cached_property
    def node_egress_Bps(self) -> float:
        """Most that leaves a node at once; infinite where that is not known."""
        nodes = [np.array_equal(block, self.node) for block in self.nesting[:-1]]
        return self.link_map.egress_Bps(nodes.index(True)) if any(nodes) else float("inf")

    @cached_property
    def alike_egress(self) -> tuple[tuple[int, float], ...]:
        """Those that all who leave share, or that are as wide for every device.

        There what a block sends says how long each of its groups takes; elsewhere only how long
        the slowest does.
        """
        return self._egress_rates(alike=True)

    def _egress_rates(self, *, alike: bool) -> tuple[tuple[int, float], ...]:
        rates = [
            (_size(block), self.link_map.egress_Bps(index, alike=alike))
            for index, block in enumerate(self.nesting[:-1])
        ]
        return tuple(
            (size, egress_Bps) for size, egress_Bps in rates if size and 0 < egress_Bps < np.inf
        )

    def faster(self, level: int, factor: float) -> Self:
        """Return the same network with the uplinks into one level wider; on a torus all links."""
        levels = tuple(
            replace(entry, link_bandwidth_Bps=entry.link_bandwidth_Bps * factor)
            if index == level or self.torus is not None
            else entry
            for index, entry in enumerate(self.levels)
        )
        return replace(self, levels=levels, link_map=self.link_map.faster(level, factor))

    def level(self, a: npt.ArrayLike, b: npt.ArrayLike) -> IntArray:
        """Level at which devices meet; −1 where ``a == b``. Shape: broadcast of both.

        Examples
        --------
        >>> from nest_core.fabric import Hierarchical, Tier
        >>> from nest_core.network import collapse
        >>> tiers = (Tier("node", 2, 100e9, 1e-6), Tier("rack", 2, 50e9, 2e-6))
        >>> collapse(Hierarchical("two", tiers)).level([0, 0, 0], [0, 1, 3])
        array([-1,  0,  1])
        """
        first, second = np.broadcast_arrays(
            np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64)
        )
        met = self.link_map.level(first.reshape(-1), second.reshape(-1))
        return np.asarray(met.reshape(first.shape))


def _size(block: IntArray) -> int:
    """Devices of each block if equally many follow one another in each; else 0."""
    size, rest = divmod(len(block), int(block.max()) + 1)
    return 0 if rest or not np.array_equal(block, np.arange(len(block)) // size) else size
