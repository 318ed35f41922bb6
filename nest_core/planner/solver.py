"""One outer point made ready and solved: its stage costs, its bounds, its best plan."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from weakref import ref

import numpy as np

from nest_core.costs import (
    DELAYS,
    REPLAYED,
    SPLIT,
    LayerSeconds,
    Layout,
    Plan,
    PlanLinks,
    Point,
    Problem,
    StageCosts,
    StageStrategy,
    hides_transfers,
    in_flight,
    layer_seconds,
    links,
    stage_costs,
)
from nest_core.documents.presets import kept_within
from nest_core.network import FloatArray, IntArray
from nest_core.planner.interleaved import solve_interleaved
from nest_core.planner.program import Choices, solve_point

__all__ = ["Prepared", "Solver", "lower_sync_bound", "spared"]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A point ready for the program.

    Parameters
    ----------
    point : Point
    choices : Choices
    strategies : tuple of StageStrategy
        Those of ``choices``.
    total, sync, lower_bound : float
        Bounds of ``sum(t_s)``, ``max(e_s)`` and the iteration, under the point's real layout.
    """

    point: Point
    choices: Choices
    strategies: tuple[StageStrategy, ...]
    total: float
    sync: float
    lower_bound: float


def _content(problem: Problem, point: Point, shared: PlanLinks) -> Hashable:
    """Return what seconds of layers depend on where ``shared`` are the links of a point."""
    sends = (point.zero, point.zero_group) if problem.acting_zero(point) > 1 else ()
    passes = (point.schedule, point.interleave) if problem.overlap.experts else ()
    at = point.sp, point.micro_batch, point.ep, point.etp
    return ref(problem), point.layout, point.device_order, at, sends, passes


@kept_within(4096, 2**26, LayerSeconds.size_bytes, _content)
def _placed_seconds(problem: Problem, point: Point, shared: PlanLinks) -> LayerSeconds:
    """Return seconds of layers; ZeRO stages and schedules that send no more have the same."""
    table = problem.table(point.tp, point.sp, point.micro_batch, point.cp, point.ep, point.etp)
    return layer_seconds(problem, point, shared, table)


class Solver:
    """Prepares and solves points of a problem; layouts that several share are placed once.

    Parameters
    ----------
    allowed : (choices,)
        Rows of tables whose recomputation may be used.
    as_needed : bool
        Whether recomputation is raised only where it does not fit.
    layouts : str
        Of virtual stages: ``even`` or ``uneven``.
    size : int
        Points whose stage costs are remembered.
    """

    def __init__(
        self,
        problem: Problem,
        allowed: IntArray,
        *,
        as_needed: bool = False,
        layouts: str = "even",
        size: int = 128,
    ) -> None:
        self.problem, self.allowed, self.as_needed = problem, allowed, as_needed
        self.layouts = layouts
        self._links: dict[tuple[Layout, str | tuple[int, ...], bool], PlanLinks] = {}
        self._costs, self._alike = (
            lru_cache(size)(self._costs_of),
            lru_cache(size)(self._costs_alike),
        )

    def of(self, problem: Problem) -> Solver:
        """Return the solver of a problem that differs in memory alone, which shares costs."""
        other = copy(self)
        other.problem = problem
        other._costs = lru_cache(self._costs.cache_info().maxsize)(other._costs_of)
        return other

    def costs(self, point: Point) -> StageCosts:
        """Stage costs under a point's layout."""
        return self._costs(point)

    def _costs_of(self, point: Point) -> StageCosts:
        """Return the same, from those of a point that is alike.

        Schedules differ in what is in flight only, but for the last stage's link to the first,
        which interleaving has, for W, which zero-bubble schedules delay, and for expert traffic
        beside other passes.
        """
        schedule = point.schedule if point.schedule in SPLIT else ""
        alike = replace(point, schedule=schedule, interleave=min(point.interleave, 2))
        if self.problem.overlap.experts:
            alike = point
        costs_alike = self._alike(alike)
        return replace(
            costs_alike,
            point=point,
            in_flight=in_flight(point, costs_alike.micro_batches),
            transfer_saved=self.problem.overlap.transfer * hides_transfers(point),
            limit=self.problem.room(point),
        )

    def _costs_alike(self, point: Point) -> StageCosts:
        shared = self.links(point)
        return stage_costs(
            self.problem, point, shared, _placed_seconds(self.problem, point, shared)
        )

    def links(self, point: Point) -> PlanLinks:
        """Links under a point's layout, which many points share, whatever experts they have."""
        around = point.around > 0
        key = point.layout, point.device_order
        if (*key, around) not in self._links:
            shared = links(self.problem, point)
            alike = self._links.get((*key, not around))
            self._links[*key, around] = alike.sharing(shared) if alike else shared
        return self._links[*key, around].of(point)

    def prepare(
        self,
        point: Point,
        strategies: tuple[StageStrategy, ...] = (),
        *,
        total: float = 0.0,
        sync: float = 0.0,
    ) -> Prepared:
        """Stage costs of a point, and the bounds that they give.

        Parameters
        ----------
        strategies : tuple of StageStrategy
            What stages choose from; empty: what the point says.
        total, sync : float
            Bounds that are known already.
        """
        stage_strategies = strategies or (StageStrategy.of(point),)
        costs = [self.costs(strategy.within(point)) for strategy in stage_strategies]
        shapes = [
            (
                stage_strategy.tp,
                stage_strategy.sp,
                stage_strategy.cp,
                stage_strategy.ep,
                stage_strategy.etp,
            )
            for stage_strategy in stage_strategies
        ]
        groups = [shapes.index(shape) for shape in shapes] if self.as_needed else ()
        choices = Choices.of(costs, self.allowed, groups)
        pp, m = point.pp, costs[0].micro_batches
        bounding = self.problem.bounding(self.allowed)
        lightest = np.min(
            [np.diff(entry.time[:, bounding], axis=2).min(axis=(0, 1)) for entry in costs],
            axis=0,
        )
        # Of transfers 1 - saved per second never hides. A position's own links count here, where
        # `nest_core.planner.bounds` took the best case of the fabric.
        ends = [_hop_bounds(entry) for entry in costs]
        exposed = (1.0 - costs[0].transfer_saved) * float(np.min(ends, axis=0).sum())
        # sum(t) under every cut: each layer at the cheapest strategy, recomputation and position
        # that it has anywhere, beside each position's cheapest transfers (docs/method.md, "The
        # program"). A bound that is known already may be higher, and both hold.
        total = max(total, float(lightest.sum()) + exposed)
        sync = max(sync, lower_sync_bound(costs, bounding, hidden=point.interleave > 1))
        bottleneck = max(total / pp, float(lightest.max()))
        v = float(point.interleave)
        if v > 1 and (
            self.layouts == "uneven" or point.schedule in REPLAYED
        ):  # stages wait for what the replay alone says
            v = np.inf
        lower_bound = total / v + (m - 1.0 / v) * bottleneck + sync
        if point.schedule in DELAYS:
            # The iteration is sum(t - w) + max((m - 1) t + w). As w >= 0 that is at least the sum
            # and (m - 1) max(t); as the slowest stage's own t - w is part of the sum, it is at
            # least m max(t).
            fill = max(0.0, total - spared(costs))
            lower_bound = max(fill + (m - 1) * bottleneck, m * bottleneck) + sync
        if v > 1:  # a slower pace hides more, but costs more than that
            lower_bound += max(0.0, _paced_bound(costs, bottleneck) - sync)
        return Prepared(point, choices, strategies, total, sync, lower_bound)

    def solve(self, prepared: Prepared, cutoff: float) -> tuple[float, Plan | None]:
        """Return the best plan of a point, if it takes at most ``cutoff`` seconds."""
        point, choices = prepared.point, prepared.choices
        if point.interleave > 1:
            seconds, cuts, chosen = solve_interleaved(
                point, choices, self.problem.layers, cutoff, self.layouts
            )
        else:
            total = max(0.0, prepared.total - spared(choices.costs))
            seconds, ends, chosen = solve_point(choices, total, prepared.sync, cutoff)
            cuts = tuple(ends.tolist())
        return (
            (seconds, None)
            if seconds == float("inf")
            else (seconds, self._plan(prepared, cuts, chosen))
        )

    def _plan(self, prepared: Prepared, cuts: tuple[int, ...], chosen: IntArray) -> Plan:
        choices, point, names = prepared.choices, prepared.point, self.problem.recomputations
        recompute = tuple(names[row] for row in choices.recompute[chosen].tolist())
        if not prepared.strategies:
            return Plan(point, cuts, recompute, offload=self.problem.offload)
        used = tuple(prepared.strategies[g] for g in choices.strategy[chosen].tolist())
        first = used[0].within(point)
        return Plan(
            first, cuts, recompute, used if len(set(used)) > 1 else (), self.problem.offload
        )


def lower_sync_bound(costs: Sequence[StageCosts], allowed: IntArray, *, hidden: bool) -> float:
    """Seconds that the slowest synchronisation takes at least, whatever the cuts and choices.

    Every layer has the strategy and the position of ``costs`` that are cheapest for it;
    ``hidden``: as much of it hides as may.
    """
    saved = costs[0].once_saved
    seconds = [np.diff(entry.sync, axis=1) for entry in costs]
    exposed = [
        all_of_it - saved * np.diff(entry.once, axis=1)
        for entry, all_of_it in zip(costs, seconds, strict=True)
    ]
    remaining = [np.diff(entry.free[:, allowed], axis=2).max(axis=(0, 1)) for entry in costs]
    cover = float(np.max(remaining, axis=0).sum())
    least = _cheapest(exposed)
    if not hidden:
        least = max(least, _cheapest(seconds) - saved * cover)
    # max(e) is no less than the mean of e over stages: all layers at their cheapest over pp, and
    # the mean of what positions pay whatever they hold. Where passes hide what is sent once, they
    # hide no more than `cover`, all that the passes of the chain leave free; the larger
    # of both ways to say so holds (docs/method.md, "The program", "Bounds").
    return least / len(costs[0].sync_base) + min(float(entry.sync_base.mean()) for entry in costs)


def _paced_bound(costs: Sequence[StageCosts], pace: float) -> float:
    """`lower_sync_bound` of interleaved stages at a pace."""
    pp = len(costs[0].sync_base)
    # pp stages at this pace have pace pp seconds in all to hide it behind.
    hidden = costs[0].once_saved * pace * pp
    cheapest = _cheapest([np.diff(entry.sync, axis=1) for entry in costs]) - hidden
    return cheapest / pp + min(float(entry.sync_base.mean()) for entry in costs)


def _cheapest(seconds: Sequence[FloatArray]) -> float:
    """Layers at their cheapest, of entries (positions, L), added up."""
    return float(np.min([entry.min(axis=0) for entry in seconds], axis=0).sum())


def spared(costs: Sequence[StageCosts]) -> float:
    """By how much all stages' waits are shorter than their loads, at most."""
    return float(np.max([np.diff(entry.spared) for entry in costs], axis=0).sum())


def _hop_bounds(costs: StageCosts) -> FloatArray:
    """Lower bounds of each position's transfers, shape (2, pp)."""
    arrive = costs.arrive[:, 1:-1].min(axis=1, initial=np.inf)
    retire = costs.retire[:, 1:-1].min(axis=1, initial=np.inf)
    arrive[0] = retire[-1] = 0.0
    return np.stack([arrive, retire])
