"""What a step of head-room costs: the best of all plans that fit so surely."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from statistics import NormalDist

import pytest
from planner_instances import random_instance

from nest_core.planner import head_room_steps, search

SPREAD = 0.25
SEEDS = (0, 1, 3, 12, 31, 45)


@pytest.mark.parametrize(
    "seeds", [SEEDS[3:5], pytest.param(SEEDS, marks=pytest.mark.check)], ids=["quick", "all"]
)
def test_a_step_costs_what_the_best_plan_that_fits_so_surely_takes(seeds):
    """The oracle prices every plan and reads memory alone; steps that move and that do not."""
    moved = {0.8: 0, 0.95: 0, 0.99: 0}
    for seed, as_needed in product(seeds, (False, True)):
        instance = random_instance(seed)
        instance = replace(instance, space=replace(instance.space, as_needed=as_needed))
        memory = instance.problem.memory_bytes
        problem = replace(instance.problem, memory_spread=SPREAD)
        found = search(problem, instance.space, top=1 + 3 * (seed % 2))
        if found.best is None or memory == float("inf"):
            continue
        ours = found.best.iteration_s
        steps = head_room_steps(problem, instance.space, (found.best, *found.alternatives))
        assert [step.certainty for step in steps] == list(moved)
        for step in steps:
            room = memory * math.exp(-NormalDist().inv_cdf(step.certainty) * SPREAD)
            assert step.planned_bytes == pytest.approx(room, rel=1e-12)
            limited = replace(instance.problem, memory_bytes=room)
            ranking = replace(instance, problem=limited).oracle.ranking()
            assert step.proven
            if not ranking:
                assert step.best is None, seed
                continue
            assert step.best is not None, seed
            assert step.best.iteration_s == pytest.approx(ranking[0].seconds, rel=1e-9), seed
            moved[step.certainty] += step.best.iteration_s != ours
    assert moved[0.95] == 0
    assert min(moved[0.8], moved[0.99]) > 1


def test_a_problem_whose_memory_has_no_spread_has_no_steps():
    instance = random_instance(3)
    found = search(instance.problem, instance.space)
    assert head_room_steps(instance.problem, instance.space, (found.best,)) == ()


def test_a_step_that_the_time_limit_cuts_short_says_so():
    """A search that is over before it began proves nothing, and is no answer."""
    for seed in SEEDS:
        instance = random_instance(seed)
        problem = replace(instance.problem, memory_spread=SPREAD)
        found = search(problem, instance.space)
        if found.best is None:
            continue
        steps = head_room_steps(problem, instance.space, (found.best,), time_limit_s=0.0)
        cut = steps[0]
        if cut.proven:
            continue
        told = cut.to_json(found.best.iteration_s)
        assert told["iteration_time_s"] is told["difference"] is told["plan"] is None
        return
    pytest.fail("no search was cut short")
