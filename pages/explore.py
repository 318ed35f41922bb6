"""Sweep parameters of a scenario: the form at the left, the question above, the answer below."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import streamlit as st

from nest_core.documents import InputError, as_markdown
from nest_core.documents.schema import Parameter
from nest_core.scenario import Scenario
from nest_core.studies.parameters import sweep_parameters
from nest_core.studies.ratios import highest_ratios
from nest_core.studies.sweeps import Sweep, sweep
from nest_studio.components.show import mark_results, told
from nest_studio.explore.studies import studies_part
from nest_studio.explore.view import (
    ASKS,
    BY_PARAMETERS,
    RATIOS,
    STUDIES,
    SWEEP,
    ExplorePage,
    axes_of,
    inputs_of,
    mix_controls,
    opening_controls,
    openings,
    show_ratios,
    show_sweep,
    title_of,
    turn_controls,
    values_of,
)
from nest_studio.form.fabric import say_realised
from nest_studio.form.fields import ADDRESS, one_of
from nest_studio.form.scenario import scenario_form, scenario_heading
from nest_studio.jobs.waiting import panel, submitted
from nest_studio.session.open_plan import go_to_opened
from nest_studio.session.own_fabric import follow_address
from nest_studio.session.states import session_value

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
    page, is_refused = session_value(ExplorePage), False
    try:
        say_realised(notes, scenario.fabric)
        parameters = sweep_parameters(scenario)
    except InputError as error:
        problem.error(as_markdown(error))
        is_refused = True
        scenario = page.scenario or replace(scenario, overrides={})
        parameters = sweep_parameters(scenario)
    mark_results(earlier=is_refused)
    page.scenario = scenario
    top = st.container()
    opens = openings(parameters)
    options = (*opens, SWEEP, RATIOS, STUDIES)
    # Who asks by parameters, as older links do, asks no opening question.
    usual = SWEEP if any(key in st.query_params for key in BY_PARAMETERS) else options[0]
    asks = one_of(
        st, "What to ask", options, usual, ASKS, bind=ADDRESS, label_visibility="collapsed"
    )
    if asks == STUDIES:
        studies_part(scenario, page.sweep[1] if page.sweep else (), problem, top)
        return
    with top:
        words, pins = st.columns([12, 1], vertical_alignment="bottom")
        with words:
            scenario_heading(title_of(scenario), scenario.overrides)
    if asks == RATIOS:
        ratios_part(page, scenario, problem, pins)
    else:
        turned = (
            opening_controls(parameters, opens[asks])
            if asks in opens
            else turn_controls(parameters)
        )
        sweep_part(page, scenario, turned, problem, pins)


def sweep_part(
    page: ExplorePage,
    scenario: Scenario,
    texts: list[tuple[Parameter, str]],
    problem: Any,
    pins: Any,
) -> None:
    """Draw what one or two parameters do, or in grey what others did; nothing before a first."""
    result = None
    with told(problem.error):
        turned = values_of(texts)
        result = swept(page, scenario, turned)
    if result is not None:
        page.sweep = result, turned, scenario
    elif page.sweep is not None:
        mark_results(earlier=True)
    if page.sweep is not None:
        with st.container(key="results"):
            show_sweep(*page.sweep, pins)


def swept(page: ExplorePage, scenario: Scenario, turned: list[Parameter]) -> Sweep | None:
    """Return the sweep, or None while it is not there."""
    axes = axes_of(turned)
    points = math.prod(len(parameter.values) for parameter in turned)
    if points > AT_ONCE and page.run != (scenario, axes):
        words, button = st.columns([6, 1], vertical_alignment="center")
        words.info(f"{points} points, each planned anew.")
        button.button(
            "Run",
            key="explore-run",
            on_click=setattr,
            args=(page, "run", (scenario, axes)),
            width="stretch",
        )
        return None
    job = submitted(sweep, scenario, axes, place="explore", urgent=False)
    result: Sweep | None = panel(job, "Planning", key="explore-sweep")
    return result


def ratios_part(page: ExplorePage, scenario: Scenario, problem: Any, pins: Any) -> None:
    """Draw the highest ratio of every tier, likewise."""
    result = None
    with told(problem.error):
        mix, loss = mix_controls(scenario)
        job = submitted(highest_ratios, scenario, mix, loss, place="explore", urgent=False)
        result = panel(job, "Trying ratios", key="explore-ratios")
    if result is not None:
        page.ratios = result, inputs_of(scenario) | {"mix": mix, "loss": loss}
    elif page.ratios is not None:
        mark_results(earlier=True)
    if page.ratios is not None:
        with st.container(key="results"):
            show_ratios(*page.ratios, pins)


main()
