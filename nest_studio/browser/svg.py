"""SVG on a page, as a Streamlit component: `streamlit.html` strips it.

Importing this module outside a running Streamlit fails: it registers the component.
"""

from __future__ import annotations

import streamlit as st

__all__ = ["show_svg"]

_component = st.components.v2.component("nest-studio.svg", js="svg.js", isolate_styles=False)


def show_svg(svg: str, *, key: str) -> None:
    """Show a drawing of our own; a newer one under the same key takes its place.

    Parameters
    ----------
    svg : str
        Text that names and words of people stand in escaped.
    key : str
        Names the place within the session.
    """
    _component(key=key, data={"svg": svg})
