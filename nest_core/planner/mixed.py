"""Mixed stages: each chooses its own strategy, all on equally many devices.

An outer point then fixes the devices of a stage's replica (``tp * cp``), ``dp``, ``pp``, the
micro-batch, schedule and orders; which tensor-, context-, expert- and sequence-parallel degrees
and which ZeRO stage a stage has is chosen by the program, stage by stage. Two declared rules
make that separable: a stage is priced as if all others used its strategy, and so are its
transfers (``docs/method.md``, "The program").
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np

from nest_core.costs import Point, Problem, StageStrategy, micro_batches, prefix
from nest_core.network import BoolArray, FloatArray, IntArray
from nest_core.planner.bounds import Bounds
from nest_core.planner.frontier import PLACED, Frontier, Opened, lower_bounds
from nest_core.planner.layer_bounds import best_case, untied
from nest_core.planner.points import PointQueue, Points, PointTable
from nest_core.planner.screening import FamilyTable, Screen
from nest_core.planner.solver import Prepared, Solver
from nest_core.planner.space import Rows, SearchSpace, as_raised, enumerate_rows
from nest_core.planner.transfer_bounds import TransferBounds

__all__ = ["MixedFrontier"]


class MixedFrontier:
    """What `Frontier` is to uniform stages. A point is named by its widest context parallelism."""

    def __init__(self, problem: Problem, space: SearchSpace) -> None:
        self.problem, self.space = problem, (space := space.seated_on(problem.network))
        self.allowed = problem.rows(space.recompute)
        self.solver = Solver(problem, self.allowed, as_needed=space.as_needed)
        self.rows = _alike(enumerate_rows(problem, space))
        self._zeros = tuple(sorted(set(space.zero)))
        self.points = Points(
            problem, replace(space, zero=self._zeros[:1], zero_groups=(0,)), self.rows
        )
        self._width = self.rows.column("tp") * self.rows.column("cp")
        self.screen = Screen(problem, self.rows, self.allowed, self._zeros)
        self._micros, self._micro = np.unique(self.rows.micro_batch, return_inverse=True)
        self._bounds = self._relaxed()
        self._total, self._tallest = self._lightest()
        self.queue = PointQueue(
            self._seconds(np.arange(len(self.rows)), self.points.deepest[self.rows.batch])
        )

    def __len__(self) -> int:
        return len(self.points)

    def of(self, problem: Problem, factor: float = 1.0) -> MixedFrontier:
        """Return the same points of a problem that differs in memory or network; see `Frontier`."""
        other = copy(self)
        other.problem = problem
        if problem.network is self.problem.network:
            other.solver = self.solver.of(problem)
        else:
            other.solver = Solver(problem, self.allowed, as_needed=self.space.as_needed)
            other._bounds = other._relaxed()
            other._total, other._tallest = other._lightest()
        other.screen = Screen(problem, self.rows, self.allowed, self._zeros)
        other.queue = PointQueue(self.queue.low / factor)
        return other

    def under_1f1b(self) -> MixedFrontier:
        """Return the points of 1F1B alone."""
        return MixedFrontier(self.problem, replace(self.space, schedules=("1f1b",)))

    def open(self, rows: IntArray, cutoff: float) -> Opened:
        """Return the points of rows that may come in under the cutoff."""
        columns = self.points.columns(rows)
        if self.space.replaces_gpipe:
            columns = columns.chosen(~(columns.stashing & (self.rows.chosen(columns.row).pp > 1)))
        seconds = self._seconds(columns.row, columns.rounds)
        near = seconds <= cutoff
        columns, seconds = columns.chosen(near), seconds[near]
        seconds, fits = self._screened(columns, seconds, cutoff)
        misfit = int((~fits).sum()) if cutoff == float("inf") else 0
        columns, seconds = columns.chosen(fits), seconds[fits]
        points = int(self.points.sizes(rows).sum())
        return Opened.sorted(
            columns,
            Bounds(seconds, self._total[columns.row], np.zeros(len(columns))),
            PLACED,
            points,
            misfit,
        )

    def refine(self, opened: Opened, first: int, cutoff: float) -> tuple[Opened, int]:
        """Nothing is left to refine."""
        return opened, len(opened)

    place = refine

    def refined(self, opened: Opened, cutoff: float) -> Opened:
        """Return all of them; see `refine`."""
        return opened

    placed = refined

    def prepare(self, opened: Opened, index: int) -> Prepared:
        """Stage costs of an opened point under every strategy."""
        return self.prepared(int(opened.columns.number[index]))

    def prepared(self, number: int) -> Prepared:
        """Return the same of any point."""
        point = self.points.point(number)
        return self.solver.prepare(point, self._strategies(point))

    def needed(self, point: Point) -> bool:
        """All are: the rule of the space is the program's."""
        return True

    def bound_of(self, number: int) -> float:
        """Return the bound that a point had by itself."""
        row = np.array([self.points.row(number)])
        columns: PointTable = self.points.columns(row)
        return float(self._seconds(row, columns.rounds[columns.number == number])[0])

    def leanest(self) -> tuple[float, Point | None]:
        """Of points with equal stages; see `Frontier.leanest`."""
        return Frontier(self.problem, replace(self.space, mixed=False)).leanest()

    def _strategies(self, point: Point) -> tuple[StageStrategy, ...]:
        families, width = self.rows.families, point.tp * point.cp
        columns = (families.tp, families.sp, families.cp, families.ep, families.etp)
        strategies = []
        for tp, sp, cp, ep, etp in zip(*(column.tolist() for column in columns), strict=True):
            if tp * cp == width and point.dp * width % (ep * etp) == 0:
                strategy = StageStrategy(tp, bool(sp), cp, ep, 0, etp)
                alike = strategy.within(point)
                states = self.space.states(point.pp, alike.sharers, alike.expert_sharers)
                strategies += [
                    replace(strategy, zero=zero, zero_group=group)
                    for zero, group in as_raised(states)
                ]
        return tuple(strategies)

    def _relaxed(self) -> dict[tuple[int, int], FamilyTable]:
        """By width and micro-batch: lower bounds over the strategies, layer by layer."""
        families, micros = self.rows.families, self._micros
        columns_of: dict[tuple[int, int], list[FloatArray]] = {}
        transfer_bounds = TransferBounds(self.problem)
        for family, table, which, scale in lower_bounds(self.problem, families, micros):
            case = best_case(
                self.problem, self.space, transfer_bounds, families, family, table, scale
            )
            width = int(families.tp[family] * families.cp[family])
            for place, times, seconds in zip(which.tolist(), scale, case.seconds, strict=True):
                choices = [
                    seconds,
                    untied(table),
                    table.expert_parameters,
                    np.array(table.tied_parameters),
                    table.kept_bytes * times,
                    table.working_bytes * times,
                ]
                least = columns_of.get((width, place), choices)
                columns_of[width, place] = [
                    np.minimum(a, b) for a, b in zip(least, choices, strict=True)
                ]
        return {
            key: FamilyTable(
                0.0,
                prefix(seconds),
                prefix(dense),
                prefix(experts),
                float(tied),
                prefix(kept_bytes),
                working,
            )
            for key, (seconds, dense, experts, tied, kept_bytes, working) in columns_of.items()
        }

    def _lightest(self) -> tuple[FloatArray, FloatArray]:
        """Lower bounds of all layers' seconds, and of the longest, row by row."""
        total, tallest = np.zeros(len(self.rows)), np.zeros(len(self.rows))
        for (width, place), entry in self._bounds.items():
            here = (self._width == width) & (self._micro == place)
            lightest = np.diff(entry.time[self.allowed], axis=1).min(axis=0)
            total[here], tallest[here] = lightest.sum(), lightest.max()
        return total, tallest

    def _screened(
        self, columns: PointTable, seconds: FloatArray, cutoff: float
    ) -> tuple[FloatArray, BoolArray]:
        """Bounds, and which points could come in under the cutoff, or fit at all."""
        row = columns.row
        m = micro_batches(self.problem.batch, self.rows.dp[row], self.rows.micro_batch[row])
        cap = np.full(len(row), np.inf)
        if cutoff < float("inf"):
            share = 1.0 / columns.rounds
            room, times = cutoff - self._total[row] * share, np.where(m > share, m - share, 1.0)
            cap = np.where(m > share, room / times, cutoff) * (1 + 1e-12)
        keys = list(self._bounds)
        entries = [self._bounds[key] for key in keys]
        places = {key: place for place, key in enumerate(keys)}
        pairs = zip(self._width[row].tolist(), self._micro[row].tolist(), strict=True)
        entry = np.array([places[pair] for pair in pairs], dtype=np.int64)
        fits = self.screen.fits(entries, entry, columns, m, cap, self.problem.tensor_bytes)
        least = self.screen.interleaved(
            entries, entry, columns, m, np.zeros(len(row)), cutoff, uneven=False
        )
        seconds = np.maximum(seconds, least)
        return seconds, np.asarray(fits & (least <= cutoff) & (least < float("inf")))

    def _seconds(self, row: IntArray, rounds: FloatArray) -> FloatArray:
        m = micro_batches(self.problem.batch, self.rows.dp[row], self.rows.micro_batch[row])
        total = self._total[row]
        bottleneck = np.maximum(total / self.rows.pp[row], self._tallest[row])
        return np.asarray(total / rounds + (m - 1.0 / rounds) * bottleneck)


def _alike(rows: Rows) -> Rows:
    """One row for all that differ in the strategy of a stage only: the widest context."""
    cp = rows.column("cp")
    width = rows.column("tp") * cp
    order = np.lexsort((rows.family, -cp, rows.pp, rows.dp, rows.micro_batch, width))
    keys = np.stack([width, rows.micro_batch, rows.dp, rows.pp])[:, order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
    return rows.chosen(np.sort(order[first]))
