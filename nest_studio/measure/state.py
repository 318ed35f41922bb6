"""The measurements that a session works on: read from logs, kept by name in the store on request.

What is read stands in the session as plain data, and the address carries a key under which the
store keeps it, so that a reload loses nothing. Under a name it is kept for everyone who uses this
server's store.
"""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from nest_core.api.measurements import MeasuredEntry, Measurements
from nest_core.documents import InputError
from nest_studio.components.show import told
from nest_studio.jobs.tasks.measured import FitAnswer
from nest_studio.session.own_stack import KEPT_AS
from nest_studio.session.states import address, session_value, write_address
from nest_studio.session.stored import keep, kept_measurements, recall

__all__ = [
    "FIRST_NAME",
    "add",
    "brought_again",
    "current",
    "delete_kept",
    "follow_address",
    "in_page_words",
    "keep_as",
    "leave_out",
    "open_kept",
    "rename_kept",
    "say_in_address",
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


def open_kept(name: str) -> None:
    """Work on a kept set; for callbacks."""
    with told(st.toast):
        document = kept_measurements().open(name)
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
    kept_measurements().save(measurements.name, document, replace=over)
    measure_page().put(measurements)
    if st.session_state.get(KEPT_AS) is None and fit.stack:
        st.session_state[KEPT_AS] = measurements.name


def rename_kept(name: str, to: str) -> None:
    """Give a kept set another name; for callbacks."""
    with told(st.toast):
        document = kept_measurements().open(name)
        if document is None:
            return
        measurements = Measurements(to.strip(), Measurements.from_json(document).entries)
        stack = document.get("stack")
        document |= {
            "name": measurements.name,
            "stack": {**stack, "name": measurements.name} if stack else None,
        }
        kept_measurements().rename(name, measurements.name, document)
        if current().name == name:
            measure_page().put(Measurements(measurements.name, current().entries))


def delete_kept(name: str) -> None:
    """Delete a kept set; what the session works on stays. For callbacks."""
    with told(st.toast):
        kept_measurements().delete(name)
