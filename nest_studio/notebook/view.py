"""The notebook page: the list at the left; the open notebook with its cells, versions and files.

Every button carries the notebook as its tab saw it. Where another tab has saved meanwhile the store
refuses it, which is said above the notebook as it is now.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import streamlit as st
from nbformat import NotebookNode

from nest_core.documents import InputError, as_markdown, decoded, plural
from nest_core.documents.schema import in_labels
from nest_core.report.notebook import cell_parts, pinned, read_notebook, write_notebook
from nest_core.report.notebook.inputs import SCENARIO_KINDS, checked_inputs
from nest_core.report.notebook.report import html_report, note_html
from nest_core.scenario import Scenario
from nest_core.teaching.course.folder import lesson_file, lesson_text
from nest_studio.compare.state import use_inputs
from nest_studio.components.show import download, facts, local_time, told
from nest_studio.explore.view import reopen, reopens
from nest_studio.form.fields import upload
from nest_studio.notebook.pins import last_used, remember
from nest_studio.session.open_plan import open_plan, unsaid
from nest_studio.session.store import NotebookEntry, SavedNotebook
from nest_studio.session.stored import notebooks, write_address

__all__ = [
    "draw_cells",
    "follow_address",
    "heading",
    "note_style",
    "shelf",
    "take_problem",
]

_ADDRESS, _PROBLEM, _LIST = "notebook", "notebook problem", "notebook list"
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
.nest-notes img { max-width: 100%; }
</style>
"""


def note_style() -> None:
    """Set how notes look; once per run, before the first."""
    st.html(_STYLE)


def follow_address() -> str | None:
    """Return the name of the open notebook: the address says it, and else the session."""
    if _ADDRESS in st.query_params:
        remember(st.query_params[_ADDRESS] or last_used())
    write_address(_ADDRESS, last_used())
    return last_used()


def open_notebook(name: str | None) -> None:
    """Open a notebook, or none; for callbacks of its page."""
    remember(name)
    write_address(_ADDRESS, name)


def take_problem() -> str:
    """Return what the last callback could not do; once."""
    return str(st.session_state.pop(_PROBLEM, ""))


def shelf(
    entries: tuple[NotebookEntry, ...], name: str | None, saved: SavedNotebook | None
) -> None:
    """Draw the notebooks to open, and what can be done with the open one."""
    st.subheader("Notebooks")
    names = [entry.name for entry in entries]
    st.session_state[_LIST] = name if name in names else None
    if entries:
        st.radio(
            "Notebooks",
            names,
            index=None,
            key=_LIST,
            on_change=lambda: open_notebook(st.session_state.get(_LIST)),
            format_func=as_markdown,
            captions=[
                f"{plural(entry.count, 'cell')}, {local_time(entry.changed)}" for entry in entries
            ],
            label_visibility="collapsed",
        )
    else:
        facts("There are none yet.", kind="nest-quiet")
    with st.popover("Upload", width="stretch"):
        st.file_uploader(
            "Notebook, .ipynb up to 5 MB",
            type=["ipynb", "json"],
            key="notebook-file",
            on_change=_upload,
            help="Of Jupyter, or JSON that an earlier version of the studio exported.",
        )
    if saved is None:
        return
    with st.popover("Rename", width="stretch"), st.form("rename-notebook", border=False):
        st.text_input("Name, 1 to 100 characters", saved.name, max_chars=100, key="notebook-name")
        st.form_submit_button("Rename", on_click=_rename, args=(saved,))
    with st.popover("Delete", width="stretch"):
        facts(f"Delete {saved.name} and its versions?", "There is no way back.")
        st.button("Delete the notebook", on_click=_delete, args=(saved,), key="delete-all")


def heading(saved: SavedNotebook) -> None:
    """Draw the name, when it was saved, its files and its earlier versions."""
    names_column, right = st.columns([2, 3], vertical_alignment="bottom")
    with names_column:
        facts(saved.name, kind="nest-scenario")
        facts(
            f"Saved {local_time(saved.changed)}. {plural(len(saved.notebook.cells), 'cell')}.",
            kind="nest-quiet",
        )
    with right, st.container(horizontal=True, horizontal_alignment="right", gap="small"):
        file = re.sub(r"[^\w.-]+", "-", saved.name).strip("-") or "notebook"
        download(
            "↓ Notebook (ipynb)",
            lambda: write_notebook(saved.notebook),
            f"{file}.ipynb",
            "application/x-ipynb+json",
            key="export-ipynb",
            help="Runs in Jupyter where nest-studio is installed; Upload opens it here again.",
        )
        download(
            "↓ Report (HTML)",
            lambda: html_report(saved.name, saved.notebook),
            f"{file}.html",
            "text/html",
            key="export-html",
            help="One file with all figures, for print on A4. Nothing is loaded from elsewhere.",
        )
        with st.popover("Versions", type="tertiary"):
            versions = notebooks().versions(saved.name)
            facts(
                "Restoring one keeps what there is now as a version." if versions else "None yet."
            )
            for entry in versions:
                st.button(
                    as_markdown(f"Restore {local_time(entry.changed)} (version {entry.count})"),
                    on_click=_restore,
                    args=(saved, entry.count),
                    key=f"restore-{entry.count}",
                )


def draw_cells(saved: SavedNotebook) -> None:
    """Draw every cell; nothing that a file of others holds is run or loaded."""
    if not saved.notebook.cells:
        facts("There is nothing in it. Press Pin on another page.", kind="nest-quiet")
    for place, cell in enumerate(saved.notebook.cells):
        with st.container(border=True, key=f"cell-{cell.id}"):
            _cell_buttons(saved, place)
            if cell.cell_type == "markdown":
                st.html(f'<div class="nest-notes">{note_html(cell.source)}</div>')
                continue
            with st.expander("Code" if cell.cell_type == "code" else "Text"):
                st.code(cell.source, language="python" if cell.cell_type == "code" else None)
            if cell.cell_type == "code":
                _outputs(cell)


def _outputs(cell: NotebookNode) -> None:
    parts = list(cell_parts(cell))
    if not parts:
        facts("It has no output yet: run it in Jupyter.", kind="nest-quiet")
    for number, part in enumerate(parts):
        if part.figure is not None:
            st.plotly_chart(part.figure, key=f"plot-{cell.id}-{number}", alt=part.text[:500])
        elif part.kind == "image":
            st.html(f'<div class="nest-notes"><img src="{part.text}" alt="An output"></div>')
        else:
            st.code(part.text, language=None)


def _cell_buttons(saved: SavedNotebook, place: int) -> None:
    cells = saved.notebook.cells
    cell = cells[place]
    with st.container(horizontal=True, horizontal_alignment="right", gap="small"):
        if pin := pinned(cell):
            _ways_out(cell.id, pin)
        for label, name, to in (("↑", "up", place - 1), ("↓", "down", place + 1)):
            st.button(
                label,
                on_click=_edit,
                args=(saved, lambda cells, to=to: cells.insert(to, cells.pop(place))),
                key=f"{name}-{cell.id}",
                type="tertiary",
                disabled=not 0 <= to < len(cells),
            )
        st.button(
            "Delete",
            on_click=_edit,
            args=(saved, lambda cells: cells.pop(place)),
            key=f"delete-{cell.id}",
            type="tertiary",
            help="Versions brings it back.",
        )


def _ways_out(cell_id: str, pin: Mapping[str, Any]) -> None:
    """Draw the ways from a pin to the page that asks the same, and to a lesson."""
    kind = pin["kind"]
    if kind not in SCENARIO_KINDS:
        return
    try:
        inputs = checked_inputs(kind, pin["inputs"])
    except InputError:  # edited elsewhere: it can be read, but nothing be asked of it
        return
    page = "Compare" if kind == "comparison" else "Explore" if reopens(inputs) else "Plan"
    st.button(
        as_markdown(f"Open in {page}"),
        on_click=_open,
        args=(page, inputs),
        key=f"open-{cell_id}",
        type="tertiary",
        help=as_markdown(unsaid(_scenario(inputs))) or None if page == "Plan" else None,
    )
    download(
        "Lesson",
        lambda: lesson_text(pin),
        lesson_file(pin["title"]),
        "application/toml",
        key=f"lesson-{cell_id}",
        help="A lesson file that shows this cell; its question is yours to write.",
    )


@told(st.toast)
def _open(page: str, inputs: Mapping[str, Any]) -> None:
    if page == "Compare":
        use_inputs(inputs)
    elif page == "Explore":
        reopen(_scenario(inputs), inputs)
    else:
        open_plan(_scenario(inputs))


def _scenario(inputs: Mapping[str, Any]) -> Scenario:
    return Scenario(inputs["document"], inputs["overrides"])


def _edit(saved: SavedNotebook, change: Callable[[list[NotebookNode]], Any]) -> None:
    cells = list(saved.notebook.cells)
    change(cells)
    with _refused():
        notebooks().save(
            saved.name, NotebookNode({**saved.notebook, "cells": cells}), saved.revision
        )


@contextmanager
def _refused() -> Iterator[None]:
    """Keep what is refused in this block for the run that follows."""
    try:
        yield
    except InputError as error:
        st.session_state[_PROBLEM] = in_labels(str(error))


@_refused()
def _restore(saved: SavedNotebook, revision: int) -> None:
    notebooks().save(saved.name, notebooks().version(saved.name, revision), saved.revision)


@_refused()
def _rename(saved: SavedNotebook) -> None:
    name = str(st.session_state.get("notebook-name") or "").strip()
    if name != saved.name:
        notebooks().rename(saved, name)
        open_notebook(name)


@_refused()
def _delete(saved: SavedNotebook) -> None:
    notebooks().delete(saved)
    open_notebook(None)


def _upload() -> None:
    file = upload(st.session_state.get("notebook-file"))
    if file is None:
        return
    with _refused():
        notebook = read_notebook(decoded(file.getvalue(), "notebook"))
        stem = " ".join(str(file.name).rpartition(".")[0].split())[:90] or "Notebook"
        names = {entry.name for entry in notebooks().listed()}
        tries = (stem, *(f"{stem} ({number})" for number in range(2, len(names) + 3)))
        name = next(candidate for candidate in tries if candidate not in names)
        notebooks().save(name, notebook)
        open_notebook(name)
