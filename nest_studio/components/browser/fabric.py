"""The picture of a fabric on a page, beside its cost matrix: pointing at one lights the other."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import streamlit as st

from nest_core.report.picture import Drawn, to_svg
from nest_core.report.picture.matrix import Pointing

if TYPE_CHECKING:
    from streamlit.components.v2.types import ComponentRenderer

__all__ = ["show_fabric", "shown", "shown_width"]

WIDTHS = (300.0, 1400.0)
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
    if isinstance(width, int | float) and WIDTHS[0] <= width <= WIDTHS[1]:
        return float(width)
    return usual


def show_fabric(drawn: Drawn, matrix: Drawn | None, pointed: Pointing, *, key: str) -> None:
    """Show a picture, and its matrix at the right.

    Parameters
    ----------
    drawn, matrix : Drawn
    pointed : Pointing
    key : str
        Names the place within the session.
    """
    _component()(
        key=key,
        data=shown(drawn, matrix, pointed),
        on_width_change=_nothing,
    )


def shown(drawn: Drawn, matrix: Drawn | None, pointed: Pointing) -> dict[str, Any]:
    """Return what the browser is told of a picture, its matrix, and what pointing at them says."""
    return {
        "title": drawn.title,
        "subtitle": drawn.subtitle,
        "svg": to_svg(drawn),
        "finding": matrix.title if matrix else "",
        "reading": matrix.subtitle if matrix else "",
        "matrix": to_svg(matrix) if matrix else "",
        "tips": pointed.tips,
        "lights": pointed.lights,
        "said": pointed.table,
        "width": drawn.width,
    }


def _nothing() -> None:
    """Streamlit knows a component's values by their callbacks."""
