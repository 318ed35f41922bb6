"""The parts of the plan page, from the top down.

What a plan is taken along as: scenario, plan, command, files of frameworks and schedulers.

The line of chips below a plan's title: what is planned, each part one click from its field.

An open chip has copies of fields of the form. A copy is set to what the form has before it is
drawn, and hands on what a person makes of it, so there is one state and the address says it once.
"""

import html
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from nest_core.api.answer import Answer
from nest_core.costs import Report, mfu_convention, spread_of
from nest_core.costs.communication import IterationPart, lost
from nest_core.documents import as_markdown, capital, ceil_gib, plain
from nest_core.documents.schema import parameter
from nest_core.planner.baselines import NAMES
from nest_core.report.explain import (
    Training,
    calibration_in_words,
    fullest,
    fullest_words,
    overlap_in_words,
    rests_on,
)
from nest_core.report.figures.cards import (
    Reference,
    empty_card,
    iteration_part,
    memory_card,
    mfu_card,
    plan_pills,
    throughput_card,
    training_card,
)
from nest_core.report.notebook import output_of
from nest_core.scenario import Scenario, ScenarioValues, file_stem
from nest_core.scenario.document import page_title
from nest_core.studies.parameters import ratio_parameters
from nest_studio.components.show import download, facts, show_fabric, shown_width
from nest_studio.form import (
    DEVICES,
    FORM,
    MEMORY,
    Number,
    OneOf,
    Widget,
    changes_in_words,
    fabric_choices,
    fabric_document,
    fabric_fields,
    fit_device,
    fit_sequence,
    hold,
    label_of,
    one_of,
    pick_fabric,
    pinned_title,
    widget,
    widget_value,
)
from nest_studio.jobs.tasks.plans import plan_exports, plan_fabric, plan_parts, zipped
from nest_studio.jobs.waiting import panel, submitted
from nest_studio.notebook.pins import pin_button
from nest_studio.paths import page_script
from nest_studio.plan.certainty import shown_recommendation
from nest_studio.plan.state import OtherPlans
from nest_studio.server.rail import head
from nest_studio.session.history import form_value
from nest_studio.session.open_plan import over_preset
from nest_studio.session.scenario_file import command_line, scenario_toml
from nest_studio.session.training_run import TrainingRun

__all__ = [
    "Cards",
    "cards_of",
    "chips",
    "export_popover",
    "framework_exports",
    "heading",
    "middle",
    "plan_line",
]


def chips(scenario: ScenarioValues) -> None:
    """Draw model, devices, fabric with its ratio, and batch."""
    fabric = scenario.fabric
    accelerator = scenario.accelerator.name.split(" SXM")[0].split(" PCIe")[0]
    for name, text, draw in (
        ("Model", as_markdown(scenario.model.name), _model),
        ("Devices", f"{fabric.devices:,} {as_markdown(accelerator)}", _devices),
        ("Fabric", as_markdown(fabric.arrangement()), _fabric),
        ("Batch", f"{scenario.batch:,} × {scenario.sequence:,} tokens", _batch),
    ):
        label, key = f":gray[:small[{name}]] {text}", f"chip-{name.lower()}"
        with st.popover(label, key=key, on_change="rerun") as chip:
            if chip.open:
                draw()


def _model() -> None:
    _copy("workload.model", "Model", FORM["workload.model"], fit_sequence)


def _devices() -> None:
    _copy("accelerator", "Accelerator", FORM["accelerator"], fit_device)
    fields = fabric_fields(fabric_document(form_value("fabric")))
    if DEVICES in fields:
        _copy(DEVICES, "Size, devices", fields[DEVICES], step=8)


def _fabric() -> None:
    _copy("fabric", "Fabric", OneOf(fabric_choices()), pick_fabric)
    fabric = fabric_document(form_value("fabric"))
    for ratio in ratio_parameters(fabric):
        _copy(ratio.key, label_of(ratio), fabric_fields(fabric)[ratio.key], step=0.5)


def _batch() -> None:
    for key, step in (
        ("workload.global_batch_sequences", 64),
        ("workload.sequence_length_tokens", 1024),
    ):
        _copy(key, label_of(parameter(key)), FORM[key], step=step)


def _copy(
    key: str, label: str, takes: Widget, then: Callable[[], None] | None = None, **look: Any
) -> None:
    """Draw a copy of a field, which has what the form has."""
    if (value := form_value(key)) is None:  # a tier that the form has taken away
        return
    st.session_state[copy := f"chip {key}"] = value
    bounds = f"{takes.low:,g} to {takes.high:,g}. " if isinstance(takes, Number) else ""
    widget(
        copy,
        takes,
        value,
        label=as_markdown(label),
        bind=None,
        on_change=_hand_on,
        args=(key, takes, then),
        help=f"{bounds}The same field as in the form at the left.",
        **look,
    )


def _hand_on(key: str, takes: Widget, then: Callable[[], None] | None) -> None:
    if (value := widget_value(f"chip {key}", takes)) is not None:
        hold(key, value, then)


PATIENCE_S = 60.0
"""How long a file waits for the baselines that stand in it."""


def export_popover(scenario: Scenario, answer: Answer) -> None:
    """Draw downloads, the command that asks for the same, and files for who launches it."""
    box = st.popover("Export", key="export", on_change="rerun")
    if not box.open:
        return
    title = scenario.title
    preset, overrides = over_preset(scenario)
    file = file_stem(title) if overrides else preset
    with box:
        download(
            "↓ Scenario (TOML)",
            lambda: scenario_toml(scenario.document, scenario.overrides, title),
            f"{file}.toml",
            "application/toml",
            help="The scenario file that asks for this.",
        )
        download(
            "↓ Plan (JSON)",
            lambda: _plan_json(scenario, answer),
            f"{file}-plan.json",
            "application/json",
            help="What the command prints: plan, stages, certificate, baselines; what draws "
            "recommend once they were searched here.",
        )
        if answer.best is not None:
            framework_exports(scenario, answer.result.ranked, file)
        facts("Command", kind="nest-title")
        if isinstance(overrides.get("fabric"), dict):
            facts("The downloaded scenario holds your fabric.", kind="nest-quiet")
            command = f"nest-studio plan {file}.toml"
        else:
            command = command_line(preset, overrides)
        st.code(command, None, wrap_lines=True)


@st.fragment
def framework_exports(scenario: Scenario, ranked: tuple[Report, ...], name: str) -> None:
    """Every target with its files as one download, or the sentence that says why it cannot.

    Parameters
    ----------
    scenario : Scenario
    ranked : tuple of Report
        Its plan and the next best.
    name : str
        Stem of the archives' names.
    """
    exports = panel(
        submitted(plan_exports, scenario, ranked, place="export-files"),
        "Writing it for every framework",
        key="export-files",
    )
    for export in exports or ():
        if export.refused:
            facts(f"{export.label}: {export.refused}", kind="nest-quiet")
        else:
            download(
                f"↓ {export.label} (zip)",
                partial(zipped, export.files),
                f"{name}-{export.target}.zip",
                "application/zip",
                key=f"export-{export.target}",
                help=as_markdown(" ".join((f"{', '.join(export.files)}.", *export.notes))[:1000]),
            )


def _plan_json(scenario: Scenario, answer: Answer) -> str:
    complete = replace(
        answer,
        baselines=OtherPlans(scenario, answer).every(PATIENCE_S),
        recommended=shown_recommendation(scenario),
    )
    return json.dumps(plain(complete.to_json()), indent=2, allow_nan=False)


FABRIC = "plan-fabric"
PAINTS = ("stage", "link load")
"""What devices, or links, are coloured by."""
_NAMES = ("Throughput", "Time to train", "MFU", "Chance that memory fits")
_PRINTED = {"megatron": "Megatron-LM"}
"""Whose log prints the utilisation as it is counted here."""


def heading(scenario: Scenario, answer: Answer) -> None:
    """What is planned, as title and chips, and the ways to take it along."""
    head(page_title(answer.scenario))
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="chips"):
        with st.container(horizontal=True, gap="xsmall", key="chips-what"):
            chips(answer.scenario)
        box = st.container(
            horizontal=True,
            horizontal_alignment="right",
            gap="xsmall",
            width="content",
            key="chips-take",
        )
    with box:
        if st.button("Compare", key="to-compare", help="Beside other fabrics and scenarios."):
            st.switch_page(page_script("compare"), query_params={})
        pin_button(
            "plan",
            pinned_title(scenario.title, scenario.overrides),
            {"document": scenario.document, "overrides": scenario.overrides},
            key="plan",
            output=lambda: output_of(
                replace(answer, baselines=OtherPlans(scenario, answer).every())
            ),
        )
        export_popover(scenario, answer)
    changes = changes_in_words(scenario.overrides)
    # Always there: what comes after an element that comes or goes is built anew and jumps.
    facts(f"Changed: {changes}" if changes else "", kind="nest-quiet nest-changed")


class Cards:
    """Throughput, training run, utilisation and memory; drawn again as baselines come."""

    def __init__(self) -> None:
        with st.container(key="cards"):
            self._places = [st.empty() for _ in _NAMES]

    def draw(
        self,
        answer: Answer,
        run: TrainingRun,
        parts: tuple[IterationPart, ...] | None,
        others: Mapping[str, Training | None] | None,
    ) -> None:
        """Draw all four, as a fragment has to in every run; without a plan, that there is none."""
        for place, card in zip(self._places, cards_of(answer, run, parts, others), strict=True):
            place.html(card)


def cards_of(
    answer: Answer,
    run: TrainingRun,
    parts: tuple[IterationPart, ...] | None,
    others: Mapping[str, Training | None] | None,
) -> tuple[str, ...]:
    """The four cards; where there is no plan, that there is none.

    Parameters
    ----------
    others : mapping or None
        Training runs of the baselines by name; None while they are priced.
    """
    best, interval, scenario = answer.best, answer.interval, answer.scenario
    if best is None or interval is None or answer.training is None:
        return tuple(empty_card(name, "no feasible plan") for name in _NAMES)
    rival = (others or {}).get(run.reference)
    reference = Reference(
        NAMES[run.reference], run.of(rival) if rival else None, pending=others is None
    )
    estimate = run.of(answer.training)
    counted = mfu_convention(scenario.model).startswith("as Megatron")
    printed = _PRINTED.get(scenario.stack.framework, "") if counted else ""
    return (
        throughput_card(estimate.tokens_per_s, interval, reference, answer.result.certificate.room),
        training_card(estimate, run.usd_per_hour, reference),
        mfu_card(
            best.mfu,
            interval.around(best.mfu),
            scenario.accelerator.peak(scenario.precision),
            lost(best, parts) if parts else (),
            printed,
        ),
        memory_card(
            fullest(best)[1].memory.total,
            best.memory_limit_bytes,
            spread_of(scenario.stack.framework),
            fullest_words(best),
        ),
    )


def plan_line(answer: Answer) -> None:
    """The plan as pills or why there is none, and what the answer rests on."""
    result, best = answer.result, answer.best
    if best is None:
        st.error(
            as_markdown(
                " ".join(f"{capital(text)}." for text in (result.reason, answer.advice) if text)
            )
        )
        if result.needed_bytes:
            needed = ceil_gib(result.needed_bytes)
            st.button(f"Set memory to {needed:,.1f} GiB", on_click=hold, args=(MEMORY, needed))
    else:
        st.html(
            plan_pills(best, answer.scenario.fabric.devices, is_proven=result.certificate.proven)
        )
    basis = " ".join(
        [
            rests_on(answer.validity_of(best) if best else None, result),
            *answer.scenario.fabric.assumed,
        ]
    )
    if answer.scenario.stack.parameters:  # a stack of one's own
        basis += f" {calibration_in_words(answer.scenario)}"
    st.html(f'<div class="nest-rests"><b>Rests on</b> <span>{html.escape(basis)}</span></div>')


def middle(answer: Answer, scenario: Scenario) -> tuple[IterationPart, ...] | None:
    """The fabric with the plan on it, beside its cost matrix, and one iteration, which is returned.

    None without a plan, or while it is awaited.
    """
    with st.container(key="middle"):
        wide, narrow = st.columns([832, 304], gap="medium")
    with wide:
        fabric_picture(answer, scenario)
    if answer.best is None:
        return None
    with narrow:
        job = submitted(plan_parts, scenario, answer.best, place="parts")
        drawn = st.empty()
        with st.container(key="waiting-parts"):
            parts: tuple[IterationPart, ...] | None = panel(
                job, "Taking one iteration apart", key="parts"
            )
        if parts is not None:
            hidden = overlap_in_words(answer.scenario.hidden, answer.scenario.accelerator)
            drawn.html(iteration_part(parts, answer.best.iteration_s, hidden))
    return parts


@st.fragment
def fabric_picture(answer: Answer, scenario: Scenario) -> None:
    """The one place that draws the fabric with the plan on it."""
    place = st.container(key="drawn-fabric").empty()
    job = submitted(
        plan_fabric, *(scenario, answer.best, is_busy(), shown_width(FABRIC)), place="fabric"
    )
    with st.container(key="waiting-fabric"):
        picture = panel(job, "Drawing the fabric", key="fabric-picture")
    if picture is not None:
        with place:
            show_fabric(picture, key=FABRIC)
    one_of(
        st,
        "Colour by",
        PAINTS,
        PAINTS[0],
        "paint",
        bind="query-params",
        disabled=answer.best is None,
        label_visibility="collapsed",
        help="Stage: whose part of the model devices hold. Link load: how busy links are.",
    )


def is_busy() -> bool:
    """Whether the load on links is asked for, before its field is drawn."""
    return PAINTS[1] == (st.session_state.get("paint") or st.query_params.get("paint"))
