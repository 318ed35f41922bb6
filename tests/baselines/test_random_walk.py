"""MCMC: a function of its seed, within its space, one axis at a time."""

from __future__ import annotations

import random
from dataclasses import fields, replace

import pytest
from small_problems import every_cut, every_plan, every_point, fastest, small_problem

from nest_core.costs import Plan, Point, price
from nest_core.planner.baselines import mcmc
from nest_core.planner.baselines.baseline import PlanPrices

AXES = {
    "pp": (1, 2, 3, 4), "cp": (1, 2), "ep": (1, 2),
    "schedules": ("1f1b", "gpipe", "interleaved"), "interleave": (1, 2),
}  # fmt: skip


def belongs(small, plan: Plan, points: set[Point]) -> bool:
    """By the enumeration, which knows nothing of the walk."""
    return (
        plan.point in points
        and plan.cuts in set(every_cut(small.problem.layers, plan.point))
        and set(plan.recompute) <= set(small.space.recompute)
        and not plan.strategies
    )


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("idle", [True, False])
def test_a_walk_never_leaves_the_space_and_changes_one_axis_at_a_time(seed, idle):
    """The degrees that make room for one another aside: dp follows, ZeRO needs sharers."""
    small = small_problem(seed, axes={**AXES, "idle_devices": idle})
    points = set(every_point(small.problem, small.space))
    if not points:
        return
    dice = random.Random(seed)
    first = min(points)
    plan = Plan(first, next(every_cut(small.problem.layers, first)), ("none",) * first.pp)
    moved: set[str] = set()
    for _ in range(400):
        after = mcmc.neighbour(small.problem, small.space, plan, dice)
        if after is None:
            break
        assert belongs(small, after, points), after
        changed = differing(plan, after)
        assert len(changed) <= 1, (plan, after)
        moved |= changed
        plan = after
    if idle:
        assert {"dp", "pp", "micro_batch", "cuts", "recompute", "order"} <= moved


def differing(before: Plan, after: Plan) -> set[str]:
    """Axes that a move chose; what follows from another is left out."""
    names = {
        field.name
        for field in fields(Point)
        if getattr(before.point, field.name) != getattr(after.point, field.name)
    }
    if len(names) > 1:
        names -= {"dp"}  # follows the other degrees
    if 1 in (before.point.sharers, after.point.sharers):
        names -= {"zero"}  # counts among several only
    if names & {"tp", "sp", "etp"}:
        names = names - {"tp", "sp", "etp"} | {"tp"}
    if names & {"schedule", "interleave"}:
        # A single stage has one schedule.
        names = names - {"schedule", "interleave"} | (set() if "pp" in names else {"schedule"})
    if names:
        return names
    if before.cuts != after.cuts:
        names.add("cuts")
    if before.recompute != after.recompute:
        names.add("recompute")
    return names


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.sampled(3)
def test_the_same_seed_gives_the_same_plan(seed):
    small = small_problem(seed, axes=AXES)
    first = mcmc.find(small.problem, small.space, seed)
    again = mcmc.find(small.problem, small.space, seed)
    assert first == again
    assert f"seed {seed}" in first.origin


def test_other_seeds_walk_elsewhere():
    """With a budget so small that chains cannot all end at the optimum."""
    small = small_problem(4, axes=AXES)
    plans = {mcmc.find(small.problem, small.space, seed, budget=20).plan for seed in range(12)}
    assert len(plans) > 3


@pytest.mark.parametrize("budget", [10, 50, 200])
def test_no_more_plans_are_priced_than_the_budget_says(budget, monkeypatch):
    priced = []
    original = PlanPrices.seconds

    def counted(self, plan):
        priced.append(plan)
        return original(self, plan)

    monkeypatch.setattr(PlanPrices, "seconds", counted)
    small = small_problem(1, axes=AXES)
    mcmc.find(small.problem, small.space, 0, budget=budget)
    assert mcmc.RESTARTS <= len(priced) <= budget


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(10))
def test_what_it_finds_is_feasible_where_much_is_and_never_ahead_of_the_best(seed):
    small = small_problem(seed, axes={"pp": (1, 2, 3), "recompute": ("none", "full")})
    found = mcmc.find(small.problem, small.space, 0)
    assert found.plan is not None
    report = price(small.problem, found.plan)
    best = fastest(small.problem, every_plan(small.problem, small.space))
    assert report.feasible == (best < float("inf"))
    if report.feasible:
        assert report.iteration_s >= best * (1 - 1e-12)


@pytest.mark.check
def test_more_prices_lead_closer_to_the_optimum():
    """On average over small cases."""
    few = many = 0.0
    for seed in (1, 3, 4, 9, 10, 11):
        small = small_problem(seed, axes={"pp": (1, 2, 3), "recompute": ("none", "full")})
        best = fastest(small.problem, every_plan(small.problem, small.space))
        for budget in (20, 400):
            plan = mcmc.find(small.problem, small.space, 1, budget=budget).plan
            assert plan is not None
            behind = price(small.problem, plan).iteration_s / best - 1
            few, many = (few + behind, many) if budget == 20 else (few, many + behind)
    assert many < few / 2
    assert many / 6 < 0.05


def test_shortcuts_agree_with_the_judge():
    """Time and memory of plans that a walk meets, interleaved ones included."""
    small = small_problem(6, axes=AXES)
    prices, dice = PlanPrices(small.problem), random.Random(3)
    first = min(every_point(small.problem, small.space))
    plan = Plan(first, next(every_cut(small.problem.layers, first)), ("none",) * first.pp)
    seen = set()
    for _ in range(200):
        plan = mcmc.neighbour(small.problem, small.space, plan, dice) or plan
        report = price(small.problem, plan)
        assert prices.seconds(plan) == pytest.approx(report.iteration_s, rel=1e-12)
        assert (prices.overflow(plan) == 0.0) == report.feasible
        seen.add(plan.point.schedule)
    assert seen == {"1f1b", "gpipe", "interleaved"}


def test_a_single_plan_is_found():
    """Nothing to move: the walk ends at once."""
    small = small_problem(0)
    space = replace(
        small.space, tp=(1,), sp=(False,), dp=(1,), pp=(1,), micro_batch=(1,), zero=(0,),
        recompute=("full",), orders=small.space.orders[:1],
    )  # fmt: skip
    plan = mcmc.find(small.problem, space, 0).plan
    assert plan is not None
    assert (plan.point.devices_used, plan.recompute) == (1, ("full",))
