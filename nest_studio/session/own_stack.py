"""A software stack of one's own in the form: fitted on Measurements, kept by name in the store."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from nest_core.documents import InputError, as_markdown
from nest_core.documents.schema import StackFile, checked
from nest_core.hardware.stacks import stack_of_table
from nest_studio.form.fields import OneOf, widget
from nest_studio.session.stored import kept_measurements, write_address

__all__ = ["KEPT_AS", "OWN_STACK", "own_stack", "own_stack_control", "stack_name"]

OWN_STACK = "My measurements"
KEPT_AS = "stack.own"
"""The widget that says under which name they are kept; the address calls it so too."""
_NAMED = "stack kept as"


def own_stack(name: object = None) -> dict[str, Any] | None:
    """Return the stack of a name, else of the name in the form, as a scenario's table.

    None where nothing is kept under it, or not as the studio keeps it.
    """
    name = name or st.session_state.get(KEPT_AS)
    if not isinstance(name, str):
        return None
    try:
        stack = (kept_measurements().open(name) or {}).get("stack")
        if not isinstance(stack, dict):
            return None
        stack_of_table(checked(StackFile, stack))
    except InputError:  # the control says so
        return None
    return stack


def stack_name(table: Mapping[str, Any]) -> str | None:
    """Return the name under which this very stack is kept; None where it is not."""
    name = table.get("name")
    return name if isinstance(name, str) and name and own_stack(name) == table else None


def own_stack_control() -> None:
    """Draw which of the kept ones is meant; below the choice of the stack."""
    try:
        names = kept_measurements().names()
    except InputError as error:
        st.warning(as_markdown(error))
        names = ()
    # Bound to the address it would not tell a name that a callback sets before it is first drawn.
    if KEPT_AS not in st.session_state:
        st.session_state[KEPT_AS] = st.session_state.get(_NAMED) or st.query_params.get(KEPT_AS)
    name = widget(
        KEPT_AS,
        OneOf(names, empty=True),
        None,
        label="Kept as",
        bind=None,
        placeholder="choose a name" if names else "none is kept yet",
        help="Stacks fitted to measured runs; the page Measurements makes and keeps them.",
    )
    st.session_state[_NAMED] = name
    write_address(KEPT_AS, name)
