"""The parts of the notebook page: the list at the left, the cells with their buttons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from nest_core.course.pinned import PINNED, lesson_file, lesson_text
from nest_core.figures import Picture
from nest_core.notebook import Cell, Notebook, new_id
from nest_core.notebook.cells import changes, delete_cell, duplicate_cell, move_cell, replace_cell
from nest_core.notebook.kinds import KINDS, Shown, compute, summarise
from nest_core.notebook.words import note_html
from nest_core.picture import to_svg
from nest_core.quoting import as_markdown
from nest_core.scenario import Scenario
from nest_studio.browser.svg import show_svg
from nest_studio.compare_state import use_inputs
from nest_studio.explore_view import reopen, reopens
from nest_studio.fields import hold
from nest_studio.jobs import Job, forget, submitted, there
from nest_studio.notebook_state import edit, keep_summary
from nest_studio.open_plan import open_plan, unsaid
from nest_studio.show import HeadlineRow, PicturePlace, download, facts, local_time, told

__all__ = ["PICKED", "cell_card", "job_of", "note_style", "picked_plans", "run_again"]

_STYLE = """
<style>
.nest-notes { max-width: 52rem; line-height: 1.5; }
.nest-notes :is(h1, h2, h3, h4, h5, h6) { font-size: 1rem; font-weight: 600; padding: 0;
  margin: 0.6rem 0 0.25rem; letter-spacing: 0; }
.nest-notes p { margin: 0 0 0.5rem; }
.nest-notes a { color: var(--st-link-color, #0072B2); }
.nest-notes pre, .nest-notes code { font-size: 0.85rem; background: rgba(128, 132, 138, 0.14); }
.nest-notes pre { padding: 0.5rem 0.75rem; overflow-x: auto; }
.nest-notes pre code { background: none; }
.nest-notes blockquote { border-left: 3px solid rgba(128, 132, 138, 0.5); margin: 0.5rem 0;
  padding-left: 0.75rem; }
.nest-notes table { border-collapse: collapse; font-size: 0.85rem; }
.nest-notes :is(td, th) { border-bottom: 1px solid rgba(128, 132, 138, 0.35);
  padding: 0.2rem 0.9rem 0.2rem 0; text-align: left; }
</style>
"""

OPEN_CELLS = 4
"""So many cells show their figures at once; the others when they are opened."""
PICKED = "compare-"
_EDITING = "notebook note open "
_AGAIN = "notebook run again"
_MOST_CHANGES = 8
_LONGEST_TITLE = 200
_LONGEST_NOTE = 50_000


def note_style() -> None:
    """How notes look; once per run, before the first."""
    st.html(_STYLE)


def job_of(cell: Cell) -> Job:
    """The work that computes what a cell shows."""
    inputs = dict(cell.inputs)
    return submitted(compute, cell.kind, inputs, urgent=False, place=f"cell {cell.id}")


def picked_plans(notebook: Notebook) -> tuple[Cell, ...]:
    """The plan cells that are ticked for a comparison."""
    return tuple(
        cell
        for cell in notebook.cells
        if cell.kind == "plan" and st.session_state.get(f"{PICKED}{cell.id}")
    )


def cell_card(notebook: Notebook, cell: Cell) -> None:
    """One cell: its title, buttons, note and figures."""
    place = notebook.place(cell.id)
    with st.container(border=True, key=f"cell-{cell.id}"):
        _head(notebook, cell, place)
        _note(cell)
        if cell.kind != "note":
            _results(cell, place)


def _head(notebook: Notebook, cell: Cell, place: int) -> None:
    left, right = st.columns([5, 7], vertical_alignment="center")
    key = _follow(f"title-{cell.id}", cell.title)
    left.text_input(
        f"Title of cell {place + 1}",
        key=key,
        max_chars=_LONGEST_TITLE,
        on_change=_set_title,
        args=(cell.id,),
        label_visibility="collapsed",
    )
    row = right.container(
        horizontal=True, horizontal_alignment="right", vertical_alignment="center", gap="small"
    )
    with row:
        if cell.kind == "plan":
            st.checkbox("Compare", key=f"{PICKED}{cell.id}")
        _way_out(cell)
        last = place == len(notebook.cells) - 1
        _button("↑", "up", cell, lambda n: move_cell(n, cell.id, -1), "Move up.", place == 0)
        _button("↓", "down", cell, lambda n: move_cell(n, cell.id, 1), "Move down.", last)
        editing = st.session_state.get(f"{_EDITING}{cell.id}", _asks_for_words(cell))
        st.button(
            "Close note" if editing else "Edit note" if cell.note else "Add note",
            on_click=hold,
            args=(f"{_EDITING}{cell.id}", not editing),
            key=f"edit-{cell.id}",
            type="tertiary",
        )
        _button("Duplicate", "copy", cell, lambda n: duplicate_cell(n, cell.id, new_id()), "")
        if cell.kind != "note":
            st.button(
                "Re-run",
                on_click=run_again,
                args=((cell,),),
                key=f"again-{cell.id}",
                type="tertiary",
                help="Compute it again and say what changed.",
            )
        if cell.kind in PINNED:
            download(
                "Lesson",
                lambda: lesson_text(cell),
                lesson_file(cell),
                "application/toml",
                key=f"lesson-{cell.id}",
                help="A lesson file that shows this cell; its question is yours to write.",
            )
        _button("Delete", "delete", cell, lambda n: delete_cell(n, cell.id), "Undo brings it back.")


def _button(
    label: str,
    name: str,
    cell: Cell,
    change: Callable[[Notebook], Notebook],
    tip: str,
    disabled: bool = False,
) -> None:
    st.button(
        label,
        on_click=edit,
        args=(change,),
        key=f"{name}-{cell.id}",
        type="tertiary",
        help=as_markdown(tip) or None,
        disabled=disabled,
    )


def _way_out(cell: Cell) -> None:
    """Back to the page where a cell's scenario can be worked on."""
    inputs = cell.inputs
    if reopens(inputs):
        with st.popover("Open", type="tertiary", key=f"out-{cell.id}"):
            scenario = _scenario(inputs)
            st.button(
                "The question in Explore",
                key=f"ask-{cell.id}",
                on_click=reopen,
                args=(scenario, inputs),
                width="stretch",
                help="Sets Explore to this scenario and what was asked. "
                + as_markdown(unsaid(scenario)),
            )
            _plan_button("The scenario in Plan", f"plan-{cell.id}", inputs, width="stretch")
    elif "document" in inputs and cell.kind != "fabric":
        _plan_button("Open in Plan", f"plan-{cell.id}", inputs, type="tertiary")
    elif "entries" in inputs:
        with st.popover("Open", type="tertiary", key=f"out-{cell.id}"):
            st.button(
                "All in Compare",
                key=f"all-{cell.id}",
                on_click=use_inputs,
                args=(inputs,),
                width="stretch",
                help="Replaces what is compared there; Undo brings it back.",
            )
            for place, entry in enumerate(inputs["entries"]):
                name = f"{entry['name']} in Plan"
                _plan_button(name, f"plan-{cell.id}-{place}", entry, width="stretch")


def _scenario(inputs: Mapping[str, Any]) -> Scenario:
    return Scenario(inputs["document"], inputs.get("overrides", {}))


def _plan_button(label: str, key: str, inputs: Mapping[str, Any], **look: Any) -> None:
    scenario = _scenario(inputs)
    st.button(
        label,
        key=key,
        on_click=open_plan,
        args=(scenario,),
        help=f"Sets the form of Plan to this scenario. {as_markdown(unsaid(scenario))}",
        **look,
    )


def _note(cell: Cell) -> None:
    words = f'<div class="nest-notes">{note_html(cell.note)}</div>'
    if not st.session_state.get(f"{_EDITING}{cell.id}", _asks_for_words(cell)):
        if cell.note:
            st.html(words)
        return
    left, right = st.columns(2, gap="medium")
    key = _follow(f"note-{cell.id}", cell.note)
    left.text_area(
        "Note, Markdown",
        key=key,
        height=220,
        max_chars=_LONGEST_NOTE,
        on_change=_set_note,
        args=(cell.id,),
        help="Up to 50,000 characters. Ctrl+Enter takes it over.",
        placeholder="What did you ask, and what did you find?",
    )
    with right:
        facts("Preview", kind="nest-quiet")
        if cell.note:
            st.html(words)


def _asks_for_words(cell: Cell) -> bool:
    """Whether a cell has nothing else to show."""
    return cell.kind == "note" and not cell.note


def _results(cell: Cell, place: int) -> None:
    label = f"{KINDS[cell.kind].label}, figures"
    box = st.expander(label, expanded=place < OPEN_CELLS, key=f"open-{cell.id}", on_change="rerun")
    if not box.open:
        facts(_kept_in_words(cell), kind="nest-quiet")
        return
    with box, told():
        job = job_of(cell)
        if there(job, cell.title, key=cell.id):
            _draw(cell, job.result(0))


def _draw(cell: Cell, shown: Shown) -> None:
    first, *changed = _follow_up(cell, shown)
    facts(first, kind="nest-quiet")
    if changed:
        st.warning("  \n".join(map(as_markdown, changed)))
    if shown.headlines:
        HeadlineRow(shown.headlines, spans=True)
    if shown.facts:
        facts(*shown.facts, kind="nest-quiet")
    if shown.fabric:
        show_svg(to_svg(shown.fabric), key=f"fabric-{cell.id}")
    _pictures(cell, shown.pictures)
    if shown.table:
        st.html(shown.table.to_html())


def _pictures(cell: Cell, pictures: tuple[Picture, ...]) -> None:
    """One below the other; a plan's balance and memory side by side, as on its page."""
    if cell.kind == "plan":
        places = [st.container(), *st.columns(2, gap="medium")]
    else:
        places = [st.container() for _ in pictures]
    for number, (place, picture) in enumerate(zip(places, pictures, strict=True)):
        PicturePlace(f"{cell.id}-{number}", place).draw(picture)


def _follow_up(cell: Cell, shown: Shown) -> list[str]:
    """When the cell was pinned, and what differs now; a first or second run is kept."""
    fresh = summarise(shown, datetime.now(UTC))
    asked = st.session_state.get(_AGAIN, ())
    again = cell.id in asked
    if cell.summary is None:
        keep_summary(cell.id, fresh)
        return [f"First computed {local_time(fresh.date)}."]
    found = changes(cell.summary, fresh)
    since = f"{local_time(cell.summary.date)} with {_made(cell.summary.versions)}"
    if again:
        st.session_state[_AGAIN] = tuple(name for name in asked if name != cell.id)
        keep_summary(cell.id, fresh)
    if not found:
        return [f"Run again: the same figures as on {since}." if again else f"Pinned {since}."]
    more = len(found) - _MOST_CHANGES
    lines = [*found[:_MOST_CHANGES], *([f"and {more} more"] if more > 0 else [])]
    first = "Run again" if again else "Press Re-run to keep what it is now"
    return [f"{first}. Changed since {since}:", *lines]


def _kept_in_words(cell: Cell) -> str:
    """A closed cell's figures in one line."""
    if cell.summary is None or not cell.summary.rows:
        return "Open it to compute its figures."
    rows = cell.summary.rows
    if len(rows) > 1:
        return f"{len(rows)} rows, pinned {local_time(cell.summary.date)}."
    figures = [
        f"{name}: {value:.4g}"
        for name, value in rows[0].items()
        if isinstance(value, float) and not isinstance(value, bool)
    ]
    return ", ".join(figures[:4]) or str(rows[0].get("reason", ""))


def _made(versions: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _follow(key: str, value: str) -> str:
    """Have a widget hold what the notebook says; an untouched one keeps what is being typed."""
    if st.session_state.get(key) != value:
        st.session_state[key] = value
    return key


def _set_title(cell_id: str) -> None:
    title = " ".join((st.session_state.get(f"title-{cell_id}") or "").split())
    if title:
        edit(lambda n: replace_cell(n, replace(n.cell(cell_id), title=title)))


def _set_note(cell_id: str) -> None:
    note = st.session_state.get(f"note-{cell_id}")
    if note is not None:
        edit(lambda n: replace_cell(n, replace(n.cell(cell_id), note=note)))


def run_again(cells: tuple[Cell, ...]) -> None:
    """Compute cells again and open them; for callbacks."""
    for cell in cells:
        forget(job_of(cell))
        st.session_state[f"open-{cell.id}"] = True
    ids = tuple(cell.id for cell in cells)
    st.session_state[_AGAIN] = (*st.session_state.get(_AGAIN, ()), *ids)
