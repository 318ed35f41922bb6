"""The dynamic program over cut points for one outer point, exactly.

For fixed degrees the time of a plan is ``sum(t_s) + (m - 1) * max(t_s) + max(e_s)`` with
``t_s`` the load and ``e_s`` the synchronisation of stage ``s``. Minimising the bottleneck alone
is not enough, and the three parts pull apart, so the program is the epsilon-constraint method:
under caps ``t_s <= T`` and ``e_s <= E`` the recurrence

    best[s][i] = min over j > i, recomputation c that fits: t(s, i, j, c) + best[s + 1][j]

finds the smallest sum; the caps then step down, strictly below the plan just found, as long as
a plan under them could still beat the best one. Every Pareto-optimal triple that matters is
visited, so the result is the exact minimum (``docs/method.md``, "The program").

Compiled with numba: a point of 82 layers and 16 stages takes well under a millisecond where
interpreted loops take seconds. The functions read plain arrays and release the GIL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

from nest_core.costs.stages import StageCosts
from nest_core.network.wires import IntArray

__all__ = ["covers", "solve_point"]

_F = TypeVar("_F", bound=Callable[..., Any])


def _compiled(function: _F) -> _F:
    """numba.njit with its result typed as the function itself."""
    return cast(_F, numba.njit(cache=True, nogil=True)(function))


def solve_point(
    costs: StageCosts, allowed: IntArray, sum_bound: float, sync_bound: float, cutoff: float
) -> tuple[float, IntArray, IntArray]:
    """The best cuts and recomputation of one point, if any takes at most ``cutoff`` seconds.

    Parameters
    ----------
    costs : StageCosts
        Of a point with one chunk per stage.
    allowed : (choices,)
        Rows of `RECOMPUTE` that may be used.
    sum_bound, sync_bound : float
        Lower bounds of ``sum(t_s)`` and ``max(e_s)``, which shorten the search.

    Returns
    -------
    seconds : float
        Infinity if no plan is that fast.
    cuts : (pp + 1,), choices : (pp,)
    """
    pp = costs.time.shape[0]
    cuts = np.zeros(pp + 1, dtype=np.int64)
    choices = np.zeros(pp, dtype=np.int64)
    seconds = _solve(
        costs.time, costs.arrive, costs.retire, costs.transfer_saved, costs.sync, costs.sync_base,
        costs.static, costs.kept, costs.peak, costs.step, costs.in_flight, costs.limit,
        costs.micro_batches, allowed, sum_bound, sync_bound, cutoff, cuts, choices,
    )  # fmt: skip
    return float(seconds), cuts, choices


@_compiled
def _solve(
    time: Any, arrive: Any, retire: Any, saved: Any, sync: Any, sync_base: Any, static: Any,
    kept: Any, peak: Any, stepping: Any, in_flight: Any, limit: Any, m: Any, allowed: Any,
    sum_bound: Any, sync_bound: Any, cutoff: Any, cuts: Any, choices: Any,
) -> Any:  # fmt: skip
    pp = time.shape[0]
    layers = static.shape[0] - 1
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
                in_flight, limit, allowed, load_cap, sync_cap, best, step, pick,
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
                within = time[s, c, j] - time[s, c, i]
                hops = arrive[s, i] + retire[s, j]
                load = within + hops - saved * min(hops, within)
                worst_load = max(worst_load, load)
                worst_sync = max(worst_sync, sync[s, j] - sync[s, i] + sync_base[s])
            value = total + (m - 1) * worst_load
            if value < least:
                least = value
                least_sync = worst_sync
            if value + worst_sync < found and value + worst_sync <= cutoff:
                found = value + worst_sync
                for s in range(pp):
                    cuts[s + 1] = trial_cuts[s + 1]
                    choices[s] = pick[s, trial_cuts[s]]
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
    kept: Any, peak: Any, stepping: Any, in_flight: Any, limit: Any, allowed: Any, load_cap: Any,
    sync_cap: Any, best: Any, step: Any, pick: Any,
) -> Any:  # fmt: skip
    pp = time.shape[0]
    layers = static.shape[0] - 1
    slack = limit * (1.0 + 1e-12)
    best[:, :] = np.inf
    best[pp, layers] = 0.0
    for s in range(pp - 1, -1, -1):
        start_last = 0 if s == 0 else layers - (pp - s)
        for i in range(s, start_last + 1):
            high = np.zeros(3)
            alive = np.ones(3, dtype=np.bool_)
            for j in range(i + 1, layers - (pp - s - 1) + 1):
                some = False
                if sync[s, j] - sync[s, i] + sync_base[s] > sync_cap:
                    break
                for n in range(allowed.shape[0]):
                    c = allowed[n]
                    if not alive[c]:
                        continue
                    high[c] = max(high[c], peak[c, j - 1])
                    passes = in_flight[s] * (kept[c, j] - kept[c, i]) + high[c]
                    used = static[j] - static[i] + max(passes, stepping[j] - stepping[i])
                    within = time[s, c, j] - time[s, c, i]
                    begun = within + arrive[s, i] - saved * min(arrive[s, i], within)
                    if used > slack or begun > load_cap:
                        alive[c] = False  # both only grow with j
                        continue
                    some = True
                    hops = arrive[s, i] + retire[s, j]
                    load = within + hops - saved * min(hops, within)
                    if load <= load_cap and load + best[s + 1, j] < best[s, i]:
                        best[s, i] = load + best[s + 1, j]
                        step[s, i] = j
                        pick[s, i] = c
                if not some:
                    break
    return best[0, 0]


@_compiled
def covers(
    time: Any, hop: Any, saved: Any, parameters: Any, tied: Any, kept: Any, working: Any,
    allowed: Any, table: Any, pp: Any, m: Any, per_parameter: Any, stepping: Any, whole: Any,
    fetched: Any, load_cap: Any, limit: Any, alive: Any,
) -> None:  # fmt: skip
    """Screen points: can stages that fit, each at most ``load_cap`` seconds, cover the chain?

    A relaxation of every point (best-case communication) with stage costs that only grow with
    the stage, so taking as many layers as fit, from the last stage backwards, and leaving one for
    each stage before, decides it. Memory is not relaxed: without a load cap the answer is exact.
    Writes ``alive[point]``; points that are already False are skipped.

    Parameters
    ----------
    time : (tables, 3, L + 1), hop : (tables,), saved : float
        Prefix sums at best-case communication; cost of one pipeline transfer, and what is saved
        per second of it that hides.
    parameters : (tables, L + 1), tied : (tables,)
        Elements without the last layer's tied copy, and the copy.
    kept : (tables, 3, L + 1), working : (tables, 3, L)
    table, pp, m : (points,)
    per_parameter, stepping, whole, fetched, load_cap : (points,)
        Bytes per parameter of what a stage holds, of what the optimizer step adds, of the layer
        that runs and of the one before it; seconds.
    """
    layers = parameters.shape[1] - 1
    slack = limit * (1.0 + 1e-12)
    for p in range(table.shape[0]):
        if not alive[p]:
            continue
        t = table[p]
        j = layers
        s = pp[p] - 1
        while j > 0 and s >= 0:
            in_flight = min(m[p], pp[p] - s)
            copy = tied[t] if j == layers and pp[p] > 1 else 0.0
            transfer = hop[t] * ((1 if s > 0 else 0) + (1 if s < pp[p] - 1 else 0))
            first = j
            for n in range(allowed.shape[0]):
                c = allowed[n]
                i = j
                high = 0.0
                while i > s:
                    size = parameters[t, i] - parameters[t, i - 1]
                    if i == layers:
                        size += tied[t]
                    before = parameters[t, i - 1] - parameters[t, i - 2] if i > 1 else 0.0
                    high = max(high, working[t, c, i - 1] + whole[p] * size + fetched[p] * before)
                    held = parameters[t, j] - parameters[t, i - 1] + copy
                    passes = in_flight * (kept[t, c, j] - kept[t, c, i - 1]) + high
                    used = held * per_parameter[p] + max(passes, held * stepping[p])
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
