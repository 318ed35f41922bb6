"""What worker processes do for pages: scenarios in, values out.

Names in a page's scenario lead to presets alone. Every task takes ``progress`` (a share from 0 to
1, and words) and ``stop`` (whether nobody waits any more).
"""

import importlib
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from itertools import chain
from typing import Any, TypeVar

from nest_core.costs import Interval, Problem, Report
from nest_core.network import Outline
from nest_core.paper import Reproduction, reproduce
from nest_core.paper.reproduction import Costs
from nest_core.planner import (
    HeadRoom,
    NamedPlans,
    SearchResult,
    head_room_steps,
    search,
    shadow_prices,
)
from nest_core.planner.baselines import Baseline, evaluate_baselines
from nest_core.report.explain import Gain, NextBest, gains, name_stack_for_search, next_best
from nest_core.report.explain.training import Training, training
from nest_core.scenario import Scenario
from nest_core.studies.recommended import DrawResult, Recommended, recommended, search_draws
from nest_core.studies.solving import Stop, Tell
from nest_core.studies.uncertainty import interval_of

__all__ = [
    "Stop",
    "Tell",
    "announced",
    "best_plan",
    "next_best_choices",
    "paper_result",
    "priced_baselines",
    "problem_of",
    "recommended_plan",
    "searched_draws",
    "warm_up",
    "worth_of_head_room",
    "worth_of_more",
]

KEPT = 4
"""Problems that a worker keeps: those of a drawing may be large."""

Found = TypeVar("Found")


def announced(words: str) -> Callable[[Callable[..., Found]], Callable[..., Found]]:
    """A task made of work that goes in one step, which can be neither watched nor stopped."""

    def task_of(work: Callable[..., Found]) -> Callable[..., Found]:
        @wraps(work)
        def task(*args: Any, progress: Tell, stop: Stop) -> Found:
            progress(0.0, words)
            return work(*args)

        return task

    return task_of


def warm_up(scenario: Scenario, *, progress: Tell, stop: Stop) -> None:
    """Import what the first task would wait for, and plan a scenario, whose result nobody reads.

    A process loads compiled loops when it first runs them, and keeps the layers that it priced:
    the first plan of each takes three times as long as the next.
    """
    for name in ("nest_studio.jobs.tasks.plans", "nest_studio.jobs.tasks.fabrics"):
        importlib.import_module(name)
    best_plan(scenario, progress=progress, stop=stop)


@lru_cache(maxsize=KEPT)
def problem_of(scenario: Scenario) -> Problem:
    """Return what plans of a scenario are priced from: for workers, as the arrays may be large."""
    return scenario.values.problem()


def best_plan(
    scenario: Scenario, known: NamedPlans = (), *, progress: Tell, stop: Stop
) -> tuple[SearchResult, Outline, Interval | None, Training | None]:
    """The result of a search from known plans, once stopped the best plan so far with its gap; its
    network; and where the plan's time will lie, and its training run."""
    values, problem = scenario.values, problem_of(scenario)

    result = search(
        problem,
        values.space,
        top=values.top,
        time_limit_s=values.time_limit_s,
        known=known,
        progress=lambda now: progress(now.share, now.words),
        stop=stop,
    )
    result = name_stack_for_search(values, result)
    if result.best is None:
        return result, problem.network.outline, None, None
    interval = interval_of(values, problem, result.best)
    run = training(values, result.best, None, interval, problem.network)
    return result, problem.network.outline, interval, run


def priced_baselines(
    scenario: Scenario, *, progress: Tell, stop: Stop
) -> tuple[tuple[Baseline, Training | None], ...] | None:
    """The baselines of a scenario but NEST's program with their training runs, one after another;
    None once stopped."""
    values, problem = scenario.values, problem_of(scenario)
    results: list[tuple[Baseline, Training | None]] = []
    names = [name for name in values.baselines if name != "nest"]
    for number, name in enumerate(names):
        if stop():
            return None
        progress(number / len(names), name)
        (baseline,) = evaluate_baselines(
            problem,
            values.space,
            values.model,
            (name,),
            seed=values.seed,
            as_in_paper=values.baseline_space == "paper",
            time_limit_s=values.time_limit_s,
        )
        run = None
        if baseline.feasible and baseline.report:
            interval = interval_of(values, problem, baseline.report)
            run = training(values, baseline.report, None, interval, problem.network)
        results.append((baseline, run))
    return tuple(results)


@announced("computing")
def paper_result(name: str, costs: Costs) -> Reproduction:
    """Return a figure or table of the paper beside ours."""
    return reproduce(name, costs)


@announced("planning without each choice")
def next_best_choices(scenario: Scenario, best: Report) -> tuple[NextBest, ...]:
    """Return the next best plan on every axis."""
    values = scenario.values
    return next_best(problem_of(scenario), values.space, best, time_limit_s=values.time_limit_s)


@announced("planning with 1 % more of each resource")
def worth_of_more(
    scenario: Scenario, best: Report
) -> tuple[dict[str, float | None], dict[str, Gain]]:
    """Shadow prices, and what the plan as it is would gain."""
    values, problem = scenario.values, problem_of(scenario)
    prices = shadow_prices(problem, values.space, best.iteration_s, values.time_limit_s)
    return prices, gains(problem, best.plan)


@announced("planning with more and less head-room")
def worth_of_head_room(scenario: Scenario, best: Report) -> tuple[HeadRoom, ...]:
    """Return the best plan at each certainty of fitting."""
    values = scenario.values
    return head_room_steps(problem_of(scenario), values.space, (best,), values.time_limit_s)


def searched_draws(
    scenario: Scenario, best: Report, first: int, last: int, *, progress: Tell, stop: Stop
) -> tuple[DrawResult, ...] | None:
    """Draws from the first to before the last, searched anew; None once stopped without any."""
    values = scenario.values
    return (
        search_draws(
            values,
            problem_of(scenario),
            best.plan,
            range(first, last),
            seed=values.seed,
            progress=progress,
            stop=stop,
        )
        or None
    )


@announced("pricing what won under a thousand draws")
def recommended_plan(
    scenario: Scenario, best: Report, parts: Sequence[tuple[DrawResult, ...]]
) -> Recommended:
    """Return the plan of least expected time, and how sure that is."""
    values, won = scenario.values, tuple(chain(*parts))
    return recommended(values, problem_of(scenario), best.plan, won, seed=values.seed)
