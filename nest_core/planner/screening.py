"""Screens: which points could come in under a time, or fit into memory at all, many at once.

They stand between bounds, which know nothing of memory, and the program, which needs a point's
real layout: stages at best-case communication, memory as it is (`nest_core.planner.relaxed`).
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nest_core.costs import Problem, acting_zero, gathered, state_shares, step_share
from nest_core.network import BoolArray, FloatArray, IntArray
from nest_core.planner.layouts import even_patterns, uneven_patterns
from nest_core.planner.points import PointTable, each
from nest_core.planner.relaxed import (
    HopBounds,
    Layouts,
    RelaxedPoints,
    RelaxedTables,
    covers,
    divided,
    longest,
)
from nest_core.planner.space import Rows
from nest_core.planner.transfer_bounds import hop_seconds

__all__ = ["FamilyTable", "Screen"]


@dataclass(frozen=True, slots=True, eq=False)
class FamilyTable:
    """Hold one family at a micro-batch: its part of `RelaxedTables`, and the least a rank sends."""

    boundary: float
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
        Rows of tables whose recomputation may be used.
    zeros : tuple of int
        ZeRO stages that pipeline stages choose from, and the least counts; empty: the point's.
    """

    def __init__(
        self, problem: Problem, rows: Rows, allowed: IntArray, zeros: tuple[int, ...] = ()
    ) -> None:
        self._problem, self._rows, self._allowed = problem, rows, allowed
        self._zeros = zeros
        # Where stages differ, as many ranks hold the same experts as any of their strategies has.
        families = rows.families
        self._most = int((families.tp // np.minimum(families.ep * families.etp, families.tp)).max())

    def hops(
        self,
        boundary: FloatArray,
        row: IntArray,
        outer: BoolArray,
        parted: BoolArray,
        natural: BoolArray,
        most: IntArray,
        alike: BoolArray,
    ) -> tuple[HopBounds, FloatArray]:
        """Seconds that pipeline transfers of points take at least; see `hop_seconds`."""
        rows = self._rows.chosen(row)
        cp, dp = rows.column("cp"), rows.dp
        inside = np.where(parted, 1, cp) * np.where(outer, 1, dp)
        return hop_seconds(
            self._problem,
            boundary,
            rows.column("tp") * inside,
            cp * dp // inside,
            rows.pp,
            natural,
            most,
            alike,
        )

    def fits(
        self,
        entries: list[FamilyTable],
        entry: IntArray,
        columns: PointTable,
        micro_batches: IntArray,
        cap: FloatArray,
        limit: float,
    ) -> BoolArray:
        """Return `covers` of points whose stages are in one piece; others all pass."""
        result = np.ones(len(columns), dtype=bool)
        at = np.flatnonzero(columns.interleave == 1)
        if len(at):
            cases = self._cases(entries, entry, columns, micro_batches, at)
            result[at] = covers(self._tables(entries, limit), cases, cap[at])
        return result

    def longest(
        self,
        entries: list[FamilyTable],
        entry: IntArray,
        columns: PointTable,
        micro_batches: IntArray,
        low: FloatArray,
        cap: FloatArray,
    ) -> FloatArray:
        """Return `longest` of points whose stages are in one piece; ``low`` of others."""
        result = low.copy()
        at = np.flatnonzero(columns.interleave == 1)
        if len(at):
            cases = self._cases(entries, entry, columns, micro_batches, at)
            result[at] = longest(self._tables(entries), cases, low[at], cap[at])
        return result

    def interleaved(
        self,
        entries: list[FamilyTable],
        entry: IntArray,
        columns: PointTable,
        micro_batches: IntArray,
        sync: FloatArray,
        cutoff: float,
        *,
        uneven: bool,
    ) -> FloatArray:
        """Return `divided` of points of virtual stages; 0 for others."""
        result = np.zeros(len(columns))
        at = np.flatnonzero(columns.interleave > 1)
        if len(at):
            cases = self._cases(entries, entry, columns, micro_batches, at)
            layouts = _layouts(self._problem.layers, cases, uneven=uneven)
            result[at] = divided(self._tables(entries), cases, layouts, sync[at], cutoff)
        return result

    def _tables(self, entries: list[FamilyTable], limit: float | None = None) -> RelaxedTables:
        kept = np.stack([entry.kept for entry in entries])
        working = np.stack([entry.working for entry in entries])
        paired = working.copy()  # head and loss run between pairs
        paired[..., :-1] += np.diff(kept)[..., :-1]
        return RelaxedTables(
            time=np.stack([entry.time for entry in entries]),
            dense=np.stack([entry.dense for entry in entries]),
            experts=np.stack([entry.experts for entry in entries]),
            tied=np.array([entry.tied for entry in entries]),
            kept=kept,
            working=np.stack([working, paired]),
            allowed=self._allowed,
            transfer_saved=self._problem.overlap.transfer,
            limit=self._problem.tensor_bytes if limit is None else limit,
        )

    def _cases(
        self,
        entries: list[FamilyTable],
        entry: IntArray,
        columns: PointTable,
        micro_batches: IntArray,
        at: IntArray,
    ) -> RelaxedPoints:
        """Return what screens read of some points."""
        entry, columns, micro_batches = entry[at], columns.chosen(at), micro_batches[at]
        boundary = np.array([pair.boundary for pair in entries])[entry]
        hops, _ = self.hops(
            boundary,
            columns.row,
            columns.outer,
            columns.parted,
            columns.natural,
            columns.most,
            columns.alike,
        )
        static, stepping, gathered_bytes, fetched = self._per_element(columns)
        pp, turns = self._rows.chosen(columns.row).pp, columns.around == 0
        one_stage = (pp == 1) & ~columns.stashing
        paired = np.where(columns.interleave > 1, (columns.delay == 0) & ~turns, one_stage)
        return RelaxedPoints(
            entry,
            pp,
            columns.interleave,
            turns,
            micro_batches,
            columns.stashing,
            (paired & self._problem.overlap.experts).astype(np.int64),
            columns.delay,
            static,
            stepping,
            gathered_bytes,
            fetched,
            hops,
        )

    def _per_element(
        self, columns: PointTable
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Bytes per dense and per expert element: held, of the step, whole and fetched."""
        rows, state = self._rows.chosen(columns.row), self._problem.state
        pp, sharers = rows.pp, rows.dp * rows.column("cp")
        sharded = self._problem.sharded_gradients
        owners = sharers * self._most if self._zeros else rows.owners
        instances = columns.instances(sharers)
        owners, sharers = owners // instances, sharers // instances

        def shares(part: Callable[[int, int], float]) -> FloatArray:
            def least(zero: int, ranks: int, stages: int) -> float:
                acting = (
                    acting_zero(zero_stage, stages, sharded)
                    for zero_stage in self._zeros or (zero,)
                )
                return min(part(stage, ranks) for stage in acting)

            dense, experts = (
                _shares(columns.zero, ranks, pp, least) for ranks in (sharers, owners)
            )
            if self._zeros:  # some strategy may hold its experts once
                experts = np.minimum(
                    experts, _shares(columns.zero, np.ones_like(owners), pp, least)
                )
            return np.stack([dense, experts])

        return (
            shares(lambda zero, ranks: sum(state_shares(zero, ranks, state))),
            shares(lambda zero, ranks: step_share(zero, ranks, state)),
            shares(lambda zero, ranks: gathered(zero, ranks, state)[0]),
            shares(lambda zero, ranks: gathered(zero, ranks, state)[1]),
        )


def _layouts(layers: int, cases: RelaxedPoints, *, uneven: bool) -> Layouts:
    """Even layouts of points, and ``uneven`` ones."""
    keys = np.stack([cases.pp, cases.interleave, cases.turns | (cases.delay > 0)])
    kinds, which = np.unique(keys, axis=1, return_inverse=True)
    patterns = [
        [(cuts, not replayed) for cuts in even_patterns(layers, pp, v)]
        + [(cuts, False) for cuts in (uneven_patterns(layers, pp, v) if uneven else ())]
        for pp, v, replayed in kinds.T.tolist()
    ]
    ends, listed = np.cumsum([0, *map(len, patterns)]), [*itertools.chain(*patterns)]
    cuts = np.zeros((len(listed), int((kinds[0] * kinds[1]).max()) + 1), dtype=np.int64)
    for row, (pattern, _) in enumerate(listed):
        cuts[row, : len(pattern)] = pattern
    is_even = np.array([form for _, form in listed], dtype=np.bool_)
    return Layouts(np.stack([ends[:-1], ends[1:]], axis=1)[which], is_even, cuts)


def _shares(
    zero: IntArray, ranks: IntArray, pp: IntArray, share: Callable[[int, int, int], float]
) -> FloatArray:
    """Bytes per element of every point, from its ZeRO stage, the ranks that share it and ``pp``,
    of which only matters whether it is 1.
    """
    return each(
        8 * ranks + 4 * (pp > 1) + zero,
        lambda kind: share(kind % 4, kind // 8, 1 + kind // 4 % 2),
    )
