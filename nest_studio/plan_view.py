"""The parts of the plan page, from the top down."""

from __future__ import annotations

import json
from dataclasses import replace

import streamlit as st

from nest_core.api.answer import Answer
from nest_core.explain.interval import Interval
from nest_core.explain.proof import proven_over
from nest_core.explain.summary import certificate_line, plan_in_words, stage_rows
from nest_core.explain.validity import calibration_in_words, memory_in_words, overlap_in_words
from nest_core.figures import Entry, balance_figure, memory_figure, throughput_figure
from nest_core.figures.cost_matrices import cost_matrices_figure
from nest_core.figures.fabric import PAINTS
from nest_core.figures.waterfall import waterfall_figure
from nest_core.quoting import as_markdown
from nest_core.scenario import Scenario
from nest_core.scenario.titles import file_stem, scenario_title
from nest_core.text import plain
from nest_core.units import ceil_gib
from nest_studio.fields import one_of
from nest_studio.forms import Request, pinned_title, scenario_heading, use_memory
from nest_studio.jobs import submitted, there
from nest_studio.pins import pin_button
from nest_studio.plan_state import answer_of, baselines_of, every_baseline
from nest_studio.scenario_file import command_line, scenario_toml
from nest_studio.show import PicturePlace, download, facts, mark_results
from nest_studio.sure_view import shown_recommendation
from nest_studio.tasks.plans import Levelwise, plan_pictures
from nest_studio.tour import tour_button

__all__ = ["BesideLevelwise", "Comparison", "heading", "pictures", "plan_facts", "stage_table"]

LAST = "last pictures"
DRAWN = ("drawn-timeline", "drawn-placement")


def heading(request: Request, text: str, scenario: Scenario) -> None:
    """What is planned, and the ways to take it along."""
    left, right = st.columns([9, 11], vertical_alignment="bottom")
    title = scenario_title(scenario)
    file = file_stem(title) if request.overrides else request.scenario
    with left:
        scenario_heading(title, request.overrides)
    with right, st.container(horizontal=True, horizontal_alignment="right", gap="small"):
        download(
            "↓ Scenario (TOML)",
            lambda: scenario_toml(request.document, request.overrides, title),
            f"{file}.toml",
            "application/toml",
            help="The scenario file that asks for this.",
        )
        download(
            "↓ Plan (JSON)",
            lambda: _plan_json(text),
            f"{file}-plan.json",
            "application/json",
            help="What the command prints: plan, stages, certificate, baselines; what draws "
            "recommend once they were searched here.",
        )
        with st.popover("Command", type="tertiary"):
            if isinstance(request.overrides.get("fabric"), dict):
                facts("The downloaded scenario holds your fabric.", kind="nest-quiet")
                command = f"nest-studio plan {file}.toml"
            else:
                command = command_line(request.scenario, request.overrides)
            st.code(command, "sh", wrap_lines=True)
        inputs = {"document": request.document, "overrides": request.overrides}
        pin_button(
            "plan",
            pinned_title(title, request.overrides),
            inputs,
            key="plan",
            rows=lambda: answer_of(text, baselines_of(text)).rows(),
        )
        tour_button()


def plan_facts(answer: Answer) -> None:
    """The plan in words or why there is none, the certificate, and what the costs are."""
    result, best = answer.result, answer.result.best
    if best is None:
        st.error(as_markdown(f"{_sentence(result.reason)} {_sentence(answer.advice)}"))
        if result.needed_bytes:
            needed = ceil_gib(result.needed_bytes)
            st.button(f"Set memory to {needed:,.1f} GiB", on_click=use_memory, args=(needed,))
    else:
        facts(plan_in_words(best, answer.scenario.batch, answer.scenario.fabric.devices))
    accelerator = answer.scenario.accelerator
    facts(
        certificate_line(result),
        proven_over(result.certificate),
        f"Costs: own model. {overlap_in_words(answer.overlap, accelerator)}",
        f"{calibration_in_words(answer.scenario)} {memory_in_words(answer.scenario)}",
        kind="nest-quiet",
    )
    basis = answer.validity_of(best).in_words if best else "Interval: none without a plan."
    facts(basis, kind="nest-quiet nest-basis")


class Comparison:
    """Throughput, stage balance and memory of all methods on shared axes."""

    def __init__(self, scenario: Scenario, interval: Interval | None) -> None:
        self._scenario, self._interval = scenario, interval
        self._throughput = PicturePlace("throughput")
        left, right = st.columns(2, gap="medium")
        self._balance = PicturePlace("balance", left)
        self._memory = PicturePlace("memory", right)

    def draw(self, rows: tuple[Entry, ...]) -> None:
        """Draw the three pictures of these methods."""
        self._throughput.draw(throughput_figure(rows, self._scenario.sequence, self._interval))
        self._balance.draw(balance_figure(rows))
        self._memory.draw(memory_figure(rows, self._scenario.accelerator.memory_bytes))


class BesideLevelwise:
    """What NEST's level-wise program read, and what it promised, takes and loses beside ours."""

    def __init__(self) -> None:
        with st.container(key="levelwise"):
            left, right = st.columns(2, gap="medium")
        self._matrices = PicturePlace("cost-matrices", left)
        self._waterfall = PicturePlace("waterfall", right)
        self._say("NEST's level-wise program is being run")

    def draw(self, found: Levelwise | None) -> None:
        """Draw both in place of what said that they are to come; None: there is no result."""
        if found is None:
            self._say("NEST's level-wise program has no result")
        else:
            self._matrices.draw(found.matrices)
            self._waterfall.draw(found.waterfall)

    def _say(self, why: str) -> None:
        self._matrices.draw(cost_matrices_figure(None, why))
        self._waterfall.draw(waterfall_figure(None, None, why))


@st.fragment
def pictures(answer: Answer, text: str) -> None:
    """One iteration pass by pass; the fabric painted with the plan, beside its levels or loads."""
    above, best = st.container(key=DRAWN[0]), answer.result.best
    paint = one_of(
        st,
        "Colour devices by",
        PAINTS,
        PAINTS[0],
        "paint",
        bind="query-params",
        disabled=best is None,
        help="Link load: how busy the busiest link on the way of a device's "
        "traffic is; beside it every tier's links, by class of traffic.",
    )
    job = submitted(plan_pictures, text, best, paint, place="pictures")
    ready = there(job, "Drawing the plan", key="pictures")
    if ready:
        st.session_state[LAST] = paint, job.result(0)
    elif job.ended or LAST not in st.session_state:
        return
    mark_results(earlier=not ready, places=DRAWN)
    painted, drawn = st.session_state[LAST]
    PicturePlace("timeline", above).draw(drawn.timeline)
    with st.container(key=DRAWN[1]):
        left, right = st.columns(2, gap="medium")
        PicturePlace("placement", left).draw(drawn.placement)
        PicturePlace("loads" if painted == "link load" else "levels", right).draw(drawn.beside)


def stage_table(answer: Answer) -> None:
    """Our plan's stages in figures."""
    best = answer.result.best
    with st.expander("Stages of our plan in figures (times per iteration)"):
        if best is None:
            facts("There is no plan.")
            return
        levels = tuple(level.name for level in answer.network.levels)
        rows = stage_rows(best, levels)
        figures = [key for key, value in rows[0].items() if isinstance(value, float)]
        st.dataframe(
            rows,
            hide_index=True,
            column_config={key: st.column_config.NumberColumn(format="%.3g") for key in figures},
        )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _plan_json(text: str) -> str:
    answer = replace(answer_of(text, every_baseline(text)), recommended=shown_recommendation(text))
    return json.dumps(plain(answer.to_json()), indent=2, allow_nan=False)
