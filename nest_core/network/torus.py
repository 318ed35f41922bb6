"""Link map of tori and meshes: one link per device, dimension and direction.

Routes are dimension-order and shortest, the first dimension first; where both ways round a
ring are equally long, the one towards higher coordinates. A *twisted* torus closes a dimension
with an offset along another one, so a flow's moves are the shortest vector among those that
lead to the target (Camara et al., "Twisted torus topologies for enhanced interconnection
networks", IEEE TPDS 21(12), 2010).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np

from nest_core.network.link_map import FloatArray, IntArray, LinkMap, Routes, joined

__all__ = ["TorusLinkMap", "TorusShape"]


@dataclass(frozen=True, slots=True)
class TorusShape:
    """Sizes and wrap of a torus; device ids count the first dimension fastest.

    ``shifts[d]`` is what one turn round dimension ``d`` adds to every coordinate (twisted
    tori); empty where no dimension is twisted.
    """

    shape: tuple[int, ...]
    wrap: tuple[bool, ...]
    shifts: tuple[tuple[int, ...], ...] = ()

    @property
    def _twisted(self) -> list[int]:
        return [axis for axis, shift in enumerate(self.shifts) if any(shift)]

    @property
    def devices(self) -> int:
        """Number of places."""
        return math.prod(self.shape)

    @property
    def diameter(self) -> int:
        """Largest hop distance between two devices."""
        if self._twisted:
            return int(self.hops(np.zeros(1, np.int64), np.arange(self.devices)).max())
        return sum(
            size // 2 if wrapped else size - 1
            for size, wrapped in zip(self.shape, self.wrap, strict=True)
        )

    def coordinates(self, devices: IntArray) -> IntArray:
        """Shape (dims, ...)."""
        return np.stack(np.unravel_index(devices, self.shape, order="F"))

    def number(self, coordinates: IntArray) -> IntArray:
        """Device at coordinates, reduced round the torus; shape (dims, ...) to (...)."""
        place = coordinates.copy()
        for axis in self._twisted:
            turns = place[axis] // self.shape[axis]
            for other, shift in enumerate(self.shifts[axis]):
                place[other] += turns * shift
        return np.asarray(np.ravel_multi_index(tuple(place), self.shape, mode="wrap", order="F"))

    def moves(self, source: IntArray, target: IntArray) -> IntArray:
        """Signed hops along every dimension, shape (dims, ...)."""
        gap = self.coordinates(target) - self.coordinates(source)
        twisted = self._twisted
        best = gap
        length = np.full(gap.shape[1:], np.iinfo(np.int64).max)
        for turns in itertools.product((0, -1, 1), repeat=len(twisted)):
            candidate = gap.copy()
            for axis, turn in zip(twisted, turns, strict=True):
                candidate[axis] += turn * self.shape[axis]
                for other, shift in enumerate(self.shifts[axis]):
                    candidate[other] -= turn * shift
            for axis in range(len(self.shape)):
                if axis not in twisted:
                    candidate[axis] = self._way(axis, candidate[axis])
            hops = np.abs(candidate).sum(axis=0)
            shorter = hops < length
            best = np.where(shorter, candidate, best)
            length = np.where(shorter, hops, length)
        return best

    def _way(self, axis: int, gap: IntArray) -> IntArray:
        size = self.shape[axis]
        if not self.wrap[axis]:
            return gap
        forward = gap % size
        return np.where(2 * forward <= size, forward, forward - size)

    def nesting(self, place: IntArray, dimensions: list[int]) -> tuple[IntArray, ...]:
        """Blocks of the devices at ``place`` that grow along one dimension after another."""
        coordinates = self.coordinates(place)
        result = []
        for axis in dimensions:
            coordinates[axis] = 0
            result.append(self.number(coordinates))
        return tuple(result)

    def hops(self, source: IntArray, target: IntArray) -> IntArray:
        """Hop distance between devices, element by element."""
        source, target = np.broadcast_arrays(source, target)
        return np.asarray(np.abs(self.moves(source, target)).sum(axis=0))


@dataclass(frozen=True, slots=True, eq=False)
class TorusLinkMap(LinkMap):
    """Links of a torus; link group ``(device * dims + dimension) * 2 + (1 if downwards)``.

    Parameters
    ----------
    shape : TorusShape
    place : int array (devices,)
        Where each present device sits; absent ones leave holes in the numbering, while their
        routers keep forwarding.
    link_bandwidth_Bps, hop_latency_s : float
    """

    shape: TorusShape
    place: IntArray
    link_bandwidth_Bps: float
    hop_latency_s: float

    def __post_init__(self) -> None:
        link_groups = (self.shape.devices * len(self.shape.shape) * 2,)
        link_Bps = np.full(link_groups, self.link_bandwidth_Bps, dtype=np.float64)
        self._settle(
            capacity_Bps=link_Bps,
            link_Bps=link_Bps,
            tier=np.zeros(link_groups, dtype=np.int64),  # all links carry one-hop traffic first
            outside=np.zeros(link_groups, dtype=np.bool_),  # a torus has no nodes
        )

    @property
    def port_Bps(self) -> float:
        """All links of one device."""
        return sum(min(size - 1, 2) for size in self.shape.shape) * self.link_bandwidth_Bps

    @property
    def least_latency_s(self) -> float:
        """One hop."""
        return self.hop_latency_s

    def faster(self, tier: int, factor: float) -> TorusLinkMap:
        """Return the same torus with faster links, whatever the tier."""
        del tier
        return replace(self, link_bandwidth_Bps=self.link_bandwidth_Bps * factor)

    def reverse(self, link_group: int) -> int:
        """Return the same cable from its other router; a ring of two has one that leads upwards."""
        link, down = divmod(link_group, 2)
        place, axis = divmod(link, len(self.shape.shape))
        here = self.shape.coordinates(np.array([place]))
        other = int(self._passed(here, axis, np.array([0]), np.array([1 - 2 * down]))[0])
        is_pair = self.shape.shape[axis] == 2 and self.shape.wrap[axis] and not self.shape.shifts
        way = down if is_pair else 1 - down
        return (other * len(self.shape.shape) + axis) * 2 + way

    def level(self, source: IntArray, target: IntArray) -> IntArray:
        """Hop distance less one."""
        return self.shape.hops(self.place[source], self.place[target]) - 1

    def routes(self, source: IntArray, target: IntArray, variant: int = 0) -> Routes:
        """Dimension by dimension along the shortest way."""
        del variant
        dims = len(self.shape.shape)
        moves = self.shape.moves(self.place[source], self.place[target])
        here = self.shape.coordinates(self.place[source])
        parts: list[tuple[IntArray, IntArray, FloatArray]] = []
        for axis in range(dims):
            moving = np.flatnonzero(moves[axis])
            if len(moving):
                move = moves[axis, moving]
                hops = np.abs(move)
                mover = np.repeat(np.arange(len(moving)), hops)
                step = np.arange(len(mover)) - np.repeat(np.cumsum(hops) - hops, hops)
                way = np.sign(move)[mover]
                link_group = (
                    self._passed(here[:, moving], axis, mover, way * step) * dims + axis
                ) * 2 + (way < 0)
                parts.append((moving[mover], link_group, np.ones(len(mover))))
            here[axis] += moves[axis]
        flow, link_group, share = joined(parts)
        latency = np.abs(moves).sum(axis=0) * self.hop_latency_s
        return Routes(flow, link_group, share, latency, np.zeros(len(source), np.bool_))

    def _passed(self, here: IntArray, axis: int, flow: IntArray, along: IntArray) -> IntArray:
        """Routers that flows at ``here`` (overwritten) pass ``along`` an axis."""
        if self.shape.shifts:
            at = here[:, flow]
            at[axis] += along
            return self.shape.number(at)
        size = self.shape.shape[axis]
        stride = math.prod(self.shape.shape[:axis])
        start = here[axis] % size
        here[axis] = 0
        return np.asarray(
            self.shape.number(here)[flow] + (start[flow] + along) % size * stride, dtype=np.int64
        )
