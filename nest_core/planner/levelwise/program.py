"""NEST's level-wise program on own costs: what it promises, and the plan that it means.

On a network that is its levels (`nest_core.network.error.levels_only`) the program fixes the axis
order, the data-parallel degree, the micro-batch and a stage's width, and then finds cuts, choices
(how a width is divided, sequence and expert parallelism, recomputation, ZeRO) and gaps with the
least ``(m + S - 1) max t + max e``: the paper's objective, an upper bound of
`nest_core.costs.price` on the same network. Memory is inside: a stage holds what fits beside
``min(m, e)`` micro-batches in flight.

**The paper's memory rule**: recomputation is a choice; ZeRO is raised stage by stage, only where
the stage does not fit without. Without the rule both are free.

**Equal widths only.** Stages of one plan have the same number of devices; the paper's program also
allows unequal ones. Gaps are allowed: a stage may sit further out than the next free devices.

**How exact**: over everything above, where blocks send equally many bytes; where they differ
(layers of different kinds) the longest stage under a cap is taken, which may miss a better cut.

References
----------
NEST, MLSys 2026, Algorithm 1 and section 4.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from nest_core.costs import (
    Plan,
    Point,
    Problem,
    StageCosts,
    StageStrategy,
    links,
    micro_batches,
    stage_costs,
)
from nest_core.costs.stages import stage_memory
from nest_core.network import FloatArray, IntArray
from nest_core.planner.levelwise.kernel import (
    Tables,
    best_suffixes,
    longest_by_method,
    longest_in_memory,
)
from nest_core.planner.levelwise.matrices import LevelLinks, level_links
from nest_core.planner.levelwise.slots import PAPER_ORDER, Slots, slots
from nest_core.planner.space import SearchSpace, as_raised

__all__ = ["Promise", "Promises", "levelwise"]

_FITS = 1.0 + 1e-12

_Strategy = tuple[int, bool, int, int, int]
"""tp, sp, cp, ep, etp."""


@dataclass(frozen=True, slots=True)
class Promise:
    """A plan, and the seconds that the program has for it."""

    seconds: float
    plan: Plan


@dataclass(frozen=True, slots=True)
class Promises:
    """What the program found.

    Parameters
    ----------
    best : tuple of Promise
        Of the best outer points, fastest first; empty where nothing fits.
    points, solved : int
        Outer points (order, dp, micro-batch, width), and those that no bound excluded.
    lower_bound_s : float
        No plan of the program's is promised in less; the first promise where it is proven.
    proven : bool
        Whether the time sufficed.
    """

    best: tuple[Promise, ...]
    points: int
    solved: int
    lower_bound_s: float
    proven: bool


@dataclass(frozen=True, slots=True)
class _Outer:
    """What is fixed before the recurrence: the slots, the micro-batch, a bound of any promise."""

    bound: float
    slots: Slots
    width: int
    dp: int
    micro_batch: int


def levelwise(
    problem: Problem,
    space: SearchSpace,
    *,
    rule: bool = True,
    top: int = 1,
    within_s: float = float("inf"),
    time_limit_s: float = float("inf"),
    clock: Callable[[], float] = time.perf_counter,
) -> Promises:
    """The plans that the level-wise program promises most of.

    Parameters
    ----------
    problem : Problem
        Its network a tree of nested blocks.
    rule : bool
        Whether ZeRO is raised only where a stage does not fit (the paper's), or free.
    top : int
        How many, each of another outer point.
    within_s : float
        Promises that take longer are of no interest.
    """
    began = clock()
    program = _Program(problem, space, rule=rule)
    outers = sorted(program.outers(), key=lambda outer: outer.bound)
    best: list[Promise] = []
    solved, lower = 0, float("inf")
    for outer in outers:
        cutoff = best[-1].seconds if len(best) == top else within_s * _FITS
        if outer.bound >= cutoff:
            break
        if clock() - began > time_limit_s:
            lower = outer.bound
            break
        solved += 1
        found = program.solve(outer, cutoff)
        if found is not None:
            best = sorted([*best, found], key=lambda promise: promise.seconds)[:top]
    if best:
        lower = min(lower, best[0].seconds)
    proven = not best or lower >= best[0].seconds
    return Promises(tuple(best), len(outers), solved, lower, proven)


class _Program:
    """The outer loop's parts; what several points share is found once."""

    def __init__(self, problem: Problem, space: SearchSpace, *, rule: bool) -> None:
        self.problem, self.space, self.rule = problem, space, rule
        self.rows = problem.rows(space.recompute)
        self._links: dict[tuple[Point, int], LevelLinks] = {}
        self._lightest: dict[_Strategy, tuple[float, float]] = {}

    def outers(self) -> Iterator[_Outer]:
        """All outer points, with bounds that no table is needed for."""
        space, problem = self.space, self.problem
        orders = [order for order in space.orders if order.index("cp") == 1]
        orders = [PAPER_ORDER] if PAPER_ORDER in orders else orders[:1]
        widths = sorted({tp * cp for tp, cp in itertools.product(space.tp, space.cp)})
        for order, dp, width in itertools.product(orders, space.dp, widths):
            if dp * width > problem.network.devices:
                continue
            found = slots(problem.network, order, dp, width)
            if found is None:
                continue
            light, heavy = self._lightest_of(width, dp)
            for micro_batch in space.micro_batch:
                if not problem.divides(dp, micro_batch):
                    continue
                m = micro_batches(problem.batch, dp, micro_batch)
                depths = np.arange(1, min(len(found), problem.layers) + 1)
                worst = np.maximum(light / depths, heavy)
                bound = float(((m + depths - 1) * worst).min()) * micro_batch
                yield _Outer(bound, found, width, dp, micro_batch)

    def strategies(self, width: int, dp: int) -> list[_Strategy]:
        """Ways to divide a stage's width: (tp, sp, cp, ep, etp)."""
        space = self.space
        return [
            (tp, sp, cp, ep, etp)
            for tp, sp, cp, ep in itertools.product(space.tp, space.sp, space.cp, space.ep)
            for etp in space.expert_tensor(tp, sp)
            if tp * cp == width and (tp > 1 or not sp) and width * dp % (ep * etp) == 0
        ]

    def allowed(self, outer: _Outer, stages: int) -> bool:
        """Whether a plan may have so many stages."""
        used = stages * outer.dp * outer.width
        full = self.space.idle_devices or used == self.problem.network.devices
        return full and stages in self.space.pp

    def solve(self, outer: _Outer, cutoff: float) -> Promise | None:
        """The best promise of an outer point that is under a cutoff."""
        alone = self._alone(outer, cutoff)
        deep = self._deep(outer, alone.seconds if alone else cutoff)
        return deep or alone

    def _lightest_of(self, width: int, dp: int) -> tuple[float, float]:
        """Compute of a sequence in all layers, and in the largest, whatever the strategy."""
        each = [self._light(strategy) for strategy in self.strategies(width, dp)]
        if not each:
            return float("inf"), float("inf")
        return min(light for light, _ in each), min(heavy for _, heavy in each)

    def _light(self, key: _Strategy) -> tuple[float, float]:
        if key not in self._lightest:
            if self.problem.lower_bound is None:
                self._lightest[key] = 0.0, 0.0
            else:
                seconds = self.problem.lower_bound(*key).compute_s
                self._lightest[key] = float(seconds.sum()), float(seconds.max())
        return self._lightest[key]

    def _point(
        self, outer: _Outer, strategy: _Strategy, pp: int, state: tuple[int, int] = (0, 0)
    ) -> Point:
        tp, sp, cp, ep, etp = strategy
        return Point(
            tp=tp,
            sp=sp,
            dp=outer.dp,
            pp=pp,
            micro_batch=outer.micro_batch,
            zero=state[0],
            order=outer.slots.order,
            cp=cp,
            ep=ep,
            etp=etp,
            zero_group=state[1],
        )

    def _states(self, outer: _Outer, strategy: _Strategy, pp: int) -> list[tuple[int, int]]:
        """ZeRO stages with their groups, in the order in which they are raised."""
        point = self._point(outer, strategy, pp)
        return as_raised(self.space.states(pp, point.sharers, point.expert_sharers))

    def _alone(self, outer: _Outer, cutoff: float) -> Promise | None:
        """The best plan of a single stage."""
        best: Promise | None = None
        if not self.allowed(outer, 1):
            return None
        taken = np.zeros(1, dtype=np.int64)
        for strategy in self.strategies(outer.width, outer.dp):
            served: set[int] = set()
            for state in self._states(outer, strategy, 1):
                point = replace(
                    self._point(outer, strategy, 1, state),
                    device_order=outer.slots.device_order(taken),
                )
                m = point.micro_batches(self.problem.batch)
                if m * outer.micro_batch * self._light(strategy)[0] >= cutoff:
                    break
                held = stage_memory(self.problem, point)
                fits = {
                    c
                    for c in self.rows.tolist()
                    if held.used(0, 0, self.problem.layers, c) <= held.limit * _FITS
                }
                if not (fits := fits - served):
                    continue
                if self.rule:
                    served |= fits
                costs = stage_costs(self.problem, point, links(self.problem, point))
                for c in sorted(fits):
                    load = costs.load(0, 0, self.problem.layers, c)
                    seconds = m * load + costs.sync_seconds(0, 0, self.problem.layers, c)
                    if seconds < cutoff:
                        cutoff = seconds
                        plan = Plan(
                            point, (0, self.problem.layers), (self.problem.recomputations[c],)
                        )
                        best = Promise(seconds, plan)
        return best

    def _deep(self, outer: _Outer, cutoff: float) -> Promise | None:
        """The best plan of two stages or more."""
        problem = self.problem
        m = micro_batches(problem.batch, outer.dp, outer.micro_batch)
        most = min(len(outer.slots), problem.layers)
        if most < 2:
            return None
        points, groups, costs = self._choices(outer, m, most, cutoff)
        if not costs:
            return None
        tables, memory = self._tables(costs, groups, min(m, most))
        each = np.diff(tables.time, axis=1).min(axis=0)
        sync = min(
            np.diff(entry.sync - entry.once_saved * entry.once, axis=1)[0].sum() for entry in costs
        )
        cuts = np.zeros(most + 1, dtype=np.int64)
        options, taken = np.zeros(most, dtype=np.int64), np.zeros(most, dtype=np.int64)
        seconds, stages = best_suffixes(
            tables,
            memory,
            outer.slots.level,
            np.array([self.allowed(outer, stages) for stages in range(most + 1)]),
            m,
            float(each.sum()),
            float(each.max()),
            float(max(sync, 0.0)) / most,
            cutoff,
            cuts,
            options,
            taken,
        )
        if not stages:
            return None
        rows = len(self.rows)
        used = [replace(points[o // rows], pp=stages) for o in options[:stages].tolist()]
        first = replace(used[0], device_order=outer.slots.device_order(taken[:stages]))
        plan = Plan(
            first,
            tuple(cuts[: stages + 1].tolist()),
            tuple(problem.recomputations[self.rows[o % rows]] for o in options[:stages].tolist()),
            tuple(map(StageStrategy.of, used)) if len(set(used)) > 1 else (),
        )
        return Promise(seconds, plan)

    def _choices(
        self, outer: _Outer, m: int, most: int, cutoff: float
    ) -> tuple[list[Point], list[int], list[StageCosts]]:
        """Points of the strategies and ZeRO stages that could be under a cutoff, and their costs.

        Strategies that no number of stages makes fast enough are left out.
        """
        points: list[Point] = []
        groups: list[int] = []
        costs: list[StageCosts] = []
        depths = np.arange(1, most + 1)
        levels = len(self.problem.network.nesting)
        for number, strategy in enumerate(self.strategies(outer.width, outer.dp)):
            shared = self._shared(outer, strategy)
            slow: set[int] = set()
            for state in self._states(outer, strategy, 2):
                if state[1] in slow:
                    continue
                point = self._point(outer, strategy, levels + 1, state)
                found = stage_costs(self.problem, point, shared)
                each = np.diff(found.time[0, self.rows], axis=1).min(axis=0)
                least = (m + depths - 1) * np.maximum(each.sum() / depths, each.max())
                if least.min() >= cutoff:
                    slow.add(state[1])  # higher stages make nothing faster
                    if state[0] <= 1:  # nor do groups where all is sent once
                        break
                    continue
                points.append(point)
                groups.append(number)
                costs.append(found)
        return points, groups, costs

    def _shared(self, outer: _Outer, strategy: _Strategy) -> LevelLinks:
        key = replace(self._point(outer, strategy, 1), sp=False, micro_batch=1), outer.width
        if key not in self._links:
            self._links[key] = level_links(self.problem, key[0], outer.slots)
        return self._links[key]

    def _tables(
        self, costs: list[StageCosts], groups: list[int], flights: int
    ) -> tuple[Tables, IntArray]:
        """Arrays of all choices: a strategy with a ZeRO stage, by recomputation."""
        rows = self.rows
        strategy = np.repeat(np.arange(len(costs)), len(rows))

        def stacked(name: str) -> FloatArray:
            return np.stack([getattr(entry, name) for entry in costs])

        def chosen(name: str) -> FloatArray:
            each = stacked(name)  # time and free have positions, which are alike
            each = each[:, 0] if each.ndim == 4 else each
            return np.ascontiguousarray(each[:, rows].reshape(-1, each.shape[-1]))

        # Of a group only the first that fits may be taken: the least ZeRO of a recomputation.
        alike = np.array(groups)[strategy] * len(rows) + np.tile(np.arange(len(rows)), len(costs))
        group = alike if self.rule else np.arange(len(strategy))
        tables = Tables(
            time=chosen("time"),
            free=chosen("free"),
            forward=stacked("forward"),
            arrive=stacked("arrive"),
            retire=np.ascontiguousarray(np.roll(stacked("retire"), 1, axis=1)),
            saved=costs[0].transfer_saved,
            sync=np.ascontiguousarray(stacked("sync")[:, 0]),
            once=np.ascontiguousarray(stacked("once")[:, 0]),
            tied=np.ascontiguousarray(stacked("sync_base")[:, 0]),
            spared=costs[0].once_saved,
            strategy=strategy,
            group=group,
            whole_time=np.ascontiguousarray(stacked("time")[:, 0, -1]),
            whole_free=np.ascontiguousarray(stacked("free")[:, 0, -1]),
            heads=np.tile(costs[0].heads[rows], (len(costs), 1)),
        )
        memory = longest_in_memory(
            stacked("static"), chosen("kept"), chosen("peak"), stacked("step"), strategy,
            costs[0].limit, flights,
        )  # fmt: skip
        for o, (g, c) in enumerate(zip(strategy, np.tile(rows, len(costs)), strict=True)):
            held = costs[g]
            if held.by_method(c):
                longest_by_method(
                    held.static,
                    held.kept[[0, -1]],
                    held.peak[[0, -1]],
                    held.step,
                    held.again,
                    held.heads[c],
                    held.chunks[c],
                    held.limit,
                    memory[:, o],
                )
        return tables, memory
