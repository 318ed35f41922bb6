"""NEST's level-wise program on own costs: what it promises, and the plan that it means.

On a network that is its levels (`nest_core.network.patterns.levels_only`) the program fixes the
axis order, the data-parallel degree and the micro-batch, and then finds widths, cuts, choices (how
a width is divided, sequence and expert parallelism, recomputation, ZeRO) and gaps with the
least ``(m + S - 1) max t + max e``: the paper's objective, an upper bound of
`nest_core.costs.price` on the same network. Memory is inside: a stage holds what fits beside
``min(m, e)`` micro-batches in flight.

**The paper's memory rule**: recomputation is a choice; ZeRO is raised stage by stage, only where
the stage does not fit without. Without the rule both are free.

**Widths.** All equal widths come first; then, in the paper's order, stages of one plan may differ
in width, where such a plan is promised to be faster than all of those. Gaps are allowed: a stage
may sit further out than the next free devices.

**How exact**: over everything above, where blocks send equally many bytes; where they differ
(layers of different kinds) the longest stage under a cap is taken, which may miss a better cut.

References
----------
NEST, MLSys 2026, Algorithm 1 and section 4.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np

from nest_core.costs import (
    LayerSeconds,
    Plan,
    PlanLinks,
    Point,
    Problem,
    StageStrategy,
    layer_seconds,
    links,
    micro_batches,
    stage_costs,
    stage_memory,
)
from nest_core.network import IntArray
from nest_core.planner.levelwise.limits import attempts, least_objective, longest_by_memory
from nest_core.planner.levelwise.outer import Outer, OuterPoints, Strategy, Stretch, stretch
from nest_core.planner.levelwise.recurrence import Places
from nest_core.planner.levelwise.tables import (
    Hops,
    LevelChoice,
    LevelLinks,
    level_links,
    tables,
    unequal_hops,
)
from nest_core.planner.program import CostTables
from nest_core.planner.space import SearchSpace, as_raised

__all__ = ["Promise", "Promises", "levelwise"]

_FITS = 1.0 + 1e-12
_WORK = 8 * 10**8
"""Steps that the recurrence over unequal widths may take, some seconds; the gap is told."""
_PRICED_S = 20.0
"""Seconds of one core, about, that pricing strategies may take where no time limit is set."""


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
        No plan of the program's is promised in less; the first promise where it is proven,
        infinity where it is proven that there is none.
    proven : bool
        Whether the time sufficed.
    """

    best: tuple[Promise, ...]
    points: int
    solved: int
    lower_bound_s: float
    proven: bool


def levelwise(
    problem: Problem,
    space: SearchSpace,
    *,
    rule: bool = True,
    unequal: bool = True,
    top: int = 1,
    within_s: float = float("inf"),
    time_limit_s: float = float("inf"),
    clock: Callable[[], float] = time.perf_counter,
) -> Promises:
    """Return the plans that the level-wise program promises most of.

    Parameters
    ----------
    problem : Problem
        Its network a tree of nested blocks.
    rule : bool
        Whether ZeRO is raised only where a stage does not fit (the paper's), or free.
    unequal : bool
        Whether stages of one plan may differ in width.
    top : int
        How many, each of another outer point; plans of unequal widths only where they are
        promised to be faster than all others.
    within_s : float
        Promises that take longer are of no interest.
    """
    began = clock()

    def late() -> bool:
        return (
            clock() - began > time_limit_s
            if time_limit_s < float("inf")
            else program.priced_s > _PRICED_S
        )

    program = _Program(problem, space, rule=rule, late=late)
    equal = sorted(program.points.equal(), key=lambda outer: outer.bound)
    best: list[Promise] = []
    solved, points, lower = 0, len(equal), float("inf")
    for wide in (False, True) if unequal else (False,):
        outers, count = equal, top
        if wide:
            wider = program.points.unequal(equal, best[0].plan.widths[0] if best else 0)
            outers, count = sorted(wider, key=lambda outer: outer.bound), 1
            points += len(outers)
        for outer in _nearest_first(outers, best):
            cutoff = best[count - 1].seconds if len(best) >= count else within_s * _FITS
            if outer.bound >= cutoff:
                continue
            if program.late() or (wide and program.work > _WORK):
                lower = min(lower, outer.bound)
                continue
            solved += 1
            solutions, done = program.solve(outer, cutoff)
            if solutions is not None:
                best = sorted([*best, solutions], key=lambda promise: promise.seconds)[:top]
            if not done:
                lower = min(lower, outer.bound)
    if best:
        lower = min(lower, best[0].seconds)
    proven = lower >= best[0].seconds if best else lower == float("inf")
    return Promises(tuple(best), points, solved, lower, proven)


def _nearest_first(outers: list[Outer], best: list[Promise]) -> list[Outer]:
    """Those that the best promises are of come first, best first."""
    points = [promise.plan.point for promise in best]
    near = {(point.dp, point.micro_batch): -n for n, point in enumerate(reversed(points), start=1)}
    return sorted(outers, key=lambda outer: near.get((outer.dp, outer.micro_batch), 0))


class _Program:
    """The outer loop's parts; what several points share is found once."""

    def __init__(
        self, problem: Problem, space: SearchSpace, *, rule: bool, late: Callable[[], bool]
    ) -> None:
        self.problem, self.space, self.rule, self.late = problem, space, rule, late
        self.points = OuterPoints(problem, space)
        self.rows = problem.rows(space.recompute)
        self.work = 0  # over unequal widths
        self.priced_s = 0.0
        self._links = cache(partial(level_links, problem))
        self._alike: dict[Point, PlanLinks] = {}  # of a single stage

    def solve(self, outer: Outer, cutoff: float) -> tuple[Promise | None, bool]:
        """Return the best promise of an outer point under a cutoff, and whether time sufficed for
        it.
        """
        alone = self._alone(outer, cutoff) if len(outer.widths) == 1 else None
        deep, done = self._deep(outer, alone.seconds if alone else cutoff)
        return deep or alone, done

    def _states(self, outer: Outer, strategy: Strategy, pp: int) -> list[tuple[int, int]]:
        """ZeRO stages with their groups, in the order in which they are raised."""
        point = outer.point(strategy, pp)
        return as_raised(self.space.states(pp, point.sharers, point.expert_sharers))

    def _alone(self, outer: Outer, cutoff: float) -> Promise | None:
        """Return the best plan of a single stage."""
        best: Promise | None = None
        if not self.points.allowed(outer, 1):
            return None
        taken, first = np.zeros(1, dtype=np.int64), np.zeros_like(self.rows)
        stages = first, [(first, first + self.problem.layers)], self.rows
        for strategy in self.points.strategies(outer.widths[0], outer.dp):
            if self.late():
                break
            served = np.zeros(len(self.rows), dtype=bool)
            least = self.points.least(strategy, outer.micro_batch)
            for state in self._states(outer, strategy, 1):
                point = replace(
                    outer.point(strategy, 1, state),
                    device_order=outer.slots[0].device_order(taken),
                )
                m = point.micro_batches(self.problem.batch)
                if m * float(least.sum()) >= cutoff:
                    break
                self._count()
                memory = stage_memory(self.problem, point)
                fits = (memory.used(*stages) <= memory.limit * _FITS) & ~served
                if not fits.any():
                    continue
                if self.rule:
                    served |= fits
                costs = stage_costs(self.problem, point, self._of_one(point))
                load, _ = costs.load(*stages)
                seconds = np.where(fits, m * load + costs.sync_seconds(*stages, load), np.inf)
                if seconds.min() < cutoff:
                    cutoff, c = float(seconds.min()), self.rows[seconds.argmin()]
                    again = (self.problem.recomputations[c],)
                    best = Promise(cutoff, Plan(point, (0, self.problem.layers), again))
        return best

    def _deep(self, outer: Outer, cutoff: float) -> tuple[Promise | None, bool]:
        """Return the best plan of two stages or more."""
        problem = self.problem
        m = micro_batches(problem.batch, outer.dp, outer.micro_batch)
        line = stretch(problem.network, outer.dp, outer.widths) if len(outer.widths) > 1 else None
        room = len(line.level) if line else len(outer.slots[0])
        most = min(room, problem.layers)
        if most < 2:
            return None, not self.late()
        choices = [
            choice
            for x in range(len(outer.widths))
            for choice in self._choices(outer, x, m, most, cutoff)
        ]
        if self.late() or not choices:
            return None, not self.late()
        places = self._places(outer, line)
        read = tables(problem, self.rows, choices, self._hops(outer, line), self.rule)
        memory = longest_by_memory(read, min(m, most))
        layer_times = np.diff(read.time[0], axis=1)
        width = np.array([choice.x for choice in choices])[read.strategy]
        least = layer_times.min(axis=0)
        widths = np.array(outer.widths)[width]
        share = float((widths[:, None] * layer_times).min(axis=0).sum()) / room if line else 0.0
        sync = min(
            np.diff(entry.costs.sync - entry.costs.once_saved * entry.costs.once, axis=1)[0].sum()
            for entry in choices
        )
        seconds, best, done = least_objective(
            attempts(read, places, width, memory, most),
            np.array([self.points.allowed(outer, stages) for stages in range(most + 1)]),
            m,
            float(least.sum()),
            max(float(least.max()), share),
            float(max(sync, 0.0)) / most,
            cutoff,
            self.late if line is None else partial(self._spent, _work(read, places)),
        )
        return (
            (None, done)
            if not best.size
            else (Promise(seconds, self._plan(outer, choices, line, best)), done)
        )

    def _plan(
        self, outer: Outer, choices: list[LevelChoice], line: Stretch | None, state: IntArray
    ) -> Plan:
        """Return what the recurrence found; see `nest_core.planner.levelwise.recurrence.trace`."""
        rows, problem = len(self.rows), self.problem
        options, taken = state[1, :-1].tolist(), state[2, :-1]
        used = [replace(choices[o // rows].point, pp=len(options)) for o in options]
        if line is None:
            order = outer.slots[0].device_order(taken)
        else:
            order = line.device_order(taken, [point.tp * point.cp for point in used])
        return Plan(
            replace(used[0], device_order=order),
            tuple(state[0].tolist()),
            tuple(problem.recomputations[self.rows[o % rows]] for o in options),
            tuple(map(StageStrategy.of, used)) if len(set(used)) > 1 else (),
        )

    def _choices(
        self, outer: Outer, x: int, m: int, max_depth: int, cutoff: float
    ) -> Iterator[LevelChoice]:
        """Strategies of a width by ZeRO stage.

        Of equal widths those are left out that no number of stages makes fast enough; none is
        made when the time is over.
        """
        depths = np.arange(1, max_depth + 1)
        levels = len(self.problem.network.nesting)
        for strategy in self._offered(outer, x):
            if self.late():
                return
            light = self.points.least(strategy, outer.micro_batch)
            best = (m + depths - 1) * np.maximum(light.sum() / depths, light.max())
            if len(outer.widths) == 1 and best.min() >= cutoff:
                continue
            shared = self._shared(outer, x, strategy)
            slow: set[int] = set()
            plain: LayerSeconds | None = None
            for state in self._states(outer, strategy, 2):
                if state[1] in slow:
                    continue
                point = outer.point(strategy, levels + 1, state)
                self._count()
                sends = self.problem.acting_zero(point) > 1  # for each micro-batch
                layers = self._layers(point, shared) if sends or plain is None else plain
                plain = plain if sends else layers
                layer_times = layers.total[0, self.rows].min(axis=0)
                least = (m + depths - 1) * np.maximum(layer_times.sum() / depths, layer_times.max())
                if len(outer.widths) == 1 and least.min() >= cutoff:
                    slow.add(state[1])  # higher stages make nothing faster
                    if state[0] <= 1:  # nor do groups where all is sent once
                        break
                    continue
                costs = stage_costs(self.problem, point, shared, layers)
                yield LevelChoice(x, strategy, point, shared, costs)

    def _count(self) -> None:
        """Count a strategy that is priced: so the program ends at the same one everywhere."""
        self.priced_s += 1e-3 + 3e-7 * self.problem.network.devices

    def _spent(self, steps: int) -> bool:
        """Whether the time or the steps are over; they are counted."""
        self.work += steps
        return self.late() or self.work > _WORK

    def _offered(self, outer: Outer, x: int) -> list[Strategy]:
        """Strategies of a width: all, but of many unequal ones the fastest and the leanest."""
        every = self.points.strategies(outer.widths[x], outer.dp)
        if len(outer.widths) == 1 or not self.points.many(outer.widths, outer.dp):
            return every
        levels, row = len(self.problem.network.nesting), self.rows[0]
        seconds, bytes_by_choice = [], []
        for strategy in every:
            if self.late():
                return []
            point = outer.point(strategy, levels + 1)
            self._count()
            layers = self._layers(point, self._shared(outer, x, strategy))
            seconds.append(float(np.cumsum(layers.total[0, row])[-1]))
            memory = stage_memory(self.problem, point)
            bytes_by_choice.append(float(memory.static[-1] + memory.kept[row, -1]))
        return [
            every[n] for n in sorted({int(np.argmin(seconds)), int(np.argmin(bytes_by_choice))})
        ]

    def _layers(self, point: Point, shared: LevelLinks) -> LayerSeconds:
        at = point.tp, point.sp, point.micro_batch, point.cp, point.ep, point.etp
        return layer_seconds(self.problem, point, shared, self.problem.table(*at))

    def _shared(self, outer: Outer, x: int, strategy: Strategy) -> LevelLinks:
        shared = self._links(_placed(outer.point(strategy, 1)), outer.slots[x])
        return replace(shared, point=replace(shared.point, ep=strategy[3], etp=strategy[4]))

    def _of_one(self, point: Point) -> PlanLinks:
        """Links of a single stage; points whose ranks sit alike share what was priced."""
        key = replace(_placed(point), device_order="natural")  # a width's slot is the same for all
        if key not in self._alike:
            self._alike[key] = links(self.problem, point)
        return self._alike[key].of(point)

    def _places(self, outer: Outer, line: Stretch | None) -> Places:
        if line is not None:
            return Places(line.ends, line.level, line.inner, not self.space.idle_devices)
        level = outer.slots[0].level
        return Places(np.arange(1, len(level) + 1)[None], level, np.zeros(1, dtype=np.int64), False)

    def _hops(self, outer: Outer, line: Stretch | None) -> Hops:
        """Hops between stages of two widths, by both."""
        hops: Hops = {}
        for x, width in enumerate(outer.widths):
            strategy = self.points.strategies(width, outer.dp)[0]
            hops[x, x] = self._shared(outer, x, strategy).forward, width
            if line is not None:
                for y in range(x + 1, len(outer.widths)):
                    hops[x, y] = hops[y, x] = unequal_hops(self.problem, line, x, y), 1
        return hops


def _placed(point: Point) -> Point:
    """Return a point without what does not place ranks."""
    return replace(point, sp=False, micro_batch=1, zero=0, zero_group=0, ep=1, etp=1)


def _work(t: CostTables, p: Places) -> int:
    """Return steps of the recurrence under one cap, about."""
    (widths, places), hops, layers = p.ends.shape, t.arrive.shape[1], t.static.shape[1]
    return int(min(places, layers) * hops**2 * (len(t.strategy) * layers // 4 + widths * places))
