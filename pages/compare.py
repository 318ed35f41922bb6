"""Compare two to six scenarios: which is better, for what money and power, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from nest_core.documents.errors import InputError
from nest_core.documents.quoting import as_markdown
from nest_core.scenario import Scenario
from nest_core.studies.comparison import FEWEST, Comparison, budget_of, comparison_of
from nest_core.studies.whole_bill import Candidate
from nest_studio.compare.rail import compared_list, more_to_find
from nest_studio.compare.state import (
    CompareEntry,
    compare_page,
    entries,
    follow_address,
    inputs_of,
    sound,
)
from nest_studio.compare.view import answer, comparison_table, figures
from nest_studio.components.show import facts, mark_results, told
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
    fresh, pending = None, False
    with told(problem.error):
        if len(good) >= FEWEST:
            asks["prices"] = dict(typed.changes) if asks["budget"] else {}
            fresh, pending = answered(good, asks)
    mark_results(earlier=fresh is None)
    answer = compare_page().answer = fresh or compare_page().answer
    if answer is not None:
        with st.container(key="results"), told(problem.error):
            results(answer, typed, pending=pending)


def results(shown: Shown, typed: TypedPrices, *, pending: bool) -> None:
    """The answer, and folded below it everything else."""
    key, of_any_price, inputs = shown
    comparison = of_any_price.at(typed.changes, typed.tokens)
    answer(comparison, inputs, typed)
    if pending:
        facts("More of it is still being planned …", kind="nest-quiet")
    more = st.expander("More figures: stages, levels", key="more", on_change="rerun")
    if more.open:
        with more:
            figures(f"{key} {typed.changes}", comparison, pending=pending)
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


def answered(listed: Sequence[CompareEntry], asks: dict[str, Any]) -> tuple[Shown | None, bool]:
    """The comparison of the designs that are there, and whether more of it is to come.

    Every design is planned by itself; equal budget, failed switches and NEST's program, which take
    several more searches each, follow. What is awaited shows its progress here, what failed why.
    """
    plans = [
        submitted(planned_design, entry.scenario, place=f"{PLANS} {entry.number}")
        for entry in listed
    ]
    wait_a_moment(plans)
    shown: list[CompareEntry] = []
    candidates: list[Candidate] = []
    keys, pending, places = "", False, {f"{PLANS} {entry.number}" for entry in listed}
    for entry, plan in zip(listed, plans, strict=True):
        candidate = design_of(plan, entry, "planning")
        pending |= not plan.done()
        if candidate is None:
            continue
        keys += f"{entry.name} {plan.key} "
        if asks["budget"] or asks["failures"] or asks["level_wise"]:
            first = listed[0].scenario if asks["budget"] else None
            places.add(place := f"{MORE} {entry.number}")
            more = submitted(
                further_design,
                entry.scenario,
                candidate.report,
                first,
                asks,
                urgent=False,
                place=place,
                edited=True,
            )
            candidate = replace(candidate, **design_of(more, entry, "more searches") or {})
            pending |= not more.done()
            keys += f"{more.key} {more.done()} "
        shown.append(entry)
        candidates.append(replace(candidate, name=entry.name))
    for place in compare_page().places.difference(places):
        given_up(place)
    compare_page().places = frozenset(places)
    if not shown or (pending and len(shown) < FEWEST):
        return None, pending
    budget = None
    if any(candidate.at_budget for candidate in candidates):
        budget = budget_of(asks["budget"], listed[0].scenario.values, asks["prices"])
    comparison = comparison_of([entry.scenario for entry in shown], candidates, budget)
    return (keys, comparison, inputs_of(listed, asks)), pending


def design_of(job: WorkerJob, entry: CompareEntry, what: str) -> Any:
    """What a design's job came to; where it failed, a line says why, and others stand."""
    try:
        return panel(job, f"{entry.name}, {what}", key=f"compare-{what}-{entry.number}")
    except InputError as error:
        st.error(as_markdown(f"{entry.name}: {error}"))
        return None


main()
