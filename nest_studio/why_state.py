"""Explanations of plans, computed once per request and kept for everyone who asks again.

What takes searches is done by worker processes.

The key is the request's canonical text, as in `nest_studio.plan_state`. Nothing here is computed
before its part of the page is opened.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import streamlit as st

from nest_core.costs.price import Report
from nest_core.tasks import next_best_choices, worth_of_more
from nest_core.why import (
    Equation,
    Mine,
    StageBinding,
    bindings,
    equations,
    price_pasted,
)
from nest_studio.commands.output import plain
from nest_studio.jobs import Job, ordered
from nest_studio.plan_state import KEPT, scenario_of

__all__ = [
    "PATIENCE_S",
    "bindings_of",
    "equations_of",
    "mine_of",
    "next_best_job",
    "worth_of_more_job",
]

PATIENCE_S = 30.0
"""What all searches for one part of the page may take together."""


@st.cache_data(max_entries=KEPT, show_spinner=False, hash_funcs={Report: pickle.dumps})
def bindings_of(text: str, best: Report) -> tuple[StageBinding, ...]:
    """What binds every stage of a plan for a request."""
    return bindings(scenario_of(text).problem(), best)


@st.cache_data(max_entries=KEPT, show_spinner=False, hash_funcs={Report: pickle.dumps})
def equations_of(text: str, best: Report) -> tuple[Equation, ...]:
    """The equations behind a plan for a request."""
    return equations(scenario_of(text).problem(), best)


def next_best_job(text: str, best: Report) -> Job:
    """The next best on every axis: a tuple of `NextBest`."""
    return _beside("next best", next_best_choices, text, best)


def worth_of_more_job(text: str, best: Report) -> Job:
    """Shadow prices, and what the plan as it is would gain; see `worth_of_more`."""
    return _beside("shadow prices", worth_of_more, text, best)


@st.cache_data(max_entries=KEPT, show_spinner=False)
def mine_of(text: str, pasted: str, placement: str = "") -> Mine:
    """A pasted plan priced on a request; InputError where it is none."""
    return price_pasted(scenario_of(text), pasted, placement)


def _beside(what: str, task: Callable[..., Any], text: str, best: Report) -> Job:
    """A job beside a plan, which is not always the best: a search may have been cancelled."""
    key = f"{what} {json.dumps(plain(best.plan.to_json()))} {text}"
    return ordered(key, task, text, best, PATIENCE_S, urgent=False, place=what)
