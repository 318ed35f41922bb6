"""Screens: which points could come in under a time, or fit into memory at all, many at once.

They stand between bounds, which know nothing of memory, and the program, which needs a point's
real layout: stages at best-case communication, memory as it is (`nest_core.planner.program`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nest_core.costs.problem import Problem
from nest_core.costs.zero import gathered, state_shares, step_share
from nest_core.network.wires import BoolArray, FloatArray, IntArray
from nest_core.planner.bounds import Ledger, hop_seconds
from nest_core.planner.points import Columns
from nest_core.planner.program import covers, evens
from nest_core.planner.space import Rows

__all__ = ["Entry", "Screen"]

_Stacked = tuple[
    FloatArray, FloatArray, float, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray
]


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A family at a micro-batch: what `covers` and `evens` read of it, and its ledger."""

    books: Ledger
    time: FloatArray
    dense: FloatArray
    experts: FloatArray
    tied: float
    kept: FloatArray
    working: FloatArray


class Screen:
    """Screens points of rows.

    Parameters
    ----------
    problem : Problem
    rows : Rows
    allowed : (choices,)
        Rows of `RECOMPUTE` that may be used.
    zeros : tuple of int
        ZeRO stages that pipeline stages choose from, and the least counts; empty: the point's.
    """

    def __init__(
        self, problem: Problem, rows: Rows, allowed: IntArray, zeros: tuple[int, ...] = ()
    ) -> None:
        self._problem, self._rows, self._allowed = problem, rows, allowed
        self._zeros = zeros

    def hops(
        self,
        boundary: FloatArray,
        row: IntArray,
        outer: BoolArray,
        parted: BoolArray,
        natural: BoolArray,
    ) -> FloatArray:
        """Seconds that pipeline transfers of points take at least; see `hop_seconds`."""
        rows = self._rows
        within = np.where(parted, 1, rows.column("cp")[row]) * np.where(outer, 1, rows.dp[row])
        return hop_seconds(self._problem, boundary, rows.column("tp")[row] * within, natural)

    def fits(
        self,
        entries: list[Entry],
        entry: IntArray,
        columns: Columns,
        micro_batches: IntArray,
        cap: FloatArray,
        limit: float,
    ) -> BoolArray:
        """`covers` of points whose stages are one chunk; others all pass."""
        alive = columns.interleave == 1
        if alive.any():
            covers(
                *self._stacked(entries, entry, columns), self._allowed, entry,
                self._rows.pp[columns.row], micro_batches, columns.stashing,
                *self._per_element(columns), cap, limit, alive,
            )  # fmt: skip
        return np.asarray(alive | (columns.interleave > 1))

    def even(
        self,
        entries: list[Entry],
        entry: IntArray,
        columns: Columns,
        micro_batches: IntArray,
        sync: FloatArray,
    ) -> FloatArray:
        """`evens` of interleaved points; 0 for others."""
        least = np.where(columns.interleave > 1, 1.0, 0.0)
        if least.any():
            evens(
                *self._stacked(entries, entry, columns), self._allowed, entry,
                self._rows.pp[columns.row], columns.interleave, micro_batches,
                *self._per_element(columns), sync,
                self._problem.tensor_bytes, least,
            )  # fmt: skip
        return np.asarray(least)

    def _stacked(self, entries: list[Entry], entry: IntArray, columns: Columns) -> _Stacked:
        boundary = np.concatenate([each.books.boundary for each in entries])
        hop = self.hops(
            boundary[entry], columns.row, columns.outer, columns.parted, columns.natural
        )
        return (
            np.stack([each.time for each in entries]),
            hop,
            self._problem.overlap.transfer,
            np.stack([each.dense for each in entries]),
            np.stack([each.experts for each in entries]),
            np.array([each.tied for each in entries]),
            np.stack([each.kept for each in entries]),
            np.stack([each.working for each in entries]),
        )

    def _per_element(
        self, columns: Columns
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Bytes per dense and per expert element: held, of the step, whole and fetched."""
        state = self._problem.state
        sharers = self._rows.dp[columns.row] * self._rows.column("cp")[columns.row]
        owners = sharers if self._zeros else sharers // self._rows.column("ep")[columns.row]

        def shares(part: Callable[[int, int], float]) -> FloatArray:
            def least(zero: int, ranks: int) -> float:
                return min(part(stage, ranks) for stage in self._zeros or (zero,))

            return np.stack([_shares(columns.zero, ranks, least) for ranks in (sharers, owners)])

        return (
            shares(lambda zero, ranks: sum(state_shares(zero, ranks, state))),
            shares(lambda zero, ranks: step_share(zero, ranks, state)),
            shares(lambda zero, ranks: gathered(zero, ranks, state)[0]),
            shares(lambda zero, ranks: gathered(zero, ranks, state)[1]),
        )


def _shares(zero: IntArray, ranks: IntArray, share: Callable[[int, int], float]) -> FloatArray:
    """Bytes per element of every point, from its ZeRO stage and the ranks that share it."""
    kinds, which = np.unique(4 * ranks + zero, return_inverse=True)
    found = [share(kind % 4, kind // 4) for kind in kinds.tolist()]
    return np.array(found, dtype=np.float64)[which]
