"""A fabric and what a collective costs on it: the form at the left, the answer at the right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from nest_core.errors import InputError
from nest_core.summary import realised_ratios
from nest_studio.fabric_state import FabricRequest, canonical, fabric_of, network_of
from nest_studio.fabric_view import explorer, fabric_form, fabric_headlines, heading, levels
from nest_studio.show import HeadlineRow, mark_results, page_style


def main() -> None:
    """Draw the page."""
    page_style()
    problem = st.container(key="problem")
    notes: list[Any] = []
    with st.sidebar:
        request = fabric_form(notes)
    try:
        fabric = fabric_of(canonical(request))
        for note, realised in zip(notes, realised_ratios(fabric), strict=True):
            note.caption(realised)
        network_of(canonical(request))
    except InputError as error:
        problem.error(str(error))
        mark_results(earlier=True)
        alone = replace(request, overrides={})
        request = st.session_state.get("last good fabric", alone)
    else:
        mark_results(earlier=False)
        st.session_state["last good fabric"] = request
    with st.container(key="results"):
        show_answer(request)


def show_answer(request: FabricRequest) -> None:
    """Facts, levels, then the collective explorer."""
    text = canonical(request)
    heading(request, fabric_of(text))
    HeadlineRow(fabric_headlines(text))
    levels(text)
    explorer(text)


main()
