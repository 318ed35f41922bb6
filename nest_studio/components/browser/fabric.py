"""The picture of a fabric on a page, beside its cost matrix: pointing at one lights the other."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import streamlit as st

if TYPE_CHECKING:
    from streamlit.components.v2.types import ComponentRenderer

__all__ = ["show_fabric", "shown_width"]

WIDTHS = (300.0, 2400.0)
USUAL_PX = 520.0
"""Of a picture beside a matrix on a page of 1,440 pixels."""


@cache
def _component() -> ComponentRenderer:
    """Registered when it is first shown: outside a running Streamlit that fails."""
    return st.components.v2.component("nest-studio.fabric", js="fabric.js")


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
    _component()(key=key, data=data, on_width_change=_nothing)


def _nothing() -> None:
    """Streamlit knows a component's values by their callbacks."""
