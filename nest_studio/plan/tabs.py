"""The tabs below a plan: stages, memory, one iteration in time, alternatives, and why.

A tab is drawn when it is open. What waits for baselines is grey until they are there.
"""

from collections.abc import Sequence

import streamlit as st

from nest_core.api.answer import Answer
from nest_core.planner.baselines import NAMES
from nest_core.report.explain import (
    calibration_in_words,
    certificate_line,
    memory_in_words,
    overlap_in_words,
    plan_in_words,
    proven_over,
    stage_rows,
)
from nest_core.report.figures import MethodRow, balance_figure, memory_figure, throughput_figure
from nest_core.report.figures.alternatives import alternatives_table
from nest_core.report.figures.levelwise import cost_matrices_figure, waterfall_figure
from nest_core.scenario import Scenario
from nest_studio.components.show import facts, headline_row, show_picture
from nest_studio.jobs.tasks.plans import PlanPictures, plan_pictures
from nest_studio.jobs.waiting import panel, submitted
from nest_studio.plan.state import OtherPlans
from nest_studio.plan.view import is_busy
from nest_studio.plan.why import why_section
from nest_studio.session.training_run import TrainingRun

__all__ = ["TABS", "tabs", "timeline_part"]

TABS = ("Stages", "Memory", "Timeline", "Alternatives", "Why")


def tabs(
    answer: Answer,
    scenario: Scenario,
    run: TrainingRun,
    rows: Sequence[MethodRow],
    others: OtherPlans,
) -> None:
    """Draw the tab that is open; rows are what all methods came to, ours first."""
    boxes = st.tabs(TABS, default="Alternatives", key="tab", on_change="rerun", bind="query-params")
    opened = next((box for box in boxes if box.open), boxes[TABS.index("Alternatives")])
    with opened:
        match TABS[boxes.index(opened)]:
            case "Stages":
                show_picture(balance_figure(rows), "balance")
                _stage_table(answer)
            case "Memory":
                show_picture(
                    memory_figure(rows, answer.scenario.accelerator.memory_bytes), "memory"
                )
            case "Timeline":
                timeline_part(answer, scenario)
            case "Alternatives":
                _alternatives(answer, run, rows, others)
            case _:
                _figures(answer, is_pending=others.priced() is None)
                why_section(answer, scenario, run.tokens_of(answer.scenario))
                _assumptions(answer)


def _alternatives(
    answer: Answer, run: TrainingRun, rows: Sequence[MethodRow], others: OtherPlans
) -> None:
    """All methods in a table, and what NEST's level-wise program read and lost by."""
    sequence, certificate = answer.scenario.sequence, answer.result.certificate
    st.html(alternatives_table(rows, sequence, answer.interval, NAMES[run.reference], certificate))
    if others.missing:
        facts(f"There are no baselines beside our plan: {others.missing}.", kind="nest-quiet")
    if "nest" not in answer.scenario.baselines:
        return
    part = st.expander(
        "What NEST's level-wise program read, and what its plan loses",
        key="levelwise",
        on_change="rerun",
    )
    if not part.open:
        return
    program = others.program()
    why = "NEST's level-wise program " + (
        "is being run" if "nest" in others.awaited else "has no result"
    )
    with part:
        matrices, waterfall = st.columns(2, gap="medium")
        show_picture(
            program.matrices if program else cost_matrices_figure(None, why),
            "cost-matrices",
            matrices,
        )
        show_picture(
            program.waterfall if program else waterfall_figure(None, None, why),
            "waterfall",
            waterfall,
        )
        show_picture(throughput_figure(rows, sequence, answer.interval), "throughput")


def _figures(answer: Answer, *, is_pending: bool) -> None:
    """The plan in a sentence, and the five figures with their formulas."""
    best = answer.best
    if best is not None:
        facts(plan_in_words(best, answer.scenario.batch, answer.scenario.fabric.devices))
    headline_row(answer.headlines(baselines_pending=is_pending), spans=True)


def timeline_part(answer: Answer, scenario: Scenario) -> None:
    """One iteration pass by pass, beside the fabric's levels or the load on its links."""
    job = submitted(plan_pictures, scenario, answer.best, is_busy(), place="pictures")
    with st.container(key="waiting-pictures"):
        drawn: PlanPictures | None = panel(job, "Drawing the plan", key="pictures")
    if drawn is not None:
        wide, narrow = st.columns([832, 304], gap="large")
        show_picture(drawn.timeline, "timeline", wide)
        show_picture(drawn.beside, "levels", narrow)


def _assumptions(answer: Answer) -> None:
    """The certificate, what it is over, and what the costs are."""
    accelerator, best = answer.scenario.accelerator, answer.best
    facts("What the answer rests on", kind="nest-title")
    facts(
        certificate_line(answer.result),
        proven_over(answer.result.certificate),
        f"Costs: own model. {overlap_in_words(answer.scenario.hidden, accelerator)}",
        f"{calibration_in_words(answer.scenario)} {memory_in_words(answer.scenario)}",
        kind="nest-quiet",
    )
    facts(
        answer.validity_of(best).in_words if best else "Interval: none without a plan.",
        kind="nest-quiet",
    )


def _stage_table(answer: Answer) -> None:
    """Our plan's stages in figures."""
    if answer.best is None:
        facts("There is no plan.")
        return
    rows = stage_rows(answer.best, tuple(level.name for level in answer.network.levels))
    figures = [key for key, value in rows[0].items() if isinstance(value, float)]
    facts("Stages of our plan in figures, times per iteration", kind="nest-title")
    st.dataframe(
        rows,
        hide_index=True,
        column_config={key: st.column_config.NumberColumn(format="%.3g") for key in figures},
    )
