"""The fabric that a person drew or brought: one per session, on every page, with its history.

It is a document like a preset's (README, "Files"). While it is drawn it need not be a fabric
yet; pages then keep the last answer and say what is missing. What stands in the session is plain
data, replaced and never changed in place.

The address carries a key under which the server keeps the document for as long as it runs, so
that a reload brings it back. A page opened with somebody's key starts from a copy.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import streamlit as st

__all__ = [
    "OWN",
    "can_undo",
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
KEPT = 64
_KEY = "own fabric"
_ADDRESS = "own"

Step = tuple[dict[str, Any], tuple[str, ...]]
"""A document, and what was assumed or left out when it was read."""


def follow_address() -> None:
    """Bring back what the address names, and let it name what is there; first on every page."""
    state = st.session_state.get(_KEY)
    if state is None and (step := _Shelf.shared().get(st.query_params.get(_ADDRESS, ""))):
        _put(step, (), ())
        state = st.session_state[_KEY]
    if state is not None and st.query_params.get(_ADDRESS) != state["key"]:
        st.query_params[_ADDRESS] = state["key"]


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
    change(document, about)
    st.session_state["fabric"] = OWN


def change(document: dict[str, Any], about: tuple[str, ...] | None = None) -> None:
    """Put a changed document in place of the present one; its notes stay unless others come."""
    state = st.session_state.get(_KEY)
    past = () if state is None else (*state["past"], _step(state))
    _put((document, notes() if about is None else about), past[-STEPS:], ())


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
        {key: value for key, value in entry.items() if key not in ("group", "x", "y")}
        for entry in document.get("element", ())
    ]
    return {**document, "element": plain}


def _step(state: Mapping[str, Any]) -> Step:
    return state["document"], state["notes"]


def _put(step: Step, past: tuple[Step, ...], future: tuple[Step, ...]) -> None:
    document, about = step
    key = st.session_state.get(_KEY, {}).get("key") or secrets.token_urlsafe(9)
    _Shelf.shared().put(key, step)
    st.session_state[_KEY] = {
        "key": key,
        "document": document,
        "revision": revision() + 1,
        "past": past,
        "future": future,
        "notes": about,
    }


class _Shelf:
    """The last documents of all sessions, by key."""

    def __init__(self) -> None:
        self._steps: OrderedDict[str, Step] = OrderedDict()
        self._lock = threading.Lock()

    @staticmethod
    @st.cache_resource(show_spinner=False)
    def shared() -> _Shelf:
        """The one of this server."""
        return _Shelf()

    def get(self, key: str) -> Step | None:
        """What stands under a key, if it still does."""
        with self._lock:
            return self._steps.get(key)

    def put(self, key: str, step: Step) -> None:
        """Keep it; the one untouched longest goes."""
        with self._lock:
            self._steps[key] = step
            self._steps.move_to_end(key)
            while len(self._steps) > KEPT:
                self._steps.popitem(last=False)
