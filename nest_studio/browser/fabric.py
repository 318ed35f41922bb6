"""The picture of a fabric on a page, beside its cost matrix: pointing at one lights the other.

Importing this module outside a running Streamlit fails: it registers the component.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from nest_core.picture import Drawn, to_svg
from nest_core.picture.pointing import Pointing

__all__ = ["opened_path", "show_fabric"]

_DEEPEST = 8
_component = st.components.v2.component("nest-studio.fabric", js="fabric.js")


def opened_path(key: str) -> tuple[str, ...]:
    """Keys of the groups that were opened one in another, outermost first; empty: the fabric."""
    sent: Any = st.session_state.get(key)
    path = sent.get("path") if isinstance(sent, Mapping) else None
    if not isinstance(path, list) or len(path) > _DEEPEST:
        return ()
    return tuple(one for one in path if isinstance(one, str))


def show_fabric(
    drawn: Drawn, matrix: Drawn | None, pointed: Pointing, *, key: str, opens: tuple[str, ...] = ()
) -> None:
    """Show a picture, and its matrix at the right.

    Parameters
    ----------
    drawn, matrix : Drawn
    pointed : Pointing
    key : str
        Names the place within the session.
    opens : tuple of str
        Keys of the groups that a click opens; `opened_path` says which were.
    """
    _component(
        key=key,
        data={
            "title": drawn.title,
            "svg": to_svg(drawn),
            "matrix": to_svg(matrix) if matrix else "",
            "tips": pointed.tips,
            "lights": pointed.lights,
            "said": pointed.said,
            "opens": opens,
            "path": opened_path(key),
        },
        default={"path": []},
        on_path_change=lambda: None,
    )
