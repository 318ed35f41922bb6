"""The next best on every axis: against all points of a space, each with its best stages."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from nest_core.costs import price
from nest_core.planner import search
from nest_core.report.explain import AXES, next_best
from nest_core.report.explain.axes import choice, without
from nest_core.report.explain.words import axes_table
from nest_core.scenario import load_scenario

SMALL = (
    "search.tp=[1,2,4]",
    "search.pp=[1,2,4]",
    "search.cp=[1,2]",
    "search.dp=[4,8,16]",
    "search.micro_batch_sequences=[1,2]",
    "search.zero=[0,1]",
    "search.sp=[false,true]",
    "search.schedule=['1f1b','gpipe']",
    "search.interleave=[1]",
)
OUTER = ("tp", "pp", "dp", "cp", "sp", "zero", "micro_batch", "schedule")


def planned(*sets):
    scenario = load_scenario("llama2-7b-64-h100", [*SMALL, *sets])
    problem = scenario.problem()
    return problem, scenario.space, search(problem, scenario.space).best


def every_plan(problem, space):
    """The best of each point, schedule by schedule: a search may set a worse twin aside."""
    for schedule in space.schedules:
        found = search(problem, replace(space, schedules=(schedule,)), top=100_000)
        yield from (report for report in (found.best, *found.alternatives) if report)


def differs(plan, best, axis):
    """Whether a plan does something else on an axis, effects counting and not names."""
    point, mine = plan.point, best.point
    if axis == "zero":
        return (point.zero if point.sharers > 1 else 0) != (mine.zero if mine.sharers > 1 else 0)
    if axis == "schedule":
        return point.pp > 1 and point.schedule != mine.schedule
    return getattr(point, axis) != getattr(mine, axis)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "sets",
    [
        (),
        ("search.zero=[0,2]",),
        ("accelerator.memory_GiB=24",),
        ("accelerator.memory_GiB=14", "search.zero=[0,1,2,3]"),
    ],
)
@pytest.mark.sampled(2)
def test_nothing_that_differs_is_faster(sets):
    """A failure: a choice is called dearer, or cheaper, than it is."""
    problem, space, best = planned(*sets)
    every = list(every_plan(problem, space))
    found = {entry.axis: entry for entry in next_best(problem, space, best)}
    compared = 0
    for axis in OUTER:
        others = [report for report in every if differs(report.plan, best.plan, axis)]
        if axis not in found:
            assert len(set(getattr(space, "schedules" if axis == "schedule" else axis))) == 1
            continue
        entry = found[axis]
        assert entry.proven
        if not others:
            assert entry.report is None
            assert entry.reason
            continue
        least = min(report.iteration_s for report in others)
        assert entry.report.iteration_s == pytest.approx(least, rel=1e-9), axis
        assert entry.difference == pytest.approx(least / best.iteration_s - 1, abs=1e-9)
        assert entry.difference >= -1e-12
        assert differs(entry.report.plan, best.plan, axis)
        assert entry.chosen == choice(best.plan, axis)
        compared += 1
    assert compared >= 5


@pytest.mark.parametrize("memory", [29.5, 30.5, 31.5, 42])
@pytest.mark.sampled(4)
def test_recomputation_goes_without_what_some_stage_does(memory):
    """Stages choose freely, so every plan of an outer point is enumerated here."""
    sets = (
        "search.tp=4",
        "search.cp=1",
        "search.pp=2",
        "search.dp=8",
        "search.zero=0",
        "search.micro_batch_sequences=2",
        "search.sp=false",
        "search.schedule='1f1b'",
        "search.order=['tp','cp','dp','pp']",
        f"accelerator.memory_GiB={memory}",
    )
    problem, space, best = planned(*sets)
    entry = next(e for e in next_best(problem, space, best) if e.axis == "recompute")
    times = []
    names = ("none", "selective", "full")
    for cut, chosen in itertools.product(range(1, 34), itertools.product(names, repeat=2)):
        if set(best.plan.recompute) <= set(chosen):
            continue
        plan = type(best.plan)(best.plan.point, (0, cut, 34), chosen)
        report = price(problem, plan)
        if report.feasible:
            times.append(report.iteration_s)
    assert (entry.report is None) == (not times)
    if times:
        assert entry.report.iteration_s == pytest.approx(min(times), rel=1e-9)


def test_orders_that_place_alike_are_one():
    problem, space, best = planned("search.pp=1", "search.cp=1", "search.tp=1", "search.dp=16")
    assert all(entry.axis != "order" for entry in next_best(problem, space, best))
    for smaller in without(space, best.plan, "dp"):
        assert best.plan.point.dp not in smaller.dp


def test_a_choice_without_effect_is_no_other_choice():
    """Other ZeRO stages come with ranks to shard over, other schedules with a pipeline."""
    _, space, report = planned("search.zero=[0,2]", "search.dp=[1,4,8,16]")
    best = report.plan
    for zero, cp in ((0, 1), (2, 2)):
        point = replace(best.point, zero=zero, cp=cp, pp=1, schedule="1f1b")
        plan = replace(best, point=point)
        sharded = without(space, plan, "zero")
        assert sharded
        for smaller in sharded:
            assert zero not in smaller.zero
            assert zero or 1 not in smaller.dp or 1 not in smaller.cp
        (piped,) = without(space, plan, "schedule")
        assert piped.schedules == ("gpipe",)
        assert 1 not in piped.pp


def test_without_time_nothing_is_proven():
    """The clock leaps, so that every search ends at once; what is missing has its reason."""
    problem, space, best = planned()
    ticks = itertools.count(0.0, 1000.0)
    found = next_best(problem, space, best, time_limit_s=1.0, clock=lambda: next(ticks))
    assert found
    assert all(not entry.proven for entry in found)
    assert all(entry.report is not None or entry.reason for entry in found)


def test_the_table_puts_the_dearest_first():
    problem, space, best = planned()
    found = next_best(problem, space, best)
    shown = axes_table(found)
    named = {AXES[entry.axis]: entry.difference for entry in found}
    order = [named[row["Axis"]] for row in shown.rows if row["Costs"] != "–"]
    assert order == sorted(order, reverse=True)
    first = next(row for row in shown.rows if row["Costs"] != "–")
    assert shown.title.lower().startswith(first["Axis"].lower())
    assert axes_table(()).title == "The search leaves no other choice on any axis"
