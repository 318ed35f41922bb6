"""The library of fabrics in a session: what the store keeps by name, and which one was opened.

Opening a fabric makes it the person's own (`nest_studio.session.own_fabric`), with its history to
undo; it is changed in the library only when it is saved there again.
"""

from typing import Any

import streamlit as st

from nest_core.documents import InputError, as_markdown
from nest_studio.session.own_fabric import start
from nest_studio.session.stored import fabrics

__all__ = ["kept_names", "open_from_library", "open_kept", "opened_name", "remember"]

_OPENED = "library opened"


def kept_names() -> tuple[str, ...]:
    """Names in the library; none where the store cannot be read, which its controls say."""
    try:
        return fabrics().names()
    except InputError:
        return ()


def open_kept(name: str) -> dict[str, Any] | None:
    """The document of a name; None where there is none, and said where it cannot be read."""
    try:
        return fabrics().open(name)
    except InputError as error:
        st.toast(as_markdown(error))
        return None


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
