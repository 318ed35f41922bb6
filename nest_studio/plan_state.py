"""Plans and baselines, searched in worker processes and kept for everyone who asks again.

The key is the request's canonical text: the scenario document with its overrides. What no
session asks for any more is given up; plans go before baselines.
"""

from __future__ import annotations

import time
from dataclasses import replace

import streamlit as st

from nest_core.api.answer import Answer
from nest_core.baselines import Baseline
from nest_core.scenario import ScenarioValues, resolve_scenario
from nest_core.topology import Fabric
from nest_studio.forms import Request
from nest_studio.jobs import Job, Stopped, WorkerCrash, given_up, job_queue, submitted
from nest_studio.tasks.plans import Levelwise, levelwise_program
from nest_studio.tasks.requests import best_plan, priced_baselines, request_scenario, request_text

__all__ = [
    "answer_of",
    "baselines_missing",
    "baselines_of",
    "baselines_within",
    "canonical",
    "every_baseline",
    "fabric_of",
    "is_levelwise_there",
    "is_there_soon",
    "levelwise_of",
    "scenario_of",
    "submit_ahead",
    "submit_baselines",
    "submit_plan",
]

_AHEAD = "the next step"
POLL_S = 0.1
PATIENCE_S = 5.0


def canonical(request: Request) -> str:
    """The text that identifies a request."""
    return request_text(request.document, request.overrides)


def scenario_of(text: str) -> ScenarioValues:
    """The scenario of a canonical request; InputError where there is none."""
    return request_scenario(text)


def fabric_of(request: Request) -> Fabric:
    """The request's fabric, whatever the rest asks for; InputError where there is none."""
    own = {key: value for key, value in request.overrides.items() if key.startswith("fabric")}
    return resolve_scenario(request.document, own).fabric


def submit_plan(text: str) -> Job:
    """Have a canonical request planned, and give up this session's last jobs."""
    job = _plan(text, "plan")
    given_up(_AHEAD)
    return job


def submit_ahead(request: Request, before: Request | None) -> None:
    """Have the step after the last one planned, while nobody waits for anything else.

    Whoever moves a slider moves it further: where one number alone changed since the request
    ``before``, the same change once more.
    """
    text = _one_step_on(request, before) if before else ""
    if text and job_queue().idle:
        _plan(text, _AHEAD)


def _one_step_on(request: Request, before: Request) -> str:
    """The canonical text; empty where not exactly one number changed."""
    here, there = request.fields, before.fields
    if request.scenario != before.scenario or here.keys() != there.keys():
        return ""
    moved = [key for key, value in here.items() if value != there[key]]
    if len(moved) != 1 or {type(held[moved[0]]) for held in (here, there)} - {int, float}:
        return ""
    following = 2 * here[moved[0]] - there[moved[0]]
    return canonical(replace(request, overrides={**request.overrides, moved[0]: following}))


def answer_of(text: str, baselines: tuple[Baseline, ...] = ()) -> Answer:
    """Our plan for a canonical request, once it is there, beside these baselines."""
    result, network, interval = _plan(text).result()
    return Answer(scenario_of(text), network, result, baselines, interval)


def is_there_soon(text: str) -> bool:
    """Whether a canonical request has a plan to show, or will within seconds."""
    job = _plan(text, "plan before")
    until = time.monotonic() + PATIENCE_S
    while not job.wait(POLL_S) and time.monotonic() < until:
        st.session_state["awaited"] = "plan before"  # a newer run ends the wait
    return job.ended and not job.failed


def submit_baselines(text: str) -> None:
    """Have the baselines for a canonical request priced, and give up this session's last jobs."""
    _baselines(text, "baselines")
    if "nest" in scenario_of(text).baselines:
        _levelwise(text, "level-wise program")


def baselines_within(text: str, seconds: float) -> tuple[Baseline, ...] | None:
    """The baselines but NEST's program if they are there in time."""
    job = _baselines(text)
    try:
        found: tuple[Baseline, ...] = job.result(seconds)
    except TimeoutError:
        return None
    except Stopped:  # given up by who asked for it; it is begun anew
        return None
    except WorkerCrash:  # said by `baselines_missing`
        return ()
    return found


def baselines_of(text: str) -> tuple[Baseline, ...]:
    """The baselines but NEST's program, waited for; a newer run of the page ends the wait."""
    while (baselines := baselines_within(text, POLL_S)) is None:
        # Streamlit stops a run only where it touches the session.
        st.session_state["baselines awaited"] = True
    return baselines


def levelwise_of(text: str) -> Levelwise | None:
    """NEST's program beside our plan, likewise; None where it is not asked for or has no result."""
    if "nest" not in scenario_of(text).baselines:
        return None
    while True:
        try:
            found: Levelwise | None = _levelwise(text).result(POLL_S)
        except TimeoutError:
            st.session_state["baselines awaited"] = True
        except Stopped:
            continue
        except WorkerCrash:
            return None
        else:
            return found


def is_levelwise_there(text: str) -> bool:
    """Whether `levelwise_of` has its answer at hand."""
    return _levelwise(text).ended


def every_baseline(text: str) -> tuple[Baseline, ...]:
    """All baselines of a canonical request, in its order, when they are there."""
    nest = levelwise_of(text)
    known = {entry.name: entry for entry in baselines_of(text)}
    if nest is not None:
        known["nest"] = nest.baseline
    return tuple(known[name] for name in scenario_of(text).baselines if name in known)


def baselines_missing(text: str) -> str:
    """Why there are no baselines and will be none; empty if there are or may be."""
    return _baselines(text).without


def _plan(text: str, place: str = "") -> Job:
    return submitted(best_plan, text, place=place)


def _baselines(text: str, place: str = "") -> Job:
    return submitted(priced_baselines, text, urgent=False, place=place)


def _levelwise(text: str, place: str = "") -> Job:
    best = answer_of(text).best
    ours_s = best.iteration_s if best else None
    return submitted(levelwise_program, text, ours_s, urgent=False, place=place)
