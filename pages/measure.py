"""One's own measurements: the scenario at the left; logs, what they say, and what they change."""

from __future__ import annotations

from typing import Any

import streamlit as st

from nest_core.documents import InputError, as_markdown
from nest_studio.form.fabric import say_realised
from nest_studio.form.scenario import scenario_form
from nest_studio.measure.state import current, follow_address, say_in_address, take_problem
from nest_studio.measure.view import (
    bring_controls,
    heading,
    next_part,
    no_measurements,
    plan_part,
    runs_part,
    stack_part,
)
from nest_studio.session.open_plan import go_to_opened
from nest_studio.session.own_fabric import follow_address as follow_fabric


def main() -> None:
    """Draw the page."""
    follow_fabric()
    follow_address()
    problem = st.container(key="problem")
    notes: list[Any] = []
    with st.sidebar:
        scenario = scenario_form(notes)
    go_to_opened(form_is_here=True)
    is_ready = True
    try:
        say_realised(notes, scenario.fabric)
    except InputError as error:
        problem.error(as_markdown(error))
        is_ready = False
    above = st.container()
    bring_controls(scenario)
    measurements = current()
    if refused := take_problem():
        problem.error(as_markdown(refused))
    if not measurements.entries:
        with above:
            heading(measurements, None, scenario)
        no_measurements()
        say_in_address()
        return
    with st.container(key="results"):
        fit = runs_part(measurements)
        with above:
            heading(measurements, fit, scenario)
        if fit is not None:
            stack_part(fit)
        if fit is not None and fit.stack is not None and is_ready:
            plan_part(fit, scenario)
            next_part(fit, scenario)
    say_in_address()


main()
