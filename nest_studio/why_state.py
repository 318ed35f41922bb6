"""Explanations of plans, computed once per request and kept for everyone who asks again.

The key is the request's canonical text, as in `nest_studio.plan_state`. Nothing here is computed
before its part of the page is opened.
"""

from __future__ import annotations

import streamlit as st

from nest_core.costs.price import Report
from nest_core.planner import shadow_prices
from nest_core.why import (
    Equation,
    Gain,
    Mine,
    NextBest,
    StageBinding,
    bindings,
    equations,
    gains,
    next_best,
    price_pasted,
)
from nest_studio.plan_state import KEPT, plan_of, scenario_of

__all__ = [
    "PATIENCE_S",
    "bindings_of",
    "equations_of",
    "mine_of",
    "next_best_of",
    "shadow_prices_of",
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


@st.cache_data(max_entries=KEPT, show_spinner="Planning without each choice …")
def next_best_of(text: str) -> tuple[NextBest, ...]:
    """The next best on every axis."""
    scenario = scenario_of(text)
    limit = min(PATIENCE_S, scenario.time_limit_s)
    return next_best(scenario.problem(), scenario.space, _best(text), time_limit_s=limit)


@st.cache_data(max_entries=KEPT, show_spinner="Planning with 1 % more of each resource …")
def shadow_prices_of(text: str) -> tuple[dict[str, float | None], dict[str, Gain]]:
    """Shadow prices, and what the plan as it is would gain."""
    scenario, best = scenario_of(text), _best(text)
    problem = scenario.problem()
    limit = min(PATIENCE_S, scenario.time_limit_s)
    prices = shadow_prices(problem, scenario.space, best.iteration_s, limit)
    return prices, gains(problem, best.plan)


@st.cache_data(max_entries=KEPT, show_spinner=False)
def mine_of(text: str, pasted: str, placement: str = "") -> Mine:
    """A pasted plan priced on a request; InputError where it is none."""
    scenario = scenario_of(text)
    return price_pasted(scenario.problem(), scenario.model, pasted, placement)


def _best(text: str) -> Report:
    best = plan_of(text).best
    if best is None:
        raise LookupError("a request without a plan has nothing to explain")
    return best
