"""Plans and baselines, searched in worker processes and kept for everyone who asks again.

The key is the request's canonical text: the scenario document with its overrides. What no
session asks for any more is given up; plans go before baselines.
"""

from __future__ import annotations

import streamlit as st

from nest_core.baselines import Baseline
from nest_core.planner import Result
from nest_core.scenario import Scenario, resolve_scenario
from nest_core.tasks import best_plan, priced_baselines, request_scenario, request_text
from nest_core.topology import Fabric
from nest_studio.forms import Request
from nest_studio.jobs import Job, Stopped, desk, wanted

__all__ = [
    "baselines_of",
    "baselines_within",
    "canonical",
    "fabric_of",
    "order_baselines",
    "order_plan",
    "plan_of",
    "scenario_of",
]

KEPT = 256
POLL_S = 0.1


def canonical(request: Request) -> str:
    """The text that identifies a request."""
    return request_text(request.document, request.overrides)


def scenario_of(text: str) -> Scenario:
    """The scenario of a canonical request; InputError where there is none."""
    return request_scenario(text)


def fabric_of(request: Request) -> Fabric:
    """The request's fabric, whatever the rest asks for; InputError where there is none."""
    own = {key: value for key, value in request.overrides.items() if key.startswith("fabric")}
    return resolve_scenario(request.document, own).fabric


def order_plan(text: str) -> Job:
    """Have a canonical request planned, and give up this session's last order."""
    job = _plan(text)
    wanted("plan ordered", job)
    return job


def plan_of(text: str) -> Result:
    """The search's result for a canonical request, once it is there."""
    found: Result = _plan(text).result()
    return found


def order_baselines(text: str) -> None:
    """Have the baselines for a canonical request priced, and give up this session's last order."""
    wanted("baselines ordered", _baselines(text))


def baselines_within(text: str, seconds: float) -> tuple[Baseline, ...] | None:
    """The baselines if they are there in time."""
    job = _baselines(text)
    try:
        found: tuple[Baseline, ...] = job.result(seconds)
    except TimeoutError:
        return None
    except Stopped:  # given up by who ordered it; it is begun anew
        return None
    return found


def baselines_of(text: str) -> tuple[Baseline, ...]:
    """The baselines when they are there; a newer run of the page ends the wait."""
    while (baselines := baselines_within(text, POLL_S)) is None:
        # Streamlit stops a run only where it touches the session.
        st.session_state["baselines awaited"] = True
    return baselines


def _plan(text: str) -> Job:
    return desk().ask(f"plan {text}", best_plan, text)


def _baselines(text: str) -> Job:
    return desk().ask(f"baselines {text}", priced_baselines, text, urgent=False)
