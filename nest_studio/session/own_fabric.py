"""The fabric that a person drew or brought: one per session, on every page, with its history.

It is a document like a preset's (``docs/files.md``). While it is drawn it need not be a fabric
yet; pages then keep the last answer and say what is missing. What stands in the session is plain
data, replaced and never changed in place.

The address carries a key under which the store keeps the document as it is
(`nest_studio.session.store`), so that a reload brings it back, and a link that was sent shows what
was sent. While another fabric is shown the key stands aside there: an address names the fabric on
the screen and no other, on the way back through a browser's history too.

Opening a fabric of the library, which the store keeps by name, makes it the person's own, with its
history to undo; it is changed in the library only when it is saved there again.

A software stack of one's own in the form: fitted on Measurements, kept by name in the store.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from nest_core.documents import InputError
from nest_core.documents.schema import StackFile, checked
from nest_core.hardware.stacks import stack_of_table
from nest_studio.components.show import told
from nest_studio.form.fields import OneOf, widget
from nest_studio.session.history import History
from nest_studio.session.stored import (
    address,
    documents,
    keep,
    recall,
    session_value,
    write_address,
)

__all__ = [
    "KEPT_AS",
    "OWN",
    "OWN_STACK",
    "OwnFabric",
    "change",
    "follow_address",
    "forget_places",
    "is_drawing",
    "is_named",
    "kept_names",
    "open_from_library",
    "open_kept",
    "opened_name",
    "own_document",
    "own_fabric",
    "own_stack",
    "own_stack_control",
    "redo",
    "remember",
    "say_in_address",
    "stack_name",
    "start",
    "undo",
]

OWN_STACK = "My measurements"
KEPT_AS = "stack.own"
"""The widget that says under which name they are kept; the address calls it so too."""
_NAMED = "stack kept as"


def own_stack(name: object = None) -> dict[str, Any] | None:
    """Return the stack of a name, else of the name in the form, as a scenario's table.

    None where nothing is kept under it, or not as the studio keeps it.
    """
    name = name or st.session_state.get(KEPT_AS)
    if not isinstance(name, str):
        return None
    try:
        stack = (documents("measurements").open(name) or {}).get("stack")
        if not isinstance(stack, dict):
            return None
        stack_of_table(checked(StackFile, stack))
    except InputError:  # the control says so
        return None
    return stack


def stack_name(table: Mapping[str, Any]) -> str | None:
    """Return the name under which this very stack is kept; None where it is not."""
    name = table.get("name")
    return name if isinstance(name, str) and name and own_stack(name) == table else None


def own_stack_control() -> None:
    """Draw which of the kept ones is meant; below the choice of the stack."""
    names: tuple[str, ...] = ()
    with told(st.warning):
        names = documents("measurements").names()
    # Bound to the address it would not tell a name that a callback sets before it is first drawn.
    if KEPT_AS not in st.session_state:
        st.session_state[KEPT_AS] = st.session_state.get(_NAMED) or st.query_params.get(KEPT_AS)
    name = widget(
        KEPT_AS,
        OneOf(names, empty=True),
        None,
        label="Kept as",
        bind=None,
        placeholder="choose a name" if names else "none is kept yet",
        help="Stacks fitted to measured runs; the page Measurements makes and keeps them.",
    )
    st.session_state[_NAMED] = name
    write_address(KEPT_AS, name)


OWN = "My fabric"
ROWS = 200_000
"""Elements and links of all steps that can be undone, some 300 bytes each; the last one stays."""
_CHOICE = "fabric"
_ADDRESS = "own"

Step = tuple[dict[str, Any], tuple[str, ...]]
"""A document, and what was assumed or left out when it was read."""


@dataclass
class OwnFabric:
    """A session's own fabric.

    Parameters
    ----------
    history : History of Step, or None
        None where nobody drew or brought one.
    revision : int
        Grows with every change.
    key : str
        Under which the store has it.
    """

    history: History[Step] | None = None
    revision: int = 0
    key: str = ""

    @property
    def document(self) -> dict[str, Any] | None:
        """Return the document, if there is one."""
        return self.history.present[0] if self.history else None

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what was assumed or left out when the document was read."""
        return self.history.present[1] if self.history else ()

    @property
    def can_undo(self) -> bool:
        """Return whether there is something to go back to."""
        return bool(self.history and self.history.past)

    def put(self, history: History[Step]) -> None:
        """Take a step, to or fro."""
        self.history, self.revision = history, self.revision + 1
        document, notes = history.present
        self.key = keep({"document": document, "notes": list(notes)})


def own_fabric() -> OwnFabric:
    """Return this session's own fabric."""
    return session_value(OwnFabric)


def own_document() -> dict[str, Any] | None:
    """Return its document, or None where nobody drew or brought one."""
    return own_fabric().document


def follow_address() -> None:
    """Bring back and choose what the address names; first on every page.

    Browsers keep addresses by which the choice itself had not arrived yet. They name the fabric
    all the same, unless another was chosen since.
    """
    key, fabric = address(_ADDRESS), own_fabric()
    if fabric.history is None and key:
        state = recall(key) or {}
        if state.keys() == {"document", "notes"}:  # the store keeps comparisons by such keys too
            fabric.put(History((state["document"], tuple(state["notes"]))))
    if (
        fabric.history is not None
        and st.query_params.get(_ADDRESS) == key != ""
        and _CHOICE not in st.query_params
        and st.session_state.get(_CHOICE, OWN) == OWN
    ):
        st.session_state[_CHOICE] = OWN


def say_in_address(*, shown: bool) -> None:
    """Let the address carry what there is; after the choice of the fabric, or without one.

    Parameters
    ----------
    shown : bool
        Whether it is the fabric on the screen.
    """
    if own_fabric().history is not None:
        write_address(_ADDRESS, own_fabric().key, shown=shown)


def is_named() -> bool:
    """Return whether the address names a fabric of one's own."""
    return st.query_params.get(_CHOICE) == OWN or bool(address(_ADDRESS))


def is_drawing(document: Mapping[str, Any] | None) -> bool:
    """Return whether a document can be edited on the canvas."""
    return document is not None and document.get("kind") == "graph"


def start(document: dict[str, Any], notes: tuple[str, ...] = ()) -> None:
    """Begin anew; what stood there can be had back by `undo`."""
    if is_drawing(document):
        document = {"element": [], "link": [], **document}  # a file of one device has no links
    change(document, notes)
    st.session_state[_CHOICE] = OWN


def change(document: dict[str, Any], notes: tuple[str, ...] | None = None) -> None:
    """Put a changed document in place of the present one; its notes stay unless others come."""
    fabric = own_fabric()
    step = document, fabric.notes if notes is None else notes
    history = fabric.history.changed(step) if fabric.history else History(step)
    fabric.put(replace(history, past=_within_bounds(history.past)))


def undo() -> None:
    """Go back to the document before the last change, if there is one."""
    fabric = own_fabric()
    if fabric.history and fabric.history.past:
        fabric.put(fabric.history.undone())


def redo() -> None:
    """Take the last `undo` back, if nothing changed since."""
    fabric = own_fabric()
    if fabric.history and fabric.history.future:
        fabric.put(fabric.history.redone())


def forget_places(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document without what changes no cost: moving an element computes nothing."""
    if not is_drawing(document):
        return dict(document)
    return {
        **document,
        "element": [
            {key: value for key, value in element.items() if key not in ("x", "y")}
            for element in document.get("element", ())
        ],
    }


def _within_bounds(past: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the last steps, as many as are kept."""
    rows = itertools.accumulate(
        len(document.get("element", ())) + len(document.get("link", ()))
        for document, _ in reversed(past)
    )
    return past[-max(sum(total <= ROWS for total in rows), 1) :]


_OPENED = "library opened"


def kept_names() -> tuple[str, ...]:
    """Names in the library; none where the store cannot be read, which its controls say."""
    try:
        return documents("fabrics").names()
    except InputError:
        return ()


@told(st.toast)
def open_kept(name: str) -> dict[str, Any] | None:
    """The document of a name; None where there is none, and said where it cannot be read."""
    return documents("fabrics").open(name)


def open_from_library(name: str) -> None:
    """Make a fabric of the library the person's own and choose it; before widgets are drawn."""
    document = open_kept(name)
    if document is not None:
        start(document, (f"From the library: {name}",))
        remember(name)


def opened_name() -> str:
    """What was opened or saved last; empty if nothing was."""
    return str(st.session_state.get(_OPENED, ""))


def remember(name: str) -> None:
    """What is open from now on."""
    st.session_state[_OPENED] = name
