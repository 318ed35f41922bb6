"""Plans and baselines, searched in worker processes and kept for everyone who asks again.

What no session asks for any more is given up; plans go before baselines.
"""

from __future__ import annotations

import time
from dataclasses import replace

import streamlit as st

from nest_core.api.answer import Answer
from nest_core.planner.baselines import Baseline
from nest_core.scenario import Scenario
from nest_studio.jobs.tasks.plans import Levelwise, levelwise_program
from nest_studio.jobs.tasks.requests import best_plan, priced_baselines
from nest_studio.jobs.waiting import Job, Stopped, WorkerCrash, given_up, job_queue, submitted

__all__ = [
    "answer_of",
    "baselines_missing",
    "baselines_of",
    "baselines_within",
    "every_baseline",
    "is_levelwise_there",
    "is_there_soon",
    "levelwise_of",
    "submit_ahead",
    "submit_baselines",
    "submit_plan",
]

_AHEAD = "the next step"
POLL_S = 0.1
PATIENCE_S = 5.0


def submit_plan(scenario: Scenario) -> Job:
    """Have a scenario planned, and give up this session's last jobs."""
    job = _plan(scenario, "plan")
    given_up(_AHEAD)
    return job


def submit_ahead(scenario: Scenario, before: Scenario | None) -> None:
    """Have the step after the last one planned, while nobody waits for anything else.

    Whoever moves a slider moves it further: where one number alone changed since the scenario
    ``before``, the same change once more.
    """
    following = _next_step(scenario, before) if before else None
    if following and job_queue().idle:
        _plan(following, _AHEAD)


def _next_step(scenario: Scenario, before: Scenario) -> Scenario | None:
    """Return the scenario one change further; None where not exactly one number changed."""
    here, there = scenario.overrides, before.overrides
    moved = [key for key in {**here, **there} if here.get(key) != there.get(key)]
    if scenario.document != before.document or len(moved) != 1:
        return None
    (key,) = moved
    now, earlier = scenario.setting(key), before.setting(key)
    if {type(now), type(earlier)} - {int, float}:
        return None
    return replace(scenario, overrides={**here, key: 2 * now - earlier})


def answer_of(scenario: Scenario, baselines: tuple[Baseline, ...] = ()) -> Answer:
    """Our plan for a scenario, once it is there, beside these baselines."""
    result, network, interval = _plan(scenario).result()
    return Answer(scenario.values, network, result, baselines, interval)


def is_there_soon(scenario: Scenario) -> bool:
    """Whether a scenario has a plan to show, or will within seconds."""
    job = _plan(scenario, "plan before")
    until = time.monotonic() + PATIENCE_S
    while not job.wait(POLL_S) and time.monotonic() < until:
        st.session_state["awaited"] = "plan before"  # a newer run ends the wait
    return job.ended and not job.failed


def submit_baselines(scenario: Scenario) -> None:
    """Have the baselines for a scenario priced, and give up this session's last jobs."""
    _baselines(scenario, "baselines")
    if "nest" in scenario.values.baselines:
        _levelwise(scenario, "level-wise program")


def baselines_within(scenario: Scenario, seconds: float) -> tuple[Baseline, ...] | None:
    """The baselines but NEST's program if they are there in time."""
    job = _baselines(scenario)
    try:
        found: tuple[Baseline, ...] = job.result(seconds)
    except TimeoutError:
        return None
    except Stopped:  # given up by who asked for it; it is begun anew
        return None
    except WorkerCrash:  # said by `baselines_missing`
        return ()
    return found


def baselines_of(scenario: Scenario) -> tuple[Baseline, ...]:
    """The baselines but NEST's program, waited for; a newer run of the page ends the wait."""
    while (baselines := baselines_within(scenario, POLL_S)) is None:
        # Streamlit stops a run only where it touches the session.
        st.session_state["baselines awaited"] = True
    return baselines


def levelwise_of(scenario: Scenario) -> Levelwise | None:
    """NEST's program beside our plan, likewise; None where it is not asked for or has no result."""
    if "nest" not in scenario.values.baselines:
        return None
    while True:
        try:
            found: Levelwise | None = _levelwise(scenario).result(POLL_S)
        except TimeoutError:
            st.session_state["baselines awaited"] = True
        except Stopped:
            continue
        except WorkerCrash:
            return None
        else:
            return found


def is_levelwise_there(scenario: Scenario) -> bool:
    """Whether `levelwise_of` has its answer at hand."""
    return _levelwise(scenario).ended


def every_baseline(scenario: Scenario) -> tuple[Baseline, ...]:
    """All baselines of a scenario, in its order, when they are there."""
    nest = levelwise_of(scenario)
    known = {entry.name: entry for entry in baselines_of(scenario)}
    if nest is not None:
        known["nest"] = nest.baseline
    return tuple(known[name] for name in scenario.values.baselines if name in known)


def baselines_missing(scenario: Scenario) -> str:
    """Why there are no baselines and will be none; empty if there are or may be."""
    return _baselines(scenario).without


def _plan(scenario: Scenario, place: str = "") -> Job:
    return submitted(best_plan, scenario, place=place)


def _baselines(scenario: Scenario, place: str = "") -> Job:
    return submitted(priced_baselines, scenario, urgent=False, place=place)


def _levelwise(scenario: Scenario, place: str = "") -> Job:
    best = answer_of(scenario).best
    ours_s = best.iteration_s if best else None
    return submitted(levelwise_program, scenario, ours_s, urgent=False, place=place)
