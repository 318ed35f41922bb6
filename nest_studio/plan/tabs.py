"""The tabs below a plan: stages, memory, one iteration in time, alternatives, and why.

A tab is drawn when it is open. What waits for baselines is drawn in grey first and then anew.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from nest_core.api.answer import Answer
from nest_core.explain.summary import certificate_line, plan_in_words, proven_over, stage_rows
from nest_core.explain.validity import calibration_in_words, memory_in_words, overlap_in_words
from nest_core.planner.baselines import NAMES
from nest_core.report.figures import Entry, balance_figure, memory_figure, throughput_figure
from nest_core.report.figures.alternatives import alternatives_table
from nest_core.report.figures.levelwise import cost_matrices_figure, waterfall_figure
from nest_core.scenario import Scenario
from nest_studio.components.show import HeadlineRow, PicturePlace, facts
from nest_studio.jobs.tasks.plans import Levelwise
from nest_studio.plan.view import drawn_plan
from nest_studio.plan.why import why_section
from nest_studio.session.training_run import TrainingRun

__all__ = ["TABS", "Tabs", "timeline_part"]

TABS = ("Stages", "Memory", "Timeline", "Alternatives", "Why")
_PENDING = "NEST's level-wise program is being run"


class Tabs:
    """The tabs of an answer; `draw` fills the open one, as often as more of it is known.

    Parameters
    ----------
    answer : Answer
    scenario : Scenario
    run : TrainingRun
    pending : bool
        Whether baselines are still being priced.
    """

    def __init__(
        self, answer: Answer, scenario: Scenario, run: TrainingRun, *, pending: bool
    ) -> None:
        self._answer, self._scenario, self._run = answer, scenario, run
        self._pending = pending
        self._row: HeadlineRow | None = None
        self._boxes = dict(
            zip(
                TABS,
                st.tabs(
                    TABS, default="Alternatives", key="tab", on_change="rerun", bind="query-params"
                ),
                strict=True,
            )
        )
        self.shown = next((name for name, box in self._boxes.items() if box.open), "Alternatives")
        self._places: dict[str, Any] = {}
        with self._boxes[self.shown]:
            self._begin()

    @property
    def waits(self) -> bool:
        """Whether the open tab shows what baselines found."""
        return self.shown in ("Stages", "Memory", "Alternatives")

    def _begin(self) -> None:
        answer, best = self._answer, self._answer.best
        match self.shown:
            case "Stages":
                self._places["balance"] = PicturePlace("balance")
                _stage_table(answer)
            case "Memory":
                self._places["memory"] = PicturePlace("memory")
            case "Timeline":
                timeline_part(answer, self._scenario)
            case "Alternatives":
                self._places["table"] = st.empty()
                self._places["missing"] = st.empty()
                if "nest" in answer.scenario.baselines:
                    self._levelwise_places()
            case "Why":
                self._row = self._figures()
                why_section(answer, self._scenario, self._run.tokens_of(answer.scenario))
                _assumptions(answer)
        if best is None and self.shown == "Stages":
            facts("There is no plan.")

    def _figures(self) -> HeadlineRow:
        """The plan in a sentence, and the five figures with their formulas."""
        answer, best = self._answer, self._answer.best
        if best is not None:
            facts(plan_in_words(best, answer.scenario.batch, answer.scenario.fabric.devices))
        return HeadlineRow(answer.headlines(baselines_pending=self._pending), spans=True)

    def update(self, answer: Answer) -> None:
        """Take an answer with its baselines where headlines waited for them."""
        if self._pending and self._row is not None:
            self._row.update(answer.headlines())

    def _levelwise_places(self) -> None:
        part = st.expander(
            "What NEST's level-wise program read, and what its plan loses",
            key="levelwise",
            on_change="rerun",
        )
        if part.open:
            left, right = part.columns(2, gap="medium")
            self._places["matrices"] = PicturePlace("cost-matrices", left)
            self._places["waterfall"] = PicturePlace("waterfall", right)
            self._places["throughput"] = PicturePlace("throughput", part)
            self._say(_PENDING)

    def _say(self, why: str) -> None:
        self._places["matrices"].draw(cost_matrices_figure(None, why))
        self._places["waterfall"].draw(waterfall_figure(None, None, why))

    def draw(self, rows: tuple[Entry, ...], missing: str = "") -> None:
        """Draw what is known of all methods in the open tab."""
        answer, places = self._answer, self._places
        scenario = answer.scenario
        if "balance" in places:
            places["balance"].draw(balance_figure(rows))
        if "memory" in places:
            places["memory"].draw(memory_figure(rows, scenario.accelerator.memory_bytes))
        if "throughput" in places:
            places["throughput"].draw(throughput_figure(rows, scenario.sequence, answer.interval))
        if "table" in places:
            places["table"].html(
                alternatives_table(
                    rows,
                    scenario.sequence,
                    answer.interval,
                    NAMES[self._run.reference],
                    answer.result.certificate,
                )
            )
            if missing:
                with places["missing"]:
                    facts(f"There are no baselines beside our plan: {missing}.", kind="nest-quiet")

    def draw_levelwise(self, found: Levelwise | None) -> None:
        """Draw what NEST's level-wise program came to; None: there is no result."""
        if "matrices" not in self._places:
            return
        if found is None:
            self._say("NEST's level-wise program has no result")
        else:
            self._places["matrices"].draw(found.matrices)
            self._places["waterfall"].draw(found.waterfall)


def timeline_part(answer: Answer, scenario: Scenario) -> None:
    """One iteration pass by pass, beside the fabric's levels or the load on its links."""
    drawn = drawn_plan(answer, scenario, "timeline")
    if drawn is not None:
        left, right = st.columns([832, 304], gap="large")
        PicturePlace("timeline", left).draw(drawn.timeline)
        PicturePlace("levels", right).draw(drawn.beside)


def _assumptions(answer: Answer) -> None:
    """The certificate, what it is over, and what the costs are."""
    accelerator, best = answer.scenario.accelerator, answer.best
    facts("What the answer rests on", kind="nest-title")
    facts(
        certificate_line(answer.result),
        proven_over(answer.result.certificate),
        f"Costs: own model. {overlap_in_words(answer.overlap, accelerator)}",
        f"{calibration_in_words(answer.scenario)} {memory_in_words(answer.scenario)}",
        kind="nest-quiet",
    )
    basis = answer.validity_of(best).in_words if best else "Interval: none without a plan."
    facts(basis, kind="nest-quiet")


def _stage_table(answer: Answer) -> None:
    """Our plan's stages in figures."""
    if answer.best is None:
        return
    rows = stage_rows(answer.best, tuple(level.name for level in answer.network.levels))
    figures = [key for key, value in rows[0].items() if isinstance(value, float)]
    facts("Stages of our plan in figures, times per iteration", kind="nest-title")
    st.dataframe(
        rows,
        hide_index=True,
        column_config={key: st.column_config.NumberColumn(format="%.3g") for key in figures},
    )
