"""Compare two to six scenarios: which is better, for what money and power, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from nest_core.documents import InputError, as_markdown
from nest_core.documents.schema import in_labels
from nest_core.scenario import Scenario
from nest_core.studies.comparison import (
    FEWEST,
    Comparison,
    assumptions_of,
    budget_of,
    comparison_of,
    with_overrides,
)
from nest_core.studies.whole_bill import Candidate
from nest_studio.compare.state import (
    CompareEntry,
    compare_page,
    entries,
    follow_address,
    inputs_of,
    sound,
)
from nest_studio.compare.view import answer, compared_list, comparison_table, figures, more_to_find
from nest_studio.components.show import AnswerArea, facts, told
from nest_studio.form.prices import TypedPrices, bill_and_use
from nest_studio.jobs.tasks.designs import further_design, planned_design
from nest_studio.jobs.waiting import WorkerJob, given_up, panel, submitted, wait_a_moment
from nest_studio.plan.certainty import sure_difference
from nest_studio.session.open_plan import go_to_opened
from nest_studio.session.own_fabric import follow_address as follow_own_fabric
from nest_studio.session.own_fabric import say_in_address

PLANS, MORE = "compared design", "more of a design"
Shown = tuple[str, Comparison, dict[str, Any]]
"""A comparison with its jobs' keys and what it was asked."""


def main() -> None:
    """Draw the page."""
    go_to_opened()
    follow_own_fabric()
    say_in_address(shown=False)
    unread = follow_address()
    problem = st.container(key="problem")
    every = entries()
    good, left_out = sound(every)
    with st.sidebar:
        compared_list(good)
        typed = bill_and_use(good[0].scenario.values if good else None)
        asks = more_to_find()
    if unread:
        st.warning(unread)
    if left_out:
        problem.error("  \n".join(map(as_markdown, left_out)))
    if len(every) < FEWEST:
        st.info(f"Add {'two scenarios' if not every else 'another scenario'} to compare.")
        return
    fresh, pending, area = None, False, AnswerArea("compare")
    area.awaits(None)
    with told(problem.error):
        if len(good) >= FEWEST:
            asks["prices"] = dict(typed.changes) if asks["budget"] else {}
            area.awaits(inputs_of(good, asks))
            *_, failures = assumptions_of(typed.assumed)
            fresh, pending = answered(good, asks, failures)
    answer = compare_page().answer = fresh or compare_page().answer
    if answer is not None:
        with area.part("results", answer[2]), told(problem.error):
            results(answer, typed, pending=pending)


def results(shown: Shown, typed: TypedPrices, *, pending: bool) -> None:
    """The answer, and folded below it everything else."""
    key, of_any_price, inputs = shown
    comparison = of_any_price.at(typed.changes, typed.assumed)
    answer(comparison, inputs, typed, pending=pending)
    if pending:
        facts("More of it is still being planned …", kind="nest-quiet")
    more = st.expander("More figures: stages, levels", key="more", on_change="rerun")
    if more.open:
        with more:
            figures(f"{key} {typed}", comparison, pending=pending)
    table = st.expander("All figures side by side", key="all-figures", on_change="rerun")
    if table.open:
        with table:
            comparison_table(comparison)
    differences(comparison, inputs)


@st.fragment
def differences(comparison: Comparison, inputs: dict[str, Any]) -> None:
    """How sure the differences are, when that is opened."""
    scenarios = {
        entry["name"]: Scenario(entry["document"], entry["overrides"])
        for entry in inputs["entries"]
    }
    candidates = comparison.candidates
    sure_difference([scenarios[candidate.name] for candidate in candidates], candidates)


def answered(
    listed: Sequence[CompareEntry], asks: dict[str, Any], failures: Mapping[str, Any]
) -> tuple[Shown | None, bool]:
    """The comparison of the designs that are there, and whether more of it is to come.

    Every design is planned by itself; equal budget, failed switches and NEST's program, which take
    several more searches each, follow; spares, of which ``failures`` says how many there are, take
    the places of what goes with a switch. What is awaited shows its progress here, what failed why.
    """
    plans = [
        submitted(planned_design, entry.scenario, place=f"{PLANS} {entry.number}")
        for entry in listed
    ]
    wait_a_moment(plans)
    jobs = {f"{PLANS} {entry.number}": plan for entry, plan in zip(listed, plans, strict=True)}
    first = listed[0].scenario if asks["budget"] else None
    candidates: dict[CompareEntry, Candidate] = {}
    for entry, plan in zip(listed, plans, strict=True):
        candidate = design_of(plan, entry, "planning")
        if candidate is None:
            continue
        candidates[entry] = replace(candidate, name=entry.name)
        if asks["budget"] or asks["failures"] or asks["level_wise"]:
            scenario = with_overrides(entry.scenario, failures if asks["failures"] else {})
            question = scenario, candidate.report, first, asks
            place = f"{MORE} {entry.number}"
            jobs[place] = submitted(
                further_design, *question, urgent=False, place=place, edited=True
            )
            more = design_of(jobs[place], entry, "more searches") or {}
            candidates[entry] = replace(candidates[entry], **more)
    for place in compare_page().places.difference(jobs):
        given_up(place)
    compare_page().places = frozenset(jobs)
    pending = not all(job.done() for job in jobs.values())
    if not candidates or (pending and len(candidates) < FEWEST):
        return None, pending
    is_scaled = any(candidate.at_budget for candidate in candidates.values())
    budget = budget_of(asks["budget"], listed[0].scenario.values, asks["prices"])
    comparison = comparison_of(
        [entry.scenario for entry in candidates],
        list(candidates.values()),
        budget if is_scaled else None,
    )
    key = str(
        ([entry.name for entry in candidates], [(job.key, job.done()) for job in jobs.values()])
    )
    return (key, comparison, inputs_of(listed, asks)), pending


def design_of(job: WorkerJob, entry: CompareEntry, what: str) -> Any:
    """What a design's job came to; where it failed, a line says why, and others stand."""
    try:
        return panel(job, f"{entry.name}, {what}", key=f"compare-{what}-{entry.number}")
    except InputError as error:
        st.error(as_markdown(f"{entry.name}: {in_labels(str(error))}"))
        return None


main()
