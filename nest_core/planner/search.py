"""Best-first search over outer points with a certificate.

Rows (`nest_core.planner.space`) are bounded first, most of them without their layer tables; those
that could hold the best plan are opened in the order of their bounds, and their points bounded
again. A point is *bounded* when its bound, that of its row, or a relaxation of its program under
the best time so far, proves that it cannot be among the best; *infeasible* when no cut fits into
memory; otherwise the program solves it exactly. When the next bound exceeds the best time,
everything left is bounded and the plan is proven.
"""

import heapq
import itertools
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np

from nest_core.costs import (
    DEVICE_ORDERS,
    Plan,
    Point,
    Problem,
    Report,
    offloaded,
    plan_words,
    price,
    sure_words,
)
from nest_core.documents import InputError, at_least_gib, at_most_percent, humanise_seconds
from nest_core.planner.frontier import PLACED, ROUGH, Frontier, Opened
from nest_core.planner.mixed import MixedFrontier
from nest_core.planner.solver import Prepared
from nest_core.planner.space import SearchSpace

__all__ = ["Audit", "Certificate", "NamedPlans", "Progress", "SearchResult", "audit", "search"]

# Times this close are ties, broken by devices, depth and width.
_TIE = 1e-12
_FIRST_ROWS, _MOST_ROWS = 128, 4096
_WORK = 1.2e8
"""Microseconds of one core, about, that a search may take where no time limit is set: it ends by
what it did and not by the clock, and finds the same on every machine and under every load."""
_POINT_OPENED, _POINT_REFINED, _POINT_PLACED, _POINT_PREPARED = 4.0, 60.0, 250.0, 1000.0
_DEVICE_PLACED, _DEVICE_PREPARED = 0.02, 0.01
"""Microseconds of a point, and for each device of the fabric, that the steps of a search take."""
_FAR, _TRIED = 2.0, 8
"""A first plan so many times as slow as its bound is followed by others of many kinds."""


NamedPlans = tuple[tuple[str, Plan], ...]
Ended = Literal["", "at the time limit", "when cancelled", "after its share of work"]


@dataclass(frozen=True, slots=True)
class Certificate:
    """How the plan is known to be the best: ``solved + bounded + infeasible + open == points``.

    ``open`` points could still hold a better one; there are none once a plan is proven.

    Parameters
    ----------
    space : SearchSpace
        What the proof is over, the fabric's seatings among its device orders.
    ended : str
        Where a search stopped before its proof; empty after it.
    origin : str
        Whose plan at hand is the best; empty where the search came to it.
    """

    lower_bound_s: float
    gap: float
    proven: bool
    points: int
    solved: int
    bounded: int
    infeasible: int
    space: SearchSpace
    open: int = 0
    ended: Ended = ""
    origin: str = ""

    @property
    def stopped(self) -> str:
        """Return where it stopped before its proof, and whose plan it then has."""
        return f"stopped {self.ended}" + (f", its plan from {self.origin}" if self.origin else "")

    @property
    def room(self) -> str:
        """Return by how much the optimum may be faster, rounded up; empty once it is proven."""
        if self.proven:
            return ""
        if not 0 < self.gap < 1:
            return "optimum unbounded" if self.gap else "optimum no faster"
        return f"optimum at most {at_most_percent(self.gap / (1 - self.gap))} faster"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a search is.

    Parameters
    ----------
    points, solved, bounded, infeasible : int
        All points, and those whose fate is known.
    best_s : float
        Infinity before the first plan.
    lower_bound_s : float
        No plan is faster.
    """

    points: int
    solved: int
    bounded: int
    infeasible: int
    best_s: float
    lower_bound_s: float

    @property
    def share(self) -> float:
        """Share of the points whose fate is known."""
        return (self.solved + self.bounded + self.infeasible) / self.points

    @property
    def words(self) -> str:
        """How many points are solved, and the best time so far."""
        best = humanise_seconds(self.best_s) if self.best_s < float("inf") else "none yet"
        return f"{self.solved:,} points solved, best {best}"


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The answer of a search.

    Parameters
    ----------
    best : Report or None
        None when nothing was found; ``reason`` then says what fails and by how much, and
        ``needed_bytes`` how much memory per device is enough for some plan (0 if unknown).
    alternatives : tuple of Report
        The next best points, each with its best stages; GPipe where 1F1B is allowed is none.
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

    @property
    def ranked(self) -> tuple[Report, ...]:
        """Return the best plan and its alternatives."""
        return (self.best, *self.alternatives) if self.best else ()

    def plans_ahead(self, rivals: Iterable[tuple[str, Report | None]]) -> NamedPlans:
        """Return the plans of its space that fit and are faster; none once it is proven.

        Parameters
        ----------
        rivals : iterable of (str, Report or None)
            Plans by whose they are.
        """
        best_s = self.best.iteration_s if self.best else float("inf")
        return tuple(
            (name, report.plan)
            for name, report in rivals
            if not self.certificate.proven
            and report is not None
            and report.feasible
            and report.iteration_s < best_s
            and self.certificate.space.holds(report.plan)
        )


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
    effort: float = 1.0,
    within_s: float = float("inf"),
    known: NamedPlans = (),
    frontier: Frontier | MixedFrontier | None = None,
    clock: Callable[[], float] = time.perf_counter,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> SearchResult:
    """Return the best plan of a problem over a space.

    Parameters
    ----------
    top : int
        How many points to return, the best included.
    time_limit_s : float
        When it is over, the best plan so far is returned with its gap. Where it is infinite the
        search ends by its work, the same everywhere.
    effort : float
        Which part of a whole search's work it may do then.
    within_s : float
        Plans that take longer are of no interest; knowing a plan's time shortens the search.
    known : tuple of (str, Plan)
        Plans at hand by whose they are, as of other methods: a search that does not end is not
        behind those of its space that fit.
    frontier : Frontier, optional
        Of the space, and of a problem with this one's network, where one is at hand: what it
        knows of points is known here, and the other way round.
    clock : callable
        Seconds; passed in so that tests need not wait.
    progress : callable (Progress), optional
        Called between points.
    stop : callable () -> bool, optional
        Asked between points; once true, the best plan so far is returned with its gap.

    Raises
    ------
    InputError
        If the space holds no valid point.
    """
    began = clock()
    if len(space.offload) > 1:
        return _of_all_offloads(
            problem,
            space,
            top=top,
            ends=began + time_limit_s,
            effort=effort,
            within_s=within_s,
            known=known,
            clock=clock,
            progress=progress,
            stop=stop,
        )
    space = space.offloading(space.offload[0])
    problem = offloaded(problem, space.offload[0])

    most_work = effort * _WORK if time_limit_s == float("inf") else float("inf")

    def over(work: float) -> Ended:
        if clock() - began > time_limit_s:
            return "at the time limit"
        if stop is not None and stop():
            return "when cancelled"
        return "after its share of work" if work > most_work else ""

    leading = Leading(top, within_s)
    for _, plan in known:
        if space.seated_on(problem.network).holds(plan):
            report = price(problem, plan)
            if report.feasible and report.iteration_s <= leading.cutoff:
                leading.offer(report.iteration_s, plan)
    plain = replace(space, mixed=False, layouts="even")
    if plain != space and top == 1 and not space.as_needed:
        # Half of the time: what the plain space finds is a time to beat for the whole, not its
        # answer.
        # Plans with equal stages are among those with mixed ones, even layouts among all.
        with suppress(InputError):  # there may be no even ones
            uniform = search(
                problem,
                plain,
                time_limit_s=time_limit_s / 2,
                effort=effort / 2,
                clock=clock,
                within_s=within_s,
                known=known,
                stop=stop,
            )
            if uniform.best is not None:
                leading.offer(uniform.best.iteration_s, uniform.best.plan)
    points = frontier.of(problem) if frontier else _frontier(problem, space)
    outcome = _best_first(points, leading, over, progress)
    reports = tuple(price(problem, plan) for _, plan in leading.found)
    best = reports[0] if reports else None
    if best is None and outcome.open_bound == within_s == float("inf"):
        outcome.misfit = outcome.points  # GPipe was left out, but holds no less than 1F1B
    lower = min(outcome.open_bound, best.iteration_s if best else float("inf"))
    certificate = Certificate(
        lower_bound_s=lower,
        gap=(best.iteration_s - lower) / best.iteration_s if best else 0.0,
        proven=outcome.open_bound == float("inf"),
        points=outcome.points,
        solved=len(outcome.solved),
        bounded=outcome.points - len(outcome.solved) - outcome.misfit - outcome.open,
        infeasible=outcome.misfit,
        open=outcome.open,
        space=points.space,
        ended=outcome.ended,
        origin=_origin(best, known),
    )
    needed, reason = 0.0, ""
    if best is None:
        if within_s < float("inf") and certificate.proven:
            reason = f"no plan takes at most {humanise_seconds(within_s)}"
        else:
            needed, reason = _why_nothing(points, outcome.ended)
    return SearchResult(
        best, reason, needed, reports[1:], certificate, tuple(outcome.solved), clock() - began
    )


def _of_all_offloads(
    problem: Problem,
    space: SearchSpace,
    *,
    top: int,
    ends: float,
    effort: float,
    within_s: float,
    known: NamedPlans,
    clock: Callable[[], float],
    progress: Callable[[Progress], None] | None,
    stop: Callable[[], bool] | None,
) -> SearchResult:
    """One search for each offload; the best of all, and certificates added up.

    What ties with less on the host wins: they are tried in that order, and each has the time left
    in equal parts.
    """
    began = clock()
    results: list[SearchResult] = []
    numbered: list[int] = []
    options = sorted(space.offload)
    for index, offload in enumerate(options):
        reports = [entry for result in results for entry in result.ranked]
        cutoffs = sorted(report.iteration_s for report in reports)[top - 1 : top]
        result = search(
            problem,
            replace(space, offload=(offload,)),
            top=top,
            time_limit_s=(ends - clock()) / (len(options) - index),
            effort=effort / len(options),
            within_s=min(within_s, *cutoffs, float("inf")),
            known=known,
            clock=clock,
            progress=progress,
            stop=stop,
        )
        numbered += [
            number + sum(entry.certificate.points for entry in results)
            for number in result.solved_points
        ]
        results.append(result)
    ranked = sorted(
        (entry for result in results for entry in result.ranked),
        key=lambda entry: entry.iteration_s,
    )[:top]
    best = ranked[0] if ranked else None
    parts = [result.certificate for result in results]
    lower = min([part.lower_bound_s for part in parts])
    failed = min(results, key=lambda result: result.needed_bytes or float("inf"))
    certificate = replace(
        parts[0],
        lower_bound_s=lower,
        gap=(best.iteration_s - lower) / best.iteration_s if best else 0.0,
        proven=all(part.proven for part in parts),
        space=replace(parts[0].space, offload=space.offload),
        ended=next((part.ended for part in parts if part.ended), ""),
        origin=_origin(best, known),
        **{
            name: sum(getattr(part, name) for part in parts)
            for name in ("points", "solved", "bounded", "infeasible", "open")
        },
    )
    return SearchResult(
        best,
        "" if best else failed.reason,
        0.0 if best else failed.needed_bytes,
        tuple(ranked[1:]),
        certificate,
        tuple(numbered),
        clock() - began,
    )


def _origin(best: Report | None, known: NamedPlans) -> str:
    return next((name for name, plan in known if best is not None and plan == best.plan), "")


class Leading:
    """The best plans so far, best first; ties in the documented order.

    Nothing slower than ``within_s`` is of interest.
    """

    def __init__(self, size: int, within_s: float) -> None:
        self.size, self._within_s = size, within_s
        self.found: list[tuple[float, Plan]] = []

    @property
    def cutoff(self) -> float:
        """What a new plan must not exceed, ties included."""
        return (
            self._within_s * (1 + _TIE)
            if len(self.found) < self.size
            else self.found[self.size - 1][0] * (1 + _TIE)
        )

    @property
    def best_s(self) -> float:
        """Seconds of the best; infinity before the first."""
        return self.found[0][0] if self.found else float("inf")

    def offer(self, seconds: float, plan: Plan) -> None:
        """Take a plan into account, of each point the fastest."""
        self.found = [
            pair
            for pair in self.found
            if pair[1].point != plan.point or pair[0] < seconds * (1 - _TIE)
        ]
        self.found.append((seconds, plan))
        self.found.sort(key=lambda pair: pair[0])
        best = self.found[0][0]
        # Sums of floats in other orders differ in their last digits: without ties the plan would
        # depend on the order in which points are solved.
        tied = [pair for pair in self.found if pair[0] <= best * (1 + _TIE)]
        tied.sort(key=lambda pair: _preference(pair[1]))
        self.found[: len(tied)] = tied
        del self.found[self.size :]


def _preference(plan: Plan) -> tuple[int, int, int, int, Point]:
    """Fewest devices, shallowest pipeline, smallest widths, plainest device order."""
    point = plan.point
    orders = [*DEVICE_ORDERS, point.device_order]
    return (point.devices_used, point.pp, point.tp, orders.index(point.device_order), point)


_Waiting = tuple[float, int, Opened, int, Prepared | None]
"""Bound, order of arrival, the points opened together, which of them, and it prepared."""


@dataclass(slots=True)
class _Found:
    """What became of the points; ``waiting`` of the ``opened`` are not solved or excluded yet.

    ``open`` counts those that a search which was cut short left, in rows opened or not; ``ended``
    says why it was, ``work`` what it did until then.
    """

    points: int
    solved: list[int]
    misfit: int
    open_bound: float
    opened: int = 0
    waiting: int = 0
    open: int = 0
    work: float = 0.0
    ended: Ended = ""


def _best_first(
    frontier: Frontier | MixedFrontier,
    leading: Leading,
    over: Callable[[float], Ended],
    progress: Callable[[Progress], None] | None,
) -> _Found:
    """Take the point with the least bound, until that cannot be among the best.

    A point is taken up to five times: as the next of the rows opened with it, with the bound that
    knows its longest stage, with that of where its ranks sit, with that of its stage costs, and to
    be solved. Rows are opened when
    one of theirs may be the least.
    """
    outcome = _Found(len(frontier), [], 0, float("inf"))
    size, devices = _FIRST_ROWS, frontier.problem.network.devices
    placing = _POINT_PLACED + _DEVICE_PLACED * devices
    preparing = _POINT_PREPARED + _DEVICE_PREPARED * devices
    order = itertools.count()
    waiting: list[_Waiting] = []

    def add(opened: Opened, index: int) -> None:
        if index < len(opened):
            entry = (float(opened.limits.seconds[index]), next(order), opened, index, None)
            heapq.heappush(waiting, entry)

    while True:
        # Without any plan yet, what was opened is tried first: a time to beat excludes the most.
        while (least := frontier.queue.least) <= leading.cutoff and (
            not waiting or (least < waiting[0][0] and leading.cutoff < float("inf"))
        ):
            rows = frontier.queue.take(size, leading.cutoff)
            if not len(rows):
                break
            opened = frontier.open(rows, leading.cutoff)
            outcome.misfit += opened.misfit
            outcome.opened += opened.points
            outcome.waiting += len(opened)
            outcome.work += _POINT_OPENED * opened.points
            add(opened, 0)
            size = min(2 * size, _MOST_ROWS)
            outcome.ended = over(outcome.work)
            if outcome.ended:
                return _cut_short(outcome, frontier, waiting, leading.cutoff)
        if not waiting or waiting[0][0] > leading.cutoff:
            return outcome
        outcome.ended = over(outcome.work)
        if outcome.ended:
            return _cut_short(outcome, frontier, waiting, leading.cutoff)
        bound, _, opened, index, prepared = heapq.heappop(waiting)
        if opened.stage < PLACED:
            nearer = frontier.refine if opened.stage == ROUGH else frontier.place
            bounded, looked_at = nearer(opened, index, leading.cutoff)
            outcome.waiting -= looked_at - len(bounded)
            outcome.work += looked_at * (_POINT_REFINED if opened.stage == ROUGH else placing)
            add(opened, index + looked_at)
            if bounded.stage < PLACED or looked_at == 1 or not len(bounded):
                # The heap holds one entry for each group of points that were bounded together, its
                # best; the next of a group enters when that one leaves, so the heap stays small.
                add(bounded, 0)
                continue
            # The first of many is tried at once: a better time to beat excludes more.
            opened, index, bound = bounded, 0, float("inf")
        if prepared is None:
            add(opened, index + 1)
            prepared = frontier.prepare(opened, index)
            outcome.work += preparing * max(1, len(prepared.strategies))
            if prepared.lower_bound > leading.cutoff or not frontier.needed(prepared.point):
                outcome.waiting -= 1
                continue
            if prepared.lower_bound > bound:
                heapq.heappush(
                    waiting, (prepared.lower_bound, next(order), opened, index, prepared)
                )
                continue
        outcome.waiting -= 1
        unlimited = leading.cutoff == float("inf")
        seconds, plan = frontier.solver.solve(prepared, leading.cutoff)
        if plan is not None:
            leading.offer(seconds, plan)
            if unlimited and leading.size == 1 and seconds > _FAR * frontier.queue.least:
                _sample(frontier, leading)
        if plan is None and unlimited:
            outcome.misfit += 1
        else:
            outcome.solved.append(int(opened.columns.number[index]))
        if progress is not None:
            least = min([bound, frontier.queue.least, *(entry[0] for entry in waiting[:1])])
            progress(_progress(outcome, leading, least))


def _sample(frontier: Frontier | MixedFrontier, leading: Leading) -> None:
    """Offer the best of a few points of many kinds, for a better time to beat.

    They are met again in the order of their bounds.
    """
    if isinstance(frontier, MixedFrontier):
        return
    sample = frontier.sample(leading.cutoff)
    for index in range(min(len(sample), _TRIED)):
        prepared = frontier.prepare(sample, index)
        if prepared.lower_bound <= leading.cutoff and frontier.needed(prepared.point):
            seconds, plan = frontier.solver.solve(prepared, leading.cutoff)
            if plan is not None:
                leading.offer(seconds, plan)


def _cut_short(
    best: _Found, frontier: Frontier | MixedFrontier, waiting: list[_Waiting], cutoff: float
) -> _Found:
    """Return what a search leaves that ends before its time: how many points, and their least
    bound.

    An entry that is prepared waits for itself alone, others for all that were opened after them.
    """
    best.open_bound = min([frontier.queue.least, *(entry[0] for entry in waiting[:1])])
    best.open = int(frontier.points.sizes(frontier.queue.left(cutoff)).sum())
    for bound, _, opened, index, prepared in waiting:
        if prepared is not None:
            best.open += bound <= cutoff
        else:
            best.open += int((opened.limits.seconds[index:] <= cutoff).sum())
    return best


def _progress(best: _Found, leading: Leading, bound: float) -> Progress:
    return Progress(
        points=best.points,
        solved=len(best.solved),
        bounded=best.opened - best.waiting - len(best.solved) - best.misfit,
        infeasible=best.misfit,
        best_s=leading.best_s,
        lower_bound_s=min(bound, leading.best_s),
    )


def _why_nothing(frontier: Frontier | MixedFrontier, ended: Ended) -> tuple[float, str]:
    """Memory per device that is enough for some point, and the sentence about it."""
    if ended == "when cancelled":
        return 0.0, "the search was cancelled before any plan was found: let it run longer"
    if ended == "at the time limit":
        return 0.0, "the time limit was over before any plan was found: raise time_limit_s"
    if ended:
        return 0.0, (
            "a search's share of work was done before any plan was found: allow fewer choices, or "
            "set search.time_limit_s to go on for so long"
        )
    problem = frontier.problem
    tensors, point = frontier.leanest()
    if point is None:
        return 0.0, "no plan of virtual stages fits into memory: allow 1f1b, which holds less"
    needed = tensors * (1.0 + problem.fragmentation) + problem.context_bytes(point)
    needed += point.communicators * problem.communicator_bytes
    have = problem.planned_bytes
    if needed <= have:
        return 0.0, "no plan fits into memory with the schedules allowed: allow 1f1b"
    return needed * problem.memory_bytes / have, (
        f"no plan fits into memory: the leanest found ({plan_words(asdict(point))}) needs "
        f"{at_least_gib(needed)} per device{problem.under}, {at_least_gib(needed - have)} more "
        f"than {sure_words(problem.memory_bytes, problem.memory_spread, problem.certainty)}"
    )


def audit(
    problem: Problem, space: SearchSpace, result: SearchResult, count: int, seed: int
) -> Audit:
    """Solve ``count`` points that the search excluded, drawn at random, without any cutoff.

    A violation is a point whose best plan is faster than its own lower bound or than the plan
    that the search called the best; there must be none.
    """
    if len(space.offload) > 1:
        return _audit_all(problem, space, result, count, seed)
    space = space.offloading(space.offload[0])
    frontier = _frontier(offloaded(problem, space.offload[0]), space)
    best = result.best.iteration_s if result.best else float("inf")
    solved = set(result.solved_points)
    size = min(count + len(solved), len(frontier))
    numbers = np.random.default_rng(seed).choice(len(frontier), size, replace=False).tolist()
    drawn = [number for number in numbers if number not in solved][:count]
    infeasible, violations = 0, []
    for number in drawn:
        prepared = frontier.prepared(number)
        seconds, plan = frontier.solver.solve(prepared, float("inf"))
        if plan is None or not frontier.needed(prepared.point):
            infeasible += 1
        elif seconds < max(frontier.bound_of(number), prepared.lower_bound, best) * (1 - _TIE):
            violations.append(prepared.point)
    return Audit(len(drawn) - infeasible, infeasible, tuple(violations))


def _frontier(problem: Problem, space: SearchSpace) -> Frontier | MixedFrontier:
    return MixedFrontier(problem, space) if space.mixed else Frontier(problem, space)


def _audit_all(
    problem: Problem, space: SearchSpace, result: SearchResult, count: int, seed: int
) -> Audit:
    """Return the audit offload by offload, numbered as `_of_all_offloads` numbers their points."""
    parts, first = [], 0
    count_per_offload = -(-count // len(space.offload))
    for offload in sorted(space.offload):
        space_of_offload = replace(space, offload=(offload,))
        points = len(_frontier(offloaded(problem, offload), space_of_offload.offloading(offload)))
        numbers = tuple(n - first for n in result.solved_points if first <= n < first + points)
        part = replace(result, solved_points=numbers)
        parts.append(audit(problem, space_of_offload, part, count_per_offload, seed))
        first += points
    return Audit(
        sum(part.solved for part in parts),
        sum(part.infeasible for part in parts),
        tuple(point for part in parts for point in part.violations),
    )
