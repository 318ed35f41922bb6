"""One's own measurements: the scenario at the left; logs, what they say, and what they change."""

import streamlit as st

from nest_core.documents import InputError
from nest_studio.components.show import AnswerArea
from nest_studio.form import say_realised, say_refusal, scenario_form
from nest_studio.measure.view import (
    bring_controls,
    current,
    follow_address,
    heading,
    next_part,
    no_measurements,
    plan_part,
    runs_part,
    say_in_address,
    stack_part,
)
from nest_studio.session.open_plan import go_to_opened
from nest_studio.session.own_fabric import follow_address as follow_fabric


def main() -> None:
    """Draw the page."""
    follow_fabric()
    follow_address()
    area = AnswerArea("measure")
    problem = st.container(key="problem")
    with st.sidebar:
        scenario, form = scenario_form()
    go_to_opened(form_is_here=True)
    is_ready = True
    try:
        say_realised(form, scenario.fabric)
    except InputError as error:
        say_refusal(form, scenario, error, problem)
        is_ready = False
    above = st.container()
    bring_controls(scenario)
    measurements = current()
    if not measurements.entries:
        with above:
            heading(measurements, None, scenario)
        no_measurements()
        say_in_address()
        return
    request = measurements.to_json(), scenario
    area.awaits(request if is_ready else None)
    with area.part("results", request):
        fit = runs_part(measurements)
    with above, area.part("results-title", request):
        heading(measurements, fit, scenario)
    with area.part("results-fit", request):
        if fit is not None:
            stack_part(fit)
        if fit is not None and fit.stack is not None and is_ready:
            plan_part(fit, scenario)
            next_part(fit, scenario)
    say_in_address()


main()
