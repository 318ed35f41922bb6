"""A shadow price is what planning anew with one per cent more of a resource gains."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from joint_instances import joint_instance
from planner_instances import random_instance

from nest_core.costs import NO_OFFLOAD
from nest_core.planner import search, shadow, shadow_prices, shared_frontier


def instances():
    """Problems and spaces, of uniform stages and of mixed ones, under both rules of ZeRO."""
    drawn = [(random_instance(seed), seed) for seed in range(12)]
    drawn += [(joint_instance(seed), f"mixed {seed}") for seed in (30, 34, 37, 38)]
    for (instance, seed), as_needed in product(drawn, (False, True)):
        space = replace(instance.space, offload=(NO_OFFLOAD,), as_needed=as_needed)
        yield instance.problem, space, (seed, as_needed)


def test_a_price_is_what_a_search_of_its_own_gains(monkeypatch):
    """With a quarter more of a resource other plans are the best, whatever the rule of ZeRO."""
    monkeypatch.setattr(shadow, "_STEP", 0.25)
    others = apart = 0
    for problem, space, case in instances():
        ours = search(problem, space).best
        if ours is None:
            continue
        changed = {"memory": replace(problem, memory_bytes=problem.memory_bytes * 1.25)}
        for number, level in enumerate(problem.network.levels):
            network = problem.network.faster(number, 1.25)
            changed[f"bandwidth.{level.name}"] = replace(problem, network=network)
        prices = shadow_prices(problem, space, ours.iteration_s)
        assert prices.keys() == changed.keys()
        for name, change in changed.items():
            best = search(change, space, within_s=ours.iteration_s).best
            if best is None:  # with more memory less may be as needed
                assert (prices[name], space.as_needed, name) == (None, True, "memory")
                continue
            gained = ours.iteration_s / best.iteration_s - 1
            assert prices[name] == pytest.approx(gained, abs=1e-9), (case, name)
            others += best.plan.point != ours.plan.point
            apart += bool(best.plan.strategies)
    assert others > 6
    assert apart > 1


def test_a_price_that_time_was_too_short_for_is_unknown():
    instance = random_instance(3)
    ours = search(instance.problem, instance.space).best
    prices = shadow_prices(instance.problem, instance.space, ours.iteration_s, 0.0)
    assert set(prices.values()) == {None}


def test_too_much_to_be_looked_at_leaves_prices_unknown(monkeypatch):
    instance = random_instance(3)
    ours = search(instance.problem, instance.space).best
    monkeypatch.setattr(shadow, "_WORK", 0.0)
    prices = shadow_prices(instance.problem, instance.space, ours.iteration_s)
    assert set(prices.values()) == {None}


def test_what_searches_share_changes_no_answer():
    """Memory that grows and shrinks, by a frontier that earlier searches have used."""
    differ = 0
    for problem, space, case in instances():
        frontier = shared_frontier(problem, space)
        answers = []
        for factor in (1.0, 1.3, 0.7, 1.0):
            change = replace(problem, memory_bytes=problem.memory_bytes * factor)
            alone = search(change, space, top=3)
            result = search(change, space, top=3, frontier=frontier)
            plans, expected = (
                [
                    (report.iteration_s, report.plan)
                    for report in (entry.best, *entry.alternatives)
                    if report
                ]
                for entry in (result, alone)
            )
            assert plans == expected, (case, factor)
            assert result.certificate.proven
            answers.append(plans[:1])
        differ += answers[0] != answers[2]
    assert differ > 2


def test_a_shared_frontier_without_other_schedules_finds_the_best_of_1f1b():
    """Bounds that hold for 1F1B alone are not taken over by what is shared."""
    differ = 0
    for seed in (0, 3, 11, 13, 19, 28, 34, 40):
        instance = joint_instance(seed)
        schedules = ("1f1b", "interleaved")
        mixed = instance.space.mixed
        space = replace(instance.space, mixed=mixed, offload=(NO_OFFLOAD,), schedules=schedules)
        problem, plain = instance.problem, replace(space, schedules=("1f1b",))
        frontier = shared_frontier(problem, space)
        first = search(problem, space, frontier=frontier).best
        best = search(problem, plain, frontier=frontier.under_1f1b()).best
        assert best == search(problem, plain).best, seed
        within_s = first.iteration_s if first else float("inf")
        again = search(problem, space, frontier=frontier, within_s=within_s).best
        assert first == again, seed
        assert first == search(problem, space).best, seed
        differ += first != best
    assert differ > 4
