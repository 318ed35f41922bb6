"""The best plan of a point of virtual stages: its layouts one by one, recomputation by stage."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

from nest_core.costs import (
    REPLAYED,
    SPLIT,
    PassOrder,
    Point,
    fullest_order,
    iteration_seconds,
    replayed_seconds,
)
from nest_core.network import BoolArray, FloatArray, IntArray
from nest_core.planner.layouts import even_patterns, uneven_patterns
from nest_core.planner.program import Choices

__all__ = ["solve_interleaved"]

Found = tuple[float, tuple[int, ...], IntArray]
"""Seconds, cuts, and the choice of every stage; infinity where there is none."""


def solve_interleaved(
    point: Point, choices: Choices, layers: int, cutoff: float, layouts: str
) -> Found:
    """Return the best plan of a point of virtual stages that takes at most ``cutoff`` seconds.

    Parameters
    ----------
    layouts : str
        ``even``: of `even_patterns` only; ``uneven``: of `uneven_patterns` too.
    """
    best: Found = float("inf"), (), np.zeros(point.pp, dtype=np.int64)
    even = even_patterns(layers, point.pp, point.interleave)
    uneven = uneven_patterns(layers, point.pp, point.interleave) if layouts == "uneven" else ()
    for cuts in (*even, *uneven):
        has_form = cuts in even and point.schedule not in REPLAYED
        order = None if has_form else fullest_order(point, choices.costs[0].micro_batches)
        work, most = _of_virtual_stages(point, choices, np.array(cuts), order), min(best[0], cutoff)
        plans = (
            _even(point, work, most) if has_form else _replayed(point, choices, cuts, work, most)
        )
        for seconds, chosen in plans:
            if seconds <= cutoff and seconds < best[0]:
                best = seconds, cuts, chosen
    return best


@dataclass(frozen=True, slots=True, eq=False)
class _VirtualStages:
    """What every choice takes at every stage of a layout, shape (pp, K).

    Parameters
    ----------
    micro_batches : int
    load : infinite where the choice does not fit, or may not be taken since one before fits
    hidden : seconds of transfers that hide in it, and do not while the pipeline fills and drains
    once, hiding : seconds once per iteration, and those of them that may hide
    taken : seconds of a micro-batch that hide nothing
    saved : seconds saved per second hidden
    """

    micro_batches: int
    load: FloatArray
    hidden: FloatArray
    once: FloatArray
    hiding: FloatArray
    taken: FloatArray
    saved: float

    def sync(self, pace: float) -> FloatArray:
        """Return synchronisation where a micro-batch takes the slowest stage ``pace`` seconds."""
        cover = np.maximum(pace - self.taken, 0.0)
        return np.asarray(self.once - self.saved * np.minimum(self.hiding, cover))


def _even(point: Point, work: _VirtualStages, cutoff: float) -> Iterator[tuple[float, IntArray]]:
    """Plans of even virtual stages, the best among them.

    Every load is tried as the slowest, at whose pace all synchronise. Whatever the others then
    do, the choice that others wait less for is better among those that synchronise as fast, so caps
    on synchronisation are stepped down as in the program. Where all turn out faster than the
    load tried, they lose less by synchronising at that pace than they gain.
    """
    load, m, places = work.load, work.micro_batches, np.arange(point.pp)
    waited = load / point.interleave + work.hidden
    paces = np.unique(load[np.isfinite(load)])
    for pace in paces[paces >= load.min(axis=1).max()].tolist():
        if m * pace >= cutoff * (1 + 1e-12):
            return
        sync, cap = work.sync(pace), float("inf")
        while True:
            usable = np.where((sync <= cap) & (load <= pace), waited, np.inf)
            chosen = usable.argmin(axis=1)
            if not np.isfinite(usable[places, chosen]).all():
                break
            loads, hidden = load[places, chosen], work.hidden[places, chosen]
            syncs = work.sync(float(loads.max()))[places, chosen]
            seconds = iteration_seconds(point, m, loads, np.zeros_like(loads), hidden, syncs)
            cutoff = min(cutoff, seconds)
            yield seconds, chosen
            # The stage that synchronises longest must choose otherwise, if a plan is still to be
            # better.
            cap = float(np.nextafter(sync[places, chosen].max(), 0.0))


def _replayed(
    point: Point, choices: Choices, cuts: tuple[int, ...], work: _VirtualStages, cutoff: float
) -> Iterator[tuple[float, IntArray]]:
    """Plans of virtual stages that are replayed, the best among them.

    Every choice is tried as the slowest stage's, at whose pace all synchronise. What the others
    then do is tried in every way but those in which one has neither a shorter pass nor a shorter
    synchronisation than it might: no pass that gets longer ends the last one sooner.
    """
    load, m, places = work.load, work.micro_batches, np.arange(point.pp)
    least, paired = load.min(axis=1).max(), choices.costs[0].is_paired
    if m * least >= cutoff * (1 + 1e-12):
        return
    passes = _passes(point, choices, cuts)
    slowest = np.argwhere(np.isfinite(load) & (load >= least))
    # Slowest stages in the order of their loads, so that the first to need m pace seconds above
    # the cutoff ends the search: all that follow need as many.
    for s, k in slowest[np.argsort(load[tuple(slowest.T)], kind="stable")].tolist():
        pace = float(load[s, k])
        if m * pace >= cutoff * (1 + 1e-12):
            return
        sync = work.sync(pace)
        measures = np.concatenate(
            [passes.reshape(*load.shape, -1), np.stack([sync, work.hidden], axis=2)], axis=2
        )
        ways = [
            [k] if at == s else _undominated(measures[at], load[at] <= pace)
            for at in range(point.pp)
        ]
        for way in product(*ways):
            chosen = np.array(way)
            seconds, once = passes[places, chosen], float(sync[places, chosen].max())
            once += float(work.hidden[places, chosen].sum())
            # A stage waits for those before it in the first round, either way; what is left for
            # gradients of weights may come after all others.
            first = seconds[:, 0, : 1 if point.schedule in SPLIT else 2].sum(axis=1)
            low = float((m * load[places, chosen] + first.cumsum() - first).max())
            if low + once <= cutoff * (1 + 1e-12):
                ended = max(m * pace, replayed_seconds(point, m, seconds, is_paired=paired)) + once
                cutoff = min(cutoff, ended)
                yield ended, chosen


def _undominated(measures: FloatArray, usable: BoolArray) -> list[int]:
    """Usable choices (K,) of a stage than which none is as good in all of ``measures`` (K, n), but
    for rounding.
    """
    front: list[int] = []
    # Choices that differ by rounding alone are one: without the slack both would be tried, and so
    # would every product with the choices of other stages.
    most = measures * (1.0 + 1e-12)
    for k in np.flatnonzero(usable).tolist():
        if not any((measures[j] <= most[k]).all() for j in front):
            front = [j for j in front if not (measures[k] <= most[j]).all()] + [k]
    return front


def _of_virtual_stages(
    point: Point, choices: Choices, cuts: IntArray, order: PassOrder | None = None
) -> _VirtualStages:
    """Return what virtual stages between cuts take; ``order``: if replayed, that of passes."""
    placed, place = point.placed.T, np.arange(point.pp)
    spans = np.stack([cuts[placed], cuts[placed + 1]], axis=1)
    totals, within = [], []
    for strategy, c in choices.every:
        entry, rows = choices.costs[strategy], np.full(point.pp, c)
        totals.append(entry.totals(place, spans, rows))
        within.append(entry.used(place, spans, rows, order) <= entry.limit * (1.0 + 1e-12))
    time, free, hops, ahead, once, hiding, renewed = np.array(totals).transpose(1, 2, 0)
    costs, fits = choices.costs[0], np.array(within).T
    for k in range(1, len(choices.group)):  # of a group the first that fits
        fits[:, k] &= ~((choices.group[:k] == choices.group[k]) & fits[:, :k]).any(axis=1)
    hidden = costs.transfer_saved * np.minimum(hops, free)
    load = time + hops - hidden
    return _VirtualStages(
        micro_batches=costs.micro_batches,
        load=np.where(fits, load, np.inf),
        hidden=hidden,
        once=once - costs.once_saved * np.minimum(renewed, ahead),
        hiding=hiding - renewed,
        # Gradients hide behind backward passes only: forward passes, transfers and whatever else
        # communicates hide none of them.
        taken=hops + (time - free) + ahead,
        saved=costs.once_saved,
    )


def _passes(point: Point, choices: Choices, cuts: tuple[int, ...]) -> FloatArray:
    """`StageCosts.passes` of every stage and choice, shape (pp, K, v, 3)."""
    spans = np.array(list(pairwise(cuts)))[point.placed].tolist()
    return np.array(
        [
            [choices.costs[g].passes(s, stage, c) for g, c in choices.every]
            for s, stage in enumerate(spans)
        ]
    )
