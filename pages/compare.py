"""Compare two to six scenarios: which is better, for what money and power, and why."""

from __future__ import annotations

from typing import Any

import streamlit as st

from nest_core.documents.quoting import as_markdown
from nest_core.scenario import Scenario
from nest_core.studies.comparison import FEWEST, Comparison, compared
from nest_studio.compare.rail import compared_list, more_to_find
from nest_studio.compare.state import (
    compare_page,
    entries,
    follow_address,
    inputs_of,
    sound,
)
from nest_studio.compare.view import answer, comparison_table, figures
from nest_studio.components.show import facts, mark_results, told
from nest_studio.form.prices import TypedPrices, bill_and_use
from nest_studio.jobs.waiting import given_up, panel, submitted
from nest_studio.plan.certainty import sure_difference
from nest_studio.session.open_plan import go_to_opened
from nest_studio.session.own_fabric import follow_address as follow_own_fabric
from nest_studio.session.own_fabric import say_in_address

ASKED = "compare asked"
Shown = tuple[str, Comparison, dict[str, Any]]
"""A comparison with its job's key and what it was asked."""


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
            inputs = inputs_of(good, asks)
            if asks["budget"] is not None and typed.changes:
                inputs["prices"] = dict(typed.changes)
            fresh, pending = answered(inputs)
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
        facts("Failed switches are still being planned …", kind="nest-quiet")
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
    scenarios = [Scenario(entry["document"], entry["overrides"]) for entry in inputs["entries"]]
    sure_difference(scenarios, comparison.candidates)


def answered(inputs: dict[str, Any]) -> tuple[Shown | None, bool]:
    """The comparison, once it is there, and whether more of it is to come.

    Plans come first; equal budget, failed switches and NEST's program, which take several more
    searches each, follow. What is awaited shows its progress here.
    """
    plain = {key: value for key, value in inputs.items() if key != "level_wise"}
    plain |= {"budget": None, "failures": False}
    both = [inputs] if inputs == plain else [plain, inputs]
    jobs = [
        submitted(compared, asks, urgent=place == 0, place=f"{ASKED} {place}")
        for place, asks in enumerate(both)
    ]
    if len(both) == 1:
        given_up(f"{ASKED} 1")
    answer: Shown | None = None
    for job, asks, what in zip(jobs, both, ("Comparing", "More searches"), strict=False):
        comparison = panel(job, what, key=f"compare-{what.split()[0].lower()}")
        if comparison is None:
            return answer, answer is not None
        answer = job.key, comparison, asks
    return answer, False


main()
