"""The fabric that a person drew or brought: one per session, on every page, with its history.

It is a document like a preset's (``docs/files.md``). While it is drawn it need not be a fabric
yet; pages then keep the last answer and say what is missing. What stands in the session is plain
data, replaced and never changed in place.

The address carries a key under which the store keeps the document as it is
(`nest_studio.session.store`), so that a reload brings it back, and a link that was sent shows what
was sent. While another fabric is shown the key stands aside there: an address names the fabric on
the screen and no other, on the way back through a browser's history too.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import streamlit as st

from nest_studio.session.stored import keep, recall

__all__ = [
    "KEPT",
    "OWN",
    "can_undo",
    "carry",
    "change",
    "follow_address",
    "forget_places",
    "is_drawing",
    "notes",
    "own_document",
    "redo",
    "revision",
    "start",
    "undo",
]

OWN = "My fabric"
STEPS = 100
ROWS = 200_000
"""Elements and links of all steps that can be undone, some 300 bytes each; the last one stays."""
_KEY = "own fabric"
_CHOICE = "fabric"
KEPT = "own"
"""What the address calls the key."""
_ASIDE = "aside."

Step = tuple[dict[str, Any], tuple[str, ...]]
"""A document, and what was assumed or left out when it was read."""


def follow_address() -> None:
    """Bring back and choose what the address names; first on every page.

    Browsers keep addresses by which the choice itself had not arrived yet. They name the fabric
    all the same, unless another was chosen since.
    """
    asked = st.query_params.get(KEPT, "")
    key = asked.removeprefix(_ASIDE)
    if _KEY not in st.session_state and key and (found := _stored(key)) is not None:
        _put((found["document"], tuple(found["notes"])), (), ())
    if (
        key == asked != ""
        and own_document() is not None
        and _CHOICE not in st.query_params
        and st.session_state.get(_CHOICE, OWN) == OWN
    ):
        st.session_state[_CHOICE] = OWN


def carry(*, shown: bool) -> None:
    """Let the address carry what is there; after the choice of the fabric, or without one.

    Parameters
    ----------
    shown : bool
        Whether it is the fabric on the screen.
    """
    if (state := st.session_state.get(_KEY)) is not None:
        text = state["key"] if shown else f"{_ASIDE}{state['key']}"
        if st.query_params.get(KEPT) != text:
            st.query_params[KEPT] = text


def own_document() -> dict[str, Any] | None:
    """The document, or None where nobody drew or brought one."""
    state = st.session_state.get(_KEY)
    return None if state is None else state["document"]


def is_drawing(document: Mapping[str, Any] | None) -> bool:
    """Whether it can be edited on the canvas."""
    return document is not None and document.get("kind") == "graph"


def notes() -> tuple[str, ...]:
    """What was assumed or left out when the document was read."""
    return tuple(st.session_state.get(_KEY, {}).get("notes", ()))


def revision() -> int:
    """Grows with every change; 0 where there is no document."""
    return int(st.session_state.get(_KEY, {}).get("revision", 0))


def start(document: dict[str, Any], about: tuple[str, ...] = ()) -> None:
    """Begin anew; what stood there can be had back by `undo`."""
    if is_drawing(document):
        document = {"element": [], "link": [], **document}  # a file of one device has no links
    change(document, about)
    st.session_state[_CHOICE] = OWN


def change(document: dict[str, Any], about: tuple[str, ...] | None = None) -> None:
    """Put a changed document in place of the present one; its notes stay unless others come."""
    state = st.session_state.get(_KEY)
    past = () if state is None else (*state["past"], _step(state))
    _put((document, notes() if about is None else about), _within_bounds(past), ())


def can_undo() -> bool:
    """Whether there is something to go back to."""
    return bool(st.session_state.get(_KEY, {}).get("past"))


def undo() -> None:
    """Back to the document before the last change, if there is one."""
    state = st.session_state.get(_KEY)
    if state and state["past"]:
        *past, step = state["past"]
        _put(step, tuple(past), (_step(state), *state["future"]))


def redo() -> None:
    """Take the last `undo` back, if nothing changed since."""
    state = st.session_state.get(_KEY)
    if state and state["future"]:
        step, *future = state["future"]
        _put(step, (*state["past"], _step(state)), tuple(future))


def forget_places(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document without what changes no cost, so that moving an element computes nothing."""
    if not is_drawing(document):
        return dict(document)
    plain = [
        {key: value for key, value in entry.items() if key not in ("x", "y")}
        for entry in document.get("element", ())
    ]
    return {**document, "element": plain}


def _step(state: Mapping[str, Any]) -> Step:
    return state["document"], state["notes"]


def _within_bounds(past: tuple[Step, ...]) -> tuple[Step, ...]:
    """The last steps, as many as are kept."""
    rows = itertools.accumulate(
        len(document.get("element", ())) + len(document.get("link", ()))
        for document, _ in reversed(past)
    )
    kept = sum(1 for total in rows if total <= ROWS)
    return past[-min(STEPS, max(kept, 1)) :]


def _put(step: Step, past: tuple[Step, ...], future: tuple[Step, ...]) -> None:
    document, about = step
    st.session_state[_KEY] = {
        "key": keep({"document": document, "notes": list(about)}),
        "document": document,
        "revision": revision() + 1,
        "past": past,
        "future": future,
        "notes": about,
    }


def _stored(key: str) -> dict[str, Any] | None:
    """What an address names; None where the store has no fabric of that key or cannot be read."""
    found = recall(key)
    # The store keeps comparisons under such keys too.
    return found if found and found.keys() == {"document", "notes"} else None
