"""NEST's level-wise program on own costs: what it promises, and the plan that it means.

On a network that is its levels (`nest_core.network.error.levels_only`) the program fixes the axis
order, the data-parallel degree and the micro-batch, and then finds widths, cuts, choices (how a
width is divided, sequence and expert parallelism, recomputation, ZeRO) and gaps with the
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

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

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
from nest_core.costs.stages import Links, hop_seconds, stage_memory
from nest_core.network import FloatArray, IntArray, MessageTime
from nest_core.planner.levelwise.kernel import (
    Places,
    Tables,
    best_suffixes,
    longest_by_method,
    longest_in_memory,
)
from nest_core.planner.levelwise.matrices import LevelLinks, level_links, unequal_hops
from nest_core.planner.levelwise.slots import PAPER_ORDER, Slots, Stretch, slots, stretch
from nest_core.planner.space import SearchSpace, as_raised

__all__ = ["Promise", "Promises", "levelwise"]

_FITS = 1.0 + 1e-12
_FEW = 16
"""So many strategies of unequal widths are all tried; of more, two of each width, and widths from
a quarter of the best equal one to twice as much."""
_WORK = 8 * 10**8
"""Steps that the recurrence over unequal widths may take, some seconds; the gap is told."""

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


@dataclass(frozen=True, slots=True)
class _Outer:
    """What is fixed before the recurrence: the slots, the micro-batch, a bound of any promise.

    Several widths, each with its slots, are those of unequal stages.
    """

    bound: float
    slots: tuple[Slots, ...]
    widths: tuple[int, ...]
    dp: int
    micro_batch: int


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
    """The plans that the level-wise program promises most of.

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
    program = _Program(problem, space, rule=rule, late=lambda: clock() - began > time_limit_s)
    equal = sorted(program.outers(), key=lambda outer: outer.bound)
    best: list[Promise] = []
    solved, points, lower = 0, len(equal), float("inf")
    for wide in (False, True) if unequal else (False,):
        outers, kept = equal, top
        if wide:
            outers, kept = sorted(program.unequal(equal, best), key=lambda one: one.bound), 1
            points += len(outers)
        for outer in _nearest_first(outers, best):
            cutoff = best[kept - 1].seconds if len(best) >= kept else within_s * _FITS
            if outer.bound >= cutoff:
                continue
            if program.late() or (wide and program.work > _WORK):
                lower = min(lower, outer.bound)
                continue
            solved += 1
            found, done = program.solve(outer, cutoff)
            if found is not None:
                best = sorted([*best, found], key=lambda promise: promise.seconds)[:top]
            if not done:
                lower = min(lower, outer.bound)
    if best:
        lower = min(lower, best[0].seconds)
    proven = lower >= best[0].seconds if best else lower == float("inf")
    return Promises(tuple(best), points, solved, lower, proven)


def _nearest_first(outers: list[_Outer], best: list[Promise]) -> list[_Outer]:
    """Those that the best promises are of come first, best first."""
    points = [promise.plan.point for promise in best]
    near = {(point.dp, point.micro_batch): -n for n, point in enumerate(reversed(points), start=1)}
    return sorted(outers, key=lambda one: near.get((one.dp, one.micro_batch), 0))


class _Program:
    """The outer loop's parts; what several points share is found once."""

    def __init__(
        self, problem: Problem, space: SearchSpace, *, rule: bool, late: Callable[[], bool]
    ) -> None:
        self.problem, self.space, self.rule, self.late = problem, space, rule, late
        self.rows = problem.rows(space.recompute)
        self.work = 0  # over unequal widths
        self._links: dict[tuple[Point, int], LevelLinks] = {}
        self._alike: dict[Point, Links] = {}  # of a single stage
        self._lightest: dict[_Strategy, FloatArray] = {}  # experts on every rank

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
                yield _Outer(bound, (found,), (width,), dp, micro_batch)

    def unequal(self, equal: Sequence[_Outer], best: Sequence[Promise]) -> Iterator[_Outer]:
        """Outer points of unequal widths, of those of equal ones in the paper's order."""
        usual = best[0].plan.widths[0] if best else 0
        alike: dict[tuple[int, int], list[_Outer]] = {}
        for outer in sorted(equal, key=lambda outer: outer.widths):
            if outer.slots[0].order == PAPER_ORDER:
                alike.setdefault((outer.dp, outer.micro_batch), []).append(outer)
        for (dp, micro_batch), outers in alike.items():
            span = self.problem.network.devices // dp
            outers = [outer for outer in outers if outer.widths[0] + outers[0].widths[0] <= span]
            if usual and sum(len(self.strategies(one.widths[0], dp)) for one in outers) > _FEW:
                outers = [one for one in outers if usual <= 4 * one.widths[0] <= 8 * usual]
            widths = tuple(outer.widths[0] for outer in outers)
            if len(widths) < 2:
                continue
            m = micro_batches(self.problem.batch, dp, micro_batch)
            each = [self._least_of(width, dp) for width in widths]
            light = np.min(each, axis=0)
            share = np.min([a * one for a, one in zip(widths, each, strict=True)], axis=0)
            depths = np.arange(2, min(span // widths[0], self.problem.layers) + 1)
            if not len(depths):
                continue
            worst = np.maximum(light.sum() / depths, max(light.max(), share.sum() / span))
            bound = float(((m + depths - 1) * worst).min()) * micro_batch
            slots = tuple(outer.slots[0] for outer in outers)
            yield _Outer(bound, slots, widths, dp, micro_batch)

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
        devices = self.problem.network.devices
        if len(outer.widths) > 1:  # stages that leave nobody idle are the recurrence's to find
            full = self.space.idle_devices or devices % outer.dp == 0
        else:
            full = self.space.idle_devices or stages * outer.dp * outer.widths[0] == devices
        return full and stages in self.space.pp

    def solve(self, outer: _Outer, cutoff: float) -> tuple[Promise | None, bool]:
        """The best promise of an outer point under a cutoff, and whether time sufficed for it."""
        alone = self._alone(outer, cutoff) if len(outer.widths) == 1 else None
        deep, done = self._deep(outer, alone.seconds if alone else cutoff)
        return deep or alone, done

    def _lightest_of(self, width: int, dp: int) -> tuple[float, float]:
        """Compute of a sequence in all layers, and in the largest, whatever the strategy."""
        each = [self._light(strategy) for strategy in self.strategies(width, dp)]
        if not each:
            return float("inf"), float("inf")
        return min(float(one.sum()) for one in each), min(float(one.max()) for one in each)

    def _least_of(self, width: int, dp: int) -> FloatArray:
        """The same layer by layer, shape (L,)."""
        each = [self._light(strategy) for strategy in self.strategies(width, dp)]
        return np.min(each, axis=0) if each else np.full(self.problem.layers, np.inf)

    def _light(self, strategy: _Strategy) -> FloatArray:
        """Compute of a sequence at least, layer by layer.

        That with all experts on every rank: to divide them adds communication, and leaves each
        rank as much to compute.
        """
        tp, sp, cp, _, etp = strategy
        key = tp, sp, cp, 1, tp if etp == tp else 1
        if key not in self._lightest:
            if self.problem.lower_bound is None:
                self._lightest[key] = np.zeros(self.problem.layers)
            else:
                self._lightest[key] = self.problem.lower_bound(*key).compute_s
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
            order=outer.slots[0].order,
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
        for strategy in self.strategies(outer.widths[0], outer.dp):
            if self.late():
                break
            served: set[int] = set()
            for state in self._states(outer, strategy, 1):
                point = replace(
                    self._point(outer, strategy, 1, state),
                    device_order=outer.slots[0].device_order(taken),
                )
                m = point.micro_batches(self.problem.batch)
                if m * outer.micro_batch * float(self._light(strategy).sum()) >= cutoff:
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
                costs = stage_costs(self.problem, point, self._of_one(point))
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

    def _deep(self, outer: _Outer, cutoff: float) -> tuple[Promise | None, bool]:
        """The best plan of two stages or more."""
        problem = self.problem
        m = micro_batches(problem.batch, outer.dp, outer.micro_batch)
        line = None
        if len(outer.widths) > 1:
            line = stretch(problem.network, outer.dp, outer.widths)
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
        tables, memory = self._tables(choices, self._hops(outer, line), min(m, most))
        each = np.diff(tables.time, axis=1)
        least = each.min(axis=0)
        widths = np.array(outer.widths)[tables.width]
        share = float((widths[:, None] * each).min(axis=0).sum()) / room if line else 0.0
        sync = min(
            np.diff(one.costs.sync - one.costs.once_saved * one.costs.once, axis=1)[0].sum()
            for one in choices
        )
        seconds, found, done = best_suffixes(
            tables,
            places,
            memory,
            np.array([self.allowed(outer, stages) for stages in range(most + 1)]),
            m,
            float(least.sum()),
            max(float(least.max()), share),
            float(max(sync, 0.0)) / most,
            cutoff,
            self.late if line is None else partial(self._spent, _work(tables, places)),
        )
        if not found.size:
            return None, done
        return Promise(seconds, self._plan(outer, choices, line, found)), done

    def _plan(
        self, outer: _Outer, choices: list[_Choice], line: Stretch | None, found: IntArray
    ) -> Plan:
        """What the recurrence found; cuts, choices and places, shape (3, S + 1)."""
        rows, problem = len(self.rows), self.problem
        options, taken = found[1, :-1].tolist(), found[2, :-1]
        used = [replace(choices[o // rows].point, pp=len(options)) for o in options]
        if line is None:
            order = outer.slots[0].device_order(taken)
        else:
            order = line.device_order(taken, [point.tp * point.cp for point in used])
        return Plan(
            replace(used[0], device_order=order),
            tuple(found[0].tolist()),
            tuple(problem.recomputations[self.rows[o % rows]] for o in options),
            tuple(map(StageStrategy.of, used)) if len(set(used)) > 1 else (),
        )

    def _choices(
        self, outer: _Outer, x: int, m: int, most: int, cutoff: float
    ) -> Iterator[_Choice]:
        """Strategies of a width by ZeRO stage.

        Of equal widths those are left out that no number of stages makes fast enough; none is
        made when the time is over.
        """
        depths = np.arange(1, most + 1)
        levels = len(self.problem.network.nesting)
        for strategy in self._offered(outer, x):
            if self.late():
                return
            light = outer.micro_batch * self._light(strategy)
            best = (m + depths - 1) * np.maximum(light.sum() / depths, light.max())
            if len(outer.widths) == 1 and best.min() >= cutoff:
                continue
            shared = self._shared(outer, x, strategy)
            slow: set[int] = set()
            for state in self._states(outer, strategy, 2):
                if state[1] in slow:
                    continue
                point = self._point(outer, strategy, levels + 1, state)
                found = stage_costs(self.problem, point, shared)
                each = np.diff(found.time[0, self.rows], axis=1).min(axis=0)
                least = (m + depths - 1) * np.maximum(each.sum() / depths, each.max())
                if len(outer.widths) == 1 and least.min() >= cutoff:
                    slow.add(state[1])  # higher stages make nothing faster
                    if state[0] <= 1:  # nor do groups where all is sent once
                        break
                    continue
                yield _Choice(x, strategy, point, shared, found)

    def _spent(self, steps: int) -> bool:
        """Whether the time or the steps are over; they are counted."""
        self.work += steps
        return self.late() or self.work > _WORK

    def _offered(self, outer: _Outer, x: int) -> list[_Strategy]:
        """Strategies of a width: all, but of many unequal ones the fastest and the leanest."""
        every = self.strategies(outer.widths[x], outer.dp)
        several = sum(len(self.strategies(width, outer.dp)) for width in outer.widths)
        if len(outer.widths) == 1 or several <= _FEW:
            return every
        levels, row = len(self.problem.network.nesting), self.rows[0]
        seconds, held = [], []
        for strategy in every:
            if self.late():
                return []
            point = self._point(outer, strategy, levels + 1)
            costs = stage_costs(self.problem, point, self._shared(outer, x, strategy))
            seconds.append(float(costs.time[0, row, -1]))
            held.append(float(costs.static[-1] + costs.kept[row, -1]))
        return [every[n] for n in sorted({int(np.argmin(seconds)), int(np.argmin(held))})]

    def _shared(self, outer: _Outer, x: int, strategy: _Strategy) -> LevelLinks:
        point = _placed(self._point(outer, strategy, 1))
        key = point, outer.widths[x]
        if key not in self._links:
            self._links[key] = level_links(self.problem, point, outer.slots[x])
        found = self._links[key]
        return replace(found, point=replace(found.point, ep=strategy[3], etp=strategy[4]))

    def _of_one(self, point: Point) -> Links:
        """Links of a single stage; points whose ranks sit alike share what was priced."""
        key = replace(_placed(point), device_order="natural")  # a width's slot is the same for all
        if key not in self._alike:
            self._alike[key] = links(self.problem, point)
        return self._alike[key].of(point)

    def _places(self, outer: _Outer, line: Stretch | None) -> Places:
        if line is not None:
            return Places(line.ends, line.level, line.inner, not self.space.idle_devices)
        level = outer.slots[0].level
        ends = np.arange(1, len(level) + 1)[None]
        return Places(ends, level, np.zeros(1, dtype=np.int64), False)

    def _tables(self, choices: list[_Choice], hops: _Hops, flights: int) -> tuple[Tables, IntArray]:
        """Arrays of all choices: a strategy with a ZeRO stage, by recomputation."""
        rows, costs = self.rows, [one.costs for one in choices]
        strategy = np.repeat(np.arange(len(costs)), len(rows))

        def stacked(name: str) -> FloatArray:
            return np.stack([getattr(entry, name) for entry in costs])

        def chosen(name: str) -> FloatArray:
            each = stacked(name)  # time and free have positions, which are alike
            each = each[:, 0] if each.ndim == 4 else each
            return np.ascontiguousarray(each[:, rows].reshape(-1, each.shape[-1]))

        # Of a group only the first that fits may be taken: the least ZeRO of a recomputation.
        names = [one.strategy for one in choices]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        alike = np.array([numbers[name] for name in names])[strategy] * len(rows)
        alike += np.tile(np.arange(len(rows)), len(costs))
        arrive, retire = self._hop_seconds(choices, hops)
        tables = Tables(
            time=chosen("time"),
            free=chosen("free"),
            forward=stacked("forward"),
            arrive=arrive,
            retire=retire,
            saved=costs[0].transfer_saved,
            sync=np.ascontiguousarray(stacked("sync")[:, 0]),
            once=np.ascontiguousarray(stacked("once")[:, 0]),
            tied=np.ascontiguousarray(stacked("sync_base")[:, 0]),
            spared=costs[0].once_saved,
            strategy=strategy,
            group=alike if self.rule else np.arange(len(strategy)),
            width=np.array([one.x for one in choices])[strategy],
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

    def _hops(self, outer: _Outer, line: Stretch | None) -> _Hops:
        """Hops between stages of two widths, by both."""
        found: _Hops = {}
        for x, width in enumerate(outer.widths):
            strategy = self.strategies(width, outer.dp)[0]
            alike = self._shared(outer, x, strategy).forward
            found[x, x] = alike, width
            if line is not None:
                for y in range(x + 1, len(outer.widths)):
                    found[x, y] = found[y, x] = unequal_hops(self.problem, line, x, y), 1
        return found

    def _hop_seconds(self, choices: list[_Choice], hops: _Hops) -> tuple[FloatArray, FloatArray]:
        """Seconds to receive and to send, by the end of a hop, shape (choices, U, L + 1) each."""
        widths, levels = 1 + max(x for x, _ in hops), len(self.problem.network.nesting)
        shape = (len(choices), 1 + levels * widths, self.problem.layers + 1)
        arrive, retire = np.zeros(shape), np.zeros(shape)
        for number, one in enumerate(choices):
            point = one.point
            table = self.problem.table(
                point.tp, point.sp, point.micro_batch, point.cp, point.ep, point.etp
            )
            for y in range(widths):
                time, ranks = hops[one.x, y]
                own = point.tp * point.cp / ranks
                forward = MessageTime(time.alpha_s, time.beta_s_per_byte * own)
                come, go = hop_seconds(point, replace(one.shared, forward=forward), table)
                arrive[number, 1 + y :: widths] = come[1:]
                retire[number, 1 + y :: widths] = go[:-1]
        return arrive, retire


def _placed(point: Point) -> Point:
    """A point without what does not place ranks."""
    return replace(point, sp=False, micro_batch=1, zero=0, zero_group=0, ep=1, etp=1)


def _work(t: Tables, p: Places) -> int:
    """Steps of the recurrence under one cap, about."""
    (widths, places), hops, layers = p.ends.shape, t.arrive.shape[1], t.time.shape[1]
    steps = len(t.time) * layers // 4 + widths * places
    return int(min(places, layers) * hops**2 * steps)


_Hops = dict[tuple[int, int], tuple[MessageTime, int]]
"""By the numbers of both widths: times by level, and of how many parts of a tensor."""


class _Choice(NamedTuple):
    """A strategy with a ZeRO stage, of the width number ``x``, and its costs."""

    x: int
    strategy: _Strategy
    point: Point
    shared: LevelLinks
    costs: StageCosts
