"""Plan a training job on a fabric: the form at the left, the answer at the right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from nest_core.api.answer import Answer
from nest_core.costs.communication import IterationPart
from nest_core.report.figures import entries, pending_entries
from nest_core.scenario import Scenario
from nest_studio.components.browser.again import run_again
from nest_studio.components.show import mark_results, told
from nest_studio.form.fabric import say_realised
from nest_studio.form.scenario import scenario_form
from nest_studio.jobs.waiting import panel, wait_a_moment
from nest_studio.plan.state import (
    OtherPlans,
    answer_of,
    is_there,
    plan_again,
    plan_page,
    submit_plan,
)
from nest_studio.plan.tabs import Methods, tabs
from nest_studio.plan.tour import tour, tour_button
from nest_studio.plan.view import Cards, heading, middle, parts_of, plan_line
from nest_studio.session.own_fabric import follow_address
from nest_studio.session.training_run import TrainingRun, training_run

LOOK_EVERY_S = 0.3
"""Whether other methods have ended."""


def main() -> None:
    """Draw the page."""
    follow_address()
    problem = st.container(key="problem")
    with st.container(key="waiting"):  # always there, so that nothing below it moves
        waiting = st.empty()
    notes: list[Any] = []
    with st.sidebar:
        scenario = scenario_form(notes)
        run = training_run()
        tour_button()
    before, planned = plan_page().scenario, None
    with told(problem.error):
        say_realised(notes, scenario.fabric)
        _ = scenario.values  # a scenario that is none is refused here, and no worker asked
        with waiting.container():
            if panel(submit_plan(scenario), "Planning", key="plan") is not None:
                planned = scenario
    mark_results(earlier=planned is None)
    if planned is None and before is not None and is_there(before):
        planned = before
    tour()
    if planned is not None:
        plan_page().scenario = planned
        with st.container(key="results"):
            show_answer(planned, run)


def show_answer(scenario: Scenario, run: TrainingRun) -> None:
    """Draw our plan at once, and beside it the baselines that are there in a moment or before."""
    answer = answer_of(scenario)
    others = OtherPlans(scenario, answer, wanted=True)
    heading(scenario, answer)
    cards = Cards()
    cards.draw(answer, run, None, others.priced())
    parts = parts_of(answer, scenario)
    plan_line(answer)
    middle(answer, scenario, parts)
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
    pending = others.pending
    methods = methods_of(answer, others)
    plan_again(scenario, answer, ((entry.label, entry.report) for entry in methods.baselines or ()))
    cards.draw(answer, run, parts, methods.baselines)
    tabs(replace(answer, baselines=methods.baselines or ()), scenario, run, methods)
    if pending:
        run_again("methods", pending, every_s=LOOK_EVERY_S, key="other-methods")


def methods_of(answer: Answer, others: OtherPlans) -> Methods:
    """Return what all methods came to, with the last ones in grey where they are awaited."""
    priced, earlier = others.priced(), plan_page().baselines
    if priced is None:
        rows = pending_entries(answer.result, answer.scenario.baselines, earlier)
    elif not others.is_program_there:
        ours, *rest = entries(answer.result, priced)
        rows = (ours, *pending_entries(answer.result, ["nest"], earlier)[1:], *rest)
    else:
        priced = plan_page().baselines = others.every()
        rows = entries(answer.result, priced)
    return Methods(rows, priced, others.program(), others.missing, others.is_program_there)


main()
