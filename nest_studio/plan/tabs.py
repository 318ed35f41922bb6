"""The tabs below a plan: stages, memory, one iteration in time, alternatives, and why.

A tab is drawn when it is open. What waits for baselines is grey until they are there.
"""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from nest_core.api.answer import Answer
from nest_core.planner.baselines import NAMES, Baseline
from nest_core.report.explain.summary import (
    certificate_line,
    plan_in_words,
    proven_over,
    stage_rows,
)
from nest_core.report.explain.validity import (
    calibration_in_words,
    memory_in_words,
    overlap_in_words,
)
from nest_core.report.figures import MethodRow, balance_figure, memory_figure, throughput_figure
from nest_core.report.figures.alternatives import alternatives_table
from nest_core.report.figures.levelwise import cost_matrices_figure, waterfall_figure
from nest_core.scenario import Scenario
from nest_studio.components.show import facts, headline_row, show_picture
from nest_studio.jobs.tasks.plans import Levelwise
from nest_studio.plan.view import drawn_plan
from nest_studio.plan.why import why_section
from nest_studio.session.training_run import TrainingRun

__all__ = ["TABS", "Methods", "tabs", "timeline_part"]

TABS = ("Stages", "Memory", "Timeline", "Alternatives", "Why")


@dataclass(frozen=True, slots=True)
class Methods:
    """What all methods came to, as far as it is known.

    Parameters
    ----------
    rows : tuple of MethodRow
        Ours first; in grey what is awaited.
    baselines : tuple of Baseline or None
        None while they are priced; NEST's program is among them once it has ended.
    levelwise : Levelwise or None
        What NEST's level-wise program came to.
    missing : str
        Why there are no baselines and will be none.
    is_program_done : bool
        Whether that program has ended, or is not wanted.
    """

    rows: tuple[MethodRow, ...]
    baselines: tuple[Baseline, ...] | None
    levelwise: Levelwise | None
    missing: str
    is_program_done: bool


def tabs(answer: Answer, scenario: Scenario, run: TrainingRun, methods: Methods) -> None:
    """Draw the tab that is open."""
    boxes = st.tabs(TABS, default="Alternatives", key="tab", on_change="rerun", bind="query-params")
    opened = next((box for box in boxes if box.open), boxes[TABS.index("Alternatives")])
    with opened:
        match TABS[boxes.index(opened)]:
            case "Stages":
                show_picture(balance_figure(methods.rows), "balance")
                _stage_table(answer)
            case "Memory":
                limit_bytes = answer.scenario.accelerator.memory_bytes
                show_picture(memory_figure(methods.rows, limit_bytes), "memory")
            case "Timeline":
                timeline_part(answer, scenario)
            case "Alternatives":
                _alternatives(answer, run, methods)
            case _:
                _figures(answer, is_pending=methods.baselines is None)
                why_section(answer, scenario, run.tokens_of(answer.scenario))
                _assumptions(answer)


def _alternatives(answer: Answer, run: TrainingRun, methods: Methods) -> None:
    """All methods in a table, and what NEST's level-wise program read and lost by."""
    sequence, certificate = answer.scenario.sequence, answer.result.certificate
    reference = NAMES[run.reference]
    st.html(alternatives_table(methods.rows, sequence, answer.interval, reference, certificate))
    if methods.missing:
        facts(f"There are no baselines beside our plan: {methods.missing}.", kind="nest-quiet")
    if "nest" not in answer.scenario.baselines:
        return
    part = st.expander(
        "What NEST's level-wise program read, and what its plan loses",
        key="levelwise",
        on_change="rerun",
    )
    if not part.open:
        return
    program = methods.levelwise
    why = "has no result" if methods.is_program_done else "is being run"
    why = f"NEST's level-wise program {why}"
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
        show_picture(throughput_figure(methods.rows, sequence, answer.interval), "throughput")


def _figures(answer: Answer, *, is_pending: bool) -> None:
    """The plan in a sentence, and the five figures with their formulas."""
    best = answer.best
    if best is not None:
        facts(plan_in_words(best, answer.scenario.batch, answer.scenario.fabric.devices))
    headline_row(answer.headlines(baselines_pending=is_pending), spans=True)


def timeline_part(answer: Answer, scenario: Scenario) -> None:
    """One iteration pass by pass, beside the fabric's levels or the load on its links."""
    drawn = drawn_plan(answer, scenario, "timeline")
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
    basis = answer.validity_of(best).in_words if best else "Interval: none without a plan."
    facts(basis, kind="nest-quiet")


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
