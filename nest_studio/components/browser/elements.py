"""Components that the browser draws: SVG, which `streamlit.html` strips, fabrics, and a clock.

A fragment that runs by Streamlit's clock (`run_every`) may have the whole page run again, but no
other fragment: only callbacks may, and `run_again` brings one.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from functools import cache
from typing import TYPE_CHECKING, Any

import streamlit as st

if TYPE_CHECKING:
    from streamlit.components.v2.types import ComponentRenderer

__all__ = ["run_again", "show_fabric", "show_svg", "shown_width"]

WIDTHS = (300.0, 2400.0)
USUAL_PX = 520.0

_calls = itertools.count()


@cache
def _component(name: str, *, isolate_styles: bool = True) -> ComponentRenderer:
    """Registered when it is first shown: outside a running Streamlit that fails."""
    return st.components.v2.component(
        f"nest-studio.{name}", js=f"{name}.js", isolate_styles=isolate_styles
    )


def show_svg(svg: str, *, key: str) -> None:
    """Show a drawing of our own; a newer one under the same key takes its place.

    Parameters
    ----------
    svg : str
        Text that names and words of people stand in escaped.
    key : str
        Names the place within the session.
    """
    _component("svg", isolate_styles=False)(key=key, data={"svg": svg})


def shown_width(key: str, usual: float = USUAL_PX) -> float:
    """Pixels that a picture has room for, as the browser last said; ``usual`` before it has."""
    sent: Any = st.session_state.get(key)
    width = sent.get("width") if isinstance(sent, Mapping) else None
    return (
        float(width)
        if isinstance(width, int | float) and WIDTHS[0] <= width <= WIDTHS[1]
        else usual
    )


def show_fabric(data: dict[str, Any], *, key: str) -> None:
    """Show a picture, and its matrix at the right.

    Parameters
    ----------
    data : dict
        As `nest_core.report.picture.matrix.pointed_picture` returns it.
    key : str
        Names the place within the session.
    """
    _component("fabric")(key=key, data=data, on_width_change=_nothing)


def _nothing() -> None:
    """Streamlit knows a component's values by their callbacks."""


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
    _component("again")(key=key, data=data, height=1, on_due_change=look)
