"""A torus or mesh as blocks of devices along its axes, and what links join two blocks.

Small ones have a block per device; where these have no room, blocks of k to the side, k a divisor
of all sizes where there is one near, and 4 first where the fabric is made of cubes of 4 x 4 x 4.
A block at the end of an axis may be smaller.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nest_core.fabric import IntArray, Torus
from nest_core.network import FloatArray, TorusShape

__all__ = ["AXES", "CUBE", "Joint", "LatticeBlocks", "blocks_of"]

AXES = ("x", "y", "z")
CUBE = 4
"""Devices to the side of a cube, where a fabric is made of them."""
_FEW = 8
"""Cubes; where there are no more, blocks of half their side may be drawn."""


class Joint(NamedTuple):
    """The links along one axis between two blocks.

    Parameters
    ----------
    axis : int
    a, b : int
        Blocks; the links go from the upper end of ``a`` to the lower end of ``b``.
    wraps : bool
        Whether they close the axis.
    """

    axis: int
    a: int
    b: int
    wraps: bool


@dataclass(frozen=True)
class LatticeBlocks:
    """A torus cut into blocks.

    Parameters
    ----------
    torus : Torus
    side : tuple of int
        Devices of a full block along every axis.
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

    @cached_property
    def coordinates(self) -> IntArray:
        """Place of every block, the first axis fastest, shape (blocks, axes)."""
        counts = self.counts
        return np.stack(np.unravel_index(np.arange(math.prod(counts)), counts, order="F"), axis=1)

    @cached_property
    def of(self) -> IntArray:
        """Block of every place, shape (places,)."""
        shape, places = self.torus.shape, np.arange(self.torus.places)
        at = [
            part // side
            for part, side in zip(
                np.unravel_index(places, shape, order="F"), self.side, strict=True
            )
        ]
        return np.asarray(np.ravel_multi_index(at, self.counts, order="F"), np.int64)

    @cached_property
    def places(self) -> IntArray:
        """Devices of every block if none were missing, shape (blocks,)."""
        return np.bincount(self.of)

    @cached_property
    def present(self) -> IntArray:
        """Devices of every block that are present, shape (blocks,)."""
        return np.bincount(self.of[self.torus.place_of()], minlength=len(self.places))

    def _between(self) -> Iterator[tuple[int, list[Joint], tuple[IntArray, ...]]]:
        """Yield axes, their joints, and of every link its joint and the places at its ends."""
        for low, high, axis, wraps in self.torus.link_places():
            leaves = wraps | (self.of[low] != self.of[high])
            low, high = low[leaves], high[leaves]
            pairs, joint_of = np.unique(
                np.stack([self.of[low], self.of[high]]), axis=1, return_inverse=True
            )
            yield (
                axis,
                [Joint(axis, a, b, wraps) for a, b in pairs.T.tolist()],
                (joint_of.reshape(-1), low, high),
            )

    @cached_property
    def joints(self) -> dict[Joint, int]:
        """Links between blocks and those that close an axis."""
        return {
            joint: count
            for _, joints, (joint_of, *_) in self._between()
            for joint, count in zip(joints, np.bincount(joint_of).tolist(), strict=True)
        }

    @cached_property
    def inside(self) -> IntArray:
        """Links inside every block, shape (blocks,)."""
        result = np.zeros(len(self.places), np.int64)
        for low, high, _, wraps in self.torus.link_places():
            if not wraps:
                blocks = self.of[low]
                result += np.bincount(blocks[blocks == self.of[high]], minlength=len(result))
        return result

    def busiest(self, busy: FloatArray) -> dict[Joint, float]:
        """Return the most that a link of every joint is busy, either way.

        Parameters
        ----------
        busy : float array (link groups,)
            Of the fabric's link map: ``(place * axes + axis) * 2``, one more downwards.
        """
        by_way = busy.reshape(self.torus.places, len(self.torus.shape), 2)
        result: dict[Joint, float] = {}
        for axis, joints, (joint_of, low, high) in self._between():
            shares = np.zeros(len(joints))
            np.maximum.at(shares, joint_of, np.maximum(by_way[low, axis, 0], by_way[high, axis, 1]))
            result |= dict(zip(joints, shares.tolist(), strict=True))
        return result

    def way(self, start: int, end: int) -> set[Joint]:
        """Return the joints on the route between two places."""
        torus, result, place = self.torus, set[Joint](), start
        shape = TorusShape(torus.shape, torus.wrap, torus.shifts)
        at = shape.coordinates(np.array([start]))
        moves = shape.moves(np.array([start]), np.array([end]))[:, 0].tolist()
        for axis, move in enumerate(moves):
            for _ in range(abs(move)):
                at[axis] += 1 if move > 0 else -1
                after = int(shape.number(at)[0])
                low, high = (place, after) if move > 0 else (after, place)
                last = torus.shape[axis] - 1
                wraps = low // math.prod(torus.shape[:axis]) % torus.shape[axis] == last
                joint = Joint(axis, int(self.of[low]), int(self.of[high]), wraps)
                if wraps or joint.a != joint.b:
                    result.add(joint)
                place = after
        return result


def blocks_of(
    torus: Torus, max_blocks: int, fits: Callable[[tuple[int, ...]], bool]
) -> LatticeBlocks:
    """Return the smallest blocks of which no more than ``max_blocks`` are drawn, and that fit.

    Parameters
    ----------
    fits : function of the blocks along every axis
    """
    cubes = len(torus.shape) == 3 and all(size % CUBE == 0 for size in torus.shape)
    smallest = None
    for side in range(1, max(torus.shape) + 1):
        if cubes and side % CUBE and side > (2 if torus.places <= _FEW * CUBE**3 else 1):
            continue
        blocks = LatticeBlocks(torus, tuple(min(side, size) for size in torus.shape))
        if math.prod(blocks.counts) > max_blocks or not fits(blocks.counts):
            continue
        smallest = smallest or blocks
        if all(size % part == 0 for size, part in zip(torus.shape, blocks.side, strict=True)):
            return blocks
        if side >= 2 * max(smallest.side):
            break
    return smallest or LatticeBlocks(torus, torus.shape)
