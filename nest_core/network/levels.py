"""Levels: classes of device pairs that communicate alike.

A *nested* network is a tree of groups: devices ``a`` and ``b`` meet at the innermost level
whose group holds both. Each group below level ``l`` (a *child*; below level 0 a child is one
device) reaches level ``l`` through its uplink: a bundle of ``links`` equal links. What counts
is who shares that bundle, so a level states both the capacity of the whole bundle and the
most that one device alone can draw from it.

An *affinity* network (torus) classes pairs by hop distance and is not transitive; its levels
price point-to-point transfers and ring steps only (NEST, MLSys 2026, appendix B.2).

Units: bytes/s per direction, seconds one way. Level 0 is the innermost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

__all__ = ["IntArray", "Level", "Network", "TorusShape"]

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Level:
    """One class of device pairs.

    Parameters
    ----------
    name : str
        What people call it: node, leaf, spine, 2 hops.
    kind : {"nested", "affinity"}
    group_size : int
        Devices in one full group of this level; 0 for affinity levels.
    groups : int
        Number of groups; for affinity levels the number of devices (each sees its own class).
    links : int
        Parallel links in the uplink bundle of one child.
    link_bandwidth_Bps : float
        One of those links, one direction, oversubscription applied.
    latency_s : float
        One way between two devices that meet at this level, in total.
    child_size : int
        Devices below one uplink bundle.
    """

    name: str
    kind: Literal["nested", "affinity"]
    group_size: int
    groups: int
    links: int
    link_bandwidth_Bps: float
    latency_s: float
    child_size: int

    @property
    def capacity_Bps(self) -> float:
        """The uplink bundle of one child, bytes/s, shared by all of its devices."""
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
class TorusShape:
    """Sizes and wrap of a torus; device ids count the first dimension fastest."""

    shape: tuple[int, ...]
    wrap: tuple[bool, ...]

    def hops(self, a: IntArray, b: IntArray) -> IntArray:
        """Dimension-order hop distance between devices, element by element."""
        total = np.zeros(np.broadcast(a, b).shape, dtype=np.int64)
        a = np.asarray(a, dtype=np.int64)
        b = np.asarray(b, dtype=np.int64)
        for size, wrapped in zip(self.shape, self.wrap, strict=True):
            apart = np.abs(a % size - b % size)
            total += np.minimum(apart, size - apart) if wrapped else apart
            a, b = a // size, b // size
        return total

    @property
    def diameter(self) -> int:
        """Largest hop distance between two devices."""
        return sum(
            size // 2 if wrapped else size - 1
            for size, wrapped in zip(self.shape, self.wrap, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Network:
    """What costs read of a fabric: devices numbered consecutively, and levels.

    Parameters
    ----------
    devices : int
    levels : tuple of Level
        Innermost first.
    torus : TorusShape or None
        Set when the levels are affinity classes.
    """

    devices: int
    levels: tuple[Level, ...]
    torus: TorusShape | None = None

    def level(self, a: npt.ArrayLike, b: npt.ArrayLike) -> IntArray:
        """Level at which devices meet; −1 where ``a == b``. Shape: broadcast of both.

        Examples
        --------
        >>> from nest_core.topology import Hierarchical, Tier
        >>> from nest_core.network import collapse
        >>> tiers = (Tier("node", 2, 100e9, 1e-6), Tier("rack", 2, 50e9, 2e-6))
        >>> collapse(Hierarchical("two", tiers)).level([0, 0, 0], [0, 1, 3])
        array([-1,  0,  1])
        """
        first = np.asarray(a, dtype=np.int64)
        second = np.asarray(b, dtype=np.int64)
        if self.torus is not None:
            return self.torus.hops(first, second) - 1
        result = np.full(np.broadcast(first, second).shape, len(self.levels) - 1, dtype=np.int64)
        for index in range(len(self.levels) - 2, -1, -1):
            size = self.levels[index].group_size
            result[first // size == second // size] = index
        result[np.broadcast_to(first == second, result.shape)] = -1
        return result

    def blocks(self, devices: IntArray, level: int) -> IntArray:
        """Number of the level's group that holds each device; level −1 is the device itself."""
        return devices if level < 0 else devices // self.levels[level].group_size
