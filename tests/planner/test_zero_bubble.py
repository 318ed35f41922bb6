"""Zero-bubble schedules against every plan of small instances, priced over concrete devices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from against_oracle import priced_as_over_devices
from oracle import Oracle
from planner_instances import any_choice, any_stages, large_instance, random_instance

from nest_core.costs import IDEAL_OVERLAP
from nest_core.planner import search

SCHEDULES = (
    ("zb_h1",),
    ("zb_2p",),
    ("1f1b", "zb_1p"),
    ("gpipe", "zb_h1", "zb_2p"),
    ("1f1b", "interleaved", "zb_2p"),
)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(30))
def test_any_plan_is_priced_as_over_concrete_devices(seed):
    instance, dice = large_instance(seed), np.random.default_rng([seed, 20])
    problem = replace(instance.problem, overlap=IDEAL_OVERLAP) if seed % 2 else instance.problem
    oracle = Oracle(instance.fabric, problem, instance.space)
    for schedule in ("zb_h1", "zb_1p", "zb_2p"):
        choice = any_choice(dice, instance)._replace(schedule=schedule, interleave=1)
        cuts, recompute = any_stages(dice, instance, choice)
        priced_as_over_devices(problem, oracle, choice, cuts, recompute)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(40))
def test_the_search_finds_the_best_of_every_plan(seed):
    """Its seconds are the oracle's minimum, and every point's own best when all are solved."""
    instance = random_instance(seed)
    space = replace(
        instance.space,
        schedules=SCHEDULES[seed % len(SCHEDULES)],
        interleave=(1, 2),
        mixed=seed % 7 == 6,
    )
    oracle = Oracle(instance.fabric, instance.problem, space)
    ranking = oracle.ranking()
    result = search(instance.problem, space)
    assert (result.best is None) == (not ranking)
    if result.best is not None:
        assert result.certificate.proven
        assert result.best.iteration_s == pytest.approx(ranking[0].seconds, rel=1e-9)
        assert result.certificate.points == sum(1 for _ in oracle.choices())


def test_zero_bubble_schedules_win_somewhere():
    """The enumeration above is of instances that tell them from 1F1B."""
    won = set()
    for seed in range(40):
        instance = random_instance(seed)
        space = replace(instance.space, schedules=("1f1b", "zb_h1", "zb_2p"))
        best = search(instance.problem, space).best
        won.add(best.plan.point.schedule if best and best.plan.point.pp > 1 else "")
        if {"zb_h1", "zb_2p"} <= won:
            return
    pytest.fail(f"only {won} are the best somewhere")
