"""The level-wise recurrence, solved for the furthest suffix under caps.

The paper's table ``dp[l][i][k][e]`` is the least bottleneck of ``e`` stages from layer ``i`` to the
end on ``k`` devices, the producer at level ``l``. Here it is transposed: under a cap on a stage's
load and one on its synchronisation

    ``F[e][k][h]`` = least ``i`` such that ``e`` stages hold layers ``i`` to the end, their producer
    starts at place ``k`` and is met over a hop of class ``h``
    = min over choices c that fit, and the class h' of the hop to the consumer, of
    ``first(F[e - 1][k'][h']; c, e, h, h')`` over all places k' with a hop of class h between the
    stage there, of c's width, and ``k``

with ``first(J; ...)`` the first layer of the longest stage that ends before ``J``. A hop's class is
the level at which two stages meet, and both widths. Caps step down, strictly below the bottleneck
found, so the least ``(m + S - 1) max t + max e`` is exact where a longer suffix is never worse:
where the tensors sent between layers are equally large.

Two stages meet at the largest of three levels: between the devices where one ends and the next
starts, and inside either.

Layers of a stage with ``e - 1`` stages behind it hold ``min(m, e)`` micro-batches (1F1B).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nest_core.compiled import compiled
from nest_core.costs.methods import KEPT, PEAK, grow
from nest_core.network import BoolArray, FloatArray, IntArray

__all__ = ["Places", "Tables", "best_suffixes", "longest_by_method", "longest_in_memory"]

_NEVER = 1 << 30


class Tables(NamedTuple):
    """What the recurrence reads; ``O`` choices, ``G`` strategies, ``U`` ends of hops.

    An end is none, first, or a level and the width of the stage at the other end, which varies
    faster; times over hops that there are not are infinite.
    ``time``, ``free`` (O, L + 1), ``forward`` (G, L + 1), ``arrive``, ``retire`` (G, U, L + 1),
    ``sync``, ``once`` (G, L + 1), ``tied`` (G,), ``heads`` (O, L + 1): as in `StageCosts`.
    ``strategy``, ``group`` (O,): as in `Choices`, and so are ``whole_time``, ``whole_free``
    (G, L + 1), of full recomputation. ``width`` (O,): which of the widths, ascending.
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
    width: IntArray
    whole_time: FloatArray
    whole_free: FloatArray
    heads: IntArray


class Places(NamedTuple):
    """Where stages may sit; ``W`` widths, ``K`` places, counted from the last stage's end.

    Attributes
    ----------
    ends : (W, K)
        The first place after a stage that starts here; -1 where none may.
    between : (K,)
        Level between a place and the one before.
    inner : (W,)
        Level inside a stage; 0 where ``between`` has it already.
    whole : bool
        Whether no place may be left out.
    """

    ends: IntArray
    between: IntArray
    inner: IntArray
    whole: bool


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
def _exists(t: Tables, p: Places, o: int, u: int) -> bool:
    """Whether a stage can have such an end of a hop."""
    widths = len(p.inner)
    if u == 0:
        return True
    inside = max(p.inner[t.width[o]], p.inner[(u - 1) % widths])
    return bool(inside <= (u - 1) // widths and t.arrive[t.strategy[o], u, 1] < np.inf)


@compiled
def _longest_in_time(t: Tables, p: Places, cap: float, sync_cap: float, first: IntArray) -> None:
    """First layer of the longest stage under both caps, shape (O, U, U, L + 1): up, down."""
    options, hops, layers = t.time.shape[0], t.arrive.shape[1], t.time.shape[1] - 1
    for o in range(options):
        for up in range(hops):
            for down in range(hops):
                if not (_exists(t, p, o, up) and _exists(t, p, o, down)):
                    first[o, up, down] = layers
                    continue
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
def _best(
    t: Tables,
    p: Places,
    memory: IntArray,
    time: IntArray,
    e: int,
    target: int,
    ahead: IntArray,
    best: IntArray,
    pick: IntArray,
) -> None:
    """First layer of the longest stage of each width, and its choice, shape (W, U, U, L + 1).

    ``ahead``, of shape (K, W, U), are the layers at which the stages before may end.
    """
    flights, options, width = memory.shape
    hops, widths = t.arrive.shape[1], len(p.inner)
    flight = min(e, flights) - 1
    served = np.empty(t.group.max() + 1, dtype=np.int64)  # where a choice before it fits
    best[:] = _NEVER
    wanted = np.zeros((widths, hops, width), dtype=np.bool_)  # by this stage's width
    for x in range(widths):
        for down in range(hops):
            if (down == 0) == (e == 1):
                other, end = _state(down, x, widths)
                for k in range(len(ahead)):
                    if ahead[k, other, end] < width:
                        wanted[x, down, ahead[k, other, end]] = True
    for down in range(hops):
        for j in range(1, width):
            served[:] = _NEVER
            for o in range(options):
                x = t.width[o]
                if not wanted[x, down, j]:
                    continue
                taken, fits = served[t.group[o]], memory[flight, o, j]
                for up in range(hops if fits < min(j, taken) else 0):
                    i = max(fits, time[o, up, down, j], max(1, target - e) if up > 0 else 0)
                    if i < min(j, taken) and i < best[x, up, down, j]:
                        best[x, up, down, j] = i
                        pick[x, up, down, j] = o
                served[t.group[o]] = min(taken, fits)


@compiled
def _reach(
    t: Tables,
    p: Places,
    memory: IntArray,
    time: IntArray,
    layer: IntArray,
    came: IntArray,
    chosen: IntArray,
    target: int,
    most: int,
) -> tuple[int, int, int, int]:
    """Least number of stages that hold all layers; its last place, class and choice.

    ``layer[e, k, x, u]`` is ``F`` where the consumer has the width ``x`` and meets its producer at
    the end ``u``; ``came``, ``chosen`` say from which place, class and choice. With a ``target``
    above 0 just so many stages, and a layer is left to each that is to come.
    """
    width, hops = memory.shape[2], t.arrive.shape[1]
    widths, places = p.ends.shape
    stages = target if target else most
    best = np.empty((widths, hops, hops, width), dtype=np.int64)
    pick = np.empty((widths, hops, hops, width), dtype=np.int64)
    layer[0] = _NEVER
    layer[0, : 1 if p.whole else places, 0, 0] = width - 1
    for e in range(1, stages + 1):
        _best(t, p, memory, time, e, target, layer[e - 1], best, pick)
        layer[e] = _NEVER
        for x in range(widths):
            for down in range(hops):
                if (down == 0) != (e == 1):
                    continue
                other, end = _state(down, x, widths)
                for k in range(places if e >= target else 0):
                    j, last = layer[e - 1, k, other, end], p.ends[x, k]
                    if j == _NEVER or last < 0 or (p.whole and last < places):
                        continue
                    if best[x, 0, down, j] == 0:
                        return e, k, other * hops + end, pick[x, 0, down, j]
            for up in range(1, hops):
                _spread(p, x, up, e, layer, best, pick, came, chosen)
    return 0, 0, 0, 0


@compiled
def _state(down: int, x: int, widths: int) -> tuple[int, int]:
    """The consumer's width, and its own end of the hop, by that of a producer of width ``x``."""
    if down == 0:
        return 0, 0
    level, other = (down - 1) // widths, (down - 1) % widths
    return other, 1 + level * widths + x


@compiled
def _spread(
    p: Places,
    x: int,
    up: int,
    e: int,
    layer: IntArray,
    best: IntArray,
    pick: IntArray,
    came: IntArray,
    chosen: IntArray,
) -> None:
    """Stages of width ``x`` that would meet their producers at the end ``up``, at any place."""
    (widths, places), hops = p.ends.shape, layer.shape[3]
    met, inside = (up - 1) // widths, max(p.inner[x], p.inner[(up - 1) % widths])
    if inside > met:
        return
    value = np.full(places, _NEVER)  # of what ends at a place
    start, option = np.zeros(places, dtype=np.int64), np.zeros(places, dtype=np.int64)
    for down in range(hops):
        if (down == 0) != (e == 1):
            continue
        other, end = _state(down, x, widths)
        for k in range(places):
            j, last = layer[e - 1, k, other, end], p.ends[x, k]
            if j == _NEVER or j == 0 or last < 0 or last >= places:
                continue
            if best[x, up, down, j] < value[last]:
                value[last] = best[x, up, down, j]
                start[last] = (k * widths + other) * hops + end
                option[last] = pick[x, up, down, j]
    near, near_from, near_pick = _NEVER, 0, 0  # producers at this place would be at a nearer level
    far, far_from, far_pick = _NEVER, 0, 0
    for k in range(1, places):
        if p.whole:
            near, far = _NEVER, _NEVER
        if value[k] < near:
            near, near_from, near_pick = value[k], start[k], option[k]
        if p.between[k] > met:
            near, far = _NEVER, _NEVER
        elif max(p.between[k], inside) == met:
            if near < far:
                far, far_from, far_pick = near, near_from, near_pick
            near = _NEVER
        if far < layer[e, k, x, up]:
            layer[e, k, x, up], came[e, k, x, up], chosen[e, k, x, up] = far, far_from, far_pick


@compiled
def _trace(
    t: Tables,
    end: tuple[int, int, int, int],
    layer: IntArray,
    came: IntArray,
    chosen: IntArray,
    plan: IntArray,
) -> tuple[float, float]:
    """Write a plan down, first stage first; its bottleneck and its slowest synchronisation."""
    stages, k, state, o = end
    widths, hops = layer.shape[2], layer.shape[3]
    worst, late = 0.0, 0.0
    i, up = 0, 0
    for s in range(stages):
        e = stages - s
        other, meets = state // hops, state % hops
        down = 0  # the same hop from this end
        if e > 1:
            down = 1 + (meets - 1) // widths * widths + other
        j = layer[e - 1, k, other, meets]
        load, sync = _load(t, o, i, j, up, down)
        worst, late = max(worst, load), max(late, sync)
        plan[0, s], plan[0, s + 1], plan[1, s], plan[2, s] = i, j, o, k
        if e > 1:
            o, before = chosen[e - 1, k, other, meets], came[e - 1, k, other, meets]
            i, up = j, meets
            k, state = before // (widths * hops), before % (widths * hops)
    return worst, late


@compiled
def _attempt(
    t: Tables,
    p: Places,
    memory: IntArray,
    caps: tuple[float, float],
    target: int,
    most: int,
    time: IntArray,
    layer: IntArray,
    came: IntArray,
    chosen: IntArray,
    plan: IntArray,
) -> tuple[int, float, float]:
    """Fewest stages under caps on load and synchronisation, 0 if none; both as they come out."""
    _longest_in_time(t, p, caps[0], caps[1], time)
    end = _reach(t, p, memory, time, layer, came, chosen, target, most)
    if end[0] == 0:
        return 0, np.inf, np.inf
    worst, late = _trace(t, end, layer, came, chosen, plan)
    return end[0], worst, late


def best_suffixes(
    t: Tables,
    p: Places,
    memory: IntArray,
    allowed: BoolArray,
    m: int,
    total: float,
    heaviest: float,
    sync_bound: float,
    cutoff: float,
    late: Callable[[], bool],
) -> tuple[float, IntArray, bool]:
    """Least ``(m + S - 1) max t + max e`` of two stages or more that is under ``cutoff``.

    Parameters
    ----------
    memory : (flights, O, L + 1)
        Of `longest_in_memory`.
    allowed : (stages + 1,)
        Numbers of stages that a plan may have.
    total, heaviest, sync_bound : float
        Lower bounds of the loads added up, of the largest of them and of ``max e``.
    late : callable
        Whether to stop here.

    Returns
    -------
    seconds : float
        Infinity if there is none.
    plan : int array (3, S + 1)
        Cuts; choices and places, stage by stage.
    done : bool
        Whether it was not stopped.
    """
    places, most = p.ends.shape[1], len(allowed) - 1
    pinned = not allowed[2:].all()
    shape = (most + 1, places, len(p.ends), t.arrive.shape[1])
    layer, came, chosen = (np.empty(shape, dtype=np.int64) for _ in range(3))
    time = np.zeros(
        (len(t.strategy), t.arrive.shape[1], t.arrive.shape[1], memory.shape[2]), dtype=np.int64
    )
    trial, plan = np.zeros((3, most + 1), np.int64), np.zeros((3, 0), np.int64)
    found, sync_cap = cutoff, np.inf
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
            if late():
                return (found if plan.size else np.inf), plan, False
            low = max(low, bound) if high < np.inf else bound
            cap = limit
            if high < np.inf and limit > low * (1.0 + 1e-3):
                cap = 0.5 * (low + limit)
            target = stages if pinned else 0
            number, worst, sync = _attempt(
                t, p, memory, (cap, sync_cap), target, most, time, layer, came, chosen, trial
            )
            value = (m + number - 1) * worst
            if value + sync < found:
                found, plan = value + sync, trial[:, : number + 1].copy()
            if number == 0 or number > stages:
                if cap < limit:
                    low = cap
                elif pinned:
                    stages, high = stages + 1, np.inf
                elif number == 0:
                    break
                else:
                    stages, high = number, np.inf
                continue
            high, top = worst, float(np.nextafter(min(worst, cap), 0.0))
            if value < least:
                least, least_sync = value, sync
        if least == np.inf or least + sync_bound >= found or least_sync <= 0.0:
            break
        sync_cap = float(np.nextafter(min(least_sync, sync_cap), 0.0))
    return (found if plan.size else np.inf), plan, True
