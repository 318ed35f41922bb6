"""Steps that can be taken back and made again: of a form, a drawn fabric, a list of scenarios."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import streamlit as st

from nest_studio.session.stored import session_value

__all__ = [
    "STEPS",
    "History",
    "form_value",
    "form_values",
    "history_buttons",
    "remember_step",
]

STEPS = 100
"""Steps that are kept."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class History(Generic[T]):
    """A value with the values before it, and those that were taken back.

    Parameters
    ----------
    present : T
    past : tuple of T
        Oldest first.
    future : tuple of T
        The next first.
    """

    present: T
    past: tuple[T, ...] = ()
    future: tuple[T, ...] = ()

    def changed(self, value: T) -> History[T]:
        """Return the history with one more step, after which nothing is to be made again."""
        return History(value, (*self.past, self.present)[-STEPS:])

    def undone(self) -> History[T]:
        """Return the history one step before; itself at the first."""
        return (
            History(self.past[-1], self.past[:-1], (self.present, *self.future))
            if self.past
            else self
        )

    def redone(self) -> History[T]:
        """Return the history after the step that was taken back last; itself where none was."""
        return (
            History(self.future[0], (*self.past, self.present), self.future[1:])
            if self.future
            else self
        )


Step = Mapping[str, Any]


@dataclass
class FormSteps:
    """The history of a session's form; of no values before it was drawn."""

    history: History[Step] = History({})


def remember_step(fields: Step, others: Iterable[str]) -> None:
    """Note what a form's fields have, and widgets beside them by key; the last thing it does."""
    steps = session_value(FormSteps)
    now = {key: st.session_state[key] for key in others if key in st.session_state} | dict(fields)
    before = steps.history.present
    if any(now[key] != before[key] for key in now.keys() & before.keys()):
        steps.history = steps.history.changed(now)
    else:  # fields that come or go alone are no step
        steps.history = replace(steps.history, present=now)


def form_values() -> Step:
    """Return what the form's widgets had when it was last drawn; empty before."""
    return session_value(FormSteps).history.present


def form_value(key: str) -> Any:
    """Return what a widget has; what its form remembers where it is folded away, else None."""
    return st.session_state.get(key, form_values().get(key))


def history_buttons(reset: Callable[[], None]) -> None:
    """Draw undo, redo and reset side by side; ``reset`` sets the form to its preset."""
    history = session_value(FormSteps).history
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
