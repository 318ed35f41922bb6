"""Schedules without a closed form against every plan of small instances, over concrete devices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from against_oracle import priced_as_over_devices, search_finds_the_best
from oracle import Oracle
from planner_instances import any_choice, any_stages, large_instance, random_instance

from nest_core.costs import IDEAL_OVERLAP, LayerTable, Problem, StateBytes
from nest_core.documents.errors import InputError
from nest_core.fabric import Hierarchical, Tier
from nest_core.network import collapse
from nest_core.planner import SearchSpace, search
from nest_core.planner.frontier import Frontier

SCHEDULES = (
    ("zbv",),
    ("dualpipev",),
    ("1f1b", "interleaved_zb"),
    ("interleaved", "interleaved_zb", "zbv", "dualpipev"),
)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("schedule", ["zbv", "dualpipev", "interleaved_zb"])
@pytest.mark.parametrize("seed", range(24))
def test_any_plan_is_priced_as_over_concrete_devices(seed, schedule):
    """Any cuts at all, with transfers, recomputation, experts and a tied copy."""
    instance, dice = large_instance(seed), np.random.default_rng([seed, 37])
    problem = replace(instance.problem, overlap=IDEAL_OVERLAP) if seed % 2 else instance.problem
    if seed % 3 == 2:
        problem = replace(problem, overlap=replace(problem.overlap, experts=True))
    oracle = Oracle(instance.fabric, problem, instance.space)
    while True:
        choice = any_choice(dice, instance)
        m = problem.batch // (choice.dp * choice.micro_batch)
        fits = choice.pp > 1 and 2 * choice.pp <= problem.layers
        allowed = {
            "zbv": True,
            "dualpipev": m >= 2 * choice.pp,
            "interleaved_zb": m % choice.pp == 0,
        }
        if fits and allowed[schedule]:
            break
    choice = choice._replace(schedule=schedule, interleave=2)
    cuts, recompute = any_stages(dice, instance, choice)
    priced_as_over_devices(problem, oracle, choice, cuts, recompute)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(40))
def test_the_search_finds_the_best_of_every_plan(seed):
    """Its seconds are the oracle's minimum, and no bound excludes what is better."""
    instance = random_instance(seed)
    space = replace(
        instance.space,
        schedules=SCHEDULES[seed % len(SCHEDULES)],
        interleave=(1, 2),
        layouts="uneven" if seed % 3 else "even",
    )
    search_finds_the_best(instance, space, seed)


@pytest.mark.parametrize("schedule", ["zbv", "dualpipev", "interleaved_zb"])
def test_each_schedule_wins_over_1f1b_somewhere(schedule):
    """The enumeration above is of instances that tell them from it."""
    for seed in range(200):
        instance = random_instance(seed)
        space = replace(
            instance.space, schedules=("1f1b", schedule), interleave=(2,), layouts="uneven"
        )
        best = search(instance.problem, space).best
        if best and best.plan.point.schedule == schedule:
            return
    pytest.fail("1f1b is the best everywhere")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(40))
def test_no_plan_of_a_point_beats_its_screen(seed):
    """Opened points take at least their bounds, those that screens leave out fit nowhere, and what
    is as fast as the best is solved."""
    instance = random_instance(seed)
    if instance.problem.layers < 4:
        return
    space = replace(
        instance.space,
        schedules=SCHEDULES[3],
        interleave=(2,),
        layouts=("even", "uneven")[seed % 2],
    )
    try:
        frontier = Frontier(instance.problem, space)
    except InputError:  # no replica has as many micro-batches as any of them wants
        return
    opened = frontier.open(np.arange(len(frontier.rows)), float("inf"))
    bounds = dict(zip(opened.columns.number.tolist(), opened.limits.seconds.tolist(), strict=True))
    for number in range(len(frontier)):
        prepared = frontier.prepared(number)
        seconds, _ = frontier.solver.solve(prepared, float("inf"))
        assert bounds.get(number, float("inf")) <= seconds * (1 + 1e-12)
        assert max(frontier.bound_of(number), prepared.lower_bound) <= seconds * (1 + 1e-12)
        assert frontier.solver.solve(prepared, seconds)[0] == seconds


@pytest.mark.parametrize(
    ("schedule", "idle"), [("zbv", 2), ("dualpipev", 4), ("interleaved_zb", 2)]
)
def test_no_bound_counts_a_fill_that_gradients_of_weights_hide(schedule, idle):
    """Twelve equal layers on three stages, forward, B and W of a second each."""
    load, nothing, none = np.full(12, 3.0), np.zeros(12), np.zeros((3, 12))
    table = LayerTable(
        compute_s=load,
        forward_s=load / 3,
        weight_s=load / 3,
        replay_s=none,
        launch_s=none,
        calls={},
        parameters=nothing,
        expert_parameters=nothing,
        tied_parameters=0.0,
        kept_bytes=none,
        working_bytes=none,
        boundary_bytes=np.zeros(13),
    )
    problem = Problem(
        network=collapse(Hierarchical("row", (Tier("node", 3, 1.0, 0.0),))),
        table=lambda *_: table,
        batch=12,
        tokens=1,
        memory_bytes=1.0,
        reserved_bytes=0.0,
        state=StateBytes(2.0, 4.0, 12.0),
        update_Bps=1.0,
        model_flops=1.0,
        peak_flops=1.0,
    )
    axes = (1,), (False,), (1,), (3,), (1,), (0,), ("none",)
    space = SearchSpace(*axes, schedules=(schedule,), interleave=(2,))
    best = search(problem, space).best
    assert best.iteration_s == pytest.approx(12 * 12 + 2 * idle)
    assert search(problem, space, within_s=best.iteration_s).best is not None
