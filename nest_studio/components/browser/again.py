"""A part of a page that runs again after a while, as a Streamlit component.

A fragment that runs by Streamlit's clock (`run_every`) does so until the whole page runs again. One
that draws this runs again until it draws it no more, and the page around it stands.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from streamlit.components.v2.types import ComponentRenderer

__all__ = ["run_again"]

_calls = itertools.count()


@cache
def _component() -> ComponentRenderer:
    """Registered when it is first shown: outside a running Streamlit that fails."""
    return st.components.v2.component("nest-studio.again", js="again.js")


def run_again(after_s: float, *, key: str) -> None:
    """Have the fragment that calls this run again after a while.

    Parameters
    ----------
    after_s : float
        Seconds from when the browser has drawn it.
    key : str
        Names the place within the session.
    """
    # The browser calls a component anew when its data are others.
    data = {"after_ms": 1e3 * after_s, "call": next(_calls)}
    _component()(key=key, data=data, height=1, on_due_change=lambda: None)
