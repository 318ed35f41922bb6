"""Rank correlation of predicted and measured figures."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["spearman"]

_FEWEST_RANKED = 3
"""A rank correlation of fewer rows says nothing."""


def spearman(first: npt.ArrayLike, second: npt.ArrayLike, digits: int = 9) -> float | None:
    """Return the rank correlation, ties sharing their mean rank; None where it has no meaning.

    Examples
    --------
    >>> spearman([1, 2, 3, 4], [10, 30, 20, 40])
    0.8
    """
    one, two = _ranks(first), _ranks(second)
    spread = float(one.std() * two.std())
    if len(one) < _FEWEST_RANKED or spread == 0.0:
        return None
    return round(float(((one - one.mean()) * (two - two.mean())).mean() / spread), digits)


def _ranks(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    found = np.asarray(values, dtype=np.float64)
    order = np.sort(found)
    left, right = np.searchsorted(order, found), np.searchsorted(order, found, side="right")
    return np.asarray((left + right - 1) / 2, dtype=np.float64)
