"""The dynamic program over cut points for one outer point, exactly.

For fixed degrees the time of a plan is ``sum(t_s + h_s - w_s) + max((m - 1) t_s + w_s) +
max(e_s)`` with ``t_s`` the load and ``e_s`` the synchronisation of stage ``s``; ``w_s`` is by how
much gradients of weights that wait shorten the wait of the others, 0 but for zero-bubble schedules,
and ``h_s`` what hides of its transfers once the pipeline is full. Minimising the
bottleneck alone is not enough, and the three parts pull apart, so the program is the
epsilon-constraint method: under caps ``(m - 1) t_s + w_s <= T`` and ``e_s <= E`` the
recurrence

    best[s][i] = min over j > i, choice c that fits: (t + h - w)(s, i, j, c) + best[s + 1][j]

finds the smallest sum, a choice being a recomputation and, where stages may differ, a strategy.
The caps then step down, strictly below the plan just found, as long as a plan under them could
still beat the best one. Every Pareto-optimal triple that matters is visited, so the result is the
exact minimum (``docs/method.md``, "The program").

Compiled with numba: a point of 82 layers and 16 stages takes well under a millisecond where
interpreted loops take seconds. The functions read plain arrays and release the GIL.
"""

from collections import namedtuple
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from nest_core.costs import StageCosts
from nest_core.costs.methods import KEPT, PEAK, grow
from nest_core.documents.compiled import compiled
from nest_core.network import FloatArray, IntArray

__all__ = ["Choices", "CostTables", "cost_tables", "inside", "solve_point", "stage_load"]


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """What a stage may choose: ``K`` pairs of a strategy and a recomputation.

    Attributes
    ----------
    costs : tuple of StageCosts
        Of the point, strategy by strategy.
    strategy, recompute : (K,)
        Index into ``costs``; row of the recomputation.
    group : (K,)
        Of choices in one group only the first that fits may be taken; without such a rule each
        choice is a group of its own.
    """

    costs: tuple[StageCosts, ...]
    strategy: IntArray
    recompute: IntArray
    group: IntArray

    @classmethod
    def of(cls, costs: Sequence[StageCosts], allowed: IntArray, groups: Sequence[int] = ()) -> Self:
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
    def every(self) -> list[tuple[int, int]]:
        """Strategy and recomputation of each."""
        return list(zip(self.strategy.tolist(), self.recompute.tolist(), strict=True))

    def placed(self, name: str) -> FloatArray:
        """``time`` or ``free`` of every choice at every position, shape (pp, K, L + 1)."""
        stacked = np.stack([getattr(entry, name) for entry in self.costs])
        return np.ascontiguousarray(stacked[self.strategy, :, self.recompute].swapaxes(0, 1))

    def memory(self, name: str) -> FloatArray:
        """``kept`` or ``peak`` of every choice, shape (K, ...)."""
        stacked = np.stack([getattr(entry, name) for entry in self.costs])
        return np.ascontiguousarray(stacked[self.strategy, self.recompute])

    def stacked(self, name: str) -> FloatArray:
        """Return a field of every strategy, shape (strategies, ...)."""
        return np.stack([getattr(entry, name) for entry in self.costs])

    def ends(self, name: str) -> FloatArray:
        """Rows of nothing recomputed and of full, of every strategy, (strategies, 2, ...)."""
        return np.stack([getattr(entry, name)[[0, -1]] for entry in self.costs])

    def full(self, name: str) -> FloatArray:
        """``time`` or ``free`` of full of every strategy, shape (pp, strategies, L + 1)."""
        return np.stack([getattr(entry, name)[:, -1] for entry in self.costs], axis=1)


def solve_point(
    choices: Choices, sum_bound: float, sync_bound: float, cutoff: float
) -> tuple[float, IntArray, IntArray]:
    """Return the best cuts and choices of one point, if any takes at most ``cutoff`` seconds.

    Parameters
    ----------
    choices : Choices
        Of a point without virtual stages.
    sum_bound, sync_bound : float
        Lower bounds of ``sum(t_s + h_s - w_s)`` and ``max(e_s)``, which shorten the search.

    Returns
    -------
    seconds : float
        Infinity if no plan is that fast.
    cuts : (pp + 1,), chosen : (pp,)
        ``chosen`` numbers the choices.
    """
    tables = cost_tables(choices)
    pp = tables.time.shape[0]
    cuts = np.zeros(pp + 1, dtype=np.int64)
    chosen = np.zeros(pp, dtype=np.int64)
    m = choices.costs[0].micro_batches
    return float(_solve(tables, m, sum_bound, sync_bound, cutoff, cuts, chosen)), cuts, chosen


CostTables = namedtuple(
    "CostTables",
    "time free ahead spared arrive retire opening turning transfer_saved sync sync_base once "
    "renewed once_saved static kept peak step in_flight whole_time whole_free ends_kept ends_peak "
    "heads chunks again deferred limit strategy group",
)
"""What compiled programs read: fields of `StageCosts`, of every choice or strategy.

``time``, ``free`` (pp, K, L + 1), ``kept``, ``peak`` and ``heads`` (K, ...), ``chunks``,
``strategy`` and ``group`` (K,) are of choices; ``transfer_saved``, ``once_saved``, ``in_flight``,
``again`` and ``deferred`` are the same for all; all else is of strategies. ``whole_time``,
``whole_free``, ``ends_kept``, ``ends_peak``: see `Choices.full` and `Choices.ends`.
"""


def cost_tables(choices: Choices) -> CostTables:
    """Return the arrays of all choices, for compiled programs."""
    first = choices.costs[0]
    common = ("transfer_saved", "once_saved", "in_flight", "again", "deferred")
    arrays: dict[str, Any] = {
        **{name: getattr(first, name) for name in common},
        **{name: choices.placed(name) for name in ("time", "free")},
        **{name: choices.memory(name) for name in ("kept", "peak")},
        **{f"whole_{name}": choices.full(name) for name in ("time", "free")},
        **{f"ends_{name}": choices.ends(name) for name in ("kept", "peak")},
        **{name: getattr(first, name)[choices.recompute] for name in ("heads", "chunks")},
        "strategy": choices.strategy,
        "group": choices.group,
    }
    others = (name for name in CostTables._fields if name not in arrays)
    return CostTables(**arrays, **{name: choices.stacked(name) for name in others})


@compiled
def inside(t: CostTables, s: int, c: int, i: int, j: int) -> tuple[float, float]:
    """Return the seconds of a stage without transfers, and those in which nothing is sent."""
    # The first layers, if any, are run again as under full recomputation. No branch says so:
    # numba counts references to all arrays of a tuple around a branch that is the last to read it,
    # which makes the level-wise program 50 times slower.
    head, g = min(j, t.heads[c, i]), t.strategy[c]
    within = t.time[s, c, j] - t.time[s, c, head]
    idle = t.free[s, c, j] - t.free[s, c, head]
    within += t.whole_time[s, g, head] - t.whole_time[s, g, i]
    idle += t.whole_free[s, g, head] - t.whole_free[s, g, i]
    return within, idle


@compiled
def stage_load(
    t: CostTables, s: int, c: int, i: int, j: int, up: int, down: int
) -> tuple[float, float, float]:
    """Return a stage's load, the transfers that hide in it, and how much of its synchronisation
    hides behind its last pass and its first.

    ``up`` and ``down`` number the hops that it receives and sends over.
    """
    g = t.strategy[c]
    within, idle = inside(t, s, c, i, j)
    within += t.opening[g, s, i] + t.turning[g, s, j]
    hops = t.arrive[g, up, i] + t.retire[g, down, j]
    hidden = t.transfer_saved * min(hops, idle)
    ahead = t.ahead[g, s, j] - t.ahead[g, s, i]
    # The first layer's gradients come last, and its weights are waited for first.
    renewed = t.renewed[g, s, j] - t.renewed[g, s, i + 1]
    reduced = t.once[g, s, j] - t.once[g, s, i + 1] - renewed
    saved = min(reduced, max(0.0, idle - hidden - ahead)) + min(renewed, ahead)
    return within + hops - hidden, hidden, t.once_saved * saved


@compiled
def _solve(
    t: CostTables,
    m: int,
    sum_bound: float,
    sync_bound: float,
    cutoff: float,
    cuts: IntArray,
    chosen: IntArray,
) -> float:
    pp = t.time.shape[0]
    layers = t.static.shape[1] - 1
    best = np.empty((pp + 1, layers + 1))
    step = np.zeros((pp, layers + 1), dtype=np.int64)
    pick = np.zeros((pp, layers + 1), dtype=np.int64)
    best_s, sync_cap = np.inf, np.inf
    trial_cuts = np.zeros(pp + 1, dtype=np.int64)
    while True:
        # Smallest g = sum(t + h - w) + max((m - 1) t + w) under the cap on e.
        # Every plan synchronises for at least `sync_bound`, so the rest of the time is all that g
        # may take to be an improvement.
        room = min(best_s, cutoff) - sync_bound
        least, least_sync = np.inf, np.inf
        load_cap = np.inf
        if m > 1 and room < np.inf:
            # With m = 1 the largest load has no term of its own, and no cap on it can help.
            load_cap = (room - sum_bound) * (1.0 + 1e-12)
        while True:
            total = _smallest_sum(t, m, load_cap, sync_cap, best, step, pick)
            if total == np.inf:
                break
            trial_cuts[0] = 0
            worst_load, worst_sync = 0.0, 0.0
            for s in range(pp):
                i = trial_cuts[s]
                j = step[s, i]
                trial_cuts[s + 1] = j
                c = pick[s, i]
                g = t.strategy[c]
                load, _, hidden = stage_load(t, s, c, i, j, s, s)
                worst_load = max(worst_load, (m - 1) * load + (t.spared[g, j] - t.spared[g, i]))
                exposed = t.sync[g, s, j] - t.sync[g, s, i] + t.sync_base[g, s]
                worst_sync = max(worst_sync, exposed - hidden)
            value = total + worst_load
            if value < least:
                least, least_sync = value, worst_sync
            if value + worst_sync < best_s and value + worst_sync <= cutoff:
                best_s = value + worst_sync
                for s in range(pp):
                    cuts[s + 1] = trial_cuts[s + 1]
                    chosen[s] = pick[s, trial_cuts[s]]
            if worst_load == 0.0:
                break
            # Sums only grow from here, so a smaller value needs a smaller bottleneck.
            load_cap = min(np.nextafter(worst_load, 0.0), least - total)
        if least == np.inf or least + sync_bound >= min(best_s, cutoff):
            return best_s
        # Plans with e at least this large cannot beat least + least_sync.
        sync_cap = np.nextafter(least_sync, 0.0)


@compiled
def _smallest_sum(
    t: CostTables,
    m: int,
    load_cap: float,
    sync_cap: float,
    best: FloatArray,
    step: IntArray,
    pick: IntArray,
) -> float:
    pp, options = t.time.shape[0], t.time.shape[1]
    layers = t.static.shape[1] - 1
    slack = t.limit * (1.0 + 1e-12)
    best[:, :] = np.inf
    best[pp, layers] = 0.0
    high = np.zeros(options)
    by_method = np.zeros((options, 4))
    # These are followed layer by layer: their memory depends on where the stage begins.
    followed = np.zeros(options, dtype=np.bool_)
    fits = np.ones(options, dtype=np.bool_)
    quick = np.ones(options, dtype=np.bool_)
    for s in range(pp - 1, -1, -1):
        start_last = 0 if s == 0 else layers - (pp - s)
        for i in range(s, start_last + 1):
            high[:] = 0.0
            by_method[:, :] = 0.0
            followed[:] = (t.heads[:, i] > i) | (t.chunks > 0)
            fits[:] = True
            quick[:] = True
            for j in range(i + 1, layers - (pp - s - 1) + 1):
                some = False
                served = -1  # the group whose first fitting choice was seen
                for c in range(options):
                    if not fits[c]:
                        continue
                    g = t.strategy[c]
                    high[c] = max(high[c], t.peak[c, j - 1])
                    kept_bytes = t.kept[c, j] - t.kept[c, i]
                    if followed[c]:
                        state, peak = by_method[c], t.ends_peak[g]
                        grow(
                            state, j - 1, t.ends_kept[g], peak, t.again, t.heads[c, i], t.chunks[c]
                        )
                        kept_bytes, high[c] = state[KEPT], state[PEAK]
                    if t.group[c] == served:
                        continue
                    passes = t.in_flight[s] * kept_bytes + high[c]
                    passes += t.deferred[s] * (t.ends_kept[g, 0, j] - t.ends_kept[g, 0, i])
                    static = t.static[g, j] - t.static[g, i]
                    if static + max(passes, t.step[g, j] - t.step[g, i]) > slack[g]:
                        fits[c] = False  # memory only grows with j
                        continue
                    served = t.group[c]
                    within, idle = inside(t, s, c, i, j)
                    begun = (
                        within + t.arrive[g, s, i] - t.transfer_saved * min(t.arrive[g, s, i], idle)
                    )
                    sent = t.once[g, s, j] - t.once[g, s, i]
                    exposed = t.sync[g, s, j] - t.sync[g, s, i] + t.sync_base[g, s]
                    waiting = t.spared[g, j] - t.spared[g, i]
                    slow = (m - 1) * begun + waiting > load_cap
                    if exposed - t.once_saved * sent > sync_cap or slow:
                        quick[c] = False  # and so do both of these
                    if not quick[c]:
                        continue
                    some = True
                    load, travel, hidden = stage_load(t, s, c, i, j, s, s)
                    late = exposed - hidden > sync_cap
                    slow = (m - 1) * load + waiting > load_cap
                    waited = load + travel - waiting + best[s + 1, j]
                    if not late and not slow and waited < best[s, i]:
                        best[s, i] = waited
                        step[s, i] = j
                        pick[s, i] = c
                if not some:
                    # Under the rule of the first that fits, a slow choice may yet stop fitting.
                    hope = False
                    for c in range(options):
                        hope = hope or (fits[c] and quick[c])
                    if not hope:
                        break
    return float(best[0, 0])
