"""Sweep parameters of a scenario: the form at the left, the question above, the answer below."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import streamlit as st

from nest_core.documents.errors import InputError
from nest_core.documents.quoting import as_markdown
from nest_core.documents.schema import Parameter
from nest_core.scenario import Scenario
from nest_core.scenario.titles import fabric_title
from nest_core.studies.parameters import sweep_parameters
from nest_core.studies.ratios import highest_ratios
from nest_core.studies.sweeps import sweep
from nest_studio.components.show import mark_results, told
from nest_studio.explore.studies import studies_part
from nest_studio.explore.view import (
    ASKS,
    BY_PARAMETERS,
    RATIOS,
    STUDIES,
    SWEEP,
    Swept,
    axes_of,
    inputs_of,
    mix_controls,
    opening_controls,
    openings,
    show_ratios,
    show_sweep,
    turn_controls,
    values_of,
)
from nest_studio.form.fabric import say_realised
from nest_studio.form.fields import ADDRESS, hold, one_of
from nest_studio.form.scenario import scenario_form, scenario_heading
from nest_studio.jobs.waiting import panel, submitted
from nest_studio.session.open_plan import go_to_opened
from nest_studio.session.own_fabric import follow_address

AT_ONCE = 20
"""Sweeps of more points wait for a click."""


def main() -> None:
    """Draw the page."""
    follow_address()
    problem = st.container(key="problem")
    notes: list[Any] = []
    with st.sidebar:
        scenario = scenario_form(notes)
    go_to_opened(form_is_here=True)
    try:
        say_realised(notes, scenario.fabric)
        found = sweep_parameters(scenario)
    except InputError as error:
        problem.error(as_markdown(error))
        mark_results(earlier=True)
        scenario = st.session_state.get("explore request", replace(scenario, overrides={}))
        found = sweep_parameters(scenario)
    else:
        mark_results(earlier=False)
        st.session_state["explore request"] = scenario
    top = st.container()
    opens = openings(found)
    options = (*opens, SWEEP, RATIOS, STUDIES)
    # Who asks by parameters, as older links do, asks no opening question.
    usual = SWEEP if any(key in st.query_params for key in BY_PARAMETERS) else options[0]
    asks = one_of(
        st, "What to ask", options, usual, ASKS, bind=ADDRESS, label_visibility="collapsed"
    )
    if asks == STUDIES:
        _, turned = st.session_state.get("explore turned", (None, ()))
        studies_part(scenario, turned, problem, top)
        return
    with top:
        pins = heading(scenario)
    if asks == RATIOS:
        ratios_part(scenario, problem, pins)
        return
    texts = opening_controls(found, opens[asks]) if asks in opens else turn_controls(found)
    sweep_part(scenario, texts, problem, pins)


def heading(scenario: Scenario) -> Any:
    """What is swept; the place at its right is returned."""
    left, right = st.columns([12, 1], vertical_alignment="bottom")
    with left:
        scenario_heading(title_of(scenario), scenario.overrides)
    return right


def title_of(scenario: Scenario) -> str:
    """The scenario's title; its fabric's where a parameter has yet to make a scenario of it."""
    try:
        return scenario.title
    except InputError:
        return fabric_title(scenario.fabric)


def sweep_part(
    scenario: Scenario, texts: list[tuple[Parameter, str]], problem: Any, pins: Any
) -> None:
    """One or two parameters with the text of their values."""
    found = None
    with told(problem.error):
        turned = values_of(texts)
        found = answer(scenario, turned)
    if found is None:
        show_earlier("sweep", pins)
        return
    st.session_state["explore turned"] = (scenario, turned)
    with st.container(key="results"):
        show_sweep(found, turned, scenario, pins)


def answer(scenario: Scenario, turned: list[Swept]) -> Any:
    """The sweep, or None while it is not there."""
    inputs = scenario, axes_of(turned)
    points = math.prod(len(values) for _, values in turned)
    if points > AT_ONCE and st.session_state.get("explore asked") != inputs:
        left, right = st.columns([6, 1], vertical_alignment="center")
        left.info(f"{points} points, each planned anew.")
        right.button(
            "Run", key="explore-run", on_click=hold, args=("explore asked", inputs), width="stretch"
        )
        return None
    return study("sweep", "Planning", sweep, *inputs)


def ratios_part(scenario: Scenario, problem: Any, pins: Any) -> None:
    """The highest ratio of every tier."""
    found = None
    with told(problem.error):
        mix, loss = mix_controls(scenario)
        inputs = inputs_of(scenario) | {"mix": mix, "loss": loss}
        found = study("ratios", "Trying ratios", highest_ratios, scenario, mix, loss)
    if found is None:
        show_earlier("ratios", pins)
        return
    st.session_state["explore mix"] = inputs
    with st.container(key="results"):
        show_ratios(found, inputs, pins)


def study(name: str, what: str, work: Callable[..., Any], *inputs: Any) -> Any:
    """The answer of a study, which the session keeps; None while it is not there.

    What this page asked for before and no longer wants is stopped.
    """
    found = panel(
        submitted(work, *inputs, place="explore", urgent=False), what, key=f"explore-{name}"
    )
    if found is not None:
        st.session_state[f"explore {name} answer"] = found
    return found


def show_earlier(name: str, pins: Any) -> None:
    """What was there before, in grey; at the first visit nothing."""
    found = st.session_state.get(f"explore {name} answer")
    if found is None:
        return
    mark_results(earlier=True)
    with st.container(key="results"):
        if name == "ratios":
            show_ratios(found, st.session_state["explore mix"], pins)
        else:
            scenario, turned = st.session_state["explore turned"]
            show_sweep(found, turned, scenario, pins)


main()
