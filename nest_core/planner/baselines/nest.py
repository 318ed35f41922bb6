"""NEST: the paper's level-wise dynamic program, on own costs.

**The original** collapses the fabric into levels, prices stages by the level of their link, and
finds cuts, sub-graph strategies, devices and ZeRO with the least ``(m + S - 1) max t + max e`` by a
recurrence over level, layer, devices and stages, memory inside.

**Here** it is `nest_core.planner.levelwise` on the fabric's levels
(`nest_core.network.patterns.levels_only`). The plans that it promises most of are priced on the
fabric, and the fastest of them is its answer, shown with what it promised.

**Simplified**: unequal widths are tried in the paper's own axis order only.

**Why that is fair to it**: it has every axis that our search has but other schedules than 1F1B,
which the paper's memory and time assume, the same layer costs, and of its best promises the one
that turns out fastest on the fabric.

References
----------
.. [1] NEST, MLSys 2026, Algorithm 1 and section 4.
"""

from dataclasses import replace
from functools import partial

from nest_core.costs import Plan, Problem, Report, device_order, price
from nest_core.documents import at_most_percent, require
from nest_core.network.patterns import levels_only
from nest_core.planner import NamedPlans, SearchSpace, search
from nest_core.planner.baselines.baseline import Baseline, Found, Waterfall
from nest_core.planner.baselines.phaze import best_rank_mapping
from nest_core.planner.frontier import Frontier
from nest_core.planner.levelwise import levelwise
from nest_core.planner.mixed import MixedFrontier
from nest_core.planner.solver import Solver

__all__ = ["TOP", "find", "on_levels", "waterfall"]

TOP = 4
"""Promises that are priced on the fabric."""


def on_levels(problem: Problem) -> Problem:
    """Return the same problem on its fabric's levels alone."""
    return replace(problem, network=levels_only(problem.network))


def find(problem: Problem, space: SearchSpace, time_limit_s: float = float("inf")) -> Found:
    """Return the program's plan, and what it promised.

    Raises
    ------
    InputError
        If the limits leave it no schedule.
    """
    require(
        "1f1b" in space.schedules,
        "search.schedule",
        "must allow 1f1b for NEST's level-wise program",
        list(space.schedules),
        "add 1f1b, or leave nest out of the baselines",
    )
    result = levelwise(on_levels(problem), space, top=TOP, time_limit_s=time_limit_s)
    origin = "level-wise program of the paper"
    if not result.best:
        return Found(
            None,
            origin,
            "no plan fits into memory under 1F1B"
            if result.proven
            else "the time limit was over before any plan was found: raise time_limit_s",
        )
    chosen = min(result.best, key=lambda promise: price(problem, promise.plan).iteration_s)
    if not result.proven:
        gap = 1.0 - result.lower_bound_s / chosen.seconds
        origin += f", searched in part: none is promised in over {at_most_percent(gap)} less"
    if chosen.plan.ragged:
        origin += ", stages of unequal width"
    return Found(chosen.plan, origin, promised_s=chosen.seconds)


_EFFORT = 0.1
"""Part of a whole search's work that each search for the waterfall may do."""


def waterfall(
    problem: Problem,
    space: SearchSpace,
    entry: Baseline,
    ours: Report | None = None,
    time_limit_s: float = float("inf"),
    frontier: Frontier | MixedFrontier | None = None,
) -> Waterfall | None:
    """Return what makes the program's plan slower than the exact search's; None without either.

    Unequal widths, which the exact search has not, are taken away first. Then restrictions are
    lifted one after another: the memory rule (the program without it, at its plan's data-parallel
    degree and micro-batch), the objective (the exact search on levels under 1F1B), levels (the
    same on links), the schedule. Every plan on the way is priced on the fabric. Both searches begin
    with our plan's ranks under 1F1B.
    """
    if not entry.feasible or entry.report is None or entry.promised_s is None:
        return None
    view = on_levels(problem)
    plain = replace(space, schedules=("1f1b",), layouts="even")
    plan, took, within = entry.report.plan, entry.report.iteration_s, entry.promised_s
    alike = took
    if plan.ragged:
        equal = levelwise(view, space, unequal=False, top=TOP, time_limit_s=time_limit_s)
        if not equal.best:
            return None
        chosen = min(equal.best, key=lambda promise: price(problem, promise.plan).iteration_s)
        plan, within = chosen.plan, chosen.seconds
        alike = price(problem, plan).iteration_s
    here = replace(space, dp=(plan.point.dp,), micro_batch=(plan.point.micro_batch,))
    free = levelwise(
        view, here, rule=False, unequal=False, within_s=within, time_limit_s=time_limit_s
    )
    lifted = min([alike, *(price(problem, promise.plan).iteration_s for promise in free.best)])
    # Curves along a torus mean nothing on levels.
    orders = space.device_orders if problem.network.torus is None else ("natural",)
    seen = replace(plain, device_orders=orders)
    ours = ours or search(problem, space, time_limit_s=time_limit_s, frontier=frontier).best
    if ours is None:
        return None
    searched = partial(search, time_limit_s=time_limit_s, effort=_EFFORT)
    near = _under_1f1b(problem, plain, ours.plan)
    mapping = partial(best_rank_mapping, view, seen.seated_on(view.network))
    on_view = searched(view, seen, known=tuple((name, mapping(best)) for name, best in near)).best
    shared = frontier and frontier.under_1f1b()
    on_links = searched(problem, plain, known=near, frontier=shared).best
    if on_view is None or on_links is None:
        return None
    by_levels = price(problem, _placed(on_view.plan, view)).iteration_s
    return Waterfall(
        schedule=on_links.iteration_s - ours.iteration_s,
        memory_rule=alike - lifted,
        objective=lifted - by_levels,
        levels=by_levels - on_links.iteration_s,
        widths=took - alike,
    )


def _under_1f1b(problem: Problem, space: SearchSpace, plan: Plan) -> NamedPlans:
    """Return the best plan of the same ranks under 1F1B, if there is one."""
    solver = Solver(problem, problem.rows(space.recompute))
    prepared = solver.prepare(replace(plan.point, schedule="1f1b", interleave=1))
    _, best = solver.solve(prepared, float("inf"))
    return (("ours", best),) if best else ()


def _placed(plan: Plan, view: Problem) -> Plan:
    """Return the plan on its devices by number: levels may call a seating otherwise than the
    fabric.
    """
    devices = device_order(view.network, plan.point.device_order)[: plan.devices_used]
    return replace(plan, point=replace(plan.point, device_order=tuple(devices.tolist())))
