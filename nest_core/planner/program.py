"""The dynamic program over cut points for one outer point, exactly.

For fixed degrees the time of a plan is ``sum(t_s) + (m - 1) * max(t_s) + max(e_s)`` with
``t_s`` the load and ``e_s`` the synchronisation of stage ``s``. Minimising the bottleneck alone
is not enough, and the three parts pull apart, so the program is the epsilon-constraint method:
under caps ``t_s <= T`` and ``e_s <= E`` the recurrence

    best[s][i] = min over j > i, choice c that fits: t(s, i, j, c) + best[s + 1][j]

finds the smallest sum, a choice being a recomputation and, where stages may differ, a strategy.
The caps then step down, strictly below the plan just found, as long as a plan under them could
still beat the best one. Every Pareto-optimal triple that matters is visited, so the result is the
exact minimum (``docs/method.md``, "The program").

Compiled with numba: a point of 82 layers and 16 stages takes well under a millisecond where
interpreted loops take seconds. The functions read plain arrays and release the GIL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numba
import numpy as np

from nest_core.costs.stages import StageCosts
from nest_core.network.wires import FloatArray, IntArray

__all__ = ["Choices", "covers", "evens", "solve_point"]

_F = TypeVar("_F", bound=Callable[..., Any])


def _compiled(function: _F) -> _F:
    """numba.njit with its result typed as the function itself."""
    return cast(_F, numba.njit(cache=True, nogil=True)(function))


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """What a stage may choose: ``K`` pairs of a strategy and a recomputation.

    Attributes
    ----------
    costs : tuple of StageCosts
        Of the point, strategy by strategy.
    strategy, recompute : (K,)
        Index into ``costs``; row of `RECOMPUTE`.
    group : (K,)
        Of choices in one group only the first that fits may be taken; without such a rule each
        choice is a group of its own.
    """

    costs: tuple[StageCosts, ...]
    strategy: IntArray
    recompute: IntArray
    group: IntArray

    @classmethod
    def of(
        cls, costs: Sequence[StageCosts], allowed: IntArray, groups: Sequence[int] = ()
    ) -> Choices:
        """All strategies with all allowed recomputations.

        Parameters
        ----------
        groups : sequence of int
            Of every strategy, neighbours alike, where of each only the first choice that fits
            may be taken; empty: all may.
        """
        strategy = np.repeat(np.arange(len(costs)), len(allowed))
        every = np.arange(len(strategy))
        return cls(
            tuple(costs),
            strategy,
            np.tile(allowed, len(costs)),
            np.array(groups, dtype=np.int64)[strategy] if groups else every,
        )

    @property
    def seconds(self) -> FloatArray:
        """Prefix sums of every choice at every position, shape (pp, K, L + 1)."""
        each = np.stack([entry.time for entry in self.costs])
        return np.ascontiguousarray(each[self.strategy, :, self.recompute].swapaxes(0, 1))

    def memory(self, name: str) -> FloatArray:
        """``kept`` or ``peak`` of every choice, shape (K, ...)."""
        each = np.stack([getattr(entry, name) for entry in self.costs])
        return np.ascontiguousarray(each[self.strategy, self.recompute])

    def stacked(self, name: str) -> FloatArray:
        """A field of every strategy, shape (strategies, ...)."""
        return np.stack([getattr(entry, name) for entry in self.costs])


def solve_point(
    choices: Choices, sum_bound: float, sync_bound: float, cutoff: float
) -> tuple[float, IntArray, IntArray]:
    """The best cuts and choices of one point, if any takes at most ``cutoff`` seconds.

    Parameters
    ----------
    choices : Choices
        Of a point with one chunk per stage.
    sum_bound, sync_bound : float
        Lower bounds of ``sum(t_s)`` and ``max(e_s)``, which shorten the search.

    Returns
    -------
    seconds : float
        Infinity if no plan is that fast.
    cuts : (pp + 1,), chosen : (pp,)
        ``chosen`` numbers the choices.
    """
    first = choices.costs[0]
    pp = first.time.shape[0]
    cuts = np.zeros(pp + 1, dtype=np.int64)
    chosen = np.zeros(pp, dtype=np.int64)
    seconds = _solve(
        choices.seconds, choices.stacked("arrive"), choices.stacked("retire"),
        first.transfer_saved, choices.stacked("sync"), choices.stacked("sync_base"),
        choices.stacked("static"), choices.memory("kept"), choices.memory("peak"),
        choices.stacked("step"), first.in_flight, first.limit, first.micro_batches,
        choices.strategy, choices.group, sum_bound, sync_bound, cutoff, cuts, chosen,
    )  # fmt: skip
    return float(seconds), cuts, chosen


@_compiled
def _solve(
    time: Any, arrive: Any, retire: Any, saved: Any, sync: Any, sync_base: Any, static: Any,
    kept: Any, peak: Any, stepping: Any, in_flight: Any, limit: Any, m: Any, strategy: Any,
    group: Any, sum_bound: Any, sync_bound: Any, cutoff: Any, cuts: Any, chosen: Any,
) -> Any:  # fmt: skip
    pp = time.shape[0]
    layers = static.shape[1] - 1
    best = np.empty((pp + 1, layers + 1))
    step = np.zeros((pp, layers + 1), dtype=np.int64)
    pick = np.zeros((pp, layers + 1), dtype=np.int64)
    found = np.inf
    sync_cap = np.inf
    trial_cuts = np.zeros(pp + 1, dtype=np.int64)
    while True:
        # Smallest g = sum + (m - 1) * max under the cap on e.
        room = min(found, cutoff) - sync_bound
        least = np.inf
        least_sync = np.inf
        load_cap = np.inf
        if m > 1 and room < np.inf:
            load_cap = (room - sum_bound) / (m - 1) * (1.0 + 1e-12)
        while True:
            total = _smallest_sum(
                time, arrive, retire, saved, sync, sync_base, static, kept, peak, stepping,
                in_flight, limit, strategy, group, load_cap, sync_cap, best, step, pick,
            )  # fmt: skip
            if total == np.inf:
                break
            trial_cuts[0] = 0
            worst_load = 0.0
            worst_sync = 0.0
            for s in range(pp):
                i = trial_cuts[s]
                j = step[s, i]
                trial_cuts[s + 1] = j
                c = pick[s, i]
                g = strategy[c]
                within = time[s, c, j] - time[s, c, i]
                hops = arrive[g, s, i] + retire[g, s, j]
                load = within + hops - saved * min(hops, within)
                worst_load = max(worst_load, load)
                worst_sync = max(worst_sync, sync[g, s, j] - sync[g, s, i] + sync_base[g, s])
            value = total + (m - 1) * worst_load
            if value < least:
                least = value
                least_sync = worst_sync
            if value + worst_sync < found and value + worst_sync <= cutoff:
                found = value + worst_sync
                for s in range(pp):
                    cuts[s + 1] = trial_cuts[s + 1]
                    chosen[s] = pick[s, trial_cuts[s]]
            if m == 1:
                break
            # Sums only grow from here, so a smaller value needs a smaller bottleneck.
            load_cap = min(np.nextafter(worst_load, 0.0), (least - total) / (m - 1))
        if least == np.inf or least + sync_bound >= min(found, cutoff):
            return found
        # Plans with e at least this large cannot beat least + least_sync.
        sync_cap = np.nextafter(least_sync, 0.0)


@_compiled
def _smallest_sum(
    time: Any, arrive: Any, retire: Any, saved: Any, sync: Any, sync_base: Any, static: Any,
    kept: Any, peak: Any, stepping: Any, in_flight: Any, limit: Any, strategy: Any, group: Any,
    load_cap: Any, sync_cap: Any, best: Any, step: Any, pick: Any,
) -> Any:  # fmt: skip
    pp = time.shape[0]
    options = time.shape[1]
    layers = static.shape[1] - 1
    slack = limit * (1.0 + 1e-12)
    best[:, :] = np.inf
    best[pp, layers] = 0.0
    high = np.zeros(options)
    fits = np.ones(options, dtype=np.bool_)
    quick = np.ones(options, dtype=np.bool_)
    for s in range(pp - 1, -1, -1):
        start_last = 0 if s == 0 else layers - (pp - s)
        for i in range(s, start_last + 1):
            high[:] = 0.0
            fits[:] = True
            quick[:] = True
            for j in range(i + 1, layers - (pp - s - 1) + 1):
                some = False
                served = -1  # the group whose first fitting choice was seen
                for c in range(options):
                    if not fits[c]:
                        continue
                    high[c] = max(high[c], peak[c, j - 1])
                    if group[c] == served:
                        continue
                    g = strategy[c]
                    passes = in_flight[s] * (kept[c, j] - kept[c, i]) + high[c]
                    held = static[g, j] - static[g, i]
                    if held + max(passes, stepping[g, j] - stepping[g, i]) > slack:
                        fits[c] = False  # memory only grows with j
                        continue
                    served = group[c]
                    within = time[s, c, j] - time[s, c, i]
                    begun = within + arrive[g, s, i] - saved * min(arrive[g, s, i], within)
                    late = sync[g, s, j] - sync[g, s, i] + sync_base[g, s] > sync_cap
                    if late or begun > load_cap:
                        quick[c] = False  # and so do both of these
                    if not quick[c]:
                        continue
                    some = True
                    hops = arrive[g, s, i] + retire[g, s, j]
                    load = within + hops - saved * min(hops, within)
                    if load <= load_cap and load + best[s + 1, j] < best[s, i]:
                        best[s, i] = load + best[s + 1, j]
                        step[s, i] = j
                        pick[s, i] = c
                if not some:
                    # Under the rule of the first that fits, a slow choice may yet stop fitting.
                    hope = False
                    for c in range(options):
                        hope = hope or (fits[c] and quick[c])
                    if not hope:
                        break
    return best[0, 0]


@_compiled
def covers(
    time: Any, hop: Any, saved: Any, dense: Any, experts: Any, tied: Any, kept: Any,
    working: Any, allowed: Any, table: Any, pp: Any, m: Any, stashing: Any, held: Any,
    stepping: Any, whole: Any, fetched: Any, load_cap: Any, limit: Any, alive: Any,
) -> None:  # fmt: skip
    """Screen points: can stages that fit, each at most ``load_cap`` seconds, cover the chain?

    A relaxation of every point (best-case communication) with stage costs that only grow with
    the stage, so taking as many layers as fit, from the last stage backwards, and leaving one for
    each stage before, decides it. Memory is not relaxed: without a load cap the answer is exact.
    Writes ``alive[point]``; points that are already False are skipped.

    Parameters
    ----------
    time : (tables, 3, L + 1), hop : (points,), saved : float
        Prefix sums at best-case communication; cost of one pipeline transfer, and what is saved
        per second of it that hides.
    dense, experts : (tables, L + 1), tied : (tables,)
        Elements without the last layer's tied copy, and the copy.
    kept : (tables, 3, L + 1), working : (tables, 3, L)
    table, pp, m, stashing : (points,)
        ``stashing``: all micro-batches are in flight.
    held, stepping, whole, fetched : (2, points)
        Bytes per dense and per expert element of what a stage holds, of what the optimizer step
        adds, of the layer that runs and of the one before it.
    load_cap : (points,)
        Seconds.
    """
    layers = dense.shape[1] - 1
    slack = limit * (1.0 + 1e-12)
    for p in range(table.shape[0]):
        if not alive[p]:
            continue
        t = table[p]
        j = layers
        s = pp[p] - 1
        while j > 0 and s >= 0:
            in_flight = m[p] if stashing[p] else min(m[p], pp[p] - s)
            copy = tied[t] if j == layers and pp[p] > 1 else 0.0
            transfer = hop[p] * ((1 if s > 0 else 0) + (1 if s < pp[p] - 1 else 0))
            first = j
            for n in range(allowed.shape[0]):
                c = allowed[n]
                i = j
                high = 0.0
                while i > s:
                    size = dense[t, i] - dense[t, i - 1]
                    if i == layers:
                        size += tied[t]
                    own = experts[t, i] - experts[t, i - 1]
                    runs = working[t, c, i - 1] + whole[0, p] * size + whole[1, p] * own
                    if i > 1:
                        runs += fetched[0, p] * (dense[t, i - 1] - dense[t, i - 2])
                        runs += fetched[1, p] * (experts[t, i - 1] - experts[t, i - 2])
                    high = max(high, runs)
                    elements = dense[t, j] - dense[t, i - 1] + copy
                    routed = experts[t, j] - experts[t, i - 1]
                    passes = in_flight * (kept[t, c, j] - kept[t, c, i - 1]) + high
                    steps = elements * stepping[0, p] + routed * stepping[1, p]
                    used = elements * held[0, p] + routed * held[1, p] + max(passes, steps)
                    within = time[t, c, j] - time[t, c, i - 1]
                    load = within + transfer - saved * min(transfer, within)
                    if used > slack or load > load_cap[p]:
                        break
                    i -= 1
                first = min(first, i)
            # A stage that takes nothing is skipped: the first has one transfer less to pay.
            j = first
            s -= 1
        alive[p] = j == 0


@_compiled
def evens(
    time: Any, hop: Any, saved: Any, dense: Any, experts: Any, tied: Any, kept: Any,
    working: Any, allowed: Any, table: Any, pp: Any, interleave: Any, m: Any, held: Any,
    stepping: Any, whole: Any, fetched: Any, sync: Any, limit: Any, least: Any,
) -> None:  # fmt: skip
    """Bound interleaved points by what their even chunks take; infinite where none fit.

    Memory is exact, time best-case communication with ``sync`` for what comes once. Cuts as in
    `nest_core.planner.space.even_patterns`. Writes ``least[point]``; points with 0 are skipped.
    Parameters are those of `covers`, ``interleave`` and ``sync`` of shape (points,).
    """
    layers = dense.shape[1] - 1
    slack = limit * (1.0 + 1e-12)
    for p in range(table.shape[0]):
        if least[p] == 0.0:
            continue
        t, stages, v = table[p], pp[p], interleave[p]
        chunks = stages * v
        least[p] = np.inf
        for counted in range(2):
            size = layers if counted else layers - 2
            if size <= 0 or size % chunks != 0:
                continue
            each = size // chunks
            total = 0.0
            longest = 0.0
            for s in range(stages):
                lightest = np.inf
                after = stages - 1 - s
                in_flight = min(m[p] * v, 2 * after + (v - 1) * stages + 1) / v
                ends = (1 if s == 0 else 0) + (1 if s == stages - 1 else 0)
                transfer = hop[p] * (2 * v - ends)
                for n in range(allowed.shape[0]):
                    c = allowed[n]
                    high, elements, routed, activations, within = 0.0, 0.0, 0.0, 0.0, 0.0
                    for k in range(v):
                        chunk = k * stages + s
                        i = chunk * each if counted else 1 + chunk * each
                        j = i + each
                        if not counted:
                            i = 0 if chunk == 0 else i
                            j = layers if chunk == chunks - 1 else j
                        for layer in range(i, j):
                            wide = dense[t, layer + 1] - dense[t, layer]
                            if layer == layers - 1:
                                wide += tied[t]
                            own = experts[t, layer + 1] - experts[t, layer]
                            runs = working[t, c, layer] + whole[0, p] * wide + whole[1, p] * own
                            if layer > 0:
                                before = dense[t, layer] - dense[t, layer - 1]
                                beside = experts[t, layer] - experts[t, layer - 1]
                                runs += fetched[0, p] * before + fetched[1, p] * beside
                            high = max(high, runs)
                        elements += dense[t, j] - dense[t, i]
                        if j == layers:
                            elements += tied[t]
                        routed += experts[t, j] - experts[t, i]
                        activations += kept[t, c, j] - kept[t, c, i]
                        within += time[t, c, j] - time[t, c, i]
                    steps = elements * stepping[0, p] + routed * stepping[1, p]
                    used = elements * held[0, p] + routed * held[1, p]
                    used += max(in_flight * activations + high, steps)
                    if used <= slack:
                        load = within + transfer - saved * min(transfer, within)
                        lightest = min(lightest, load)
                total += lightest
                longest = max(longest, lightest)
            if total < np.inf:
                found = m[p] * longest + (total - longest) / v + sync[p]
                least[p] = min(least[p], found)
