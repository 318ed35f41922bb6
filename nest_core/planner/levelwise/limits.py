"""The longest stages under limits: of own costs, the limit of memory and caps on times.

A stage holds what fits beside the ``min(m, e)`` micro-batches of a stage with ``e - 1`` stages
behind it (1F1B).

Caps that step down until no plan can win.

Caps step strictly below the bottleneck found, so the least ``(m + S - 1) max t + max e`` is exact
where a longer suffix is never worse: where the tensors sent between layers are equally large.
"""

from collections import namedtuple
from collections.abc import Callable

import numpy as np

from nest_core.costs.methods import KEPT, PEAK, grow
from nest_core.documents.compiled import compiled
from nest_core.network import BoolArray, IntArray
from nest_core.planner.levelwise.recurrence import (
    NEVER,
    Places,
    Suffixes,
    begin,
    ends_wanted,
    extend,
    suffixes,
    trace,
)
from nest_core.planner.program import CostTables, inside, stage_load

__all__ = [
    "Attempt",
    "attempts",
    "least_objective",
    "longest_by_memory",
]

Attempt = Callable[[float, float, int], tuple[IntArray, float, float]]
"""A plan of the fewest stages under a cap on loads and one on synchronisation, or of so many as the
last argument says above 0; its largest load and its slowest synchronisation. The plan is as that of
`nest_core.planner.levelwise.recurrence.trace`, without stages where there is none."""


def least_objective(
    attempt: Attempt,
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
    plan : int array (5, S + 1)
        As `Attempt` tells it.
    done : bool
        Whether it was not stopped.
    """
    most, pinned = len(allowed) - 1, not allowed[1:].all()
    plan = np.zeros((5, 0), dtype=np.int64)
    best, sync_cap = cutoff, np.inf
    while True:
        least, least_sync, top, stages = np.inf, np.inf, np.inf, 2
        while stages <= most:
            if not allowed[stages]:
                stages += 1
                continue
            limit = min(top, (best - sync_bound) / (m + stages - 1))
            bound = max(total / stages, heaviest) * (1.0 - 1e-12)
            if limit < bound:
                if heaviest > limit or heaviest * stages > total:
                    break
                stages += 1
                continue
            if late():
                return (best if plan.size else np.inf), plan, False
            # Each attempt that succeeds names the bottleneck that the next must beat, which took
            # fewer attempts than halving what lies between it and its bound.
            trial, worst, sync = attempt(limit, sync_cap, stages if pinned else 0)
            number = trial.shape[1] - 1
            value = (m + number - 1) * worst
            if value + sync < best:
                best, plan = value + sync, trial
            if number == 0 or number > stages:
                if number == 0 and not pinned:
                    break
                stages = stages + 1 if pinned else number
                continue
            top = float(np.nextafter(min(worst, limit), 0.0))
            if value < least:
                least, least_sync = value, sync
        if least == np.inf or least + sync_bound >= best or least_sync <= 0.0:
            break
        sync_cap = float(np.nextafter(min(least_sync, sync_cap), 0.0))
    return (best if plan.size else np.inf), plan, True


Longest = namedtuple("Longest", "memory width arrive")
"""What holds of stages under whatever caps.

Attributes
----------
memory : (flights, O, L + 1)
    First layer of the longest stage that ends before a layer and fits into memory beside the
    micro-batches of so many stages from it to the last, the last entry also of more; that layer
    where there is none.
width : (O,)
    Which of the widths, ascending.
arrive : (strategies, U)
    Seconds to receive over an end, wherever a stage starts.
"""


def longest_by_memory(t: CostTables, flights: int) -> IntArray:
    """Return memory as in `Longest`."""
    memory = _longest_in_memory(t, flights)
    for o in np.flatnonzero((t.chunks > 0) | (t.heads[:, 0] > 0)).tolist():
        _longest_by_method(t, o, memory)
    return memory


@compiled
def _longest_in_memory(t: CostTables, flights: int) -> IntArray:
    """Return the first layer of the longest stage that fits, shape (flights, O, L + 1).

    It is ``J`` where none fits.
    """
    options, layers = t.peak.shape
    slack = t.limit * (1.0 + 1e-12)
    first = np.empty((flights, options, layers + 1), dtype=np.int64)
    for o in range(options):
        g = t.strategy[o]
        for flight in range(flights):
            first[flight, o, 0] = 0
            for j in range(1, layers + 1):
                i, high = j, 0.0
                while i > 0:
                    high = max(high, t.peak[o, i - 1])
                    passes = (flight + 1) * (t.kept[o, j] - t.kept[o, i - 1]) + high
                    stepping = t.step[g, j] - t.step[g, i - 1]
                    if t.static[g, j] - t.static[g, i - 1] + max(passes, stepping) > slack[g]:
                        break
                    i -= 1
                first[flight, o, j] = i
    return first


@compiled
def _longest_by_method(t: CostTables, o: int, memory: IntArray) -> None:
    """Write the same of an option with a method of full recomputation into its part of it."""
    first = memory[:, o]
    g = t.strategy[o]
    static, step, heads = t.static[g], t.step[g], t.heads[o]
    flights, layers = len(first), len(static) - 1
    slack = t.limit[g] * (1.0 + 1e-12)
    ends = np.empty((flights, layers + 1), dtype=np.int64)  # how far stages from a layer reach
    for i in range(layers):
        state = np.zeros(4)
        ends[:, i] = i
        for j in range(i + 1, layers + 1):
            grow(state, j - 1, t.ends_kept[g], t.ends_peak[g], t.again, heads[i], t.chunks[o])
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
def _load(t: CostTables, o: int, i: int, j: int, up: int, down: int) -> tuple[float, float]:
    """Return the load of a stage, and its synchronisation."""
    # All positions are alike here, whose links are priced on levels: the first stands for them.
    load, _, hidden = stage_load(t, 0, o, i, j, up, down)
    g = t.strategy[o]
    # Read before the branch: see `inside` of the exact program.
    exposed, tied = t.sync[g, 0, j] - t.sync[g, 0, i], t.sync_base[g, 0]
    if up == 0 or down == 0:  # an end of the pipeline, which holds tied weights
        exposed += tied
    return load, exposed - hidden


@compiled
def _exists(t: CostTables, p: Places, x: int, g: int, u: int) -> bool:
    """Whether a stage of width ``x`` and strategy ``g`` can have such an end of a hop."""
    widths, seconds = len(p.inner), t.arrive[g, u, 1]
    if u == 0:
        return True
    inside = max(p.inner[x], p.inner[(u - 1) % widths])
    return bool(inside <= (u - 1) // widths and seconds < np.inf)


@compiled
def _first(
    t: CostTables,
    o: int,
    j: int,
    ends: tuple[int, int],
    least_arrive: float,
    caps: tuple[float, float],
    span: tuple[int, int],
) -> int:
    """Return the first layer of the longest stage before ``j`` that is under both caps.

    Parameters
    ----------
    ends : tuple of int
        Towards the producer and the consumer.
    least_arrive : float
        Seconds to receive over the first of them, wherever the stage starts.
    span : tuple of int
        The layers among which it is, the latter excluded; that one is returned where none is.
    """
    low, high = span
    up, down = ends
    cap, sync_cap = caps
    g, saved, once_saved = t.strategy[o], t.transfer_saved, t.once_saved
    hops = least_arrive + t.retire[g, down, j]
    tied = t.sync_base[g, 0] if up == 0 or down == 0 else 0.0
    sync_j, once_j = t.sync[g, 0, j], t.once[g, 0, j]
    # What only grows with the stage is under the caps from some layer on: the load with the least
    # to receive, and the synchronisation that may not hide. A stage that starts later may do
    # better than one from there, as it may receive less and hide less.
    end, last = high, high - 1
    while low < end:
        i = last if end == high else (low + end) // 2
        within, idle = inside(t, 0, o, i, j)
        load = within + hops - saved * min(hops, idle)
        sync = sync_j - t.sync[g, 0, i] + tied - once_saved * (once_j - t.once[g, 0, i])
        if load <= cap and sync <= sync_cap:
            end = i
        else:
            low = i + 1
    for i in range(low, high):
        load, sync = _load(t, o, i, j, up, down)
        if load <= cap and sync <= sync_cap:
            return i
    return high


@compiled
def _best(
    t: CostTables,
    p: Places,
    longest: Longest,
    caps: tuple[float, float],
    e: int,
    target: int,
    wanted: BoolArray,
    best: IntArray,
    pick: IntArray,
) -> None:
    """First layer of the longest stage that is wanted, with ``e - 1`` behind it, and its choice.

    Parameters
    ----------
    wanted, best, pick : (W, U, L + 1), (W, U, U, L + 1)
        As of `nest_core.planner.levelwise.recurrence.extend`.
    """
    memory, width, least = longest.memory, longest.width, longest.arrive
    (widths, hops, layers), flights = wanted.shape, len(memory)
    flight, floor = min(e, flights) - 1, max(1, target - e)
    served = np.empty(t.group.max() + 1, dtype=np.int64)  # where a choice before it fits
    for x in range(widths):
        for down in range(hops):
            for j in range(1, layers):
                if not wanted[x, down, j]:
                    continue
                best[x, :, down, j] = NEVER
                served[:] = NEVER
                for o in range(len(width)):
                    g, group = t.strategy[o], t.group[o]
                    if width[o] != x:
                        continue
                    fits, limit = memory[flight, o, j], min(j, served[group])
                    served[group] = min(served[group], fits)
                    if fits >= limit or not _exists(t, p, x, g, down):
                        continue
                    for up in range(hops):
                        low = max(fits, floor) if up > 0 else fits
                        # Without a producer it starts at the first layer or is of no use.
                        high = min(limit, best[x, up, down, j], layers if up > 0 else 1)
                        if low < high and _exists(t, p, x, g, up):
                            i = _first(t, o, j, (up, down), least[g, up], caps, (low, high))
                            if i < high:
                                best[x, up, down, j], pick[x, up, down, j] = i, o


@compiled
def _attempt(
    t: CostTables,
    p: Places,
    longest: Longest,
    table: Suffixes,
    caps: tuple[float, float],
    target: int,
    plan: IntArray,
) -> tuple[int, float, float]:
    """Return number of stages of a plan under caps on load and synchronisation; both as they come
    out.
    """
    hops, layers = t.arrive.shape[1:]
    widths = len(p.inner)
    wanted = np.empty((widths, hops, layers), dtype=np.bool_)
    best = np.empty((widths, hops, hops, layers), dtype=np.int64)
    pick = np.empty((widths, hops, hops, layers), dtype=np.int64)
    end = begin(p, table, layers - 1)
    stages = target if target else len(table.layer) - 1
    for e in range(1, stages + 1):
        if not ends_wanted(table, e, wanted):
            break
        _best(t, p, longest, caps, e, target, wanted, best, pick)
        end = extend(p, table, e, target, best, pick)
        if end[0] > 0:
            break
    worst, late = (0.0, 0.0) if end[0] > 0 else (np.inf, np.inf)
    trace(table, end, plan)
    for s in range(end[0]):
        load, sync = _load(t, plan[1, s], plan[0, s], plan[0, s + 1], plan[3, s], plan[4, s])
        worst, late = max(worst, load), max(late, sync)
    return end[0], worst, late


def attempts(
    t: CostTables, p: Places, width: IntArray, memory: IntArray, max_stages: int
) -> Attempt:
    """Return attempts at plans of up to ``max_stages`` stages; ``width``, ``memory`` as in
    `Longest`.
    """
    least_arrive = t.arrive[:, :, 1:-1].min(axis=2, initial=np.inf)
    least_arrive[:, 0] = 0.0
    longest = Longest(memory, width, least_arrive)
    table = suffixes(max_stages, p, t.arrive.shape[1])
    trial = np.zeros((5, max_stages + 1), dtype=np.int64)

    def attempt(cap: float, sync_cap: float, target: int) -> tuple[IntArray, float, float]:
        stages, worst, late = _attempt(t, p, longest, table, (cap, sync_cap), target, trial)
        return trial[:, : stages + 1].copy(), worst, late

    return attempt
