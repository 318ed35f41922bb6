"""SVG on a page, as a Streamlit component: `streamlit.html` strips it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from streamlit.components.v2.types import ComponentRenderer

__all__ = ["show_svg"]


@cache
def _component() -> ComponentRenderer:
    """Registered when it is first shown: outside a running Streamlit that fails."""
    return st.components.v2.component("nest-studio.svg", js="svg.js", isolate_styles=False)


def show_svg(svg: str, *, key: str) -> None:
    """Show a drawing of our own; a newer one under the same key takes its place.

    Parameters
    ----------
    svg : str
        Text that names and words of people stand in escaped.
    key : str
        Names the place within the session.
    """
    _component()(key=key, data={"svg": svg})
