"""Steps of a form that can be taken back: what its widgets had, run by run.

A step is a plain mapping from widget keys to values. Undo and redo write them back before the
widgets are drawn again, so the address follows by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from nest_studio.session.history import History
from nest_studio.session.states import session_value

__all__ = ["form_values", "history_buttons", "remember_step"]

Step = Mapping[str, Any]


@dataclass
class FormSteps:
    """The history of a session's form; None before it was drawn."""

    history: History[Step] | None = None


def remember_step(keys: Iterable[str]) -> None:
    """Note what the widgets of these keys have; the last thing that a form does."""
    steps = session_value(FormSteps)
    now = {key: st.session_state[key] for key in keys if key in st.session_state}
    if steps.history is None:
        steps.history = History(now)
        return
    before = steps.history.present
    if any(now[key] != before[key] for key in now.keys() & before.keys()):
        steps.history = steps.history.changed(now)
    else:  # fields that come or go alone are no step
        steps.history = replace(steps.history, present=now)


def form_values() -> Step:
    """Return what the form's widgets had when it was last drawn; empty before."""
    history = session_value(FormSteps).history
    return history.present if history else {}


def history_buttons(reset: Callable[[], None]) -> None:
    """Draw undo, redo and reset side by side; ``reset`` sets the form to its preset."""
    history = session_value(FormSteps).history or History[Step]({})
    buttons = (
        ("Undo", "Alt+Z", history.undone(), "Take the last change of this form back."),
        ("Redo", "Alt+Y", history.redone(), "Make it again."),
    )
    with st.container(horizontal=True, gap="small"):
        for label, shortcut, to, text in buttons:
            st.button(
                label,
                on_click=_go_to,
                args=(to,),
                disabled=to is history,
                key=f"form-{label.lower()}",
                type="tertiary",
                shortcut=shortcut,
                help=text,
            )
        st.button(
            "Reset",
            on_click=reset,
            key="form-reset",
            type="tertiary",
            help="Everything as in the scenario preset.",
        )


def _go_to(history: History[Step]) -> None:
    session_value(FormSteps).history = history
    st.session_state.update(history.present)
