"""Compare two to six scenarios: which is better, for what money and power, and why."""

from __future__ import annotations

from typing import Any

import streamlit as st

from nest_core.quoting import as_markdown
from nest_core.studies.comparison import FEWEST, Comparison, compared
from nest_studio.compare_state import accelerators, entries, follow_address, inputs_of, sound
from nest_studio.compare_view import (
    chosen_budget,
    chosen_device,
    chosen_failures,
    chosen_level_wise,
    comparison_table,
    figures,
    scenario_rows,
    sidebar_controls,
)
from nest_studio.jobs import given_up, submitted, there
from nest_studio.open_plan import go_to_opened
from nest_studio.own_fabric import carry
from nest_studio.own_fabric import follow_address as follow_own_fabric
from nest_studio.show import facts, mark_results, told
from nest_studio.sure_view import sure_difference
from nest_studio.tasks.requests import request_text

SHOWN = "compare shown"
ASKED = "compare asked"
Shown = tuple[str, Comparison, dict[str, Any]]
"""A comparison with its job's key and what it was asked."""


def main() -> None:
    """Draw the page."""
    go_to_opened()
    follow_own_fabric()
    carry(shown=False)
    unread = follow_address()
    problem = st.container(key="problem")
    with st.sidebar:
        sidebar_controls()
        budget, failures = chosen_budget(), chosen_failures()
        level_wise, money = chosen_level_wise(), st.container()
    facts("Which is better?", kind="nest-scenario")
    if unread:
        st.warning(unread)
    every = entries()
    good, left_out = sound(every)
    with money:
        device_usd = chosen_device(accelerators(good))
    scenario_rows(good)
    if left_out:
        problem.error("  \n".join(map(as_markdown, left_out)))
    if len(every) < FEWEST:
        st.info(f"Add {'two scenarios' if not every else 'another scenario'} to compare.")
        return
    found, pending = None, False
    with told(problem.error):
        if len(good) >= FEWEST:
            asked = inputs_of(good, budget, failures=failures, level_wise=level_wise)
            found, pending = answered(asked)
    mark_results(earlier=found is None)
    shown: Shown | None = found or st.session_state.get(SHOWN)
    if shown is not None:
        st.session_state[SHOWN] = shown
        key, of_any_price, inputs = shown
        comparison = of_any_price.at(device_usd)
        with st.container(key="results"):
            figures(key, comparison, pending=pending)
            comparison_table(comparison, inputs | {"device_usd": device_usd})
            differences(comparison, inputs)


@st.fragment
def differences(comparison: Comparison, inputs: dict[str, Any]) -> None:
    """How sure the differences are, when that is opened."""
    texts = [request_text(one["document"], one["overrides"]) for one in inputs["entries"]]
    sure_difference(texts, comparison.candidates)


def answered(inputs: dict[str, Any]) -> tuple[Shown | None, bool]:
    """The comparison, once it is there, and whether more of it is to come.

    Plans come first; equal budget, failed switches and NEST's program, which take several more
    searches each, follow. What is awaited shows its progress here.
    """
    plain = {key: value for key, value in inputs.items() if key != "level_wise"}
    plain |= {"budget": None, "failures": False}
    both = [inputs] if inputs == plain else [plain, inputs]
    jobs = [
        submitted(compared, one, urgent=place == 0, place=f"{ASKED} {place}")
        for place, one in enumerate(both)
    ]
    if len(both) == 1:
        given_up(f"{ASKED} 1")
    found: Shown | None = None
    for job, one, what in zip(jobs, both, ("Comparing", "More searches"), strict=False):
        if not there(job, what, key=f"compare-{what.split()[0].lower()}"):
            return found, found is not None
        found = job.key, job.result(0), one
    return found, False


main()
