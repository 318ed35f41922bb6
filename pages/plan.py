"""Plan a training job on a fabric: the form at the left, the answer at the right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from nest_core.documents.errors import InputError
from nest_core.documents.quoting import as_markdown
from nest_core.report.figures import entries, pending_entries
from nest_core.scenario import Scenario
from nest_studio.components.show import mark_results
from nest_studio.form.fabric import say_realised
from nest_studio.form.scenario import scenario_form
from nest_studio.jobs.waiting import there
from nest_studio.plan.state import (
    OtherPlans,
    answer_of,
    is_there_soon,
    plan_page,
    submit_ahead,
    submit_plan,
)
from nest_studio.plan.tabs import Tabs
from nest_studio.plan.tour import tour, tour_button
from nest_studio.plan.view import Cards, heading, middle, parts_of, plan_line
from nest_studio.session.own_fabric import follow_address
from nest_studio.session.training_run import TrainingRun, training_run

PATIENCE_S = 0.3
"""Baselines that take longer are awaited with the earlier ones in grey."""


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
    before, refused, shown = plan_page().scenario, "", None
    try:
        say_realised(notes, scenario.fabric)
        _ = scenario.values  # a scenario that is none is refused here, and no worker asked
        job = submit_plan(scenario)
        with waiting.container():
            is_there = there(job, "Planning", key="plan")
        if is_there:
            if not job.partial:
                waiting.empty()
            job.result(0)
            shown = scenario
    except InputError as error:
        refused = str(error)
        problem.error(as_markdown(refused))
    mark_results(earlier=shown is None)
    if shown is None and before is not None and is_there_soon(before):
        shown = before
    if shown is None and refused:  # the preset stands in grey where there is nothing else
        preset = replace(scenario, overrides={})
        with waiting.container():
            shown = (
                preset if there(submit_plan(preset), "Planning the preset", key="preset") else None
            )
    tour()
    if shown is not None:
        plan_page().scenario = shown
        with st.container(key="results"):
            show_answer(shown, run, before)


def show_answer(scenario: Scenario, run: TrainingRun, before: Scenario | None) -> None:
    """Draw our plan at once, then the baselines beside it."""
    answer = answer_of(scenario)
    others = OtherPlans(scenario, answer, wanted=True)
    heading(scenario, answer)
    baselines = others.within(0.0)
    cards = Cards()
    cards.draw(answer, run, None, baselines)
    parts = parts_of(answer, scenario)
    cards.draw(answer, run, parts, baselines)
    plan_line(answer)
    middle(answer, scenario, parts)
    submit_ahead(scenario, before)
    pending = baselines is None
    tabs = Tabs(replace(answer, baselines=baselines or ()), scenario, run, pending=pending)
    wanted, earlier = answer.scenario.baselines, plan_page().baselines
    if pending and (baselines := others.within(PATIENCE_S)) is None:
        tabs.draw(pending_entries(answer.result, wanted, earlier))
    baselines = others.priced()
    if pending:
        cards.draw(answer, run, parts, baselines)
    tabs.update(replace(answer, baselines=baselines))
    if not tabs.waits:
        return
    if not others.is_program_there:
        ours, *rest = entries(answer.result, baselines)
        program = pending_entries(answer.result, ["nest"], earlier)[1:]
        tabs.draw((ours, *program, *rest), others.missing)
    if "nest" in wanted:
        tabs.draw_levelwise(others.program())
    plan_page().baselines = others.every()
    tabs.draw(entries(answer.result, plan_page().baselines), others.missing)


main()
