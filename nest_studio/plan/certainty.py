"""How sure a plan is, and a difference between two: draws, searched when a part is opened."""

from collections.abc import Callable, Sequence

import streamlit as st

from nest_core.api.answer import Answer
from nest_core.costs.price import Report
from nest_core.costs.shapes import measured_words
from nest_core.documents.units import humanise_seconds, plural
from nest_core.hardware.posterior import SHARE
from nest_core.report.explain.summary import plan_in_words
from nest_core.report.tables import Table
from nest_core.scenario import Scenario, ScenarioValues
from nest_core.studies.recommended import Recommended, difference
from nest_core.studies.whole_bill import Candidate
from nest_studio.components.show import facts
from nest_studio.jobs.tasks.requests import recommended_plan, searched_draws
from nest_studio.jobs.waiting import panel, submitted

__all__ = ["shown_recommendation", "sure_difference", "sure_plan"]

PARTS = ((0, 15), (15, 30))
"""Draws that are searched anew, by two workers at once."""
_SHOWN = "what draws recommended"
_INSIDE = f"{100 * SHARE:.0f} % of draws"


def sure_plan(answer: Answer, best: Report, scenario: Scenario) -> None:
    """In how many draws the plan is best, what is recommended, and what cannot be told from it."""
    part = st.expander("How sure: the plan under other parameters", key="sure", on_change="rerun")
    if not part.open:
        return
    with part:
        recommended = _recommended(scenario, best, "Searching draws", "sure")
        if recommended is None:
            return
        st.session_state[_SHOWN] = scenario, recommended
        values = answer.scenario
        is_same = recommended.report.plan == best.plan
        facts(
            ("This plan is also the one" if is_same else "Another plan is")
            + f" expected to take least{'.' if is_same else ':'} {recommended.in_words}.",
            *([] if is_same else [_words(recommended.report, values)]),
        )
        facts(
            f"Expected {humanise_seconds(recommended.expected_s)} per iteration, four runs of five "
            f"between {_between(recommended, humanise_seconds)}. "
            + measured_words(
                recommended.measured, values.accelerator.family.name, values.stack.name
            ),
            "Drawn: what kernels and the network reach, how much more memory plans hold than "
            "predicted, and the error of the model, which similar plans share.",
            kind="nest-quiet",
        )
        _equals(recommended, values)


def shown_recommendation(scenario: Scenario) -> Recommended | None:
    """What `sure_plan` last showed, if that was of this scenario."""
    of, recommended = st.session_state.get(_SHOWN, (None, None))
    return recommended if of == scenario else None


def sure_difference(scenarios: Sequence[Scenario], candidates: Sequence[Candidate]) -> None:
    """How sure others are slower or faster than the first, whose draws they share.

    Parameters
    ----------
    scenarios : sequence of Scenario
        Of the candidates.
    """
    planned = [
        (scenario, candidate.name, candidate.report)
        for scenario, candidate in zip(scenarios, candidates, strict=True)
        if candidate.report is not None
    ]
    if len(planned) < 2:
        return
    part = st.expander(
        "How sure: the differences under other parameters", key="sure", on_change="rerun"
    )
    if not part.open:
        return
    with part:
        every = []
        for place, (scenario, name, report) in enumerate(planned):
            recommended = _recommended(
                scenario, report, f"Searching draws for {name}", f"sure-{place}"
            )
            if recommended is None:
                return
            every.append((name, recommended))
        base_name, base = every[0]
        rows = [
            {
                "scenario": name,
                "expected, s": f"{recommended.expected_s:.4g}",
                "four runs of five, s": _between(recommended, "{:.4g}".format, "to"),
                f"beside {base_name}": difference(base, recommended).in_words if place else "",
            }
            for place, (name, recommended) in enumerate(every)
        ]
        st.html(
            Table(
                f"Beside {base_name}, draw by draw: what both share cancels",
                "The recommended plan of each; the same draws for all",
                rows,
            ).to_html()
        )


def _recommended(scenario: Scenario, best: Report, what: str, key: str) -> Recommended | None:
    """What draws recommend; None while they are searched, which stands here."""
    jobs = [
        submitted(searched_draws, scenario, best, *part, urgent=False, place=f"{key} {part[0]}")
        for part in PARTS
    ]
    parts = []
    for place, job in enumerate(jobs):
        part = panel(job, what, key=f"{key}-{place}")
        if part is None:
            return None
        parts.append(part)
    answer: Recommended | None = panel(
        submitted(recommended_plan, scenario, best, parts, place=f"{key} priced", urgent=False),
        "Pricing what won",
        key=f"{key}-priced",
    )
    return answer


def _between(found: Recommended, words: Callable[[float], str], joined: str = "and") -> str:
    return f"{words(found.interval.low_s)} {joined} {words(found.interval.high_s)}"


def _words(report: Report, scenario: ScenarioValues) -> str:
    return plan_in_words(report, scenario.batch, scenario.fabric.devices)


def _equals(found: Recommended, scenario: ScenarioValues) -> None:
    if not found.equals:
        facts("No other plan that won a draw is as good as far as the model can tell.")
        return
    rows = [
        {
            "plan": _words(equal.report, scenario),
            "expected, s": f"{equal.expected_s:.4g}",
            f"slower by, {_INSIDE}": "{:+.2g} to {:+.2g} %".format(
                *(100 * value for value in equal.slower)
            ),
            "runs of its shape": f"{equal.measured:,}",
        }
        for equal in found.equals
    ]
    st.html(
        Table(
            f"{plural(len(rows), 'other plan')} that the model cannot tell from it",
            "Of the plans that won a draw; the shape that was measured most first",
            rows,
        ).to_html()
    )
