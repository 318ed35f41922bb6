"""ZeRO 2 in pipelines of software that reduces gradients after every micro-batch: the search and
its prices against every plan of small cases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from joint_instances import joint_instance, random_joint_plan
from planner_instances import Instance, random_instance

from nest_core.costs import Plan, Point, StageStrategy, price
from nest_core.planner import search

SEEDS = (0, 3, 12, 40, 122, 136, 158, 160)


def sharding(instance: Instance) -> Instance:
    """The same under such software, and with all ZeRO stages."""
    return replace(
        instance,
        problem=replace(instance.problem, sharded_gradients=True),
        space=replace(instance.space, sharded_gradients=True, zero=(0, 1, 2)),
    )


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(SEEDS, id="quick"),
        pytest.param(range(40, 240), id="more", marks=pytest.mark.check),
    ],
)
def test_the_plan_is_the_best_of_all(seeds):
    chosen = 0
    for seed in seeds:
        instance = sharding(random_instance(seed))
        result, ranking = search(instance.problem, instance.space), instance.oracle.ranking()
        if not ranking:
            assert result.best is None, seed
            continue
        assert result.best is not None, f"seed {seed}: missed {ranking[0]}"
        assert result.best.iteration_s == pytest.approx(ranking[0].seconds, rel=1e-9), seed
        point = result.best.plan.point
        chosen += point.pp > 1 and point.zero == 2
    assert chosen > 2


def test_any_plan_is_priced_alike():
    """Mixed stages and experts too, whether they fit or not."""
    apart = 0
    for seed in (40, 46, 51, 67):
        instance = sharding(joint_instance(seed))
        oracle, dice = instance.oracle, np.random.default_rng(seed)
        choices = [each for each in oracle.choices() if each.pp > 1]
        for _ in range(6 if choices else 0):
            drawn = random_joint_plan(dice, oracle, choices)
            choice, cuts, recompute, picks = drawn
            strategies = tuple(StageStrategy(*pick) for pick in picks)
            plan = Plan(Point(*choice), cuts, recompute, strategies)
            report, told = price(instance.problem, plan), oracle.price(*drawn)
            assert report.iteration_s == pytest.approx(told.seconds, rel=1e-9), plan
            for stage, mine in zip(report.stages, told.stages, strict=True):
                assert stage.memory.total == pytest.approx(mine.memory, rel=1e-9), plan
            apart += any(plan.stage_point(s).zero == 2 for s in range(choice.pp))
    assert apart > 2
