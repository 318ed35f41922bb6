"""The measurements that a session works on: read from logs, kept by name in the store on request.

What is read stands in the session as plain data, and the address carries a key under which the
store keeps it, so that a reload loses nothing. Under a name it is kept for everyone who uses this
server's store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import streamlit as st

from nest_core.api.measurements import Entry, Measurements
from nest_core.documents.errors import InputError
from nest_studio.session.own_stack import KEPT_AS
from nest_studio.session.stored import keep, kept_measurements, recall

__all__ = [
    "FIRST_NAME",
    "add",
    "brought_again",
    "carry",
    "current",
    "delete_kept",
    "follow_address",
    "in_page_words",
    "keep_as",
    "kept_names",
    "leave_out",
    "left_out",
    "open_kept",
    "rename_kept",
    "start_anew",
    "take_problem",
]

FIRST_NAME = "my-cluster"
"""What the first set is called where nobody names it."""

_STATE = "measured"
_KEY = "measured key"
_ADDRESS = "measured"
_OUT = "measured left out"
_PROBLEM = "measured problem"

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
    """A refusal whose remedies are fields of the page.

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


def follow_address() -> None:
    """Take up what the address names, if the session has nothing; first on the page."""
    asked = st.query_params.get(_ADDRESS, "")
    if _STATE in st.session_state or not asked:
        return
    found = recall(asked)
    if found and found.keys() == {"name", "entries"}:
        with _problem():
            _put(Measurements.from_json(found))


def current() -> Measurements:
    """What the session works on."""
    state: Mapping[str, Any] | None = st.session_state.get(_STATE)
    return Measurements.from_json(state) if state else Measurements(FIRST_NAME)


def carry() -> None:
    """Let the address carry it."""
    key = st.session_state.get(_KEY, "")
    if key and st.query_params.get(_ADDRESS) != key:
        st.query_params[_ADDRESS] = key
    elif not key:
        st.query_params.pop(_ADDRESS, None)


def add(entries: tuple[Entry, ...]) -> None:
    """Take up what was read; entries of the same name give way."""
    before = current()
    after = before.with_entries([each for each in entries if each.name not in left_out()])
    if after != before:
        _put(after)


def left_out() -> frozenset[str]:
    """Names of entries that the person took out, though their files may still be at hand."""
    found: frozenset[str] = st.session_state.get(_OUT, frozenset())
    return found


def leave_out(name: str) -> None:
    """Take an entry out; for callbacks."""
    st.session_state[_OUT] = left_out() | {name}
    _put(current().without(name))


def brought_again(names: set[str]) -> None:
    """Forget what was taken out of files that are no longer at hand."""
    st.session_state[_OUT] = left_out() & names


def kept_names() -> tuple[str, ...]:
    """Names of the kept sets.

    Raises
    ------
    InputError
        If the store cannot be read.
    """
    return kept_measurements().names()


def open_kept(name: str) -> None:
    """Work on a kept set; for callbacks."""
    with _problem():
        document = kept_measurements().open(name)
        if document is not None:
            _put(Measurements.from_json(document))


def start_anew() -> None:
    """Put nothing in place of what is there; for callbacks."""
    _put(Measurements(FIRST_NAME))


def keep_as(name: str, answer: Mapping[str, Any], *, over: bool) -> bool:
    """Keep what the session works on under a name, with the stack fitted to it.

    Parameters
    ----------
    name : str
    answer : mapping
        ``stack``, a scenario's table, and ``toml``, its file; both empty where there is none.
    over : bool
        Whether it may take the place of one that has the name.
    """
    with _problem():
        found = Measurements(name.strip(), current().entries)
        stack = answer["stack"]
        document = found.to_json() | {
            "stack": {**stack, "name": found.name} if stack else None,
            "toml": answer["toml"],
        }
        kept_measurements().save(found.name, document, replace=over)
        _put(found)
        if st.session_state.get(KEPT_AS) is None and stack:
            st.session_state[KEPT_AS] = found.name
        return True
    return False


def rename_kept(name: str, to: str) -> None:
    """Give a kept set another name; for callbacks."""
    with _problem():
        document = kept_measurements().open(name)
        if document is None:
            return
        found = Measurements(to.strip(), Measurements.from_json(document).entries)
        stack = document.get("stack")
        document |= {"name": found.name, "stack": {**stack, "name": found.name} if stack else None}
        kept_measurements().rename(name, found.name, document)
        if current().name == name:
            _put(Measurements(found.name, current().entries))


def delete_kept(name: str) -> None:
    """Delete a kept set; what the session works on stays. For callbacks."""
    with _problem():
        kept_measurements().delete(name)


def take_problem() -> str:
    """What the last callback could not do; said once."""
    return str(st.session_state.pop(_PROBLEM, ""))


@contextmanager
def _problem() -> Iterator[None]:
    """What is refused in this block is said once, on the next run; the block is left."""
    try:
        yield
    except InputError as error:
        st.session_state[_PROBLEM] = str(error)


def _put(measurements: Measurements) -> None:
    document = measurements.to_json()
    st.session_state[_STATE] = document
    st.session_state[_KEY] = keep(document) if measurements.entries else ""
