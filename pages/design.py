"""A fabric and what a collective costs on it: the form at the left, the answer at the right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from nest_core.errors import InputError
from nest_core.quoting import as_markdown
from nest_core.summary import realised_ratios
from nest_studio.beside_view import beside
from nest_studio.bill_view import bill_section
from nest_studio.drawing_view import drawing_section, edit_button, take_up_edits
from nest_studio.exchange_view import bring_controls, take_along, what_was_read
from nest_studio.fabric_state import FabricRequest, canonical, fabric_of, network_of
from nest_studio.fabric_view import (
    explorer,
    fabric_form,
    fabric_headlines,
    heading,
    levels,
    no_heading,
)
from nest_studio.own_fabric import OWN, follow_address
from nest_studio.show import HeadlineRow, mark_results, page_style


def main() -> None:
    """Draw the page."""
    page_style()
    follow_address()
    take_up_edits()
    problem = st.container(key="problem")
    notes: list[Any] = []
    with st.sidebar:
        asked = fabric_form(notes, bring_controls)
    request: FabricRequest | None = asked
    lacking = ""
    try:
        fabric = fabric_of(canonical(asked))
        for note, realised in zip(notes, realised_ratios(fabric), strict=True):
            note.caption(as_markdown(realised))
        with st.spinner("Collapsing the fabric into levels …", show_time=True):
            network_of(canonical(asked))
    except InputError as error:
        request = earlier_answer(asked)
        mark_results(earlier=request is not None)
        if asked.preset == OWN:
            lacking = str(error)
        else:
            problem.error(as_markdown(error))
    else:
        mark_results(earlier=False)
        st.session_state["last good fabric"] = asked
    if request is None:
        no_heading(lacking)
        drawing_section(asked.preset, None)
    else:
        show_answer(asked, request, lacking)


def earlier_answer(asked: FabricRequest) -> FabricRequest | None:
    """What to leave standing in grey; nothing while a new drawing is not a fabric."""
    earlier: FabricRequest | None = st.session_state.get("last good fabric")
    if asked.preset == OWN:
        return earlier if earlier is not None and earlier.preset == OWN else None
    return earlier or replace(asked, overrides={})


def show_answer(asked: FabricRequest, request: FabricRequest, lacking: str) -> None:
    """Facts, the drawing, levels and bill, the collective explorer, other fabrics beside it."""
    text = canonical(request)
    heading(request, fabric_of(text), lacking)
    with st.container(key="results"):
        what_was_read(request.preset, text)
        HeadlineRow(fabric_headlines(text))
    drawing_section(asked.preset, text)
    with st.container(horizontal=True):
        edit_button(asked.preset, text)
        take_along(request)
    with st.container(key="results-below"):
        levels(text)
        bill_section(text)
        explorer(text)
        beside(request)


main()
