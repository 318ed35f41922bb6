"""Plan a training job on a fabric: the form at the left, the answer at the right."""

from dataclasses import replace

import streamlit as st

from nest_core.api.answer import Answer
from nest_core.costs.communication import IterationPart
from nest_core.documents import InputError
from nest_core.report.figures import entries
from nest_core.scenario import Scenario
from nest_studio.components.show import AnswerArea, nothing_yet, run_again, told
from nest_studio.form import say_realised, say_refusal, scenario_form
from nest_studio.jobs.waiting import panel, wait_a_moment
from nest_studio.plan.state import (
    OtherPlans,
    answer_of,
    is_there,
    plan_again,
    plan_page,
    submit_plan,
)
from nest_studio.plan.tabs import tabs
from nest_studio.plan.tour import tour, tour_button
from nest_studio.plan.view import Cards, heading, middle, plan_line
from nest_studio.session.own_fabric import follow_address
from nest_studio.session.training_run import TrainingRun, training_run

LOOK_EVERY_S = 0.3
"""Whether other methods have ended."""


def main() -> None:
    """Draw the page."""
    follow_address()
    area = AnswerArea("plan")
    problem = st.container(key="problem")
    with st.container(key="waiting"):  # always there, so that nothing below it moves
        waiting = st.empty()
    with st.sidebar:
        scenario, form = scenario_form()
        run = training_run()
        tour_button()
    before, planned = plan_page().scenario, None
    try:
        say_realised(form, scenario.fabric)
        _ = scenario.values  # a scenario that is none is refused here, and no worker asked
        area.awaits(scenario)
        with waiting.container():
            if panel(submit_plan(scenario), "Planning", key="plan") is not None:
                planned = scenario
    except InputError as error:
        say_refusal(form, scenario, error, problem)
        if before is None:
            nothing_yet("No plan yet")
    if planned is None and before is not None and is_there(before):
        planned = before
    tour()
    if planned is not None:
        plan_page().scenario = planned
        plan_page().failures = {"failures": run.failures} if run.failures else {}
        with told(problem.error):  # failures of one's own may not fit the plan
            show_answer(area, planned, run)


def show_answer(area: AnswerArea, scenario: Scenario, run: TrainingRun) -> None:
    """Draw our plan at once, and beside it the baselines that are there in a moment or before."""
    answer = answer_of(scenario)
    with area.part("results", scenario):
        heading(scenario, answer)
        cards = Cards()
        cards.draw(answer, run, None, OtherPlans(scenario, answer).trainings())
        plan_line(answer)
    with area.part("results-middle", scenario):
        parts = middle(answer, scenario)
    with area.part("results-methods", scenario):
        OtherPlans(scenario, answer, wanted=True)
        show_methods(answer, scenario, run, cards, parts)


@st.fragment(key="methods")
def show_methods(
    answer: Answer,
    scenario: Scenario,
    run: TrainingRun,
    cards: Cards,
    parts: tuple[IterationPart, ...] | None,
) -> None:
    """Draw what other methods came to, again and again until all have ended."""
    others = OtherPlans(scenario, answer)
    wait_a_moment(others.pending)
    awaited, baselines = others.awaited, others.every()
    rows = entries(answer.result, baselines, awaited)
    plan_again(scenario, answer, ((row.name, row.report) for row in rows[1:]))
    cards.draw(answer, run, parts, others.trainings())
    tabs(replace(answer, baselines=baselines), scenario, run, rows, others)
    if awaited:
        run_again("methods", others.pending, every_s=LOOK_EVERY_S, key="other-methods")


main()
