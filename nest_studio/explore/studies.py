"""Studies on the Explore page: make one or open one, run it, watch it, and read its result."""

import json
import math
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from nest_core import __version__
from nest_core.api.studies import design_result, study_result
from nest_core.documents import (
    InputError,
    as_markdown,
    capital,
    decoded,
    humanise_seconds,
    parse_toml,
    percent,
    preset_names,
    toml_document,
)
from nest_core.documents.columns import COLUMNS
from nest_core.documents.schema import Parameter
from nest_core.report.figures.study import is_better_low, study_picture
from nest_core.report.notebook import PinOutput, output_of
from nest_core.scenario import Scenario
from nest_core.studies.design_search import search_designs
from nest_core.studies.engine import StudyProgress, WorkerPool
from nest_core.studies.rows import RowCache, rows_from, rows_of, to_parquet
from nest_core.studies.sensitivity import DesignAnswer, choose_design
from nest_core.studies.study import Study, study_of, study_text
from nest_studio.components.show import download, facts, local_time, show_picture, told
from nest_studio.explore.design_study import show_design
from nest_studio.explore.view import download_rows, rows_table
from nest_studio.form.fields import OneOf, hold, widget
from nest_studio.jobs.study_runs import StudyRun, begin, running, swept
from nest_studio.jobs.waiting import job_queue
from nest_studio.notebook.pins import pin_button
from nest_studio.session.open_plan import open_plan, over_preset
from nest_studio.session.stored import answers, kept_studies

__all__ = ["MINE", "studies_part"]

MINE = "this form's own"
NAME, TEXT, METRIC, POINT = (f"study.{part}" for part in ("name", "text", "metric", "point"))
POLL_S = 1.0
PATIENCE = 5.0
"""Rows are read again after so many times what reading them took."""
MOST_ROWS = 5_000
"""Of a table; a file has all."""


def studies_part(scenario: Scenario, turned: Sequence[Parameter], problem: Any, top: Any) -> None:
    """Draw everything below the question, and the study's name at the top."""
    with told(problem.error):
        document = parse_toml(_text(scenario, turned), "study")
        study, key = study_of(document), json.dumps(document, sort_keys=True, default=str)
        run = running(key)
        with top:
            wide, narrow = st.columns([12, 1], vertical_alignment="bottom")
            with wide:
                _heading(study, kept_studies().changed(str(st.session_state[NAME])))
            with narrow:
                pin_button(
                    "study",
                    study.name,
                    {"study": document},
                    key="study",
                    output=lambda: _pin_output(study, run),
                )
        _run(study, key, run)


def _pin_output(study: Study, run: StudyRun | None) -> PinOutput | None:
    """Return what there is of a study's answer; None before it was run."""
    if study.design:
        done = run is not None and run.ended and run.result is not None
        return output_of(design_result(study.name, run.result)) if run and done else None
    rows = _rows(study, run)
    return output_of(study_result(study, rows)) if rows else None


def _text(scenario: Scenario, turned: Sequence[Parameter]) -> str:
    """Return the study that is open, as its file has it: picked, made of the form, or edited."""
    names = kept_studies().names()
    options = (*preset_names("studies"), *names, MINE)
    first, second = st.columns([3, 4], vertical_alignment="bottom", gap="small")
    name = widget(
        NAME,
        OneOf(options),
        options[0],
        label="Study",
        place=first,
        on_change=lambda: st.session_state.pop(TEXT, None),
        help="Shipped, kept here, or the sweep of this page's form as a study.",
    )
    if name == MINE:  # the form's scenario with the parameters that this page turned last
        preset, overrides = over_preset(scenario)
        axes = [{"parameter": axis.name, "values": list(axis.values)} for axis in turned]
        usual = toml_document(
            {
                "schema": 1,
                "name": f"Of {preset}",
                "scenario": preset,
                "overrides": overrides,
                "axes": axes or [{"parameter": "zero", "values": [0, 1, 2, 3]}],
            }
        )
    else:
        document = kept_studies().open(name) if name in names else None
        usual = study_text(name) if name not in names else str((document or {}).get("toml", ""))
    if name != MINE:  # the study names the scenarios that it is about
        st.sidebar.html('<i class="nest-mark nest-formless"></i>')
    if st.session_state.get("study opened") != (name, usual):
        st.session_state["study opened"] = (name, usual)
        st.session_state[TEXT] = usual
        st.session_state.pop(POINT, None)
    with second.popover("Edit, save, upload"):
        brought = st.file_uploader("Open a file", type="toml", key="study.upload")
        if brought is not None and st.session_state.get("study brought") != brought.file_id:
            st.session_state["study brought"] = brought.file_id
            st.session_state[TEXT] = decoded(brought.getvalue(), brought.name)
        st.text_area("The study's file", key=TEXT, height=340)
        new_name = st.text_input("Keep it as", key="study.own", max_chars=100)
        row = st.container(horizontal=True)
        row.button("Save", on_click=_save, args=(new_name,), disabled=not new_name.strip())
        if name in names:
            row.button("Delete", on_click=_delete, args=(name,))
        text = str(st.session_state[TEXT])
        download("↓ File (TOML)", lambda: text, "study.toml", "application/toml")
    return text


def _save(name: str) -> None:
    with told(st.toast):
        st.session_state[NAME] = kept_studies().save(
            name, {"toml": st.session_state[TEXT]}, replace=True
        )


def _delete(name: str) -> None:
    kept_studies().delete(name)
    st.session_state.pop(NAME, None)


def _heading(study: Study, date: str) -> None:
    base = ", ".join(f"{member.name} ({percent(member.weight)})" for member in study.members)
    axes = "; ".join(f"{axis.title}: {len(axis.values):,} values" for axis in study.axes)
    what = f"{len(study):,} points. {axes}" if not study.design else "Fabrics under a budget"
    facts(study.name, kind="nest-scenario")
    facts(
        study.question,
        f"Base: {base}. {what}.{f' Kept {local_time(date)}.' if date else ''}",
        kind="nest-quiet",
    )


def _run(study: Study, key: str, run: StudyRun | None) -> None:
    """Begin, watch, cancel, go on; below, what there is."""
    if run is not None and not run.ended:
        _watch(run)
    elif (label := _label(study, run)) and st.button(label, key="study-run", type="primary"):
        begin(key, job_queue(), answers(), _work(study))
        st.rerun()
    if run is not None and run.error is not None:
        if isinstance(run.error, InputError):
            raise run.error
        st.error(as_markdown(f"The study ended: {run.error}"))
    if not study.design:
        _result(study, run)
    elif run is not None and run.ended and run.result is not None:
        show_design(study, run.result)


def _label(study: Study, run: StudyRun | None) -> str:
    """Return what the button that begins it says; empty where nothing is left to do."""
    if study.design:
        return "Run" if not run else "Go on" if run.error or run.cancelled else ""
    answered = sum(row["status"] != "failed" for row in _rows(study, run))
    return "" if answered >= len(study) else "Go on" if answered else "Run"


def _work(study: Study) -> Any:
    """Return what a study computes, as `study_runs.begin` takes it."""
    if not study.design:
        return swept(study)

    def designed(pool: WorkerPool, cache: RowCache, tell: Any, stop: Any) -> DesignAnswer | None:
        search = search_designs(study, cache, pool, tell=tell, stop=stop)
        return None if stop() else choose_design(study, search, pool)

    return designed


def _watch(run: StudyRun) -> None:
    @st.fragment(run_every=POLL_S)
    def progress() -> None:
        if run.ended:
            st.session_state.pop("study rows", None)
            st.rerun()
        bar, middle, right = st.columns([6, 1, 1], vertical_alignment="center")
        share = run.answered / run.points if run.points else 0.0
        words = f"{run.answered:,} of {run.points:,}"
        if run.left_s is not None:
            words += f", {humanise_seconds(run.left_s)} to go"
        bar.progress(min(share, 1.0), as_markdown(words))
        if middle.button("Show", key="study-show", help="What is there so far."):
            st.rerun()
        if right.button("Cancel", key="study-cancel", help="What is there stays."):
            run.cancel()
            run.wait(POLL_S)
            st.rerun()

    progress()


def _rows(study: Study, run: StudyRun | None) -> list[dict[str, Any]]:
    """Return the rows that there are; where some were missing, read again after a while."""
    key = (
        tuple(study.key(member, {}) for member in study.members),
        *(study.axes, study.metrics, str(study.constraints)),
    )
    cached_key, rows, until = st.session_state.get("study rows", (None, [], 0.0))
    if cached_key == key and (len(rows) == len(study) or time.monotonic() < until):
        return list(rows)
    began = time.monotonic()
    rows = list(rows_of(study, run.cache if run else answers()))
    ended = time.monotonic()
    st.session_state["study rows"] = key, rows, ended + PATIENCE * (ended - began)
    return rows


def _result(study: Study, run: StudyRun | None) -> None:
    """Figure, point, table, files."""
    with st.expander("Open a result that was made elsewhere"):
        file = st.file_uploader(
            "Result (Parquet)", type="parquet", key="study.result", label_visibility="collapsed"
        )
    rows = rows_from(study, file.getvalue(), __version__) if file is not None else []
    rows = rows or _rows(study, run)
    if run is not None and isinstance(run.result, StudyProgress) and run.result.failed:
        reasons = [row["reason"] for row in rows if row["status"] == "failed"]
        st.warning(
            as_markdown(f"{run.result.failed:,} points failed; the first: {''.join(reasons[:1])}")
        )
    if not rows:
        facts("No point is answered yet.", kind="nest-quiet")
        return
    filtered = _filtered(study, rows)
    names = study.metrics
    metric = widget(
        METRIC,
        OneOf(names),
        names[0],
        label="Metric",
        bind=None,
        format_func=lambda name: COLUMNS[name],
        width=360,
    )
    show_picture(study_picture(study, filtered, metric), "study", on_pick=partial(hold, POINT))
    _point(study, filtered, metric)
    with st.expander(f"{len(filtered):,} of {len(study):,} points in figures", expanded=True):
        rows_table(filtered[:MOST_ROWS])
        if len(filtered) > MOST_ROWS:
            facts(f"The first {MOST_ROWS:,} are filtered; the files have all.", kind="nest-quiet")
        with st.container(horizontal=True):
            download_rows("↓ CSV", rows, "study.csv")
            download(
                "↓ Parquet",
                lambda: to_parquet(study, rows, __version__),
                "study.parquet",
                "application/vnd.apache.parquet",
            )


def _filtered(study: Study, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows that are asked for; axes after the third stand at their first value."""
    filtered = list(rows)
    with st.expander("Filter"):
        if study.constraints and st.toggle("Meets the constraints", key="study.meets"):
            filtered = [row for row in filtered if row["meets"]]
        for place, axis in enumerate(study.axes):
            picked = st.multiselect(
                as_markdown(axis.title),
                axis.values,
                list(axis.values[:1]) if place > 2 else [],
                key=f"study.only.{study.name}.{axis.name}",
            )
            if picked:
                filtered = [row for row in filtered if row[axis.column] in picked]
    return filtered


def _point(study: Study, rows: Sequence[Mapping[str, Any]], metric: str) -> None:
    """One point in words, and the way to its plan: the one pointed at, else the best."""
    by_number = {row["point"]: row for row in rows}
    if not by_number:
        return
    sign = -1.0 if is_better_low(metric) else 1.0
    best = max(rows, key=lambda row: sign * row[metric] if row[metric] is not None else -math.inf)
    row = by_number.get(st.session_state.get(POINT), best)
    values = ", ".join(axis.named(row[axis.column]) for axis in study.axes)
    words, button = st.columns([6, 1.4], vertical_alignment="center")
    with words:
        facts(f"{capital(values)}.", row["plan"] or row["reason"])
    member = study.members[0]
    button.button(
        "Open in Plan",
        key="study-open",
        width="stretch",
        disabled=member.name not in preset_names("scenarios"),
        on_click=lambda: open_plan(
            Scenario(member.scenario.document, study.overrides(row["point"])), study.name
        ),
        help="Sets the form to this point and shows its plan; of a mix, that of its first model.",
    )
