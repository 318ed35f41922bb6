"""The level-wise recurrence, solved for the furthest suffix under caps.

The paper's table ``dp[l][i][k][e]`` is the least bottleneck of ``e`` stages from layer ``i`` to the
end on ``k`` devices, the producer at level ``l``. Here it is transposed: under a cap on a stage's
load and one on its synchronisation

    ``F[e][k][l]`` = least ``i`` such that ``e`` stages hold layers ``i`` to the end, their producer
    starts at slot ``k`` and is at level ``l``
    = min over choices c that fit, and the level l' of the consumer, of
    ``first(F[e - 1][k'][l']; c, e, l, l')`` over all slots k' with level l between them and ``k``

with ``first(J; ...)`` the first layer of the longest stage that ends before ``J``. Caps step down,
strictly below the bottleneck found, so the least ``(m + S - 1) max t + max e`` is exact where a
longer suffix is never worse: where the tensors sent between layers are equally large.

Layers of a stage with ``e - 1`` stages behind it hold ``min(m, e)`` micro-batches (1F1B).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nest_core.compiled import compiled
from nest_core.costs.methods import KEPT, PEAK, grow
from nest_core.network import BoolArray, FloatArray, IntArray

__all__ = ["Tables", "best_suffixes", "longest_by_method", "longest_in_memory"]

_NEVER = 1 << 30


class Tables(NamedTuple):
    """What the recurrence reads; ``O`` choices, ``G`` strategies, ``V`` levels and none, first.

    ``time``, ``free`` (O, L + 1), ``forward`` (G, L + 1), ``arrive``, ``retire`` (G, V, L + 1),
    ``sync``, ``once`` (G, L + 1), ``tied`` (G,), ``heads`` (O, L + 1): as in `StageCosts`.
    ``strategy``, ``group`` (O,): as in `Choices`, and so are ``whole_time``, ``whole_free``
    (G, L + 1), of full recomputation.
    """

    time: FloatArray
    free: FloatArray
    forward: FloatArray
    arrive: FloatArray
    retire: FloatArray
    saved: float
    sync: FloatArray
    once: FloatArray
    tied: FloatArray
    spared: float
    strategy: IntArray
    group: IntArray
    whole_time: FloatArray
    whole_free: FloatArray
    heads: IntArray


@compiled
def longest_in_memory(
    static: FloatArray,
    kept: FloatArray,
    peak: FloatArray,
    step: FloatArray,
    strategy: IntArray,
    limit: float,
    flights: int,
) -> IntArray:
    """First layer of the longest stage that fits, shape (flights, O, L + 1); ``J`` where none."""
    options, layers = peak.shape
    slack = limit * (1.0 + 1e-12)
    first = np.empty((flights, options, layers + 1), dtype=np.int64)
    for o in range(options):
        g = strategy[o]
        for flight in range(flights):
            first[flight, o, 0] = 0
            for j in range(1, layers + 1):
                i, high = j, 0.0
                while i > 0:
                    high = max(high, peak[o, i - 1])
                    passes = (flight + 1) * (kept[o, j] - kept[o, i - 1]) + high
                    stepping = step[g, j] - step[g, i - 1]
                    if static[g, j] - static[g, i - 1] + max(passes, stepping) > slack:
                        break
                    i -= 1
                first[flight, o, j] = i
    return first


@compiled
def longest_by_method(
    static: FloatArray,
    kept: FloatArray,
    peak: FloatArray,
    step: FloatArray,
    again: IntArray,
    heads: IntArray,
    chunk: int,
    limit: float,
    first: IntArray,
) -> None:
    """The same under a method of full recomputation, into ``first`` (flights, L + 1).

    Parameters
    ----------
    static, step : (L + 1,)
    kept : (2, L + 1), peak : (2, L)
        Nothing recomputed, and full.
    again, heads : (L + 1,), chunk : int
        See `nest_core.costs.methods`.
    """
    flights, layers = len(first), len(static) - 1
    slack = limit * (1.0 + 1e-12)
    ends = np.empty((flights, layers + 1), dtype=np.int64)  # how far stages from a layer reach
    for i in range(layers):
        state = np.zeros(4)
        ends[:, i] = i
        for j in range(i + 1, layers + 1):
            grow(state, j - 1, kept, peak, again, heads[i], chunk)
            for flight in range(flights):
                passes = (flight + 1) * state[KEPT] + state[PEAK]
                used = static[j] - static[i] + max(passes, step[j] - step[i])
                if used <= slack and ends[flight, i] == j - 1:
                    ends[flight, i] = j
    for flight in range(flights):
        first[flight, 0] = 0
        for j in range(1, layers + 1):
            i = j
            while i > 0 and ends[flight, i - 1] >= j:
                i -= 1
            first[flight, j] = i


@compiled
def _load(t: Tables, o: int, i: int, j: int, up: int, down: int) -> tuple[float, float]:
    """Load of a stage, and its synchronisation."""
    g = t.strategy[o]
    head = min(j, t.heads[o, i])
    within = t.time[o, j] - t.time[o, head] + (t.whole_time[g, head] - t.whole_time[g, i])
    idle = t.free[o, j] - t.free[o, head] + (t.whole_free[g, head] - t.whole_free[g, i])
    hops = t.arrive[g, up, i] + t.retire[g, down, j]
    hidden = t.saved * min(hops, idle)
    back = max(0.0, idle - hidden - (t.forward[g, j] - t.forward[g, i]))
    shown = t.sync[g, j] - t.sync[g, i]
    if up == 0 or down == 0:
        shown += t.tied[g]
    return within + hops - hidden, shown - t.spared * min(t.once[g, j] - t.once[g, i], back)


@compiled
def _longest_in_time(t: Tables, cap: float, sync_cap: float, first: IntArray) -> None:
    """First layer of the longest stage under both caps, shape (O, V, V, L + 1): up, down."""
    options, levels, layers = t.time.shape[0], t.arrive.shape[1], t.time.shape[1] - 1
    for o in range(options):
        for up in range(levels):
            for down in range(levels):
                i = layers
                for j in range(layers, 0, -1):
                    i = min(i, j)
                    while i < j:  # what ended later may have sent less
                        load, sync = _load(t, o, i, j, up, down)
                        if load <= cap and sync <= sync_cap:
                            break
                        i += 1
                    while i > min(up, 1):  # the first layer's stage has no producer
                        load, sync = _load(t, o, i - 1, j, up, down)
                        if load > cap or sync > sync_cap:
                            break
                        i -= 1
                    first[o, up, down, j] = i


@compiled
def _reach(
    t: Tables,
    memory: IntArray,
    between: IntArray,
    time: IntArray,
    layer: IntArray,
    came: IntArray,
    chosen: IntArray,
    target: int,
) -> tuple[int, int, int, int]:
    """Least number of stages that hold all layers; its last slot, level and choice.

    ``layer[e, k, l]`` is ``F``; ``came``, ``chosen`` say from which slot, level and choice.
    With a ``target`` above 0 just so many stages, and a layer is left to each that is to come.
    """
    flights, options, width = memory.shape
    layers = width - 1
    levels, slots = t.arrive.shape[1], len(between)
    stages = target if target else min(slots, layers)
    best = np.empty((levels, levels, width), dtype=np.int64)
    pick = np.empty((levels, levels, width), dtype=np.int64)
    served = np.empty(t.group.max() + 1, dtype=np.int64)  # where a choice before it fits
    layer[0] = _NEVER
    layer[0, :, 0] = layers
    for e in range(1, stages + 1):
        flight = min(e, flights) - 1
        for up in range(levels):
            for down in range(levels):
                if (down == 0) != (e == 1):
                    continue
                for j in range(1, width):
                    best[up, down, j] = _NEVER
                    served[:] = _NEVER
                    for o in range(options):
                        taken = served[t.group[o]]
                        fits = memory[flight, o, j]
                        i = max(fits, time[o, up, down, j])
                        if up > 0:
                            i = max(i, 1, target - e)
                        if i < min(j, taken) and i < best[up, down, j]:
                            best[up, down, j] = i
                            pick[up, down, j] = o
                        served[t.group[o]] = min(taken, fits)
        layer[e] = _NEVER
        for down in range(levels):
            if (down == 0) != (e == 1):
                continue
            for k in range(e - 1, slots if e >= target else 0):
                j = layer[e - 1, k, down]
                if j < _NEVER and best[0, down, j] == 0:
                    return e, k, down, pick[0, down, j]
            for up in range(1, levels):
                _spread(up, e, down, between, layer, best, pick, came, chosen)
    return 0, 0, 0, 0


@compiled
def _spread(
    up: int,
    e: int,
    down: int,
    between: IntArray,
    layer: IntArray,
    best: IntArray,
    pick: IntArray,
    came: IntArray,
    chosen: IntArray,
) -> None:
    """Stages with their consumer at ``down`` and their producer at ``up``, at any slot there."""
    near, near_from, near_pick = _NEVER, 0, 0  # producers at this slot would be at a nearer level
    far, far_from, far_pick = _NEVER, 0, 0
    for k in range(1, len(between)):
        j = layer[e - 1, k - 1, down]
        if j < _NEVER and j > 0 and best[up, down, j] < near:
            near, near_from, near_pick = best[up, down, j], k - 1, pick[up, down, j]
        met = between[k] + 1
        if met > up:
            near, far = _NEVER, _NEVER
        elif met == up:
            if near < far:
                far, far_from, far_pick = near, near_from, near_pick
            near = _NEVER
        if far < layer[e, k, up]:
            layer[e, k, up] = far
            came[e, k, up] = far_from * 64 + down
            chosen[e, k, up] = far_pick


@compiled
def _trace(
    t: Tables,
    end: tuple[int, int, int, int],
    layer: IntArray,
    came: IntArray,
    chosen: IntArray,
    cuts: IntArray,
    options: IntArray,
    taken: IntArray,
) -> tuple[float, float]:
    """Write a plan down, first stage first; its bottleneck and its slowest synchronisation."""
    stages, k, down, o = end
    worst, late = 0.0, 0.0
    i, up = 0, 0
    for s in range(stages):
        e = stages - s
        j = layer[e - 1, k, down]
        load, sync = _load(t, o, i, j, up, down)
        worst, late = max(worst, load), max(late, sync)
        cuts[s], cuts[s + 1], options[s], taken[s] = i, j, o, k
        if e > 1:
            o = chosen[e - 1, k, down]
            before = came[e - 1, k, down]
            i, up = j, down
            k, down = before // 64, before % 64
    return worst, late


@compiled
def best_suffixes(
    t: Tables,
    memory: IntArray,
    between: IntArray,
    allowed: BoolArray,
    m: int,
    total: float,
    heaviest: float,
    sync_bound: float,
    cutoff: float,
    cuts: IntArray,
    options: IntArray,
    taken: IntArray,
) -> tuple[float, int]:
    """Least ``(m + S - 1) max t + max e`` of two stages or more that is under ``cutoff``.

    Parameters
    ----------
    memory : (flights, O, L + 1)
        Of `longest_in_memory`.
    between : (slots,)
        Levels between neighbouring slots.
    allowed : (stages + 1,)
        Numbers of stages that a plan may have.
    total, heaviest, sync_bound : float
        Lower bounds of the loads added up, of the largest layer and of ``max e``.

    Returns
    -------
    seconds, stages
        Infinity and 0 if there is none; else ``cuts``, ``options`` and ``taken`` hold the plan.
    """
    layers, levels = memory.shape[2] - 1, t.arrive.shape[1]
    most = min(len(between), layers)
    pinned = not allowed[2 : most + 1].all()
    shape = (most + 1, len(between), levels)
    layer, came = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)
    chosen = np.empty(shape, dtype=np.int64)
    time = np.empty((len(t.strategy), levels, levels, layers + 1), dtype=np.int64)
    trial, trial_options = np.empty_like(cuts), np.empty_like(options)
    trial_taken = np.empty_like(taken)
    found, found_stages, sync_cap = cutoff, 0, np.inf
    while True:
        least, least_sync, top, stages = np.inf, np.inf, np.inf, 2
        low, high = 0.0, np.inf  # of this number of stages: a cap too low, the bottleneck found
        while stages <= most:
            if not allowed[stages]:
                stages, high = stages + 1, np.inf
                continue
            limit = min(top, (found - sync_bound) / (m + stages - 1))
            bound = max(total / stages, heaviest) * (1.0 - 1e-12)
            if limit < bound:
                if heaviest > limit or heaviest * stages > total:
                    break
                stages, high = stages + 1, np.inf
                continue
            low = max(low, bound) if high < np.inf else bound
            cap = limit
            if high < np.inf and limit > low * (1.0 + 1e-3):
                cap = 0.5 * (low + limit)
            _longest_in_time(t, cap, sync_cap, time)
            target = stages if pinned else 0
            end = _reach(t, memory, between, time, layer, came, chosen, target)
            if end[0] == 0 or end[0] > stages:
                if cap < limit:
                    low = cap
                elif pinned:
                    stages, high = stages + 1, np.inf
                elif end[0] == 0:
                    break
                else:
                    stages, high = end[0], np.inf
                continue
            worst, late = _trace(t, end, layer, came, chosen, trial, trial_options, trial_taken)
            high, top = worst, np.nextafter(min(worst, cap), 0.0)
            value = (m + end[0] - 1) * worst
            if value < least:
                least, least_sync = value, late
            if value + late < found:
                found, found_stages = value + late, end[0]
                cuts[:] = trial
                options[:] = trial_options
                taken[:] = trial_taken
        if least == np.inf or least + sync_bound >= found or least_sync <= 0.0:
            break
        sync_cap = np.nextafter(min(least_sync, sync_cap), 0.0)
    return (found if found_stages else np.inf), found_stages
