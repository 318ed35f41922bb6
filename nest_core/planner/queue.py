"""Rows in the order of their bounds."""

from __future__ import annotations

import numpy as np

from nest_core.network import FloatArray, IntArray

__all__ = ["PointQueue"]


class PointQueue:
    """Rows in the order of their bounds; only as many as are asked for are sorted.

    Parameters
    ----------
    low : (rows,)
        Bounds, seconds.
    """

    def __init__(self, low: FloatArray) -> None:
        self.low = low
        self._left: IntArray | None = None
        self._sorted = False
        self._least = float(low.min(initial=np.inf))

    @property
    def least(self) -> float:
        """No row that was not taken yet holds a faster point."""
        return self._least

    def left(self, cutoff: float) -> IntArray:
        """The rows not taken yet that could hold the best."""
        remaining = np.arange(len(self.low)) if self._left is None else self._left
        return np.asarray(remaining[self.low[remaining] <= cutoff])

    def take(self, size: int, cutoff: float) -> IntArray:
        """The next rows that could hold the best, at most ``size``; empty when none is left."""
        if self._left is None:  # the first few need no sorting of all
            size = min(size, len(self.low))
            nearest = np.argpartition(self.low, size - 1)[:size]
            taken = nearest[np.argsort(self.low[nearest], kind="stable")]
            remaining = np.ones(len(self.low), dtype=bool)
            remaining[taken] = False
            self._keep(np.flatnonzero(remaining))
            return np.asarray(taken[self.low[taken] <= cutoff])
        if not self._sorted:
            near = self._left[self.low[self._left] <= cutoff]
            self._left = near[np.argsort(self.low[near], kind="stable")]
            self._sorted = True
        taken = self._left[:size]
        self._keep(self._left[size:])
        return np.asarray(taken[self.low[taken] <= cutoff])

    def _keep(self, remaining: IntArray) -> None:
        """What is left to take."""
        self._left, self._least = remaining, float(self.low[remaining].min(initial=np.inf))
