"""Searches that are watched, limited, cancelled, or asked for what contradicts itself."""

from __future__ import annotations

import io
import itertools
import os
import signal
from dataclasses import replace

import pytest

from nest_core.documents.errors import InputError
from nest_core.documents.units import humanise_seconds
from nest_core.planner import search
from nest_core.scenario import load_scenario
from nest_studio.commands.output import watched

NAME = "llama3-70b-1024-h100-4to1"


@pytest.fixture(scope="module")
def asked():
    scenario = load_scenario(NAME)
    return scenario.problem(), scenario.space


@pytest.fixture(scope="module")
def whole(asked):
    return search(*asked)


def test_progress_only_ever_closes_in(asked, whole):
    seen = []
    search(*asked, progress=seen.append)
    assert len(seen) == whole.certificate.solved
    for before, after in itertools.pairwise(seen):
        assert after.best_s <= before.best_s
        assert after.solved > before.solved
        assert after.infeasible >= before.infeasible
    for now in seen:
        assert now.points == whole.certificate.points
        assert 0 <= now.bounded <= now.points - now.solved - now.infeasible
        assert now.lower_bound_s <= whole.best.iteration_s * (1 + 1e-9)
    assert seen[-1].best_s == whole.best.iteration_s


def test_a_cancelled_search_answers_with_its_best_and_its_gap(asked, whole):
    solved = []

    def stop():
        return len(solved) >= 2

    cut = search(*asked, progress=solved.append, stop=stop)
    assert cut.certificate.solved == 2
    assert not cut.certificate.proven
    assert cut.best.feasible
    assert cut.certificate.lower_bound_s <= whole.best.iteration_s <= cut.best.iteration_s
    expected = 1 - cut.certificate.lower_bound_s / cut.best.iteration_s
    assert cut.certificate.gap == pytest.approx(expected)


def test_a_search_cancelled_before_any_plan_says_so(asked):
    result = search(*asked, stop=lambda: True)
    assert result.best is None
    assert not result.certificate.proven
    assert result.reason == (
        "the search was cancelled before any plan was found: let it run longer"
    )


def test_a_search_is_never_behind_known_plans_of_its_space(asked, whole):
    """Even one that is stopped at once; plans that the space does not hold are passed over."""
    problem, space = asked
    plan = whole.best.plan
    stopped = search(problem, space, known=[("theirs", plan)], stop=lambda: True)
    assert stopped.best == whole.best
    assert not stopped.certificate.proven
    assert stopped.certificate.stopped == "stopped when cancelled, its plan from theirs"
    others = replace(space, pp=tuple(pp for pp in space.pp if pp != plan.point.pp))
    assert search(problem, others, known=[("theirs", plan)], stop=lambda: True).best is None
    everything = replace(plan, recompute=("full",) * plan.point.pp)
    behind = search(problem, space, known=[("slow", everything)], stop=lambda: True)
    assert behind.best.plan == everything
    assert behind.best.iteration_s > whole.best.iteration_s
    rivals = [("none", None), ("slow", behind.best), ("theirs", whole.best)]
    assert behind.plans_ahead(rivals) == (("theirs", plan),)
    assert stopped.plans_ahead(rivals) == whole.plans_ahead(rivals) == ()
    assert search(problem, others, stop=lambda: True).plans_ahead(rivals) == ()


def test_known_plans_change_nothing_in_a_search_that_ends(asked):
    plain = search(*asked, top=3)
    known = [report.plan for report in (plain.best, *plain.alternatives)]
    worse = replace(known[1], recompute=("full",) * known[1].point.pp)
    again = search(*asked, top=3, known=[("theirs", plan) for plan in (*known, worse)])
    assert again.best.iteration_s == pytest.approx(plain.best.iteration_s, rel=1e-11)
    assert again.certificate.proven
    points = [report.plan.point for report in (again.best, *again.alternatives)]
    assert len(set(points)) == 3
    for before, after in zip(plain.alternatives, again.alternatives, strict=True):
        assert after.iteration_s == pytest.approx(before.iteration_s, rel=1e-11)


def test_the_time_limit_shows_as_a_gap(asked, whole):
    """A clock that jumps late in the search."""
    read = itertools.count()
    search(*asked, clock=lambda: 0.0 * next(read))
    ticks = itertools.chain([0.0] * (next(read) * 3 // 4), itertools.repeat(100.0))
    cut = search(*asked, time_limit_s=50.0, clock=lambda: next(ticks))
    assert not cut.certificate.proven
    assert cut.certificate.lower_bound_s <= whole.best.iteration_s <= cut.best.iteration_s


@pytest.mark.parametrize("effort", [1e-6, 1e-5, 1e-4, 5e-4])
def test_a_search_ends_by_its_work_and_not_by_the_clock(asked, effort):
    """However slowly the clock lets it, it stops at the same plan, gap and certificate."""
    outcomes = [
        search(*asked, top=3, effort=effort, clock=itertools.count(step=step).__next__)
        for step in (1e-9, 1e9)
    ]
    one, other = (replace(result, solve_seconds=0.0) for result in outcomes)
    assert one == other
    assert one.certificate.ended == "after its share of work"
    assert one.certificate.open > 0


def test_a_search_with_more_work_is_no_worse(asked, whole):
    results = [search(*asked, effort=10.0**power) for power in range(-6, 1)]
    bounds = [result.certificate.lower_bound_s for result in results]
    assert bounds == sorted(bounds)
    seconds = [result.best.iteration_s for result in results if result.best]
    assert seconds == sorted(seconds, reverse=True)
    assert results[-1].certificate.proven
    assert results[-1].best == whole.best


@pytest.fixture(scope="module")
def mixed():
    """A problem small enough to be proven soon, and its space with stages that differ."""
    sets = ["search.pp=[1,2,4]", "search.micro_batch_sequences=[1,2]", "accelerator.memory_GiB=30"]
    scenario = load_scenario("llama2-7b-64-h100", sets)
    return scenario.problem(), replace(scenario.space, mixed=True)


@pytest.mark.parametrize("more", [0, 1, 5, 40])
@pytest.mark.sampled(4)
def test_a_mixed_search_out_of_time_keeps_the_uniform_plan(mixed, more):
    """The clock jumps some time after the plan with equal stages was proven."""
    problem, space = mixed
    read = itertools.count()
    uniform = search(problem, replace(space, mixed=False), clock=lambda: 0.0 * next(read))
    assert uniform.certificate.proven
    ticks = itertools.chain([0.0] * (next(read) + 1 + more), itertools.repeat(100.0))
    cut = search(problem, space, time_limit_s=50.0, clock=lambda: next(ticks))
    told = cut.certificate
    assert not told.proven
    assert cut.best is not None
    assert cut.best.iteration_s <= uniform.best.iteration_s
    assert told.lower_bound_s <= cut.best.iteration_s
    assert told.gap == pytest.approx(1 - told.lower_bound_s / cut.best.iteration_s)


def test_points_that_nobody_looked_at_are_not_bounded(asked):
    """Stopped at once: hardly anything is known of any point."""
    told = search(*asked, stop=lambda: True).certificate
    assert not told.solved
    assert told.bounded + told.infeasible < told.points / 10


def test_an_interrupt_ends_the_search_and_not_the_program(asked):
    seen = []

    def note(now):
        seen.append(now)
        os.kill(os.getpid(), signal.SIGINT)

    with watched(io.StringIO()) as (_, stop):
        cut = search(*asked, progress=note, stop=stop)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert len(seen) == 1
    assert not cut.certificate.proven


def test_a_terminal_is_told_where_the_search_is(asked):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    out, seconds = Terminal(), itertools.count()
    with watched(out, clock=lambda: float(next(seconds))) as (progress, _):
        search(*asked, progress=progress)
    assert " solved, " in out.getvalue()
    assert "best none yet" not in out.getvalue().rsplit("\r", 1)[1]


def test_a_known_time_shortens_the_search_and_changes_nothing(asked, whole):
    known = search(*asked, within_s=whole.best.iteration_s)
    assert known.best.plan == whole.best.plan
    assert known.certificate.proven
    assert known.certificate.solved <= whole.certificate.solved
    short = search(*asked, within_s=0.99 * whole.best.iteration_s)
    assert short.best is None
    assert short.certificate.proven
    limit = humanise_seconds(0.99 * whole.best.iteration_s)
    assert short.reason.startswith(f"no plan takes at most {limit}")


@pytest.mark.parametrize(
    ("pins", "field", "remedy"),
    [
        (
            {"tp": (8,), "dp": (64,), "pp": (4,)},
            "tp x search.cp", "search.dp = 32, or search.pp = 2",
        ),
        ({"dp": (48,), "micro_batch": (1,)}, "search.dp", "search.dp = 64"),
        ({"micro_batch": (3,), "dp": (4,)}, "search.dp", "search.micro_batch_sequences = 4"),
        ({"micro_batch": (5000,), "dp": (1,)}, "search.", "search.micro_batch_sequences = 1024"),
        ({"pp": (99,)}, "search.pp", "search.pp = 82"),
        (
            {"tp": (8,), "dp": (2,), "pp": (3,), "idle_devices": False},
            "search.idle_devices", "search.idle_devices = true",
        ),
    ],
)  # fmt: skip
def test_contradicting_pins_are_told_the_nearest_change(asked, pins, field, remedy):
    problem, space = asked
    with pytest.raises(InputError) as told:
        search(problem, replace(space, cp=(1,), **pins))
    assert field in told.value.field
    assert remedy in told.value.remedy
    assert told.value.remedy.startswith("set ")
