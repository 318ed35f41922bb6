"""State that lasts as long as a session: typed values, and texts of the address."""

from typing import TypeVar

import streamlit as st

__all__ = ["ASIDE", "address", "session_value", "write_address"]

ASIDE = "aside."
"""What stands in an address before the state of something that is not on the screen."""
T = TypeVar("T")


def session_value(kind: type[T]) -> T:
    """Return this session's value of a kind, made without arguments when it is first asked for."""
    value: T = st.session_state.setdefault(kind.__name__, kind())
    return value


def address(name: str) -> str:
    """Return the text of a parameter of the address, on the screen or not; empty without one."""
    return st.query_params.get(name, "").removeprefix(ASIDE)


def write_address(name: str, text: str | None, *, shown: bool = True) -> None:
    """Have the address say a text, as of something on the screen or not; without a text nothing."""
    if not text:
        st.query_params.pop(name, None)
    elif st.query_params.get(name) != (full := text if shown else f"{ASIDE}{text}"):
        st.query_params[name] = full
