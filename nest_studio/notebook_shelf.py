"""The notebook page around its cells: the list, the heading with its state, the exports."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import TimeoutError as Late
from datetime import datetime
from typing import Any

import streamlit as st

from nest_core.errors import InputError
from nest_core.notebook import Cell, Notebook, add_cell, new_id, to_json
from nest_core.notebook.jupyter import jupyter_notebook
from nest_core.notebook.kinds import Shown
from nest_core.notebook.report import html_report
from nest_core.quoting import as_markdown
from nest_core.scenario import resolve_scenario, scenario_document
from nest_core.scenario.titles import scenario_title
from nest_core.store import Listed
from nest_studio.fields import upload
from nest_studio.forms import DEFAULT_SCENARIO
from nest_studio.jobs import Stopped, WorkerCrash
from nest_studio.notebook_state import (
    FIRST_NAME,
    can_undo,
    cells_in_words,
    create,
    delete_open,
    edit,
    free_name,
    open_notebook,
    read_file,
    reload,
    rename_open,
    retry,
    save_as,
    undo,
    unsaved,
)
from nest_studio.notebook_view import PICKED, job_of, picked_plans, run_again
from nest_studio.show import download, facts, local_time

__all__ = ["empty_shelf", "heading", "no_cells", "save_state", "shelf"]

REPORT_PATIENCE_S = 300.0
MOST_PLANS = 6
LONGEST_ENTRY = 50
_LIST = "notebook list"
_IMPORT = "import-notebook-box"
_DELETE = "delete-notebook-box"


def shelf(found: tuple[Listed, ...], name: str | None) -> None:
    """The notebooks to open, and how to get another one."""
    st.subheader("Notebooks")
    if found:
        names = [entry.name for entry in found]
        chosen = name if name in names else None
        if st.session_state.get(_LIST) != chosen:
            st.session_state[_LIST] = chosen
        st.radio(
            "Notebooks",
            names,
            index=None,
            key=_LIST,
            on_change=_open_chosen,
            format_func=as_markdown,
            captions=[
                f"{cells_in_words(entry.cells)}, {local_time(entry.changed)}" for entry in found
            ],
            label_visibility="collapsed",
        )
    else:
        facts("There are none yet.", kind="nest-quiet")
    left, right = st.columns(2, gap="small")
    _name_form(left, "New", "new-notebook", "Create", _create)
    with right, st.popover("Import", width="stretch", key=_IMPORT, on_change="rerun"):
        st.file_uploader(
            "Notebook, JSON up to 5 MB",
            type=["json", "ipynb"],
            key="notebook-file",
            on_change=_import,
            help="A file that was exported here.",
        )
    here = next((entry for entry in found if entry.name == name), None)
    if here is None:
        return
    _name_form(left, "Rename", "rename-notebook", "Rename", _rename, here.name)
    with right, st.popover("Delete", width="stretch", key=_DELETE, on_change="rerun"):
        facts(f"Delete {here.name} with {cells_in_words(here.cells)}?", "There is no way back.")
        st.button("Delete the notebook", on_click=_delete, key="delete-all")


def empty_shelf(name: str | None, anything: bool) -> None:
    """What to do where no notebook is open."""
    if name:
        st.warning(
            as_markdown(f"There is no notebook named {name}. It may have been renamed or deleted.")
        )
    facts("The record of the work", kind="nest-scenario")
    facts(
        "A notebook keeps plans, sweeps and comparisons with your notes, and computes them again "
        "when you ask. Press Pin on another page to add to it, or begin here."
    )
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Start with the default plan", on_click=lambda: _begin(_default_plan()), key="start"
        )
        first = Cell(new_id(), "note", "What I want to know")
        st.button("Start with a note", on_click=_begin, args=(first,), key="start-empty")
    if anything:
        facts("Or open one at the left.", kind="nest-quiet")


def no_cells() -> None:
    """What to do with a notebook that holds nothing."""
    facts(
        "Nothing is pinned here yet. Press Pin on another page, add a note, or begin with a plan."
    )
    st.button(
        "Add the default plan",
        on_click=edit,
        args=(lambda shown: add_cell(shown, _default_plan()),),
        key="add-plan",
    )


def heading(notebook: Notebook, latest: Callable[[], Notebook]) -> None:
    """The name, what can be added, and ways to take it along.

    Parameters
    ----------
    notebook : Notebook
    latest : callable () -> Notebook
        What is exported: with the figures of cells that were computed since.
    """
    left, right = st.columns([2, 3], vertical_alignment="bottom")
    with left:
        facts(notebook.name, kind="nest-scenario")
    with right, st.container(horizontal=True, horizontal_alignment="right", gap="small"):
        file = re.sub(r"[^\w.-]+", "-", notebook.name).strip("-") or "notebook"
        download(
            "↓ Report (HTML)",
            lambda: _report(latest()),
            f"{file}.html",
            "text/html",
            key="export-html",
            help="One file with all figures, for print on A4. Nothing is loaded from elsewhere.",
        )
        download(
            "↓ Notebook (JSON)",
            lambda: to_json(latest()),
            f"{file}.json",
            "application/json",
            key="export-json",
            help="Import restores it.",
        )
        download(
            "↓ Jupyter (ipynb)",
            lambda: jupyter_notebook(latest()),
            f"{file}.ipynb",
            "application/x-ipynb+json",
            key="export-ipynb",
            help="Computes the same figures with nest_core.",
        )
    with st.container(horizontal=True, gap="small"):
        note = Cell(new_id(), "note", "Note")
        st.button(
            "Add a note", on_click=edit, args=(lambda shown: add_cell(shown, note),), key="add-note"
        )
        plans = picked_plans(notebook)
        computed = tuple(cell for cell in notebook.cells if cell.kind != "note")
        st.button(
            f"Compare {len(plans)} plans" if len(plans) > 1 else "Compare",
            on_click=_compare,
            args=(plans,),
            disabled=not 2 <= len(plans) <= MOST_PLANS,
            key="compare",
            help="Two to six ticked plans become a comparison below the last of them.",
        )
        st.button(
            "Re-run all",
            on_click=run_again,
            args=(computed,),
            disabled=not computed,
            key="again-all",
            help="Compute every cell again and say what changed.",
        )
        st.button(
            "Undo",
            on_click=undo,
            disabled=not can_undo(),
            key="undo",
            help="Take back the last change in this tab.",
        )


def save_state(notebook: Notebook) -> None:
    """Whether the store has what is on screen; else why not, and what can be done."""
    why = unsaved()
    if not why:
        when = local_time(notebook.changed, "%H:%M") if notebook.changed else ""
        facts(f"Saved {when}. {cells_in_words(len(notebook.cells))}.", kind="nest-quiet")
        return
    st.warning(as_markdown(f"Unsaved changes: {why}"))
    left, right, _ = st.columns([4, 5, 2], gap="large", vertical_alignment="bottom")
    with left, st.container(horizontal=True, gap="small"):
        st.button("Reload theirs", on_click=reload, key="reload")
        st.button("Try again", on_click=retry, key="retry")
    with right, st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        st.text_input("Save as, 1 to 100 characters", f"{notebook.name[:92]} (mine)", key="save-as")
        st.button("Save", on_click=_save_as, key="save-under", width="content")


def _name_form(
    place: Any, label: str, key: str, button: str, act: Callable[[], None], value: str = ""
) -> None:
    box = place.popover(label, width="stretch", key=f"{key}-box", on_change="rerun")
    with box, st.form(key, border=False, clear_on_submit=True):
        st.text_input("Name, 1 to 100 characters", value, max_chars=100, key=f"{key}-name")
        st.form_submit_button(button, on_click=act)


def _open_chosen() -> None:
    if (name := st.session_state.get(_LIST)) is not None:
        open_notebook(name)


def _create() -> None:
    create(st.session_state.get("new-notebook-name") or "")
    st.session_state["new-notebook-box"] = False


def _rename() -> None:
    rename_open(st.session_state.get("rename-notebook-name") or "")
    st.session_state["rename-notebook-box"] = False


def _delete() -> None:
    delete_open()
    st.session_state[_DELETE] = False


def _save_as() -> None:
    save_as(st.session_state.get("save-as") or "")


def _import() -> None:
    file = upload(st.session_state.get("notebook-file"))
    if file is not None:
        read_file(file.getvalue())
        st.session_state[_IMPORT] = False


def _begin(first: Cell) -> None:
    create(free_name(FIRST_NAME), first)


def _default_plan() -> Cell:
    document, _ = scenario_document(DEFAULT_SCENARIO)
    inputs = {"document": document, "overrides": {}}
    return Cell(new_id(), "plan", scenario_title(resolve_scenario(document)), "", inputs)


def _compare(plans: tuple[Cell, ...]) -> None:
    names = _different([plan.title for plan in plans])
    entries = [{"name": name, **plan.inputs} for name, plan in zip(names, plans, strict=True)]
    title = " beside ".join(names[:2])
    title += f" and {len(plans) - 2} more" if len(plans) > 2 else ""
    inputs = {"entries": entries, "budget": None}
    made = Cell(new_id(), "comparison", title, "", inputs)

    def below(notebook: Notebook) -> Notebook:
        """With the comparison under the last of its plans."""
        return add_cell(notebook, made, 1 + max(notebook.place(plan.id) for plan in plans))

    edit(below)
    for plan in plans:
        st.session_state[f"{PICKED}{plan.id}"] = False
    st.session_state[f"open-{made.id}"] = True


def _different(titles: list[str]) -> list[str]:
    """Short names, numbered where they would be the same."""
    short = [title[:LONGEST_ENTRY].rstrip() for title in titles]
    return [
        f"{name} ({number})" if short.count(name) > 1 else name
        for number, name in enumerate(short, start=1)
    ]


def _report(notebook: Notebook) -> str:
    results: dict[str, Shown | InputError | str] = {}
    jobs = {cell.id: job_of(cell) for cell in notebook.cells if cell.kind != "note"}
    for name, job in jobs.items():
        try:
            results[name] = job.result(REPORT_PATIENCE_S)
        except InputError as error:
            results[name] = error
        except (Late, Stopped, WorkerCrash):
            results[name] = "Its figures were not computed: run the cell again in the studio."
    return html_report(notebook, results, datetime.now().astimezone())
