"""A torus or mesh as blocks of devices along its axes, and what links join two blocks.

Small ones have a block per device; where these have no room, blocks of k to the side, k a divisor
of all sizes where there is one near, and 4 first where the fabric is made of cubes of 4 x 4 x 4.
A block at the end of an axis may be smaller.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from nest_core.fabric import Torus
from nest_core.fabric.checks import IntArray
from nest_core.network.torus import TorusShape

__all__ = ["AXES", "CUBE", "Blocks", "Joint", "blocks_of"]

AXES = ("x", "y", "z")
CUBE = 4
"""Devices to the side of a cube, where a fabric is made of them."""
_FEW = 8
"""Cubes; where there are no more, blocks of half their side may be drawn."""


@dataclass(frozen=True, slots=True)
class Joint:
    """Links along one axis between two blocks.

    Parameters
    ----------
    axis : int
    a, b : int
        Blocks; the links go from the upper end of ``a`` to the lower end of ``b``.
    wraps : bool
        Whether they close the axis.
    links : int
    """

    axis: int
    a: int
    b: int
    wraps: bool
    links: int


@dataclass(frozen=True)
class Blocks:
    """A torus cut into blocks.

    Parameters
    ----------
    torus : Torus
    side : tuple of int
        Devices of a whole block along every axis.
    """

    torus: Torus
    side: tuple[int, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """Blocks along every axis."""
        return tuple(-(-n // k) for n, k in zip(self.torus.shape, self.side, strict=True))

    @property
    def single(self) -> bool:
        """Whether every block is one device."""
        return math.prod(self.side) == 1

    def place(self, block: int) -> tuple[int, ...]:
        """Coordinates of a block."""
        return self.place_in(self.counts, block)

    @staticmethod
    def place_in(counts: tuple[int, ...], block: int) -> tuple[int, ...]:
        """Coordinates of a block among so many along every axis, the first axis fastest."""
        result = []
        for count in counts:
            block, at = divmod(block, count)
            result.append(at)
        return tuple(result)

    @cached_property
    def of(self) -> IntArray:
        """Block of every place, shape (places,)."""
        rest, result, stride = np.arange(self.torus.places), np.zeros(self.torus.places, int), 1
        for size, side, count in zip(self.torus.shape, self.side, self.counts, strict=True):
            result = result + rest % size // side * stride
            rest, stride = rest // size, stride * count
        return np.asarray(result, np.int64)

    @cached_property
    def places(self) -> IntArray:
        """Devices of every block if none were missing, shape (blocks,)."""
        return np.bincount(self.of, minlength=math.prod(self.counts))

    @cached_property
    def present(self) -> IntArray:
        """Devices of every block that are there, shape (blocks,)."""
        return np.bincount(self.of[self.torus.place_of()], minlength=math.prod(self.counts))

    @cached_property
    def joints(self) -> tuple[tuple[Joint, ...], IntArray]:
        """Links between blocks and those that close an axis; and links inside every block."""
        inside = np.zeros(math.prod(self.counts), np.int64)
        result: list[Joint] = []
        for low, high, axis, wraps in self.torus.link_places():
            a, b = self.of[low], self.of[high]
            if not wraps:
                inside += np.bincount(a[a == b], minlength=len(inside))
                a, b = a[a != b], b[a != b]
            pairs, links = np.unique(np.stack([a, b]), axis=1, return_counts=True)
            result += [
                Joint(axis, one, other, wraps, many)
                for (one, other), many in zip(pairs.T.tolist(), links.tolist(), strict=True)
            ]
        return tuple(result), inside

    def busiest(self, busy: npt.NDArray[np.float64]) -> dict[Joint, float]:
        """The most that a link of every joint is busy, either way.

        Parameters
        ----------
        busy : float array (link groups,)
            Of the fabric's link map: ``(place * axes + axis) * 2``, one more downwards.
        """
        by_way = busy.reshape(self.torus.places, len(self.torus.shape), 2)
        most: dict[tuple[int, int, int, bool], float] = {}
        for low, high, axis, wraps in self.torus.link_places():
            both = np.maximum(by_way[low, axis, 0], by_way[high, axis, 1])
            pairs = np.stack([self.of[low], self.of[high]])
            result, at = np.unique(pairs, axis=1, return_inverse=True)
            largest = np.zeros(result.shape[1])
            np.maximum.at(largest, at.reshape(-1), both)
            for (a, b), share in zip(result.T.tolist(), largest.tolist(), strict=True):
                most[axis, a, b, wraps] = share
        return {one: most[one.axis, one.a, one.b, one.wraps] for one in self.joints[0]}

    def way(self, start: int, end: int) -> set[tuple[int, int, int, bool]]:
        """Joints on the route between two places: axis, ends in order, whether it wraps."""
        shape = TorusShape(self.torus.shape, self.torus.wrap, self.torus.shifts)
        here = shape.coordinates(np.array([start]))
        moves = shape.moves(np.array([start]), np.array([end]))[:, 0].tolist()
        result = set()
        place = start
        for axis, move in enumerate(moves):
            for _ in range(abs(move)):
                here[axis] += 1 if move > 0 else -1
                after = int(shape.number(here)[0])
                low, high = (place, after) if move > 0 else (after, place)
                stride = math.prod(self.torus.shape[:axis])
                wraps = low // stride % self.torus.shape[axis] == self.torus.shape[axis] - 1
                a, b = int(self.of[low]), int(self.of[high])
                if a != b or wraps:
                    result.add((axis, a, b, wraps))
                place = after
        return result


def blocks_of(torus: Torus, most: int, fits: Callable[[tuple[int, ...]], bool]) -> Blocks:
    """The smallest blocks of which no more than ``most`` are drawn, and that fit.

    Parameters
    ----------
    fits : function of the blocks along every axis
    """
    cubes = len(torus.shape) == 3 and all(size % CUBE == 0 for size in torus.shape)
    least = None
    for side in range(1, max(torus.shape) + 1):
        if cubes and side % CUBE and side > (2 if torus.places <= _FEW * CUBE**3 else 1):
            continue
        blocks = Blocks(torus, tuple(min(side, size) for size in torus.shape))
        if math.prod(blocks.counts) > most or not fits(blocks.counts):
            continue
        least = least or blocks
        if all(size % own == 0 for size, own in zip(torus.shape, blocks.side, strict=True)):
            return blocks
        if side >= 2 * max(least.side):
            break
    return least or Blocks(torus, torus.shape)
