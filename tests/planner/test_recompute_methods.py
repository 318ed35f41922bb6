"""Full recomputation by a method: the search against every plan of small cases."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from joint_instances import joint_instance, random_joint_plan, with_recompute_methods
from planner_instances import Instance

from nest_core.costs import Plan, Point, StageStrategy, price
from nest_core.costs.stages import stage_memory
from nest_core.planner import search

METHODS = ("block:1", "block:2", "uniform:2", "uniform:3")
SEEDS = (40, 46, 51, 52, 53, 64, 67, 71, 91, 388)


def opened(seed: int) -> Instance:
    """A joint instance whose stages choose among methods, in uneven layouts too."""
    dice = np.random.default_rng([seed, 91])
    instance = with_recompute_methods(dice, joint_instance(seed), METHODS)
    some = tuple(dice.choice(METHODS, 2, replace=False))
    space = replace(
        instance.space,
        recompute=("none", *some) if dice.random() < 0.7 else some,
        layouts="even" if instance.space.mixed else "uneven",
    )
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


@pytest.mark.check
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
    uneven = 0
    for instance, oracle, _ in solved:
        dice, choices = np.random.default_rng([instance.seed, 47]), list(oracle.choices())
        chunked = [choice for choice in choices if choice.interleave > 1]
        for some in [choices] * 6 + [chunked or choices] * 3:
            drawn = random_joint_plan(dice, oracle, some)
            choice, cuts, recompute, picks = drawn
            strategies = tuple(StageStrategy(*pick) for pick in picks)
            plan = Plan(Point(*choice), cuts, recompute, strategies)
            report, told = price(instance.problem, plan), oracle.price(*drawn)
            assert report.iteration_s == pytest.approx(told.seconds, rel=1e-9), plan
            for stage, mine in zip(report.stages, told.stages, strict=True):
                assert stage.memory.total == pytest.approx(mine.memory, rel=1e-9), plan
            uneven += oracle.uneven(choice, cuts) and any(":" in name for name in recompute)
    assert uneven > 3


def test_rows_of_methods_are_under_what_any_stage_holds(solved):
    """Bounds read them, layer by layer."""
    for instance, oracle, _ in solved:
        problem = instance.problem
        point = Point(*next(oracle.choices()))
        held = stage_memory(problem, point)
        for c, name in enumerate(problem.recomputations):
            for i, j in combinations(range(problem.layers + 1), 2):
                kept, peak = held.held_by(((i, j),), c)
                assert held.kept[c, j] - held.kept[c, i] <= kept * (1 + 1e-12), (name, i, j)
                assert held.peak[c, i:j].max() <= peak * (1 + 1e-12), (name, i, j)


def test_methods_are_chosen_somewhere(solved):
    used = {name for _, _, result in solved if result.best for name in result.best.plan.recompute}
    assert {*METHODS[:3]} <= used
