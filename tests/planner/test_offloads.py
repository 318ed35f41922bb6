"""Offloading as an axis of the search, against every plan of small cases."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from joint_instances import joint_instance, random_joint_plan, with_recompute_methods
from oracle import Oracle, every_offload
from planner_instances import Instance

from nest_core.costs import LayerTable, Plan, Point, Problem, StageStrategy, price
from nest_core.planner import SearchResult, audit, search
from nest_core.workload.offload import NO_OFFLOAD, Offload

OPTIONS = (Offload(optimizer=1.0), Offload(activations=0.5), Offload(0.25, 0.5))
SEEDS = (1, 3, 10, 13, 16, 18, 19, 24)
METHODS = ("block:1", "uniform:2")


def opened(seed: int) -> Instance:
    """A joint instance in little memory, with a link to the host that may be worth its time.

    Beside it some choose among methods of recomputation, some have a zero-bubble schedule, and
    some bounds of a sequence's layers.
    """
    instance = joint_instance(seed)
    dice = np.random.default_rng([seed, 19])
    space = replace(instance.space, recompute=("none", "full")[: 1 + seed % 2])
    if seed % 3 == 0:
        instance = with_recompute_methods(dice, instance, METHODS)
        space = replace(space, recompute=("none", *METHODS))
    if seed % 4 == 0 and not space.mixed:
        space = replace(space, schedules=(*space.schedules, "zb_h1"), as_needed=False)
    busy = float(instance.problem.table(1, False, 1, 1, 1, 1).compute_s.mean())
    bytes_ = float(instance.problem.table(1, False, 1, 1, 1, 1).kept_bytes[0].mean())
    problem = replace(instance.problem, host_Bps=bytes_ / busy * dice.uniform(0.3, 3.0))
    if seed % 2 and seed % 3:
        problem, space = _bounded(problem), replace(space, micro_batch=(1,))
    least = search(replace(problem, memory_bytes=1.0), space).needed_bytes
    memory = (least or problem.memory_bytes) * dice.uniform(0.8, 1.2)
    return replace(
        instance,
        problem=replace(problem, memory_bytes=memory),
        space=replace(space, offload=(NO_OFFLOAD, *OPTIONS)),
    )


def _bounded(problem: Problem) -> Problem:
    """With a sequence's own figures as what any micro-batch takes at least."""

    def bound(tp: int, sp: bool, cp: int, ep: int, etp: int) -> LayerTable:
        return problem.table(tp, sp, 1, cp, ep, etp)

    return replace(problem, lower_bound=bound)


@dataclass(frozen=True)
class Case:
    """A problem, an oracle for each offload, the best seconds of every point, and the answer."""

    instance: Instance
    oracles: list[Oracle]
    seconds: list[float]
    result: SearchResult


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(SEEDS, id="quick"),
        pytest.param(range(30, 110), id="more", marks=pytest.mark.check),
    ],
)
def cases(request) -> list[Case]:
    found = []
    for seed in request.param:
        instance = opened(seed)
        oracles = every_offload(instance.fabric, instance.problem, instance.space)
        seconds = sorted(plan.seconds for oracle in oracles for plan in oracle.ranking())
        result = search(instance.problem, instance.space)
        found.append(Case(instance, oracles, seconds, result))
    return found


def test_the_plan_is_the_best_of_all_that_offload_or_not(cases):
    for case in cases:
        best = case.result.best
        if not case.seconds:
            assert best is None, case.instance.seed
            continue
        assert best is not None, case.instance.seed
        assert best.iteration_s == pytest.approx(case.seconds[0], rel=1e-9), case.instance.seed
        assert price(case.instance.problem, best.plan) == best


def test_what_is_offloaded_is_chosen_somewhere(cases):
    chosen = {case.result.best.plan.offload for case in cases if case.result.best}
    assert chosen == {NO_OFFLOAD, *OPTIONS}


def test_any_plan_that_offloads_is_priced_alike(cases):
    """Not only the best: bad plans, and plans that do not fit; and what their hosts hold."""
    for case in cases:
        dice, problem = np.random.default_rng([case.instance.seed, 43]), case.instance.problem
        for oracle, offload in zip(case.oracles, case.instance.space.offload, strict=True):
            choices = list(oracle.choices())
            for _ in range(4 if choices else 0):
                drawn = random_joint_plan(dice, oracle, choices)
                choice, cuts, recompute, picks = drawn
                strategies = tuple(StageStrategy(*pick) for pick in picks)
                plan = Plan(Point(*choice), cuts, recompute, strategies, offload)
                report, told = price(problem, plan), oracle.price(*drawn)
                assert report.iteration_s == pytest.approx(told.seconds, rel=1e-9), plan
                for stage, mine in zip(report.stages, told.stages, strict=True):
                    assert stage.memory.total == pytest.approx(mine.memory, rel=1e-9), plan
                    assert stage.memory.host == pytest.approx(mine.host, rel=1e-9), plan


@pytest.mark.check
def test_points_of_all_offloads_are_in_the_certificate_and_in_the_audit(cases):
    for case in cases:
        problem, space, told = case.instance.problem, case.instance.space, case.result.certificate
        assert told.points == sum(len(list(oracle.choices())) for oracle in case.oracles)
        assert told.solved + told.bounded + told.infeasible == told.points
        assert told.proven
        assert told.space.offload == space.offload
        every = told.points * len(space.offload)
        found = audit(problem, space, case.result, every, case.instance.seed)
        assert not found.violations
        assert found.solved + found.infeasible == told.points - told.solved


def test_where_nothing_fits_the_least_of_all_offloads_is_asked_for(cases):
    for case in cases[:3]:
        scarce = replace(case.instance.problem, memory_bytes=1.0)
        space = case.instance.space
        alone = [search(scarce, replace(space, offload=(one,))) for one in space.offload]
        needed = search(scarce, space).needed_bytes
        assert needed == min(one.needed_bytes for one in alone)


@pytest.mark.parametrize("ticks", [2, 8, 32])
@pytest.mark.sampled(3)
def test_a_search_of_all_offloads_that_is_cut_short_tells_its_gap(cases, ticks):
    for case in cases:
        clock = iter(range(10**6))
        result = search(
            case.instance.problem,
            case.instance.space,
            time_limit_s=float(ticks),
            clock=lambda clock=clock: float(next(clock)),
        )
        optimum = case.seconds[0] if case.seconds else math.inf
        assert result.certificate.lower_bound_s <= optimum * (1 + 1e-12), case.instance.seed
        if result.best:
            assert result.best.iteration_s >= optimum * (1 - 1e-9), case.instance.seed


def test_what_ties_with_less_on_the_host_wins():
    instance = joint_instance(SEEDS[0])
    problem = replace(instance.problem, host_Bps=1e30, memory_bytes=math.inf)
    options = (Offload(activations=1.0), Offload(activations=0.5), NO_OFFLOAD)
    space = replace(instance.space, recompute=("none",), offload=options)
    assert search(problem, space).best.plan.offload == NO_OFFLOAD
