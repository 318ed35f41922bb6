"""A software stack of one's own in the form: fitted on Measurements, kept by name in the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from nest_core.documents.errors import InputError
from nest_core.documents.quoting import as_markdown
from nest_core.documents.schema import StackFile, checked
from nest_core.hardware.stacks import stack_of_table
from nest_studio.form.fields import Choice, settle
from nest_studio.session.stored import kept_measurements

__all__ = ["KEPT_AS", "OWN_STACK", "kept_name", "kept_stack", "own_stack", "own_stack_control"]

OWN_STACK = "My measurements"
KEPT_AS = "stack.own"
"""The widget that says under which name they are kept; the address calls it so too."""
_NAMED = "stack kept as"


def own_stack() -> dict[str, Any] | None:
    """The stack whose name the form says, as a scenario's table; None where there is none."""
    name = st.session_state.get(KEPT_AS)
    return kept_stack(name) if isinstance(name, str) else None


def kept_stack(name: str) -> dict[str, Any] | None:
    """The stack that is kept under a name, likewise."""
    try:
        document = kept_measurements().open(name)
    except InputError:  # the control says so
        return None
    stack = document.get("stack") if document else None
    if not isinstance(stack, dict):
        return None
    try:
        stack_of_table(checked(StackFile, stack))
    except InputError:  # not as the studio kept it
        return None
    return stack


def kept_name(table: Mapping[str, Any]) -> str | None:
    """The name under which this very stack is kept; None where it is not."""
    name = table.get("name")
    return name if isinstance(name, str) and name and kept_stack(name) == table else None


def own_stack_control() -> None:
    """Which of the kept ones is meant; below the choice of the stack."""
    try:
        names = kept_measurements().names()
    except InputError as error:
        st.warning(as_markdown(error))
        names = ()
    # Bound to the address it would not tell a name that a callback sets before it is first drawn.
    if KEPT_AS not in st.session_state:
        st.session_state[KEPT_AS] = st.session_state.get(_NAMED) or st.query_params.get(KEPT_AS)
    settle(KEPT_AS, Choice(names, empty=True))
    name = st.selectbox(
        "Kept as",
        names,
        index=None,
        key=KEPT_AS,
        placeholder="choose a name" if names else "none is kept yet",
        help="Stacks fitted to measured runs; the page Measurements makes and keeps them.",
    )
    st.session_state[_NAMED] = name
    if name and st.query_params.get(KEPT_AS) != name:
        st.query_params[KEPT_AS] = name
    elif not name:
        st.query_params.pop(KEPT_AS, None)
