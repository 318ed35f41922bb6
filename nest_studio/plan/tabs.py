"""The tabs below a plan: stages, memory, one iteration in time, alternatives, and why.

A tab is drawn when it is open. What waits for baselines is grey until they are there.

The section below a plan that says why: what binds it, what else there was, and your own plan.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from nest_core.api.answer import Answer
from nest_core.costs import Report
from nest_core.costs.megatron_job import Setting
from nest_core.costs.placement import RankMapping
from nest_core.documents import (
    InputError,
    as_markdown,
    decoded,
    humanise,
    humanise_bytes,
    humanise_seconds,
    plain,
)
from nest_core.planner.baselines import NAMES
from nest_core.report.explain import (
    OtherJob,
    Training,
    axes_table,
    binding_table,
    busiest_table,
    calibration_in_words,
    certificate_line,
    difference,
    equation_table,
    head_room_table,
    memory_in_words,
    memory_table,
    overlap_in_words,
    plan_in_words,
    proven_over,
    shadow_table,
    stage_rows,
    terms_table,
    training_headline,
    why_line,
    withheld,
)
from nest_core.report.figures import MethodRow, balance_figure, memory_figure, throughput_figure
from nest_core.report.figures.alternatives import alternatives_table
from nest_core.report.figures.levelwise import cost_matrices_figure, waterfall_figure
from nest_core.report.notebook import table_output
from nest_core.report.tables import Table
from nest_core.scenario import Scenario, file_stem, scenario_title
from nest_core.studies.broken import failing_kinds
from nest_core.workload.model_files import model_of, model_table
from nest_studio.components.show import download, facts, headline_row, show_picture, told
from nest_studio.form import OWN_MODEL, upload, use_model
from nest_studio.jobs.tasks.plans import (
    PlanPictures,
    plan_bindings,
    plan_draws,
    plan_equations,
    plan_failures,
    plan_links,
    plan_pictures,
    plan_rank_mapping,
    priced_mine,
)
from nest_studio.jobs.tasks.requests import next_best_choices, worth_of_head_room, worth_of_more
from nest_studio.jobs.waiting import panel, submitted
from nest_studio.notebook.pins import pin_button
from nest_studio.plan.certainty import sure_plan
from nest_studio.plan.state import OtherPlans, plan_again
from nest_studio.plan.view import is_busy
from nest_studio.session.training_run import TrainingRun

__all__ = ["TABS", "tabs", "timeline_part", "why_section"]

_SIZES = "workload.model."
FORM_KEYS = (
    "workload.global_batch_sequences",
    "workload.sequence_length_tokens",
    "workload.precision",
    "workload.optimizer",
    "workload.attention",
)
MOST_OFFERED = 64
"""Elements of a kind that a list has; others can be typed."""
EXAMPLE = """dp=16, tp=8, pp=8, micro_batch=1, zero=1, sp=true

or a Megatron-LM command: torchrun … --tensor-model-parallel-size 8 --sequence-parallel …"""


@dataclass(frozen=True, slots=True)
class _Explanation:
    """An explanation that is computed when it is opened; what is not urgent searches."""

    title: str
    key: str
    what: str
    task: Callable[..., Any]
    drawn: Callable[[Any, Report], Table]
    urgent: bool = True


_PARTS = (
    _Explanation(
        "What binds each stage",
        "binding",
        "Pricing it with more of each resource",
        plan_bindings,
        binding_table,
    ),
    _Explanation(
        "Which links are busiest, and with what",
        "links",
        "Counting the load on every link",
        plan_links,
        lambda found, _: busiest_table(found),
    ),
    _Explanation(
        "What the next-best choice on each axis costs",
        "axes",
        "Planning without each choice",
        next_best_choices,
        lambda found, _: axes_table(found),
        urgent=False,
    ),
    _Explanation(
        "What 1 % more of each resource is worth",
        "shadow",
        "Planning with 1 % more of each resource",
        worth_of_more,
        lambda found, _: shadow_table(*found),
        urgent=False,
    ),
    _Explanation(
        "What one step of memory head-room costs",
        "head-room",
        "Planning with more and less head-room",
        worth_of_head_room,
        head_room_table,
        urgent=False,
    ),
    _Explanation(
        "The equation behind each term",
        "equations",
        "Filling in the equations",
        plan_equations,
        equation_table,
    ),
)


@st.fragment
def why_section(answer: Answer, scenario: Scenario, run: TrainingRun) -> None:
    """Training time, and explanations that are computed when they are opened.

    Parameters
    ----------
    answer : Answer
    scenario : Scenario
    run : TrainingRun
    """
    best = answer.result.best
    st.space("small")
    facts("Why this plan" if best else "Your own plan", kind="nest-title")
    if best is not None and answer.training is not None:
        facts(f"{why_line(best)}. What follows is computed when it is opened.", kind="nest-quiet")
        _training(best, run.of(answer.training), scenario)
        sure_plan(answer, best, scenario)
        _explanations(best, scenario)
    _mine(answer, scenario)


def _training(best: Report, run: Training, scenario: Scenario) -> None:
    """Days to train as a headline, and the placement to take along."""
    headline, placement = st.columns([1, 3], gap="medium")
    with headline:
        headline_row((training_headline(run),), spans=True)
    with placement:
        facts(
            "Rank mapping: rank, replica, stage and rank on each axis of every device; change "
            "it and price it with nest-studio price --placement."
        )
        name = file_stem(scenario_title(scenario.values))
        with st.container(horizontal=True, gap="small"):
            download(
                "↓ Placement (CSV)",
                lambda: _rank_mapping(scenario, best).to_csv(),
                f"{name}-placement.csv",
                "text/csv",
                help="One row per device; cells of idle devices are empty.",
            )
            download(
                "↓ Placement (JSON)",
                lambda: _placement_json(scenario, best),
                f"{name}-placement.json",
                "application/json",
                help="The plan and one row per device.",
            )


def _rank_mapping(scenario: Scenario, best: Report) -> RankMapping:
    """Who sits where, for downloads, which nobody can cancel."""
    mapping: RankMapping = submitted(plan_rank_mapping, scenario, best).result()
    return mapping


def _placement_json(scenario: Scenario, best: Report) -> str:
    return json.dumps(
        {"plan": plain(best.plan.to_json()), "placement": _rank_mapping(scenario, best).rows()}
    )


def _explanations(best: Report, scenario: Scenario) -> None:
    """Parts that are computed when they are opened."""
    for part in _PARTS:
        box = st.expander(part.title, key=f"why-{part.key}", on_change="rerun")
        if not box.open:
            continue
        with box:
            result = panel(
                submitted(part.task, scenario, best, place=part.key, urgent=part.urgent),
                part.what,
                key=part.key,
            )
            if result is not None:
                table = part.drawn(result, best)
                st.html(table.to_html())
                pin_button(
                    "why",
                    table.title,
                    {
                        "document": scenario.document,
                        "overrides": scenario.overrides,
                        "part": part.key,
                    },
                    key=f"why-{part.key}",
                    output=partial(table_output, table),
                )


def _mine(answer: Answer, scenario: Scenario) -> None:
    """A person's own plan beside ours."""
    part = st.expander("Why not mine?", key="why-mine-part", on_change="rerun")
    if not part.open:
        return
    with part:
        pasted = st.text_area(
            "Your plan",
            key="why-mine",
            height=120,
            placeholder=EXAMPLE,
            max_chars=100_000,
            help="Fields as nest-studio plan prints them, Galvatron's strategy file, or a "
            "Megatron-LM command or script; one that trains something else can be taken over into "
            "the form.",
        )
        rank_mapping = upload(
            st.file_uploader(
                "Rank mapping, CSV or JSON",
                ["csv", "json"],
                key="why-mine-mapping",
                help="Optional. Rows of rank and device, or of device and tp, cp, dp, pp, from 0: "
                "the placement above, changed.",
            )
        )
        if not (pasted or "").strip():
            facts(
                "What is left out takes its default: degree 1, ZeRO 0, no recomputation, even "
                "stages; Megatron-LM flags leave dp to the rest.",
                kind="nest-quiet",
            )
            return
        try:
            own_mapping = decoded(rank_mapping.getvalue(), "placement") if rank_mapping else ""
            mine = panel(
                submitted(priced_mine, scenario, pasted, own_mapping, place="mine"),
                "Pricing your plan",
                key="mine",
            )
        except OtherJob as error:
            st.error(as_markdown(error))
            _offer(error, scenario)
            return
        except InputError as error:
            st.error(as_markdown(error))
            return
        if mine is None:
            return
        report, best = mine.report, answer.result.best
        unsure = withheld(mine.pasted)
        if unsure is None:
            plan_again(scenario, answer, [("you", report)])
        facts(unsure or _verdict(report), *mine.pasted.notes)
        if mine.pasted.ignored:
            facts("Ignored: " + ", ".join(mine.pasted.ignored) + ".", kind="nest-quiet")
        if best is None or unsure is not None:
            return
        terms = difference(best, report)
        first, second = st.columns(2, gap="medium")
        first.html(terms_table(terms).to_html())
        second.html(memory_table(terms, report.memory_limit_bytes).to_html())


def _offer(error: OtherJob, scenario: Scenario) -> None:
    """A button that plans what the command trains."""
    unsaid = [key for key in error.settings if not key.startswith(_SIZES) and key not in FORM_KEYS]
    if unsaid:
        facts(f"The form cannot say {', '.join(unsaid)}; a scenario file can.", kind="nest-quiet")
    if len(unsaid) < len(error.settings) and st.button(
        "Take over what the command trains",
        key="why-mine-take",
        on_click=_take_over,
        args=(error.settings, scenario),
        help="Sets model sizes, batch, sequence, precision and optimizer in the form.",
    ):
        st.rerun()


@told(st.toast)
def _take_over(settings: Mapping[str, Setting], scenario: Scenario) -> None:
    sizes = {
        key.removeprefix(_SIZES): value for key, value in settings.items() if key.startswith(_SIZES)
    }
    if sizes:
        model = model_table(scenario.values.model)
        use_model(model_table(model_of({**model, **sizes, "name": OWN_MODEL}, "your command")))
        st.session_state["workload.model"] = OWN_MODEL
    st.session_state.update({key: settings[key] for key in FORM_KEYS if key in settings})


def _verdict(report: Report) -> str:
    fits = (
        f"Fits: {humanise_bytes(report.fullest_bytes)} of "
        f"{humanise_bytes(report.memory_limit_bytes)}."
        if report.feasible
        else f"Does not fit: {report.reason}."
    )
    return (
        f"{humanise_seconds(report.iteration_s)} per iteration, "
        f"{humanise(report.samples_per_s)} sequences/s. {fits}"
    )


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
                why_section(answer, scenario, run)
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
    """One iteration event by event, links over time, and the fabric's levels or links' loads."""
    device = st.number_input(
        "Device",
        min_value=0,
        max_value=scenario.fabric.devices - 1,
        value=None,
        step=1,
        key=f"timeline-device-{scenario.fabric.devices}",  # which another fabric may lack
        placeholder="all stages",
        width=200,
        disabled=answer.best is None,
        help="One device's streams in place of all stages; devices count from 0.",
    )
    job = submitted(plan_pictures, scenario, answer.best, is_busy(), device, place="pictures")
    with st.container(key="waiting-pictures"):
        drawn: PlanPictures | None = panel(job, "Simulating the plan", key="pictures")
    if drawn is not None:
        wide, narrow = st.columns([832, 304], gap="large")
        show_picture(drawn.timeline, "timeline", wide)
        show_picture(drawn.links, "links", wide)
        show_picture(drawn.beside, "levels", narrow)
    if getattr(scenario.fabric, "routing", "") == "ecmp" and answer.best is not None:
        with told():
            words = panel(
                submitted(plan_draws, scenario, answer.best, place="draws", urgent=False),
                "Playing it under other hashes",
                key="draws",
            )
            facts(words or "", kind="nest-quiet")
    part = st.expander("Break it", key="break-it", on_change="rerun")
    if part.open and answer.best is not None:
        with part:
            _broken(scenario, answer.best)


def _broken(scenario: Scenario, best: Report) -> None:
    """Both losses of an element that a person picks, above those of what may be the worst."""
    name, lost = st.columns([832, 304], gap="large")
    element = name.selectbox(
        "Element",
        [
            f"{kind} {number}"
            for kind, count in failing_kinds(scenario.fabric).items()
            for number in range(min(count, MOST_OFFERED))
        ],
        None,
        key="break-element",
        accept_new_options=True,
        placeholder="leaf 3, nic 5, device 0 up to leaf",
        help="Pick, or type the name of any device, node, NIC, leaf, spine, rail, plane or link as "
        "nest-studio simulate --fail takes it. Below stands what may be the worst single failure.",
    )
    percent = lost.number_input(
        "Speed lost, %",
        min_value=1,
        max_value=100,
        value=100,
        key="break-lost",
        help="At 100 it fails; below, it is slow: a device computes, a link or switch carries "
        "so much less.",
    )
    picked = ("picked", (element,), percent / 100 if percent < 100 else 0.0)
    for place, chosen, slow in (*([picked] if element else []), ("broken", (), 0.0)):
        with told():
            drawn = panel(
                submitted(plan_failures, scenario, best, chosen, slow, place=place, urgent=False),
                "Letting elements fail, event by event",
                key=place,
            )
            if drawn is not None:
                show_picture(drawn, f"failures-{place}")


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
    facts("Stages of our plan in figures, times per iteration", kind="nest-title")
    st.dataframe(
        rows,
        hide_index=True,
        column_config={
            key: st.column_config.NumberColumn(format="%.3g")
            for key, value in rows[0].items()
            if isinstance(value, float)
        },
    )
