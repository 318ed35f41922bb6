"""What the Explore page remembers: its job and the last answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from nest_core.studies.parameter import SweepParameter, Value, with_values
from nest_studio.forms import Request
from nest_studio.jobs import submitted, there
from nest_studio.open_plan import open_plan

__all__ = ["awaited", "inputs_of", "last_answer", "open_point"]


def inputs_of(request: Request) -> dict[str, Any]:
    """A request as the plain values that studies take."""
    return {"document": request.document, "overrides": request.overrides}


def awaited(name: str, what: str, work: Callable[..., Any], inputs: Mapping[str, Any]) -> Any:
    """The answer of a study, computed in a worker; None while it is not there.

    Meanwhile its progress stands here, or why there is none and a way to try again. What this page
    asked for before and no longer wants is stopped.

    Parameters
    ----------
    name : str
        Tells studies of the page apart.
    what : str
        What is computed, in words.
    work : callable (inputs, \\*, progress, stop)
    inputs : mapping
        Plain values.

    Raises
    ------
    InputError
        What the study refuses.
    """
    key = f"{name} {json.dumps(inputs, sort_keys=True)}"
    job = submitted(key, work, dict(inputs), urgent=False, place="explore")
    if not there(job, what, key=f"explore-{name}"):
        return None
    found = job.result(0)
    st.session_state[f"explore {name} answer"] = found
    return found


def last_answer(name: str) -> Any:
    """The last answer that this session saw; None before the first."""
    return st.session_state.get(f"explore {name} answer")


def open_point(request: Request, pairs: tuple[tuple[SweepParameter, Value], ...]) -> None:
    """Have a point opened on the Plan page, for a button's callback."""
    said = ", ".join(
        f"{parameter.label} {parameter.words(value)} {parameter.unit}".strip()
        for parameter, value in pairs
        if parameter.fabric
    )
    open_plan(request.scenario, with_values(request.overrides, pairs), said)
