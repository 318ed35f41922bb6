"""Keys of the whole page as a Streamlit component: what was pressed, each press once.

The browser sends all presses since the page was opened, so none is lost when several come while
the page runs. Importing this module outside a running Streamlit fails: it registers the component.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

__all__ = ["listen"]

_MOST = 4096
_component = st.components.v2.component("nest-studio.keys", js="keys.js")


def listen(keys: Mapping[str, str], on_press: Callable[[str], None], *, key: str) -> None:
    """Call back for keys that are pressed while no field has the focus.

    Parameters
    ----------
    keys : mapping of str to str
        The browser's names of keys ("ArrowRight") to what they mean here.
    on_press : callable (meaning)
        Called before the page runs again, once for every press.
    key : str
        Names the listener within the session.
    """

    def answer() -> None:
        for name in _unanswered(key, set(keys.values())):
            on_press(name)

    _component(key=key, data=dict(keys), on_pressed_change=answer)


def _unanswered(key: str, known: set[str]) -> list[str]:
    """Meanings that no run has answered; what has not their shape was not sent by the page."""
    sent: Any = st.session_state.get(key)
    told = sent.get("pressed") if isinstance(sent, Mapping) else None
    if not isinstance(told, Mapping):
        return []
    opened, names = told.get("opened"), told.get("names")
    if not isinstance(opened, str) or not isinstance(names, list) or len(names) > _MOST:
        return []
    before = st.session_state.get(f"{key} answered", ("", 0))
    done = before[1] if before[0] == opened else 0
    st.session_state[f"{key} answered"] = (opened, len(names))
    return [name for name in names[done:] if name in known]
