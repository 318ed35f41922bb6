"""Alpa-E against every plan of small cases: the least latency on its mesh, memory afterwards."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from small_problems import Priced, Small, every_cut, every_point, small_problem

from nest_core.costs import Plan, price
from nest_core.planner.baselines import alpa_e
from nest_core.planner.baselines.baseline import mesh, row_length
from nest_core.scenario import load_scenario

FAMILIES = {
    "degrees": {"pp": (1, 2, 3, 4)},
    "experts": {"ep": (1, 2), "cp": (1, 2)},
    "schedules": {
        "schedules": ("gpipe", "1f1b", "interleaved"), "interleave": (1, 2, 3), "zero": (0, 2),
        "recompute": ("none", "full"),
    },
    "filled": {"idle_devices": False, "sp": (False,), "recompute": ("full",)},
}  # fmt: skip
CASES = [(family, seed) for family in FAMILIES for seed in range(12)]
SLOW = ("experts", 8)


def case(family: str, seed: int) -> Small:
    """A small problem of a family."""
    return small_problem(seed, experts=family == "experts", axes=FAMILIES[family])


def shapes(problem, points):
    """Stages of whole rows or equal parts of one, and then the most devices."""
    row = row_length(problem.network)
    sizes = {point: point.tp * point.cp * point.dp for point in points}
    shaped = [p for p in points if sizes[p] % row == 0 or row % sizes[p] == 0] or points
    most = max(point.devices_used for point in shaped)
    return [point for point in shaped if point.devices_used == most]


@cache
def by_enumeration(family: str, seed: int) -> tuple[float, float]:
    """Least latency on the mesh of settings that fit, and of all; infinite where there is none.

    A setting is a depth, schedule, micro-batch and recomputation of all stages; its plan is the
    fastest of all shardings and cuts, whatever it needs.
    """
    small = case(family, seed)
    view = mesh(small.problem)
    space = replace(small.space, cp=(min(small.space.cp),), orders=(("tp", "cp", "dp", "pp"),))
    priced, settings = Priced(view), {}
    for point in shapes(view, list(every_point(view, space))):
        for recompute in space.recompute:
            key = (point.pp, point.micro_batch, point.schedule, point.interleave, recompute)
            for cuts in every_cut(view.layers, point):
                found = priced(Plan(point, cuts, (recompute,) * point.pp))
                settings[key] = min(settings.get(key, found), found, key=lambda pair: pair[0])
    fitting = [seconds for seconds, fits in settings.values() if fits]
    every = [seconds for seconds, _ in settings.values()]
    return min(fitting, default=float("inf")), min(every)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("family", "seed"),
    [pytest.param(*case, marks=pytest.mark.check if case == SLOW else ()) for case in CASES],
)
def test_alpa_takes_the_fastest_setting_that_turns_out_to_fit(family, seed):
    """Or, if none fits, the fastest of all, which is then infeasible."""
    small = case(family, seed)
    found = alpa_e.find(small.problem, small.space)
    fitting, every = by_enumeration(family, seed)
    assert found.plan is not None
    report = price(mesh(small.problem), found.plan)
    best = every if fitting == float("inf") else fitting
    assert report.iteration_s == pytest.approx(best, rel=1e-9)
    assert price(small.problem, found.plan).feasible == (fitting < float("inf"))
    assert found.plan.point.cp == 1


@pytest.mark.check
def test_memory_afterwards_makes_a_difference():
    """Among the cases some have no setting that fits, and some a slower one than the fastest."""
    infeasible = slower = pipelined = 0
    for family, seed in CASES:
        small = case(family, seed)
        fitting, every = by_enumeration(family, seed)
        infeasible += fitting == float("inf")
        slower += every * (1 + 1e-9) < fitting < float("inf")
        plan = alpa_e.find(small.problem, small.space).plan
        pipelined += plan is not None and plan.point.pp > 1
    assert infeasible >= 3
    assert slower >= 5
    assert pipelined >= 5


@pytest.mark.parametrize("seed", range(12))
def test_all_devices_work_in_one_pipeline_if_any_point_allows_it(seed):
    """A stage's share of the mesh is whole rows or an equal part of one."""
    small = small_problem(seed)
    plan = alpa_e.find(small.problem, small.space).plan
    assert plan is not None
    points = shapes(small.problem, list(every_point(small.problem, small.space)))
    assert plan.point.devices_used == points[0].devices_used
    assert plan.point.order == ("tp", "cp", "dp", "pp")


def test_experts_over_tensor_parallel_ranks_need_no_more_devices_than_there_are():
    """A crash: experts of eight, whole on each of 16 tensor-parallel ranks, on 64 devices."""
    asked = load_scenario(
        "llama2-7b-64-h100",
        ['workload.model="mixtral-8x7b"', "workload.global_batch_sequences=64", "search.tp=16",
         "search.ep=8", "search.etp=1", "search.sp=true", "search.cp=1", "search.pp=1",
         "search.micro_batch_sequences=1"],
    )  # fmt: skip
    found = alpa_e.find(asked.problem(), asked.space)
    assert found.plan is not None
    assert (found.plan.point.ep, found.plan.point.etp) == (8, 1)
