"""What the next-best choice on each axis would cost.

For an axis and the choice that a plan makes on it, the best plan of the space without that choice.
Where stages choose freely (recomputation, and tp, cp, ep, sp and ZeRO of mixed plans), a plan that
differs goes without one of the choices that some stage makes; the best of those counts.

A choice without effect is no choice: ZeRO with one rank to shard over, ZeRO 2 instead of 1 in a
pipeline, a schedule without a pipeline, an order of axes of which one at most is above 1. The next
best then has that effect: ranks to shard over, another stage of ZeRO, a pipeline.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from nest_core.costs import Plan, Point, Problem, Report, schedule_words
from nest_core.documents.errors import InputError
from nest_core.planner import SearchResult, SearchSpace, search

__all__ = ["AXES", "NextBest", "next_best"]

AXES = {
    "tp": "tensor parallelism",
    "pp": "pipeline stages",
    "dp": "replicas",
    "cp": "context parallelism",
    "ep": "expert parallelism",
    "etp": "expert tensor parallelism",
    "sp": "sequence parallelism",
    "zero": "ZeRO stage",
    "zero_group": "ZeRO group",
    "recompute": "recomputation",
    "micro_batch": "micro-batch",
    "schedule": "schedule",
    "order": "axis order",
    "device_order": "device order",
}
"""Axes of the search and what people call them."""

_PER_STAGE = ("tp", "cp", "ep", "etp", "sp", "zero", "zero_group")


@dataclass(frozen=True, slots=True)
class NextBest:
    """The best plan whose choice on one axis differs.

    Parameters
    ----------
    axis : str
        One of `AXES`.
    chosen : str
        What the plan chose.
    report : Report or None
        The best plan without that; None where there is none.
    difference : float or None
        Relative iteration time.
    proven : bool
        Whether nothing better without that choice exists; False where the time was over.
    reason : str
        Why there is none; empty otherwise.
    """

    axis: str
    chosen: str
    report: Report | None = None
    difference: float | None = None
    proven: bool = True
    reason: str = ""

    @property
    def instead(self) -> str:
        """What the next best does on this axis."""
        return choice(self.report.plan, self.axis) if self.report else ""


def next_best(
    problem: Problem,
    space: SearchSpace,
    best: Report,
    *,
    time_limit_s: float = float("inf"),
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[NextBest, ...]:
    """The next best on every axis on which the space leaves a choice, or why there is none.

    Parameters
    ----------
    best : Report
        The best plan of the space.
    time_limit_s : float
        For all searches together; what one leaves over the others may use.
    """
    space = space.seated_on(problem.network)
    spaces = {axis: without(space, best.plan, axis) for axis in AXES}
    searches = waiting = sum(map(len, spaces.values()))
    ends = clock() + time_limit_s
    outcomes = []
    for axis, smaller in spaces.items():
        results, refusals = [], []
        for entry in smaller:
            limit = max(0.0, ends - clock()) / waiting
            waiting -= 1
            try:
                results.append(
                    search(problem, entry, time_limit_s=limit, effort=1 / searches, clock=clock)
                )
            except InputError as error:
                refusals.append(str(error))
        if smaller:
            outcomes.append(_outcome(axis, best, results, refusals))
    return tuple(outcomes)


def choice(plan: Plan, axis: str) -> str:
    """What a plan does on an axis, in words."""
    if axis == "order":
        return " ".join(name for name in plan.point.order if getattr(plan.point, name) > 1)
    if axis == "schedule" and plan.point.interleave > 1:
        return schedule_words(plan.point.schedule, plan.point.interleave)
    if axis == "zero_group":
        groups = [at.zero_group or "all" if at.zero else "none" for at in _stage_points(plan)]
        return ", ".join(map(str, dict.fromkeys(groups)))
    if axis == "device_order" and isinstance(plan.point.device_order, tuple):
        return "custom"
    return ", ".join(
        {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
        for value in _used(plan, axis)
    )


def without(space: SearchSpace, plan: Plan, axis: str) -> list[SearchSpace]:
    """Spaces that leave out a choice of the plan; none where the axis leaves no other."""
    if axis in _WITHOUT:
        return list(_WITHOUT[axis](space, plan))
    return [smaller for value in _used(plan, axis) for smaller in _dropped(space, axis, value)]


def _without_zero(space: SearchSpace, plan: Plan) -> Iterator[SearchSpace]:
    for value in _used(plan, "zero"):
        smaller = _dropped(space, "zero", value)
        if value == 0:  # with nothing to shard over all stages are one
            smaller = [
                entry
                for wide in smaller
                for entry in (*_dropped(wide, "dp", 1), *_dropped(wide, "cp", 1))
            ]
        alike = plan.point.pp > 1 and not space.sharded_gradients
        if value in (1, 2) and alike:  # one in a pipeline
            flat = [replace(wide, pp=(1,)) for wide in smaller if 1 in wide.pp]
            deep = [entry for wide in smaller for entry in _dropped(wide, "zero", 3 - value)]
            smaller = flat + [entry for wide in deep for entry in _dropped(wide, "pp", 1)]
        yield from smaller


def _without_group(space: SearchSpace, plan: Plan) -> list[SearchSpace]:
    """Where nothing is sharded there is no group to choose; all is also their number."""
    taken = [
        {at.zero_group} if at.zero_group else {0, at.sharers}
        for at in _stage_points(plan)
        if at.zero
    ]
    others = [tuple(group for group in space.zero_groups if group not in some) for some in taken]
    return [replace(space, zero_groups=groups) for groups in dict.fromkeys(others) if groups]


def _stage_points(plan: Plan) -> list[Point]:
    return [plan.stage_point(stage) for stage in range(plan.point.pp)]


def _without_schedule(space: SearchSpace, plan: Plan) -> list[SearchSpace]:
    smaller = _dropped(space, "schedules", plan.point.schedule)
    if plan.point.is_v_shaped:
        return smaller
    return (
        smaller + _dropped(space, "interleave", plan.point.interleave)
        if plan.point.interleave > 1
        else [entry for wide in smaller for entry in _dropped(wide, "pp", 1)]
    )


def _without_order(space: SearchSpace, plan: Plan) -> list[SearchSpace]:
    def effect(order: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in order if getattr(plan.point, name) > 1)

    orders = tuple(order for order in space.orders if effect(order) != effect(plan.point.order))
    return [replace(space, orders=orders)] if orders else []


_WITHOUT: Mapping[str, Callable[[SearchSpace, Plan], Iterable[SearchSpace]]] = {
    "schedule": _without_schedule,
    "order": _without_order,
    "device_order": lambda space, plan: _dropped(space, "device_orders", plan.point.device_order),
    "zero": _without_zero,
    "zero_group": _without_group,
}
"""Axes on which more than the one value is left out."""


def _dropped(space: SearchSpace, field: str, value: object) -> list[SearchSpace]:
    remaining: Any = tuple(entry for entry in getattr(space, field) if entry != value)
    return [replace(space, **{field: remaining})] if remaining else []


def _used(plan: Plan, axis: str) -> tuple[object, ...]:
    """The choices of all stages on an axis, each once."""
    if axis == "recompute":
        return tuple(dict.fromkeys(plan.recompute))
    if axis in _PER_STAGE:
        return tuple(dict.fromkeys(getattr(at, axis) for at in _stage_points(plan)))
    return (getattr(plan.point, axis),)


def _outcome(axis: str, best: Report, results: list[SearchResult], refusals: list[str]) -> NextBest:
    chosen = choice(best.plan, axis)
    proven = all(result.certificate.proven for result in results)
    reports = [result.best for result in results if result.best is not None]
    if not reports:
        reason = next((result.reason for result in results), "") or refusals[0]
        return NextBest(axis, chosen, None, None, proven, reason)
    least = min(reports, key=lambda report: report.iteration_s)
    return NextBest(axis, chosen, least, least.iteration_s / best.iteration_s - 1, proven)
