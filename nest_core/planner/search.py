"""Best-first search over outer points with a certificate.

Points are taken in the order of their lower bounds. A point is *bounded* when its bound, or a
relaxation of its program under the best time so far, proves that it cannot be among the best;
*infeasible* when no cut fits into memory; otherwise the program solves it exactly. When the
next bound exceeds the best time, everything left is bounded and the plan is proven.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from nest_core.costs.plan import Plan, Point
from nest_core.costs.price import Report, price
from nest_core.costs.problem import RECOMPUTE, Problem
from nest_core.costs.stages import Links, StageCosts, links, stage_costs
from nest_core.layout import DEVICE_ORDERS
from nest_core.network.wires import FloatArray, IntArray
from nest_core.planner.program import covers, solve_point
from nest_core.planner.space import Bounds, Points, SearchSpace, bounds, enumerate_points
from nest_core.units import at_least_gib, humanise_bytes

__all__ = ["Audit", "Certificate", "Result", "audit", "search"]

# Times this close are ties, broken by devices, depth and width.
_TIE = 1e-12
_FIRST_CHUNK, _LARGEST_CHUNK = 32, 4096


@dataclass(frozen=True, slots=True)
class Certificate:
    """How the plan is known to be the best: ``solved + bounded + infeasible == points``."""

    lower_bound_s: float
    gap: float
    proven: bool
    points: int
    solved: int
    bounded: int
    infeasible: int


@dataclass(frozen=True, slots=True)
class Result:
    """The answer of a search.

    Parameters
    ----------
    best : Report or None
        None when nothing was found; ``reason`` then says what fails and by how much, and
        ``needed_bytes`` how much memory per device the leanest plan takes (0 if unknown).
    alternatives : tuple of Report
        The next best points, each with its best stages.
    solved_points : tuple of int
        Numbers of the points that the program ran on, for the audit.
    """

    best: Report | None
    reason: str
    needed_bytes: float
    alternatives: tuple[Report, ...]
    certificate: Certificate
    solved_points: tuple[int, ...]
    solve_seconds: float


@dataclass(frozen=True, slots=True)
class Audit:
    """Excluded points that were solved after all; ``violations`` found one below its bound."""

    solved: int
    infeasible: int
    violations: tuple[Point, ...]


def search(
    problem: Problem,
    space: SearchSpace,
    *,
    top: int = 1,
    time_limit_s: float = float("inf"),
    clock: Callable[[], float] = time.perf_counter,
) -> Result:
    """The best plan of a problem over a space.

    Parameters
    ----------
    top : int
        How many points to return, the best included.
    time_limit_s : float
        When it is over, the best plan so far is returned with its gap.
    clock : callable
        Seconds; passed in so that tests need not wait.

    Raises
    ------
    InputError
        If the space holds no valid point.
    """
    began = clock()
    state = _Search(problem, space)
    leading = _Leading(top)
    queue = np.argsort(state.bound.seconds, kind="stable")
    solved: list[int] = []
    misfit = 0
    open_bound = float("inf")
    position, size = 0, _FIRST_CHUNK
    while position < len(queue) and state.bound.seconds[queue[position]] <= leading.cutoff:
        chunk = queue[position : position + size]
        promising = state.promising(chunk, leading.cutoff)
        if leading.cutoff == float("inf"):
            misfit += int((~promising).sum())
        for index in chunk[promising].tolist():
            if state.bound.seconds[index] > leading.cutoff:
                break
            if clock() - began > time_limit_s:
                open_bound = float(state.bound.seconds[index])
                break
            prepared = state.prepare(index)
            if prepared.floor > leading.cutoff:
                continue
            unlimited = leading.cutoff == float("inf")
            seconds, plan = state.solve(prepared, leading.cutoff)
            if plan is not None:
                leading.offer(seconds, plan)
            if plan is None and unlimited:
                misfit += 1
            else:
                solved.append(index)
        if open_bound < float("inf"):
            break
        position += size
        size = min(2 * size, _LARGEST_CHUNK)
    reports = tuple(price(problem, plan) for _, plan in leading.found)
    best = reports[0] if reports else None
    lower = min(open_bound, best.iteration_s if best else float("inf"))
    certificate = Certificate(
        lower_bound_s=lower,
        gap=(best.iteration_s - lower) / best.iteration_s if best else 0.0,
        proven=open_bound == float("inf"),
        points=len(state.points),
        solved=len(solved),
        bounded=len(state.points) - len(solved) - misfit,
        infeasible=misfit,
    )
    needed, reason = 0.0, ""
    if best is None:
        needed, reason = state.why_nothing(timed_out=open_bound < float("inf"))
    return Result(best, reason, needed, reports[1:], certificate, tuple(solved), clock() - began)


def audit(problem: Problem, space: SearchSpace, result: Result, count: int, seed: int) -> Audit:
    """Solve ``count`` points that the search excluded, drawn at random, without any cutoff.

    A violation is a point whose best plan is faster than its own lower bound or than the plan
    that the search called the best; there must be none.
    """
    state = _Search(problem, space)
    best = result.best.iteration_s if result.best else float("inf")
    excluded = np.setdiff1d(np.arange(len(state.points)), np.array(result.solved_points, dtype=int))
    drawn = np.random.default_rng(seed).permutation(excluded)[:count].tolist()
    infeasible, violations = 0, []
    for index in drawn:
        prepared = state.prepare(index)
        seconds, plan = state.solve(prepared, float("inf"))
        if plan is None:
            infeasible += 1
        elif seconds < max(state.bound.seconds[index], prepared.floor, best) * (1 - _TIE):
            violations.append(state.points.point(index))
    return Audit(len(drawn) - infeasible, infeasible, tuple(violations))


class _Leading:
    """The best plans so far, best first; ties in the documented order."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.found: list[tuple[float, Plan]] = []

    @property
    def cutoff(self) -> float:
        """What a new plan must not exceed, ties included."""
        if len(self.found) < self._size:
            return float("inf")
        return self.found[self._size - 1][0] * (1 + _TIE)

    def offer(self, seconds: float, plan: Plan) -> None:
        """Take a plan into account."""
        self.found.append((seconds, plan))
        self.found.sort(key=lambda pair: pair[0])
        best = self.found[0][0]
        tied = [pair for pair in self.found if pair[0] <= best * (1 + _TIE)]
        tied.sort(key=lambda pair: _preference(pair[1]))
        self.found[: len(tied)] = tied
        del self.found[self._size :]


def _preference(plan: Plan) -> tuple[int, int, int, int, Point]:
    """Fewest devices, then shallowest pipeline, smallest widths, plainest device order."""
    point = plan.point
    order = DEVICE_ORDERS.index(point.device_order)
    return (point.devices_used, point.pp, point.tp, order, point)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A point ready for the program: ``floor`` bounds its time, ``total`` and ``sync`` parts."""

    point: Point
    costs: StageCosts
    total: float
    sync: float
    floor: float


@dataclass(slots=True)
class _Search:
    """What one search works with."""

    problem: Problem
    space: SearchSpace
    points: Points = field(init=False)
    allowed: IntArray = field(init=False)
    bound: Bounds = field(init=False)
    links: dict[Point, Links] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.points = enumerate_points(self.problem, self.space)
        chosen = [index for index, name in enumerate(RECOMPUTE) if name in self.space.recompute]
        self.allowed = np.array(chosen, dtype=np.int64)
        self.bound = bounds(self.problem, self.points, self.allowed)

    @property
    def _limit(self) -> float:
        return self.problem.tensor_bytes

    def _covered(
        self, chosen: IntArray, load_cap: FloatArray, limit: float
    ) -> npt.NDArray[np.bool_]:
        bound = self.bound
        alive = np.ones(len(chosen), dtype=bool)
        covers(
            bound.time, bound.hop, self.problem.overlap.transfer, bound.parameters, bound.tied,
            bound.kept, bound.working, self.allowed, bound.table[chosen], self.points.pp[chosen],
            bound.micro_batches[chosen], bound.per_parameter[chosen], bound.stepping[chosen],
            bound.whole[chosen], bound.fetched[chosen], load_cap, limit, alive,
        )  # fmt: skip
        return alive

    def promising(self, chunk: IntArray, cutoff: float) -> npt.NDArray[np.bool_]:
        """Which points of a chunk could still come in under the cutoff, or fit at all."""
        if cutoff == float("inf"):
            return self._covered(chunk, np.full(len(chunk), np.inf), self._limit)
        m = self.bound.micro_batches[chunk]
        room = cutoff - self.bound.sync[chunk]
        cap = np.where(m > 1, (room - self.bound.total[chunk]) / np.maximum(m - 1, 1), room)
        return self._covered(chunk, cap * (1 + _TIE), self._limit)

    def prepare(self, index: int) -> _Prepared:
        """Stage costs of a point under its real layout, and the bounds that they give."""
        point = self.points.point(index)
        key = replace(point, sp=False, micro_batch=1, zero=0)
        if key not in self.links:
            self.links[key] = links(self.problem, point)
        costs = stage_costs(self.problem, point, self.links[key])
        lightest = np.diff(costs.time[:, self.allowed], axis=2).min(axis=(0, 1))
        hops = costs.arrive[1:, 1:-1].min(axis=1, initial=np.inf)
        back = costs.retire[:-1, 1:-1].min(axis=1, initial=np.inf)
        exposed = (1.0 - costs.transfer_saved) * float(hops.sum() + back.sum())
        total = max(float(self.bound.total[index]), float(lightest.sum()) + exposed)
        per_stage = np.diff(costs.sync, axis=1).min(axis=0).sum() / point.pp
        sync = max(float(self.bound.sync[index]), float(per_stage + costs.sync_base.mean()))
        bottleneck = max(total / point.pp, float(lightest.max()))
        floor = total + (costs.micro_batches - 1) * bottleneck + sync
        return _Prepared(point, costs, total, sync, floor)

    def solve(self, prepared: _Prepared, cutoff: float) -> tuple[float, Plan | None]:
        """The best plan of one point, if it takes at most ``cutoff`` seconds."""
        seconds, cuts, choices = solve_point(
            prepared.costs, self.allowed, prepared.total, prepared.sync, cutoff
        )
        if seconds == float("inf"):
            return seconds, None
        recompute = tuple(RECOMPUTE[choice] for choice in choices)
        return seconds, Plan(prepared.point, tuple(cuts.tolist()), recompute)

    def why_nothing(self, *, timed_out: bool) -> tuple[float, str]:
        """Least memory per device with which some point would fit, and the sentence about it."""
        if timed_out:
            return 0.0, "the time limit was over before any plan was found: raise time_limit_s"
        low = self._limit
        high = max(2 * low, 1.0)
        chosen = np.arange(len(self.points))
        anything = np.full(len(chosen), np.inf)
        while not (fits := self._covered(chosen, anything, high)).any():
            low, high = high, 2 * high
        while high - low > 1e-4 * high:
            chosen = chosen[fits]
            middle = (low + high) / 2
            fits = self._covered(chosen, anything[: len(chosen)], middle)
            if fits.any():
                high = middle
            else:
                low, fits = middle, np.ones(len(chosen), dtype=bool)
        point = self.points.point(int(chosen[fits][0]))
        needed = high * (1.0 + self.problem.fragmentation) + self.problem.reserved_bytes
        have = self.problem.memory_bytes
        return needed, (
            f"no plan fits into memory: the leanest (tp {point.tp}, pp {point.pp}, dp {point.dp}, "
            f"micro-batch {point.micro_batch}, ZeRO {point.zero}) needs {at_least_gib(needed)} "
            f"per device, {humanise_bytes(needed - have)} more than the {humanise_bytes(have)} "
            "there are"
        )
