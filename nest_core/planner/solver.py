"""One outer point made ready and solved: its stage costs, its bounds, its best plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nest_core.costs import (
    Plan,
    Point,
    Problem,
    StageCosts,
    StageStrategy,
    in_flight,
    links,
    pairs_passes,
    stage_costs,
)
from nest_core.costs.schedules import DELAYS, iteration_seconds
from nest_core.costs.stages import Links
from nest_core.network import FloatArray, IntArray
from nest_core.planner.program import Choices, solve_point
from nest_core.planner.space import even_patterns

__all__ = ["Prepared", "Solver", "lower_sync_bound", "spared"]

_KEPT = 128


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


class Solver:
    """Prepares and solves points of a problem; layouts that several share are placed once.

    Parameters
    ----------
    allowed : (choices,)
        Rows of tables whose recomputation may be used.
    as_needed : bool
        Whether recomputation is raised only where it does not fit.
    """

    def __init__(self, problem: Problem, allowed: IntArray, *, as_needed: bool = False) -> None:
        self.problem, self.allowed, self.as_needed = problem, allowed, as_needed
        self._links: dict[Point, Links] = {}
        self._costs: dict[Point, StageCosts] = {}

    def costs(self, point: Point) -> StageCosts:
        """Stage costs under a point's layout.

        Schedules differ in what is in flight only, but for the last stage's link to the first,
        which interleaving has, for W, which zero-bubble schedules delay, and for expert traffic
        beside other passes.
        """
        named = point.schedule if point.schedule in DELAYS else ""
        alike = replace(point, schedule=named, interleave=min(point.interleave, 2))
        if beside := pairs_passes(self.problem, point):
            alike = replace(point, schedule="")
        if alike not in self._costs:
            v = min(point.interleave, 2)
            place = replace(alike, sp=False, micro_batch=1, zero=0, schedule="", interleave=v)
            if place not in self._links:
                self._links[place] = links(self.problem, point)
            if len(self._costs) == _KEPT:
                self._costs.pop(next(iter(self._costs)))
            self._costs[alike] = stage_costs(self.problem, point, self._links[place])
        found = self._costs[alike]
        held = in_flight(point, found.micro_batches, beside=beside)
        return replace(found, in_flight=held)

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
        named = strategies or (StageStrategy.of(point),)
        costs = [self.costs(strategy.within(point)) for strategy in named]
        shapes = [(each.tp, each.sp, each.cp, each.ep, each.etp) for each in named]
        groups = [shapes.index(shape) for shape in shapes] if self.as_needed else ()
        choices = Choices.of(costs, self.allowed, groups)
        pp, m = point.pp, costs[0].micro_batches
        lightest = np.min(
            [np.diff(entry.time[:, self.allowed], axis=2).min(axis=(0, 1)) for entry in costs],
            axis=0,
        )
        ends = [_hop_bounds(entry) for entry in costs]
        exposed = (1.0 - costs[0].transfer_saved) * float(np.min(ends, axis=0).sum())
        total = max(total, float(lightest.sum()) + exposed)
        sync = max(sync, lower_sync_bound(costs, self.allowed, hidden=point.interleave > 1))
        bottleneck = max(total / pp, float(lightest.max()))
        v = point.interleave
        lower_bound = total / v + (m - 1.0 / v) * bottleneck + sync
        if point.schedule in DELAYS:
            fill = max(0.0, total - spared(costs))
            lower_bound = max(fill + (m - 1) * bottleneck, m * bottleneck) + sync
        if v > 1:  # a slower pace hides more, but costs more than that
            lower_bound += max(0.0, _paced_bound(costs, bottleneck) - sync)
        return Prepared(point, choices, strategies, total, sync, lower_bound)

    def solve(self, prepared: Prepared, cutoff: float) -> tuple[float, Plan | None]:
        """The best plan of a point, if it takes at most ``cutoff`` seconds."""
        if prepared.point.interleave > 1:
            return self._even(prepared, cutoff)
        total = max(0.0, prepared.total - spared(prepared.choices.costs))
        seconds, cuts, chosen = solve_point(prepared.choices, total, prepared.sync, cutoff)
        if seconds == float("inf"):
            return seconds, None
        return seconds, self._plan(prepared, tuple(cuts.tolist()), chosen)

    def _even(self, prepared: Prepared, cutoff: float) -> tuple[float, Plan | None]:
        """The same of an interleaved point, whose cuts are even.

        Every load is tried as the slowest, at whose pace all synchronise. Whatever the others then
        do, the choice with the smaller load is better among those that synchronise as fast, so caps
        on synchronisation are stepped down as in the program. Where all turn out faster than the
        load tried, they lose less by synchronising at that pace than they gain.
        """
        best, plan = float("inf"), None
        point, places = prepared.point, np.arange(prepared.point.pp)
        m = prepared.choices.costs[0].micro_batches
        for cuts in even_patterns(self.problem.layers, point.pp, point.interleave):
            work = _of_virtual_stages(prepared, np.array(cuts))
            load = work.load
            paces = np.unique(load[np.isfinite(load)])
            for pace in paces[paces >= load.min(axis=1).max()].tolist():
                if m * pace >= min(best, cutoff * (1 + 1e-12)):
                    break
                sync, cap = work.sync(pace), float("inf")
                while True:
                    usable = np.where((sync <= cap) & (load <= pace), load, np.inf)
                    chosen = usable.argmin(axis=1)
                    if not np.isfinite(usable[places, chosen]).all():
                        break
                    loads = load[places, chosen]
                    syncs = work.sync(float(loads.max()))[places, chosen]
                    seconds = iteration_seconds(point, m, loads, np.zeros_like(loads), syncs)
                    if seconds <= cutoff and seconds < best:
                        best, plan = seconds, self._plan(prepared, cuts, chosen)
                    cap = float(np.nextafter(sync[places, chosen].max(), 0.0))
        return best, plan

    def _plan(self, prepared: Prepared, cuts: tuple[int, ...], chosen: IntArray) -> Plan:
        choices, point, names = prepared.choices, prepared.point, self.problem.recomputations
        recompute = tuple(names[row] for row in choices.recompute[chosen].tolist())
        if not prepared.strategies:
            return Plan(point, cuts, recompute)
        used = tuple(prepared.strategies[g] for g in choices.strategy[chosen].tolist())
        first = used[0].within(point)
        return Plan(first, cuts, recompute, used if len(set(used)) > 1 else ())


def lower_sync_bound(costs: Sequence[StageCosts], allowed: IntArray, *, hidden: bool) -> float:
    """Seconds that the slowest synchronisation takes at least, whatever the cuts and choices.

    Every layer has the strategy and the position of ``costs`` that are cheapest for it;
    ``hidden``: as much of it hides as may.
    """
    saved = costs[0].once_saved
    each = [np.diff(entry.sync, axis=1) for entry in costs]
    shown = [
        all_of_it - saved * np.diff(entry.once, axis=1)
        for entry, all_of_it in zip(costs, each, strict=True)
    ]
    left = [
        np.diff(entry.free[:, allowed], axis=2).max(axis=(0, 1)) - np.diff(entry.forward)
        for entry in costs
    ]
    cover = float(np.maximum(np.max(left, axis=0), 0.0).sum())
    least = _cheapest(shown)
    if not hidden:
        least = max(least, _cheapest(each) - saved * cover)
    base = min(float(entry.sync_base.mean()) for entry in costs)
    return least / len(costs[0].sync_base) + base


def _paced_bound(costs: Sequence[StageCosts], pace: float) -> float:
    """`lower_sync_bound` of interleaved stages at a pace."""
    pp = len(costs[0].sync_base)
    forward = _cheapest([np.diff(entry.forward)[None] for entry in costs])
    hidden = costs[0].once_saved * max(0.0, pace * pp - forward)
    each = _cheapest([np.diff(entry.sync, axis=1) for entry in costs]) - hidden
    return each / pp + min(float(entry.sync_base.mean()) for entry in costs)


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


@dataclass(frozen=True, slots=True, eq=False)
class _VirtualStages:
    """What every choice takes at every stage of even virtual stages, shape (pp, K).

    Parameters
    ----------
    load : infinite where the choice does not fit, or may not be taken since one before fits
    once, hiding : seconds once per iteration, and those of them that may hide
    taken : seconds of a micro-batch that hide nothing
    saved : seconds saved per second hidden
    """

    load: FloatArray
    once: FloatArray
    hiding: FloatArray
    taken: FloatArray
    saved: float

    def sync(self, pace: float) -> FloatArray:
        """Synchronisation where a micro-batch takes the slowest stage ``pace`` seconds."""
        cover = np.maximum(pace - self.taken, 0.0)
        return np.asarray(self.once - self.saved * np.minimum(self.hiding, cover))


def _of_virtual_stages(prepared: Prepared, cuts: IntArray) -> _VirtualStages:
    """What virtual stages between cuts take."""
    choices, point = prepared.choices, prepared.point
    pp, v = point.pp, point.interleave
    costs = choices.costs[0]
    place = np.arange(pp)

    def added(prefix: FloatArray) -> FloatArray:
        """Prefix sums (..., L + 1) as sums over each stage's virtual stages, (..., pp)."""
        spans = prefix[..., cuts[1:]] - prefix[..., cuts[:-1]]
        return np.asarray(spans.reshape(*spans.shape[:-1], v, pp).sum(axis=-2))

    def own(sums: FloatArray) -> FloatArray:
        """Of (pp, K, pp) the sums of each position's own virtual stages, (pp, K)."""
        return np.asarray(sums[place, :, place])

    time, free = own(added(choices.placed("time"))), own(added(choices.placed("free")))
    starts, ends = cuts[:-1].reshape(v, pp), cuts[1:].reshape(v, pp)
    arrive, retire = choices.stacked("arrive"), choices.stacked("retire")
    hops = (arrive[:, place, starts] + retire[:, place, ends]).sum(axis=1).T[:, choices.strategy]
    load = time + hops - costs.transfer_saved * np.minimum(hops, free)
    taken = hops + (time - free) + added(choices.stacked("forward")).T[:, choices.strategy]
    hiding = added(choices.stacked("once"))[:, place, place].T[:, choices.strategy]
    once = added(choices.stacked("sync"))[:, place, place] + choices.stacked("sync_base")

    peak = np.maximum.reduceat(choices.memory("peak"), cuts[:-1], axis=1)
    high = peak.reshape(-1, v, pp).max(axis=1).T
    passes = costs.in_flight[:, None] * added(choices.memory("kept")).T + high
    stepping = added(choices.stacked("step")).T[:, choices.strategy]
    held = added(choices.stacked("static")).T[:, choices.strategy]
    fits = held + np.maximum(passes, stepping) <= costs.limit * (1.0 + 1e-12)
    for k in range(1, len(choices.group)):  # of a group the first that fits
        before = (choices.group[:k] == choices.group[k]) & fits[:, :k]
        fits[:, k] &= ~before.any(axis=1)
    once = once.T[:, choices.strategy]
    return _VirtualStages(np.where(fits, load, np.inf), once, hiding, taken, costs.once_saved)
