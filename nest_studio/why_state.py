"""Explanations of plans, computed once per request and kept for everyone who asks again.

What takes searches is done by worker processes.

The key is the request's canonical text, as in `nest_studio.plan_state`. Nothing here is computed
before its part of the page is opened.
"""

from __future__ import annotations

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
from nest_studio.jobs import Job, desk
from nest_studio.plan_state import KEPT, plan_of, scenario_of

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


@st.cache_data(max_entries=KEPT, show_spinner=False)
def bindings_of(text: str) -> tuple[StageBinding, ...]:
    """What binds every stage of a request's plan."""
    return bindings(scenario_of(text).problem(), _best(text))


@st.cache_data(max_entries=KEPT, show_spinner=False)
def equations_of(text: str) -> tuple[Equation, ...]:
    """The equations behind a request's plan."""
    return equations(scenario_of(text).problem(), _best(text))


def next_best_job(text: str) -> Job:
    """The next best on every axis: a tuple of `NextBest`."""
    return desk().ask(
        f"next best {text}", next_best_choices, text, _best(text), PATIENCE_S, urgent=False
    )


def worth_of_more_job(text: str) -> Job:
    """Shadow prices, and what the plan as it is would gain; see `worth_of_more`."""
    return desk().ask(
        f"shadow prices {text}", worth_of_more, text, _best(text), PATIENCE_S, urgent=False
    )


@st.cache_data(max_entries=KEPT, show_spinner=False)
def mine_of(text: str, pasted: str, placement: str = "") -> Mine:
    """A pasted plan priced on a request; InputError where it is none."""
    return price_pasted(scenario_of(text), pasted, placement)


def _best(text: str) -> Report:
    best = plan_of(text).best
    if best is None:
        raise LookupError("a request without a plan has nothing to explain")
    return best
