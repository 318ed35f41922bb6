"""Phaze and Mist find the optimum of what they can see; every plan of small cases is priced."""

from __future__ import annotations

from dataclasses import replace

import pytest
from small_problems import Priced, every_mixed_plan, every_plan, fastest, small_problem

from nest_core.costs import price
from nest_core.planner import ORDERS, search
from nest_core.planner.baselines import mist, phaze
from nest_core.planner.baselines.baseline import flat, rank_mappings

NARROW = {"recompute": ("none", "full"), "orders": ORDERS}
FAMILIES = {
    "degrees": {"pp": (1, 2, 3)},
    "contexts": {"pp": (1, 2), "cp": (1, 2), "zero": (0, 1), "tp": (1, 2), "dp": (1, 2)},
    "experts": {"pp": (1, 2), "ep": (1, 2), "tp": (1, 2), "zero": (0, 3)},
    "schedules": {
        "pp": (1, 2, 4), "schedules": ("1f1b", "gpipe", "interleaved"), "interleave": (1, 2),
        "tp": (1, 2), "zero": (1,), "dp": (1, 2),
    },
}  # fmt: skip
CASES = [(family, seed) for family in FAMILIES for seed in range(10)]


def optimum(problem, space):
    """The least time on the flat network; where ranks sit does not matter there."""
    seen = replace(space, orders=space.orders[:1], device_orders=("natural",))
    return fastest(flat(problem), every_plan(flat(problem), seen))


@pytest.mark.sampled(24)
@pytest.mark.parametrize(("family", "seed"), CASES)
def test_phaze_finds_the_optimum_of_the_flat_network(family, seed):
    """And memory is the true one: on the fabric its plan fits too."""
    axes = {**NARROW, **FAMILIES[family]}
    small = small_problem(seed, experts=family == "experts", axes=axes)
    found = phaze.find(small.problem, small.space)
    best = optimum(small.problem, small.space)
    if found.plan is None:
        assert best == float("inf")
        assert found.reason
        return
    assert price(flat(small.problem), found.plan).iteration_s == pytest.approx(best, rel=1e-9)
    assert price(small.problem, found.plan).feasible


def test_cases_are_neither_all_alike_nor_all_infeasible():
    """Of the cases above most have a plan, some only with recomputation, and ours differs often."""
    feasible = behind = recomputed = 0
    for family, seed in CASES:
        axes = {**NARROW, **FAMILIES[family]}
        small = small_problem(seed, experts=family == "experts", axes=axes)
        found = phaze.find(small.problem, small.space)
        if found.plan is None:
            continue
        feasible += 1
        recomputed += found.plan.recompute_summary != "none"
        ours = search(small.problem, small.space).best
        assert ours is not None
        theirs = price(small.problem, found.plan).iteration_s
        assert ours.iteration_s <= theirs * (1 + 1e-12)
        behind += ours.iteration_s < theirs * (1 - 1e-9)
    assert feasible >= len(CASES) / 2
    assert behind >= 3
    assert recomputed >= 2


@pytest.mark.parametrize("seed", range(6))
def test_orders_are_chosen_in_the_method_s_favour(seed):
    small = small_problem(seed, axes={**NARROW, "pp": (1, 2, 3)})
    found = phaze.find(small.problem, small.space)
    if found.plan is None:
        return
    times = [
        price(small.problem, plan).iteration_s for plan in rank_mappings(small.space, found.plan)
    ]
    assert price(small.problem, found.plan).iteration_s == min(times)


MIXED = {"pp": (1, 2, 3), "recompute": ("none", "full"), "zero": (0, 1, 3), "tp": (1, 2)}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(10))
def test_mist_finds_the_optimum_of_mixed_stages_on_the_flat_network(seed):
    """Every combination of ZeRO, sequence parallelism and recomputation, stage by stage."""
    small = small_problem(seed, axes={**MIXED, "cp": (1, 2), "micro_batch": (1,)})
    found = mist.find(small.problem, small.space)
    view = flat(small.problem)
    seen = replace(mist.own_space(small.space), orders=ORDERS[:1])
    best = fastest(view, every_mixed_plan(view, seen))
    if found.plan is None:
        assert best == float("inf")
        return
    assert found.plan.point.cp == 1
    assert price(view, found.plan).iteration_s == pytest.approx(best, rel=1e-9)
    assert best <= optimum(small.problem, replace(small.space, cp=(1,))) * (1 + 1e-9)


def test_some_of_mist_s_plans_are_mixed():
    mixed = [
        found.plan
        for seed in range(40)
        if (found := _mist(seed)).plan is not None and found.plan.strategies
    ]
    assert mixed
    assert any(len({s.zero for s in plan.strategies}) > 1 for plan in mixed)


def _mist(seed):
    small = small_problem(seed, axes={**MIXED, "micro_batch": (1,)})
    return mist.find(small.problem, small.space)


def test_the_enumeration_prices_as_the_judge_does():
    """The helper's shortcut and `price` agree, uniform and mixed."""
    small = small_problem(3, axes={**MIXED, "micro_batch": (1,)})
    priced = Priced(small.problem)
    plans = [*every_plan(small.problem, small.space), *every_mixed_plan(small.problem, small.space)]
    for plan in plans[:: len(plans) // 150]:
        report = price(small.problem, plan)
        assert priced(plan) == (pytest.approx(report.iteration_s, rel=1e-12), report.feasible)
