"""Where a block of devices stands when it is drawn obliquely: first axis right, second up, third
back to the upper right.

The vectors are chosen so that no line along an axis passes a device that is not on it, at a
clearance that is told; among those with enough of it the deepest is taken, because depth is what
makes a cube of a stack of grids. Lengths are pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

__all__ = ["Oblique", "oblique"]

FloatArray = npt.NDArray[np.float64]

_SLOPES = np.arange(0.14, 0.6, 0.01)
"""Of the third axis, as shares of the steps of the other two."""
_ALIKE = 0.9
_BEYOND = 0.6
"""Steps that a line goes on beyond its last device: its stub."""
_STEP = (116.0, 96.0)
"""Longest steps to the right and up."""


@dataclass(frozen=True, slots=True)
class Oblique:
    """Steps of the three axes, and what they leave free.

    ``clearance`` is how far lines keep from devices that are not on them, ``apart`` the side of the
    largest squares around devices that do not touch.
    """

    right: float
    up: float
    back_right: float
    back_up: float
    clearance: float
    apart: float

    def at(self, i: float, j: float, k: float) -> tuple[float, float]:
        """Place of a device relative to the first one, y downwards."""
        return i * self.right + k * self.back_right, -(j * self.up + k * self.back_up)


@lru_cache(maxsize=256)
def oblique(
    sizes: tuple[int, int, int], width: float, height: float, enough: float = 12.0
) -> Oblique:
    """The steps that fill an area.

    Parameters
    ----------
    sizes : (int, int, int)
        Devices to the right, up and back.
    width, height : float
        Between the middles of the outermost devices.
    enough : float
        Clearance that is worth no depth any more.
    """
    across, high, deep = sizes
    share_x, share_y = np.meshgrid(_SLOPES, _SLOPES, indexing="ij")
    right = np.minimum(_STEP[0], width / np.maximum(across - 1 + (deep - 1) * share_x, 1e-9))
    up = np.minimum(_STEP[1], height / np.maximum(high - 1 + (deep - 1) * share_y, 1e-9))
    back_right, back_up = share_x * right, share_y * up
    clear = np.full(right.shape, np.inf)
    if across > 1:
        clear = np.minimum(clear, _apart(high, up, deep, back_up))
    if high > 1:
        clear = np.minimum(clear, _apart(across, right, deep, back_right))
    if deep > 1:
        clear = np.minimum(clear, _aside(sizes, (right, up), (back_right, back_up)))
    apart = _squares(sizes, (right, up), (back_right, back_up))
    clear = np.minimum(clear, 0.7 * apart)
    depth = np.minimum(back_right, 1.6 * back_up)
    fits = clear >= min(enough, _ALIKE * float(clear.max()))
    best = np.unravel_index(int(np.where(fits, depth, -1.0).argmax()), clear.shape)
    found = (right, up, back_right, back_up, clear, apart)
    return Oblique(*(round(float(of[best]), 2) for of in found))


def _apart(count: int, step: FloatArray, deep: int, back: FloatArray) -> FloatArray:
    """Least distance of two lines along an axis, of those with other places on the others."""
    least = np.full(step.shape, np.inf)
    for one in range(count):
        for layer in range(1 - deep, deep):
            if one or layer:
                least = np.minimum(least, np.abs(one * step + layer * back))
    return least


def _aside(
    sizes: tuple[int, int, int], step: tuple[FloatArray, FloatArray], back: tuple[FloatArray, ...]
) -> FloatArray:
    """Least distance of a line that goes back from the devices beside it."""
    (right, up), (back_right, back_up) = step, back
    length = np.hypot(back_right, back_up)
    least = np.full(right.shape, np.inf)
    for i in range(1 - sizes[0], sizes[0]):
        for j in range(sizes[1]):
            if i or j:
                x, y = i * right, j * up
                along = np.abs(x * back_right + y * back_up) / length**2
                off = np.abs(x * back_up - y * back_right) / length
                near = along <= sizes[2] - 1 + _BEYOND
                least = np.minimum(least, np.where(near, off, np.inf))
    return least


def _squares(
    sizes: tuple[int, int, int], step: tuple[FloatArray, FloatArray], back: tuple[FloatArray, ...]
) -> FloatArray:
    """Side of the largest squares around devices that do not touch."""
    (right, up), (back_right, back_up) = step, back
    least = np.full(right.shape, np.inf)
    for i in range(1 - sizes[0], sizes[0]):
        for j in range(1 - sizes[1], sizes[1]):
            for k in range(sizes[2]):
                if (i, j, k) > (0, 0, 0) or k:
                    x, y = np.abs(i * right + k * back_right), np.abs(j * up + k * back_up)
                    least = np.minimum(least, np.maximum(x, y))
    return least
