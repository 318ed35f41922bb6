"""Full recomputation by a method: the search against every plan of small cases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from joint_instances import joint_instance
from planner_instances import Instance

from nest_core.costs import LayerTable, price
from nest_core.costs.problem import with_methods
from nest_core.planner import search
from nest_core.workload.recomputation import ordered

METHODS = ("block:1", "block:2", "uniform:2", "uniform:3")
SEEDS = (40, 46, 51, 53, 64, 67)


def opened(seed: int) -> Instance:
    """A joint instance whose stages choose among methods, with much or little to keep."""
    instance = joint_instance(seed)
    dice = np.random.default_rng([seed, 91])
    layers = instance.problem.layers
    heavy, ends = dice.uniform(0.5, 4.0, layers), dice.random() < 0.5
    base = instance.problem.table

    def table(*key: int) -> LayerTable:
        plain = base(*key)
        kept, replay = plain.kept_bytes.copy(), plain.replay_s.copy()
        kept[0] = np.maximum(kept[0] * heavy, kept[-1])
        if ends:  # as embeddings and heads
            replay[:, [0, -1]], kept[:, [0, -1]] = 0.0, kept[0, [0, -1]]
        return with_methods(replace(plain, kept_bytes=kept, replay_s=replay), names)

    names = ordered(METHODS)
    problem = replace(instance.problem, table=table, lower_bound=None, recomputations=names)
    some = tuple(dice.choice(METHODS, 2, replace=False))
    space = replace(instance.space, recompute=("none", *some) if dice.random() < 0.7 else some)
    return replace(instance, problem=problem, space=space)


@pytest.fixture(scope="module")
def solved():
    found = []
    for seed in SEEDS:
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


def test_methods_are_chosen_somewhere(solved):
    used = {name for _, _, result in solved if result.best for name in result.best.plan.recompute}
    assert {*METHODS[:3]} <= used
