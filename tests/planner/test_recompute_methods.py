"""Full recomputation by a method: the search against every plan of small cases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from joint_instances import joint_instance, random_joint_plan, with_recompute_methods
from planner_instances import Instance

from nest_core.costs import Plan, Point, StageStrategy, price
from nest_core.planner import search

METHODS = ("block:1", "block:2", "uniform:2", "uniform:3")
SEEDS = (40, 46, 51, 53, 64, 67)


def opened(seed: int) -> Instance:
    """A joint instance whose stages choose among methods."""
    dice = np.random.default_rng([seed, 91])
    instance = with_recompute_methods(dice, joint_instance(seed), METHODS)
    some = tuple(dice.choice(METHODS, 2, replace=False))
    space = replace(instance.space, recompute=("none", *some) if dice.random() < 0.7 else some)
    return replace(instance, space=space)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(SEEDS, id="quick"),
        pytest.param(range(70, 150), id="more", marks=pytest.mark.check),
    ],
)
def solved(request):
    found = []
    for seed in request.param:
        instance = opened(seed)
        found.append((instance, instance.oracle, search(instance.problem, instance.space)))
    return found


def test_the_plan_is_the_best_of_all_with_methods(solved):
    for instance, oracle, result in solved:
        ranking = oracle.ranking()
        if not ranking:
            assert result.best is None, instance.seed
            continue
        assert result.best is not None, f"seed {instance.seed}: missed {ranking[0]}"
        assert result.best.iteration_s == pytest.approx(ranking[0].seconds, rel=1e-9)
        assert price(instance.problem, result.best.plan).iteration_s == result.best.iteration_s


def test_any_plan_by_a_method_is_priced_alike(solved):
    """Not only the best: stages of every method, and what does not fit."""
    for instance, oracle, _ in solved:
        dice, choices = np.random.default_rng([instance.seed, 47]), list(oracle.choices())
        for _ in range(8):
            drawn = random_joint_plan(dice, oracle, choices)
            choice, cuts, recompute, picks = drawn
            strategies = tuple(StageStrategy(*pick) for pick in picks)
            plan = Plan(Point(*choice), cuts, recompute, strategies)
            report, told = price(instance.problem, plan), oracle.price(*drawn)
            assert report.iteration_s == pytest.approx(told.seconds, rel=1e-9), plan
            for stage, mine in zip(report.stages, told.stages, strict=True):
                assert stage.memory.total == pytest.approx(mine.memory, rel=1e-9), plan


def test_methods_are_chosen_somewhere(solved):
    used = {name for _, _, result in solved if result.best for name in result.best.plan.recompute}
    assert {*METHODS[:3]} <= used
