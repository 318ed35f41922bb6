"""Keys of the whole page as a Streamlit component: what was pressed, each press once.

The browser sends all presses since the page was opened, so none is lost when several come while
the page runs. A run that the next press ends may have drawn nothing, and the browser then still
says what stood before: presses are answered anew from the state that was last drawn.

Importing this module outside a running Streamlit fails: it registers the component.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

__all__ = ["listen"]

_MOST = 4096
_component = st.components.v2.component("nest-studio.keys", js="keys.js")


def listen(
    keys: Mapping[str, str],
    on_press: Callable[[str], None],
    moves: Sequence[str],
    *,
    key: str,
    everywhere: bool = False,
) -> None:
    """Call back for keys that are pressed while no field has the focus.

    Parameters
    ----------
    keys : mapping of str to str
        The browser's names of keys ("ArrowRight") to what they mean here.
    on_press : callable (meaning)
        Called before the page runs again, once for every press.
    moves : sequence of str
        What ``on_press`` changes in the session; it stands drawn when this is called.
    key : str
        Names the listener within the session.
    everywhere : bool
        Whether fields and what was clicked last leave these keys to the listener. What was typed
        into a field counts then, and Enter ends it alone.
    """
    answered, drawn = f"{key} answered", f"{key} drawn"

    def answer() -> None:
        opened, names = _sent(st.session_state.get(key))
        before, done, state = st.session_state.get(drawn, ("", 0, {}))
        if before != opened:
            done = 0
        # Only what differs: a widget whose value is taken away writes no address any more.
        for name in moves:
            if name not in state:
                st.session_state.pop(name, None)
            elif st.session_state.get(name) != state[name]:
                st.session_state[name] = state[name]
        for name in names[done:]:
            if name in keys.values():
                on_press(name)
        st.session_state[answered] = (opened, len(names))

    opened, done = st.session_state.get(answered, ("", 0))
    state = {name: st.session_state[name] for name in moves if name in st.session_state}
    st.session_state[drawn] = (opened, done, state)
    data = {"keys": dict(keys), "opened": opened, "seen": done, "everywhere": everywhere}
    _component(key=key, data=data, on_pressed_change=answer)


def _sent(state: Any) -> tuple[str, list[Any]]:
    """Return when the page was opened, and all presses since; none where it has not their shape."""
    pressed = state.get("pressed") if isinstance(state, Mapping) else None
    if not isinstance(pressed, Mapping):
        return "", []
    opened, names = pressed.get("opened"), pressed.get("names")
    return (
        ("", [])
        if not isinstance(opened, str) or not isinstance(names, list) or len(names) > _MOST
        else (opened, names)
    )
