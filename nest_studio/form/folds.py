"""Folding groups of a form: a head that says what is inside, fields that can be put back."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import streamlit as st

from nest_core.documents.quoting import as_markdown
from nest_core.documents.text import truncated
from nest_studio.form.pinning import PINS

__all__ = ["fold", "put_back"]

_LONGEST = 14
_SHORT_LABEL = 6  # pins stand in pairs: beside a longer label there is room for the sign alone


@contextmanager
def fold(label: str, key: str, *, opened: bool = False) -> Iterator[Callable[[str], None]]:
    """A group that folds; yields what says, at the right of its head, what its fields hold."""
    head = st.empty()

    def summary(text: str) -> None:
        head.html(f'<div class="nest-fold">{html.escape(text)}</div>')

    with st.expander(label, expanded=opened, key=key):
        yield summary


@contextmanager
def put_back(
    key: str, standard: Mapping[str, Any], then: Callable[[], None] | None = None
) -> Iterator[None]:
    """A field that is marked, and can be put back alone, while it is not as in the preset.

    Parameters
    ----------
    key : str
        Of its widget, which is drawn inside.
    standard : mapping
        What widgets hold as in the preset, by key.
    then : callable, optional
        What follows a change of the field.
    """
    with st.container(key=f"field-{key.replace('.', '-')}", gap=None):
        yield
        if key not in standard or st.session_state.get(key, standard[key]) == standard[key]:
            return
        before = as_markdown(_short(standard[key]))
        st.button(
            "↺" if len(PINS.get(key, "")) > _SHORT_LABEL else f"↺ {before}",
            key=f"back-{key}",
            type="tertiary",
            on_click=_back,
            args=(key, standard[key], then),
            help=f"Put back what the preset has: {before}.",
        )


def _back(key: str, value: Any, then: Callable[[], None] | None) -> None:
    st.session_state[key] = value
    if then is not None:
        then()


def _short(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, list):
        return "all" if len(value) > 2 else ", ".join(map(str, value))
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return truncated(text, _LONGEST)
