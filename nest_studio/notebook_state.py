"""The notebook that a session has open: kept by the store, named by the address.

Every run reads it anew, so that what other tabs and pages pinned is there. An edit is a function
from a notebook to a notebook; it is saved at once over the version that was on screen. Where the
store has a newer one, or cannot be written, the edit waits in the session as unsaved.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import streamlit as st

from nest_core.errors import InputError
from nest_core.files import decoded
from nest_core.notebook import Cell, Notebook, Summary, add_cell, from_json
from nest_core.notebook.cells import rename, replace_cell
from nest_core.store import Conflict, Saved
from nest_studio.stored import notebooks

__all__ = [
    "FIRST_NAME",
    "can_undo",
    "cells_in_words",
    "create",
    "current",
    "delete_open",
    "edit",
    "follow_address",
    "free_name",
    "keep_summary",
    "last_used",
    "on_screen",
    "open_notebook",
    "pin",
    "read_file",
    "reload",
    "rename_open",
    "retry",
    "save_as",
    "take_problem",
    "undo",
    "unsaved",
]

FIRST_NAME = "My notebook"
"""What the first one is called where nobody names it."""

STEPS = 50
ATTEMPTS = 5
_ADDRESS = "notebook"
_NAME = "notebook open"
_SEEN = "notebook seen"
_UNSAVED = "notebook unsaved"
_PAST = "notebook past"
_PROBLEM = "notebook problem"

Edit = Callable[[Notebook], Notebook]


def follow_address() -> str | None:
    """The name of the open notebook; the address says it, and else the session."""
    asked = st.query_params.get(_ADDRESS)
    if asked and asked != st.session_state.get(_NAME):
        _take(asked)
    name = last_used()
    if name and not asked:
        st.query_params[_ADDRESS] = name
    return name


def open_notebook(name: str | None) -> None:
    """Open a notebook, or none; for callbacks."""
    _take(name)
    if name is None:
        st.query_params.pop(_ADDRESS, None)
    else:
        st.query_params[_ADDRESS] = name


def current() -> Notebook | None:
    """The open notebook with what is unsaved of it; None where there is none of that name.

    Raises
    ------
    InputError
        If the store cannot be read.
    """
    if _UNSAVED in st.session_state:
        return on_screen()
    name = last_used()
    saved = notebooks().open(name) if name else None
    seen: Saved | None = st.session_state.get(_SEEN)
    if seen and saved and seen.revision != saved.revision:
        st.session_state.pop(_PAST, None)  # going back would undo what others did
    st.session_state[_SEEN] = saved
    return saved.notebook if saved else None


def on_screen() -> Notebook | None:
    """The open notebook as this run last read or saved it."""
    if _UNSAVED in st.session_state:
        notebook: Notebook = st.session_state[_UNSAVED][0]
        return notebook
    seen: Saved | None = st.session_state.get(_SEEN)
    return seen.notebook if seen else None


def unsaved() -> str:
    """Why the last edits are not in the store; empty if they are."""
    return str(st.session_state[_UNSAVED][1]) if _UNSAVED in st.session_state else ""


def take_problem() -> str:
    """What the last callback could not do; said once."""
    return str(st.session_state.pop(_PROBLEM, ""))


def last_used() -> str | None:
    """The notebook that this session had open or pinned to last."""
    name: str | None = st.session_state.get(_NAME)
    return name


def edit(change: Edit) -> None:
    """Change the open notebook and save it; for callbacks."""
    before = on_screen()
    if before is None:
        return
    with _problem():
        after = change(before)
        if after != before:
            past = (*st.session_state.get(_PAST, ()), before)
            st.session_state[_PAST] = past[-STEPS:]
            _save(after)


def can_undo() -> bool:
    """Whether there is an edit of this session to take back."""
    return bool(st.session_state.get(_PAST))


def undo() -> None:
    """Take the last edit back, if there is one; for callbacks."""
    if can_undo():
        *past, before = st.session_state[_PAST]
        st.session_state[_PAST] = tuple(past)
        _save(before)


def retry() -> None:
    """Try again to save what is unsaved; for callbacks."""
    if unsaved():
        _save(st.session_state[_UNSAVED][0])


def reload() -> None:
    """Give up what is unsaved and show the store's version; for callbacks."""
    _take(st.session_state.get(_NAME))


def save_as(name: str) -> None:
    """Save the notebook on screen as a new one and open that; for callbacks."""
    shown = on_screen()
    if shown is not None:
        _new(lambda: replace(rename(shown, name.strip()), created=""))


def create(name: str, *cells: Cell) -> None:
    """Make a new notebook and open it; for callbacks."""
    _new(lambda: Notebook(name.strip(), cells))


def free_name(name: str) -> str:
    """The name, or with the first number behind it that nobody has."""
    taken = {entry.name for entry in notebooks().listed()}
    tries = [name, *(f"{name[:90]} ({number})" for number in range(2, len(taken) + 3))]
    return next(candidate for candidate in tries if candidate not in taken)


def read_file(content: bytes) -> None:
    """Take over an exported notebook, under another name if its own is taken; for callbacks."""

    def read() -> Notebook:
        found = from_json(decoded(content, "notebook"))
        return rename(found, free_name(found.name))

    _new(read)


def rename_open(name: str) -> None:
    """Rename the open notebook; for callbacks."""
    saved: Saved | None = st.session_state.get(_SEEN)
    if saved is None:
        return
    with _problem():
        open_notebook(notebooks().rename(saved, name.strip()).notebook.name)


def delete_open() -> None:
    """Delete the open notebook, as it was on the screen; for callbacks."""
    saved: Saved | None = st.session_state.get(_SEEN)
    if saved is None:
        return
    with _problem():
        notebooks().delete(saved.notebook.name, saved.revision)
        open_notebook(None)


def keep_summary(cell_id: str, summary: Summary) -> None:
    """Keep what a cell came to; where another tab saved meanwhile, the next run does it."""
    seen: Saved | None = st.session_state.get(_SEEN)
    if seen is None or _UNSAVED in st.session_state:
        return
    cell = next((one for one in seen.notebook.cells if one.id == cell_id), None)
    if cell is None:  # deleted in another tab since this run began
        return
    made = replace_cell(seen.notebook, replace(cell, summary=summary))
    with _problem():
        try:
            st.session_state[_SEEN] = notebooks().save(made, seen.revision)
        except Conflict:
            st.session_state[_SEEN] = notebooks().open(seen.notebook.name)


def pin(name: str, cell: Cell) -> Notebook:
    """Add a cell to a notebook, new or not, whoever else writes to it.

    Raises
    ------
    InputError
        If the notebook cannot be written.
    """
    store, name = notebooks(), name.strip()
    for attempt in itertools.count(1):
        before = store.open(name) or Saved(Notebook(name), 0)
        try:
            made = store.save(add_cell(before.notebook, cell), before.revision)
        except Conflict:
            if attempt == ATTEMPTS:
                raise
        else:
            break
    if not unsaved():
        _take(name)
    return made.notebook


def cells_in_words(count: int) -> str:
    """``1 cell``, ``2 cells``."""
    return "1 cell" if count == 1 else f"{count} cells"


@contextmanager
def _problem() -> Iterator[None]:
    """What is refused in this block is said once, on the next run; the block is left."""
    try:
        yield
    except InputError as error:
        st.session_state[_PROBLEM] = str(error)


def _take(name: str | None) -> None:
    """Have another notebook open, or the same from the store."""
    for key in (_SEEN, _UNSAVED, _PAST):
        st.session_state.pop(key, None)
    st.session_state[_NAME] = name


def _save(notebook: Notebook) -> None:
    seen: Saved | None = st.session_state.get(_SEEN)
    try:
        st.session_state[_SEEN] = notebooks().save(notebook, seen.revision if seen else 0)
    except InputError as error:
        st.session_state[_UNSAVED] = notebook, str(error)
    else:
        st.session_state.pop(_UNSAVED, None)


def _new(make: Callable[[], Notebook]) -> None:
    with _problem():
        open_notebook(notebooks().save(make()).notebook.name)
