"""A function of whole numbers over long columns, called once for every number that occurs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nest_core.network import FloatArray, IntArray

__all__ = ["each"]


def each(keys: IntArray, of: Callable[[int], float]) -> FloatArray:
    """``of`` every key, shape (keys,); keys are not negative.

    Examples
    --------
    >>> each(np.array([3, 1, 3]), lambda key: 10.0 * key)
    array([30., 10., 30.])
    """
    occurring = np.flatnonzero(np.bincount(keys))
    table = np.zeros(int(occurring.max(initial=-1)) + 1)
    table[occurring] = [of(key) for key in occurring.tolist()]
    return np.asarray(table[keys])
