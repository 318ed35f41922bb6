"""A part of a page that runs again once a job has ended, as a Streamlit component.

A fragment that runs by Streamlit's clock (`run_every`) may have the whole page run again, but no
other fragment: only callbacks may, and this component brings one.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from concurrent.futures import Future
from functools import cache
from typing import TYPE_CHECKING, Any

import streamlit as st

if TYPE_CHECKING:
    from streamlit.components.v2.types import ComponentRenderer

__all__ = ["run_again"]

_calls = itertools.count()


@cache
def _component() -> ComponentRenderer:
    """Registered when it is first shown: outside a running Streamlit that fails."""
    return st.components.v2.component("nest-studio.again", js="again.js")


@st.fragment
def run_again(fragment: str, jobs: Sequence[Future[Any]], *, every_s: float, key: str) -> None:
    """Have a fragment run again once one of some jobs has ended; the page around it stands.

    Parameters
    ----------
    fragment : str
        Its key; this is called within it.
    jobs : sequence of Future
    every_s : float
        Seconds after which they are looked at, again and again.
    key : str
        Names the place within the session.
    """

    def look() -> None:
        if any(job.done() for job in jobs):
            st.rerun(fragment)

    # The browser calls a component anew when its data are others.
    data = {"after_ms": 1e3 * every_s, "call": next(_calls)}
    _component()(key=key, data=data, height=1, on_due_change=look)
