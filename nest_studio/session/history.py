"""Steps of a form that can be taken back: what its widgets held, run by run.

A step is a plain mapping from widget keys to values. Undo and redo write them back before the
widgets are drawn again, so the address follows by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import streamlit as st

__all__ = ["held", "history_buttons", "redo", "remember", "undo"]

STEPS = 100
_KEY = "form history"

Step = Mapping[str, Any]


def remember(keys: Iterable[str]) -> None:
    """Note what the widgets of these keys hold; the last thing that a form does."""
    now = {key: st.session_state[key] for key in keys if key in st.session_state}
    past, present, future = _history()
    if present is None:
        st.session_state[_KEY] = (), now, ()
    elif any(now[key] != present[key] for key in now.keys() & present.keys()):
        st.session_state[_KEY] = (*past, present)[-STEPS:], now, ()
    else:
        st.session_state[_KEY] = past, now, future  # fields that come or go alone are no step


def held() -> Step:
    """What the form's widgets held when it was last drawn; empty before."""
    return _history()[1] or {}


def undo() -> None:
    """Back to the step before, if there is one; for callbacks."""
    past, present, future = _history()
    if past and present is not None:
        _write(past[:-1], past[-1], (present, *future))


def redo() -> None:
    """Take the last `undo` back, if nothing changed since; for callbacks."""
    past, present, future = _history()
    if future and present is not None:
        _write((*past, present), future[0], future[1:])


def history_buttons(reset: Callable[[], None]) -> None:
    """Undo, redo and reset side by side; ``reset`` sets the form to its preset."""
    past, _, future = _history()
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Undo",
            on_click=undo,
            disabled=not past,
            key="form-undo",
            type="tertiary",
            shortcut="Alt+Z",
            help="Take the last change of this form back.",
        )
        st.button(
            "Redo",
            on_click=redo,
            disabled=not future,
            key="form-redo",
            type="tertiary",
            shortcut="Alt+Y",
            help="Make it again.",
        )
        st.button(
            "Reset",
            on_click=reset,
            key="form-reset",
            type="tertiary",
            help="Everything as in the scenario preset.",
        )


def _history() -> tuple[tuple[Step, ...], Step | None, tuple[Step, ...]]:
    found: tuple[tuple[Step, ...], Step | None, tuple[Step, ...]] = st.session_state.get(
        _KEY, ((), None, ())
    )
    return found


def _write(past: tuple[Step, ...], now: Step, future: tuple[Step, ...]) -> None:
    for key, value in now.items():
        st.session_state[key] = value
    st.session_state[_KEY] = past, now, future
