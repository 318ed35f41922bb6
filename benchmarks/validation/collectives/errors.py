"""How far predicted collective times are from measured ones.

Errors are relative, ``predicted / measured - 1``. The accuracy that is promised counts messages
of at least `LARGE_BYTES`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.validation.ranks import spearman
from nest_core.hardware.collectives.measurements import Measurement

__all__ = ["LARGE_BYTES", "SEED", "Compared", "Group", "summarise"]

LARGE_BYTES = 65_536.0

SEED = 0
"""Halves the rows of a table: a fit reads one half, and is tested on the other."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A measurement beside its prediction."""

    row: Measurement
    curve: str
    predicted_s: float

    @property
    def error(self) -> float:
        """Relative, signed."""
        return self.predicted_s / self.row.seconds - 1

    @property
    def large(self) -> bool:
        """Whether the message counts for the promised accuracy."""
        return self.row.bytes >= LARGE_BYTES


@dataclass(frozen=True, slots=True)
class Group:
    """Errors of several rows.

    Parameters
    ----------
    name : str
    n : int
    median, p90 : float
        Of the absolute relative error.
    mape, bias : float
        Mean of the absolute and of the signed relative error.
    spearman : float or None
        Rank correlation of predicted and measured times; None where it has no meaning.
    """

    name: str
    n: int
    median: float
    p90: float
    mape: float
    bias: float
    spearman: float | None


def summarise(name: str, compared: Sequence[Compared]) -> Group:
    """Return the errors of a group; at least one row.

    Examples
    --------
    >>> row = Measurement("a", "all_reduce", "H100", 8, 1, 1e6, 1e-3)
    >>> summarise("one", [Compared(row, "h100", 1.1e-3)]).median
    0.1
    """
    error = np.array([item.error for item in compared])
    size = np.abs(error)
    measured = np.array([item.row.seconds for item in compared])
    predicted = np.array([item.predicted_s for item in compared])
    return Group(
        name,
        len(compared),
        round(float(np.median(size)), 6),
        round(float(np.quantile(size, 0.9)), 6),
        round(float(size.mean()), 6),
        round(float(error.mean()), 6),
        spearman(measured, predicted, 6),
    )
