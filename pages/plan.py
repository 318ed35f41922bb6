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
    answer_of,
    baselines_missing,
    baselines_of,
    baselines_within,
    every_baseline,
    is_levelwise_there,
    is_there_soon,
    levelwise_of,
    submit_ahead,
    submit_baselines,
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
    ready, refused = False, ""
    try:
        say_realised(notes, scenario.fabric)
        _ = scenario.values  # a scenario that is none is refused here, and no worker asked
        job = submit_plan(scenario)
        with waiting.container():
            ready = there(job, "Planning", key="plan")
        if ready:
            if not job.partial:
                waiting.empty()
            job.result(0)
    except InputError as error:
        ready, refused = False, str(error)
        problem.error(as_markdown(refused))
    shown: Scenario | None = scenario if ready else st.session_state.get("last good")
    if shown is not None and not is_there_soon(shown):
        shown = None
    if shown is None and refused:
        with waiting.container():
            shown = preset_answer(scenario)
    mark_results(earlier=not ready)
    tour()
    if shown is not None:
        before = st.session_state.get("last good")
        st.session_state["last good"] = shown
        with st.container(key="results"):
            show_answer(shown, run, before)


def preset_answer(scenario: Scenario) -> Scenario | None:
    """What to leave standing in grey where there is nothing else; None while it is planned."""
    preset = replace(scenario, overrides={})
    return preset if there(submit_plan(preset), "Planning the preset", key="preset") else None


def show_answer(scenario: Scenario, run: TrainingRun, before: Scenario | None) -> None:
    """Our plan at once, then the baselines beside it."""
    answer = answer_of(scenario)
    result, wanted = answer.result, answer.scenario.baselines
    heading(scenario, answer)
    submit_baselines(scenario)
    baselines = baselines_within(scenario, 0.0)
    cards = Cards()
    cards.draw(answer, run, None, baselines)
    parts = parts_of(answer, scenario)
    cards.draw(answer, run, parts, baselines)
    plan_line(answer)
    middle(answer, scenario, parts)
    submit_ahead(scenario, before)
    earlier = st.session_state.get("baselines", ())
    known = answer if baselines is None else replace(answer, baselines=baselines)
    tabs = Tabs(known, scenario, run, pending=baselines is None)
    if baselines is None:
        baselines = baselines_within(scenario, PATIENCE_S)
    if baselines is None:
        tabs.draw(pending_entries(result, wanted, earlier))
        baselines = baselines_of(scenario)
    cards.draw(answer, run, parts, baselines)
    tabs.update(replace(answer, baselines=baselines))
    missing = baselines_missing(scenario)
    if not tabs.waits:
        return
    if "nest" in wanted:
        if not is_levelwise_there(scenario):
            ours, *others = entries(result, baselines)
            tabs.draw((ours, *pending_entries(result, ["nest"], earlier)[1:], *others), missing)
        tabs.draw_levelwise(levelwise_of(scenario))
        baselines = every_baseline(scenario)
    st.session_state["baselines"] = baselines
    tabs.draw(entries(result, baselines), missing)


main()
