"""Studies on the Explore page: make one or open one, run it, watch it, and read its result.

A design study's result is the Pareto set, a fabric and its plan, and what the choice rests on.
"""

import json
import math
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
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
    percent_column,
    preset_names,
    toml_document,
)
from nest_core.documents.columns import COLUMNS
from nest_core.documents.schema import Parameter
from nest_core.report.figures.designs import (
    choice_rows,
    designs_picture,
    failure_words,
    tornado_picture,
)
from nest_core.report.figures.study import is_better_low, study_picture
from nest_core.report.notebook import PinOutput, output_of
from nest_core.report.picture import picture, to_svg
from nest_core.report.sheet import decision_sheet
from nest_core.report.tables import Table
from nest_core.scenario import Scenario
from nest_core.studies.decision import DecisionInputs, decide
from nest_core.studies.design_choice import Contender, DesignChoice, in_words
from nest_core.studies.design_search import search_designs
from nest_core.studies.design_space import GrowthPath, ways_to_grow
from nest_core.studies.engine import StudyProgress, WorkerPool
from nest_core.studies.rows import RowCache, rows_from, rows_of, to_parquet
from nest_core.studies.sensitivity import DesignAnswer, Sensitivity, choose_design
from nest_core.studies.study import Study, study_of, study_text
from nest_studio.components.show import download, facts, local_time, show_picture, show_svg, told
from nest_studio.explore.view import download_rows, rows_table
from nest_studio.form.fields import OneOf, hold, widget
from nest_studio.jobs.study_runs import StudyRun, begin, running, swept
from nest_studio.jobs.waiting import job_queue
from nest_studio.notebook.pins import pin_button
from nest_studio.session.open_plan import open_plan, over_preset
from nest_studio.session.stored import answers, documents

__all__ = [
    "MINE",
    "show_design",
    "studies_part",
]

PICKED = "design.picked"
_PICTURE_PX = 640
_MOST_ON_SHEET = 4


def show_design(study: Study, answer: DesignAnswer) -> None:
    """Draw all of it."""
    designed, choice = answer.searched, answer.choice
    names = tuple(contender.name for contender in choice.contenders)

    def pick(place: int) -> None:
        if place in range(len(names)):
            st.session_state[PICKED] = names[place]

    show_picture(designs_picture(designed, choice), "design", on_pick=pick)
    proof = designed.certificate
    facts(
        "Certificate: no other design beats these."
        if proof.proven
        else f"Certificate: open, gap {percent(proof.gap)}.",
        kind="nest-quiet",
    )
    first, second = st.columns([1, 1], gap="medium")
    with first:
        name = widget(
            PICKED,
            OneOf(names),
            names[0],
            label="Design",
            bind=None,
            help="Click a point above, or pick one.",
        )
        contender = next(entry for entry in choice.contenders if entry.name == name)
        _contender(study, choice, contender)
    with second:
        report = contender.bills[0].report
        drawn = picture(
            contender.planned.design.fabric, report.plan if report else None, width=_PICTURE_PX
        )
        show_svg(to_svg(drawn), key="design-picture")
    rows_table(choice_rows(choice), {"price_usd": "localized", "worst_loss": "percent"})
    facts(choice.rule, kind="nest-quiet")
    if answer.sensitivity is not None:
        _rests_on(answer.sensitivity)
    _growth(
        ways_to_grow(
            study,
            [first.planned.design for first in choice.contenders if first.rank == 1],
        )
    )
    if designed.refused:
        with st.expander(f"{len(designed.refused):,} designs that cannot be, or break a limit"):
            st.dataframe(designed.refused, column_config={"name": "design"})


def _rests_on(rests_on: Sensitivity) -> None:
    """Draw the tornado, and say what decides."""
    first, second = st.columns([1, 1], gap="medium")
    with first:
        show_picture(tornado_picture(rests_on), "tornado")
    with second:
        st.html('<div class="nest-title">What decides</div>')
        facts(*rests_on.sentences)
        if rests_on.information:
            worth = percent_column(fact.worth for fact in rests_on.information)
            st.html(
                Table(
                    "What it is worth to know before choosing",
                    "Expected saving, as a share of the goal's cost",
                    [
                        {
                            "unknown": fact.name,
                            "worth": worth(fact.worth),
                            "how": fact.measure,
                        }
                        for fact in rests_on.information
                    ],
                ).to_html()
            )


def _contender(study: Study, choice: DesignChoice, contender: Contender) -> None:
    design = contender.planned.design
    facts(
        "" if choice.goal == "days" else f"{in_words(choice.goal, contender.value)}.",
        f"{contender.planned.days:.3g} days ({contender.span[0]:.3g} to {contender.span[1]:.3g})"
        f"{failure_words(contender)}.",
        f"${design.price_usd / 1e6:,.4g} M, {design.power_W / 1e3:,.4g} kW.",
        f"Plan: {contender.planned.plan}",
        f"Ties with {len(contender.ties)} others." if contender.ties else "",
        f"In no price for want of a source: {', '.join(design.owned.missing)}."
        if design.owned.missing
        else "",
    )
    member = study.members[0]
    others = [other for other in choice.contenders if other.rank == 1 and other is not contender]
    bills = [other.bills[0] for other in (contender, *others[: _MOST_ON_SHEET - 1])]
    question = {
        "entries": [
            {
                "name": other.name,
                "document": member.scenario.document,
                "overrides": other.planned.design.changes,
            }
            for other in (contender, *others[: _MOST_ON_SHEET - 1])
        ],
        "goal": choice.goal,
        "assumed": {"max_loss": choice.max_loss},
    }
    row = st.container(horizontal=True)
    row.button(
        "Open in Plan",
        key="design-open",
        disabled=member.name not in preset_names("scenarios"),
        on_click=open_plan,
        args=(Scenario(member.scenario.document, design.changes), contender.name),
        help="Sets the form to this design and shows its plan; of a mix, that of its first model.",
    )
    row.download_button(
        "Decision sheet",
        lambda: decision_sheet(
            decide(bills, DecisionInputs(max_loss=choice.max_loss), choice.goal),
            datetime.now(),
            question=question,
        ),
        "decision-sheet.html",
        "text/html",
        on_click="ignore",
        type="primary",
        key="design-sheet",
        disabled=len(study.members) > 1,
        help="The first rank's designs, for a committee; of a mix there is none.",
    )


def _growth(ways: Sequence[GrowthPath]) -> None:
    if not ways:
        return
    rows = [
        {
            "design": way.design,
            "built": way.how,
            "M$ by phase": " + ".join(f"{phase.paid_usd / 1e6:,.4g}" for phase in way.phases),
            "links recabled": " + ".join(f"{phase.recabled:,}" for phase in way.phases[1:]),
            "regret, M$": f"{way.regret_usd / 1e6:,.3g}",
            "in all, M$": "–" if way.reason else f"{way.total_usd / 1e6:,.4g}",
            "note": way.reason,
        }
        for way in ways
    ]
    st.html(
        Table(
            "What to buy now, if more devices come",
            "Regret: what is paid now beyond the cheapest, lost if growth does not come",
            rows,
        ).to_html()
    )


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
                _heading(study, documents("studies").changed(str(st.session_state[NAME])))
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
    names = documents("studies").names()
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
        document = documents("studies").open(name) if name in names else None
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


@told(st.toast)
def _save(name: str) -> None:
    st.session_state[NAME] = documents("studies").save(
        name, {"toml": st.session_state[TEXT]}, replace=True
    )


def _delete(name: str) -> None:
    documents("studies").delete(name)
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
