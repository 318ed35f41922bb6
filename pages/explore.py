"""Sweep parameters of a scenario: the form at the left, the question above, the answer below."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from nest_core.documents import InputError
from nest_core.documents.schema import Parameter
from nest_core.scenario import Scenario
from nest_core.studies.parameters import sweep_parameters
from nest_core.studies.sweeps import Sweep, highest_ratios, sweep
from nest_studio.components.show import AnswerArea, told
from nest_studio.explore.shared import shared_part
from nest_studio.explore.studies import studies_part
from nest_studio.explore.view import (
    ASKS,
    BY_PARAMETERS,
    RATIOS,
    SHARED,
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
from nest_studio.form import (
    ADDRESS,
    one_of,
    say_realised,
    say_refusal,
    scenario_form,
    scenario_heading,
)
from nest_studio.jobs.waiting import panel, submitted
from nest_studio.session.open_plan import go_to_opened
from nest_studio.session.own_fabric import follow_address
from nest_studio.session.stored import session_value

AT_ONCE = 20
"""Sweeps of more points wait for a click."""


def main() -> None:
    """Draw the page."""
    follow_address()
    area = AnswerArea("explore")
    problem = st.container(key="problem")
    with st.sidebar:
        scenario, form = scenario_form()
    go_to_opened(form_is_here=True)
    page, is_refused = session_value(ExplorePage), False
    try:
        say_realised(form, scenario.fabric)
        parameters = sweep_parameters(scenario)
    except InputError as error:
        say_refusal(form, scenario, error, problem)
        is_refused = True
        scenario = page.scenario or replace(scenario, overrides={})
        parameters = sweep_parameters(scenario)
    page.scenario = scenario
    top = st.container()
    opens = openings(parameters)
    options = (*opens, SWEEP, RATIOS, SHARED, STUDIES)
    # Who asks by parameters, as older links do, asks no opening question.
    usual = SWEEP if any(key in st.query_params for key in BY_PARAMETERS) else options[0]
    asks = one_of(
        st, "What to ask", options, usual, ASKS, bind=ADDRESS, label_visibility="collapsed"
    )
    if asks == STUDIES:
        studies_part(scenario, page.sweep[1] if page.sweep else (), problem, top)
        return
    if asks == SHARED:
        shared_part(problem, top)
        return
    if asks == RATIOS:
        with told(problem.error):
            ratios_part(page, scenario, area)
        if page.ratios is None:
            answer_part(area, top, area.awaited, scenario, lambda _: None)
        else:
            ratios, inputs = page.ratios
            answer_part(
                area,
                top,
                inputs,
                Scenario(inputs["document"], inputs["overrides"]),
                partial(show_ratios, ratios, inputs),
            )
    else:
        turned = (
            opening_controls(parameters, opens[asks])
            if asks in opens
            else turn_controls(parameters)
        )
        with told(problem.error):
            sweep_part(page, scenario, turned, area)
        if page.sweep is None:
            answer_part(area, top, area.awaited, scenario, lambda _: None)
        else:
            request = page.sweep[1:]
            answer_part(area, top, request, request[1], partial(show_sweep, *page.sweep))
    if is_refused:
        area.awaits(None)


def answer_part(
    area: AnswerArea, top: Any, request: object, scenario: Scenario, draw: Callable[[Any], None]
) -> None:
    """Draw what a request came to, under its own title: the last one's until the next is there."""
    with top, area.part("results-title", request):
        words, pins = st.columns([12, 1], vertical_alignment="bottom")
        with words:
            scenario_heading(title_of(scenario), scenario.overrides)
    with area.part("results", request):
        draw(pins)


def sweep_part(
    page: ExplorePage, scenario: Scenario, texts: list[tuple[Parameter, str]], area: AnswerArea
) -> None:
    """Have swept what one or two parameters do."""
    area.awaits(None)
    turned = values_of(texts)
    area.awaits((turned, scenario))
    result = swept(page, scenario, turned)
    if result is not None:
        page.sweep = result, turned, scenario


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


def ratios_part(page: ExplorePage, scenario: Scenario, area: AnswerArea) -> None:
    """Have the highest ratio of every tier found."""
    mix, loss = mix_controls(scenario)
    inputs = inputs_of(scenario) | {"mix": mix, "loss": loss}
    area.awaits(inputs)
    job = submitted(highest_ratios, scenario, mix, loss, place="explore", urgent=False)
    result = panel(job, "Trying ratios", key="explore-ratios")
    if result is not None:
        page.ratios = result, inputs


main()
