"""The parts of the Measurements page, from the top down, and what a session has there.

What is read from logs stands in the session as plain data, and the address carries a key under
which the store keeps it, so that a reload loses nothing. Under a name it is kept for everyone who
uses this server's store.
"""

import json
from dataclasses import dataclass
from typing import Any

import streamlit as st

from nest_core.api.answer import Answer
from nest_core.api.measurements import MeasuredEntry, Measurements, moved_table
from nest_core.documents import InputError, as_markdown, grouped, preset_names
from nest_core.report.tables import Table
from nest_core.scenario import Scenario
from nest_studio.components.show import download, facts, show_picture, told
from nest_studio.form.fields import Number, OneOf, settle
from nest_studio.jobs.tasks.measured import (
    FitAnswer,
    NextAnswer,
    chosen_runs,
    fit_measured,
    read_measured,
)
from nest_studio.jobs.tasks.requests import best_plan
from nest_studio.jobs.waiting import panel, submitted
from nest_studio.session.open_plan import open_plan
from nest_studio.session.own_fabric import KEPT_AS
from nest_studio.session.stored import (
    address,
    documents,
    keep,
    recall,
    session_value,
    write_address,
)

__all__ = [
    "FIRST_NAME",
    "add",
    "bring_controls",
    "brought_again",
    "current",
    "delete_kept",
    "follow_address",
    "heading",
    "in_page_words",
    "keep_as",
    "leave_out",
    "next_part",
    "no_measurements",
    "open_kept",
    "plan_part",
    "rename_kept",
    "runs_part",
    "say_in_address",
    "stack_part",
    "start_anew",
]

FIRST_NAME = "my-cluster"
"""What the first set is called where nobody names it."""

_ADDRESS = "measured"

_PAGE_WORDS = (
    ("add the launch command with --launch", "paste its launch command"),
    (
        "add the launch command, or bf16=true, with --launch",
        "paste its launch command, or bf16=true",
    ),
    ("name it with --model, or add --launch", "pick its model, or paste its launch command"),
    ("name it with --accelerator, or a scenario with --on", "pick it, or take the scenario's"),
    ("name its own accelerator", "pick its own accelerator"),
    ("name the fabric that it ran on", "choose the fabric that it ran on at the left"),
    ("devices of --on", "devices of the scenario"),
    ("--launch", "the launch command"),
)
"""Options of the command line, and what the page calls them."""


def in_page_words(error: InputError) -> str:
    """Return a refusal whose remedies are fields of the page.

    Examples
    --------
    >>> in_page_words(InputError("a.log", "must state its plan", "without",
    ...                          "add the launch command with --launch"))
    "a.log must state its plan, but is 'without': paste its launch command."
    """
    text = str(error)
    for option, field in _PAGE_WORDS:
        text = text.replace(option, field)
    return text


@dataclass
class MeasurePage:
    """What Measurements keeps of a session.

    Parameters
    ----------
    document : dict or None
        What the session works on, as JSON; None before there was anything.
    key : str
        Under which the store has it.
    left_out : frozenset of str
        Names of entries that the person took out, though their files may still be at hand.
    """

    document: dict[str, Any] | None = None
    key: str = ""
    left_out: frozenset[str] = frozenset()

    def put(self, measurements: Measurements) -> None:
        """Work on these from now on."""
        self.document = measurements.to_json()
        self.key = keep(self.document) if measurements.entries else ""


def measure_page() -> MeasurePage:
    """Return what this session's page keeps."""
    return session_value(MeasurePage)


def follow_address() -> None:
    """Take up what the address names, if the session has nothing; first on the page."""
    key = address(_ADDRESS)
    if measure_page().document is None and key:
        state = recall(key) or {}
        if state.keys() == {"name", "entries"}:
            with told(st.toast):
                measure_page().put(Measurements.from_json(state))


def current() -> Measurements:
    """Return what the session works on."""
    document = measure_page().document
    return Measurements.from_json(document) if document else Measurements(FIRST_NAME)


def say_in_address() -> None:
    """Let the address carry it."""
    write_address(_ADDRESS, measure_page().key)


def add(entries: tuple[MeasuredEntry, ...]) -> None:
    """Take up what was read; entries of the same name give way."""
    page, before = measure_page(), current()
    after = before.with_entries([entry for entry in entries if entry.name not in page.left_out])
    if after != before:
        page.put(after)


def leave_out(name: str) -> None:
    """Take an entry out; for callbacks."""
    measure_page().left_out |= {name}
    measure_page().put(current().without(name))


def brought_again(names: set[str]) -> None:
    """Forget what was taken out of files that are no longer at hand."""
    measure_page().left_out &= names


@told(st.toast)
def open_kept(name: str) -> None:
    """Work on a kept set; for callbacks."""
    document = documents("measurements").open(name)
    if document is not None:
        measure_page().put(Measurements.from_json(document))


def start_anew() -> None:
    """Put nothing in place of what is there; for callbacks."""
    measure_page().put(Measurements(FIRST_NAME))


def keep_as(name: str, fit: FitAnswer, over: bool) -> None:
    """Keep what the session works on under a name, with the stack fitted to it.

    Parameters
    ----------
    name : str
    fit : FitAnswer
        Its stack as a scenario's table and as a file; both empty where there is none.
    over : bool
        Whether it may take the place of one that has the name.

    Raises
    ------
    InputError
        If it cannot be kept under this name.
    """
    measurements = Measurements(name.strip(), current().entries)
    document = measurements.to_json() | {
        "stack": {**fit.stack, "name": measurements.name} if fit.stack else None,
        "toml": fit.toml,
    }
    documents("measurements").save(measurements.name, document, replace=over)
    measure_page().put(measurements)
    if st.session_state.get(KEPT_AS) is None and fit.stack:
        st.session_state[KEPT_AS] = measurements.name


@told(st.toast)
def rename_kept(name: str, to: str) -> None:
    """Give a kept set another name; for callbacks."""
    document = documents("measurements").open(name)
    if document is None:
        return
    measurements = Measurements(to.strip(), Measurements.from_json(document).entries)
    stack = document.get("stack")
    document |= {
        "name": measurements.name,
        "stack": {**stack, "name": measurements.name} if stack else None,
    }
    documents("measurements").rename(name, measurements.name, document)
    if current().name == name:
        measure_page().put(Measurements(measurements.name, current().entries))


@told(st.toast)
def delete_kept(name: str) -> None:
    """Delete a kept set; what the session works on stays. For callbacks."""
    documents("measurements").delete(name)


FILES, LAUNCH, MODEL, DEVICE, OURS, OPENED, RUNS = (
    f"measure.{name}" for name in ("files", "launch", "model", "device", "ours", "kept", "runs")
)
AS_PRINTED = "as the log says"
MOST_NEXT = 20
PROGRAMS = "Megatron-LM, Megatron-Bridge, NeMo, torchtitan, DeepSpeed, MLPerf's logger, nccl-tests"


def heading(measurements: Measurements, fit: FitAnswer | None, scenario: Scenario) -> None:
    """Show what the measurements come to, and the ways to keep them and take them along."""
    title_column, tools = st.columns([9, 8], vertical_alignment="bottom")
    with title_column:
        facts(f"Measurements: {measurements.name}", kind="nest-scenario")
        facts(fit.words if fit else "", kind="nest-quiet")
    with tools, st.container(horizontal=True, horizontal_alignment="right", gap="small"):
        _shelf(measurements)
        _keep(measurements, fit)
        _export(measurements, fit)
        st.button(
            "Use on Plan",
            key="measure-use",
            on_click=_use,
            args=(scenario, fit),
            disabled=fit is None or fit.stack is None,
            help="Keeps the stack under its name and plans the scenario at the left under it.",
        )


def bring_controls(scenario: Scenario) -> None:
    """Show where logs and commands come in; what cannot be read is said beside its field."""
    for key, options in ((MODEL, preset_names("models")), (DEVICE, preset_names("accelerators"))):
        settle(key, OneOf((AS_PRINTED, *options)))
    settle(OURS, OneOf((False, True)))
    files_column, command_column, model_column = st.columns([4, 4, 3], gap="medium")
    files = files_column.file_uploader(
        "Logs of jobs, or tables of runs",
        accept_multiple_files=True,
        key=FILES,
        help=f"Printed by {PROGRAMS}; or a CSV with the columns of measured runs. At most 5 MB "
        "each; they stay on this machine.",
    )
    launch = command_column.text_area(
        "Launch command or configuration",
        key=LAUNCH,
        height=130,
        max_chars=100_000,
        help="What the logs do not say themselves; without a log it is read by itself. A command, "
        "a script, TOML, YAML, or DeepSpeed's JSON.",
    )
    with model_column:
        model = st.selectbox("Model", (AS_PRINTED, *preset_names("models")), key=MODEL)
        device = st.selectbox(
            "Accelerator", (AS_PRINTED, *preset_names("accelerators")), key=DEVICE
        )
        ours = st.checkbox(
            "The rest as in the scenario",
            key=OURS,
            help="Nodes, links, accelerator and the model's sizes of the form at the left, where a "
            "log does not say them.",
        )
    given = (
        (launch or "").strip(),
        "" if model == AS_PRINTED else model,
        "" if device == AS_PRINTED else device,
        scenario if ours else None,
    )
    files = [file for file in files or () if file is not None]
    brought_again({file.name for file in files})
    for number, file in enumerate(files):
        _read(files_column, (file.getvalue(), file.name, *given), f"file-{number}")
    if given[0] and not files:
        _read(command_column, (b"", "", *given), "command")


def _read(place: Any, source: tuple[bytes, str, str, str, str, Scenario | None], key: str) -> None:
    """Read a file: its content, its name, and what is given beside it (`read_measured`)."""
    with place:
        try:
            entries = panel(
                submitted(read_measured, *source, place=f"measure-{key}"),
                f"Reading {source[1] or 'the command'}",
                key=f"measure-{key}",
            )
            if entries is not None:
                add(entries)
        except InputError as error:
            st.error(as_markdown(in_page_words(error)))


def no_measurements() -> None:
    """Show what the page is for, where nothing was brought yet."""
    facts(
        "Drop what your jobs printed, some 30 steps each, under plans that differ; or paste a "
        "launch command. Plan, time and memory are read from it and stand beside what is "
        "predicted; the software stack is fitted to the runs, and Plan and the command line use "
        "it under its name.",
        f"Read are logs of {PROGRAMS}.",
        kind="nest-quiet",
    )


def runs_part(measurements: Measurements) -> FitAnswer | None:
    """Show runs as read, what was assumed or left out; return the fit, once it is there."""
    text = json.dumps(measurements.to_json(), sort_keys=True)
    fit: FitAnswer | None = panel(
        submitted(fit_measured, text, place="measure-fit"), "Fitting the stack", key="measure-fit"
    )
    if fit is None:
        return None
    if fit.runs.rows:
        st.html(fit.runs.to_html())
    for name, reason in fit.skipped:
        st.warning(as_markdown(f"{name} is left out: {reason}"))
    logs = [entry.name for entry in measurements.entries if entry.kind == "nccl"]
    if logs:
        facts(f"Logs of nccl-tests: {', '.join(logs)}.")
    with st.container(horizontal=True, gap="small"):
        _assumed(measurements)
        with st.popover("Leave one out", type="tertiary"):
            for entry in measurements.entries:
                st.button(
                    as_markdown(entry.name),
                    key=f"measure-out-{entry.kind}-{entry.name}",
                    on_click=leave_out,
                    args=(entry.name,),
                )
    return fit


def _assumed(measurements: Measurements) -> None:
    """Show sentences on what logs do not say, each with the runs that it is of."""
    sentences = grouped(
        (sentence, entry.name) for entry in measurements.entries for sentence in entry.assumed
    )
    rows = [{"assumed": text, "of": ", ".join(names)} for text, names in sentences.items()]
    with st.expander(f"What was assumed or given ({len(rows)})"):
        if rows:
            st.html(Table("What no log says", "Each with the runs that it is of", rows).to_html())
        else:
            facts("Logs and tables say all that is needed.")


def stack_part(fit: FitAnswer) -> None:
    """Errors before and after, run by run, beside the figures that moved."""
    if fit.unfitted:
        st.info(as_markdown(fit.unfitted))
        return
    errors_column, figures_column = st.columns([6, 5], gap="medium")
    if fit.errors is not None:
        show_picture(fit.errors, "measured-errors", errors_column)
    if fit.parameters is not None:
        figures_column.html(fit.parameters.to_html())


def plan_part(fit: FitAnswer, scenario: Scenario) -> None:
    """Show what Plan's figures of the scenario at the left become under the fitted stack."""
    usual = {key: value for key, value in scenario.overrides.items() if key != "stack"}
    stacks = {"old": None, "new": fit.stack}
    try:
        answers = [
            _answer(Scenario(scenario.document, {**usual, "stack": stack}), name)
            for name, stack in stacks.items()
        ]
    except InputError as error:
        st.info(as_markdown(f"The scenario at the left is not planned under it: {error}"))
        return
    before, after = answers
    if before is not None and after is not None:
        st.html(moved_table(before, after).to_html())


def _answer(scenario: Scenario, name: str) -> Answer | None:
    values = scenario.values
    planned = panel(
        submitted(best_plan, scenario, place=f"measure-{name}"),
        f"Planning under {values.stack.name}",
        key=f"measure-{name}",
    )
    if planned is None:
        return None
    result, network, interval, run = planned
    return Answer(values, network, result, (), interval, run)


def next_part(fit: FitAnswer, scenario: Scenario) -> None:
    """Show the next runs worth making, as a job of Slurm's; computed when it is opened."""
    settle(RUNS, Number(1, MOST_NEXT))
    box = st.expander("Which runs to make next", key="measure-next", on_change="rerun")
    if not box.open:
        return
    under_fit = Scenario(scenario.document, {**scenario.overrides, "stack": fit.stack})
    with box:
        runs = st.number_input(
            "Runs, at most", 1, MOST_NEXT, 4, key=RUNS, width=160, help=f"1 to {MOST_NEXT}."
        )
        try:
            choice: NextAnswer | None = panel(
                submitted(
                    chosen_runs, under_fit, int(runs), place="measure-next-runs", urgent=False
                ),
                "Choosing the next runs",
                key="measure-next-runs",
            )
        except InputError as error:
            st.info(as_markdown(error))
            return
        if choice is None:
            return
        st.html(choice.table.to_html())
        for reason in choice.refused:
            facts(f"Not run: {reason}", kind="nest-quiet")
        for name, content in choice.files.items():
            download(
                f"↓ {name}",
                lambda content=content: content,
                name,
                "text/x-shellscript",
                help="One job array of Slurm's: 30 steps of every run, launched with Megatron-LM; "
                "drop its logs above.",
            )


def _shelf(measurements: Measurements) -> None:
    """Open, rename and delete kept sets."""
    with st.popover("Kept", type="tertiary", key="measure-shelf"):
        try:
            names = documents("measurements").names()
        except InputError as error:
            st.error(as_markdown(error))
            return
        if not names:
            facts("None is kept yet.")
        settle(OPENED, OneOf(names, empty=True))
        name = st.selectbox("Measurements", names, index=None, key=OPENED)
        with st.container(horizontal=True, gap="small"):
            is_chosen = name is not None
            st.button("Open", on_click=open_kept, args=(name,), disabled=not is_chosen)
            st.button("Delete", on_click=delete_kept, args=(name,), disabled=not is_chosen)
            st.button("Start anew", on_click=start_anew, disabled=not measurements.entries)
        to = st.text_input("New name", name or "", max_chars=100, key=f"measure-name-{name}")
        st.button(
            "Rename", on_click=rename_kept, args=(name, to), disabled=not is_chosen or to == name
        )


def _keep(measurements: Measurements, fit: FitAnswer | None) -> None:
    with st.popover("Keep", type="tertiary", key="measure-keep", disabled=fit is None):
        name = st.text_input(
            "Name", measurements.name, max_chars=100, key=f"measure-keep-{measurements.name}"
        )
        over = st.checkbox("Replace what has this name", key="measure-over")
        st.button(
            "Keep under this name",
            key="measure-keep-do",
            on_click=_keep_as,
            args=(name, fit, over),
            help="In this server's store: Plan offers its stack under this name.",
        )


@told(st.toast)
def _keep_as(name: str, fit: FitAnswer, over: bool) -> None:
    keep_as(name, fit, over)


def _export(measurements: Measurements, fit: FitAnswer | None) -> None:
    with st.popover("Export", type="tertiary", key="measure-export", disabled=fit is None):
        name = measurements.name
        if fit is not None and fit.stack is not None:
            download("↓ Stack (TOML)", lambda: fit.toml, f"{name}.toml", "application/toml")
            st.code(
                f"nest-studio plan SCENARIO --set 'stack=\"{name}.toml\"'", None, wrap_lines=True
            )
        if measurements.runs:
            download("↓ Runs (CSV)", measurements.to_csv, f"{name}.csv", "text/csv")
            st.code(f"nest-studio calibrate {name}.csv --name {name}", None, wrap_lines=True)


@told(st.toast)
def _use(scenario: Scenario, fit: FitAnswer) -> None:
    """Keep the stack under its name, and have the scenario planned under it."""
    name = current().name
    keep_as(name, fit, over=True)
    open_plan(
        Scenario(
            scenario.document,
            {**scenario.overrides, "stack": {**(fit.stack or {}), "name": name}},
        )
    )
