"""A fabric and what a collective costs on it: the form at the left, the answer at the right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from nest_core.errors import InputError
from nest_core.quoting import as_markdown
from nest_studio.beside_view import beside
from nest_studio.bill_view import bill_section
from nest_studio.drawing_view import drawing_section, edit_button, take_up_edits
from nest_studio.exchange_view import bring_controls, take_along, what_was_read
from nest_studio.fabric_view import (
    explorer,
    fabric_form,
    fabric_picture,
    heading,
    levels,
    no_heading,
)
from nest_studio.fabric_widgets import FabricRequest, canonical, say_realised
from nest_studio.jobs import awaited
from nest_studio.library_view import library_controls
from nest_studio.order_view import order_section
from nest_studio.own_fabric import OWN, follow_address
from nest_studio.pins import pin_button
from nest_studio.show import HeadlineRow, mark_results
from nest_studio.tasks.fabrics import FabricAnswer, fabric_answer, request_fabric

LAST = "last good fabric"
COLLAPSING = "Collapsing the fabric into levels"


def main() -> None:
    """Draw the page."""
    follow_address()
    take_up_edits()
    problem = st.container(key="problem")
    with st.container(key="waiting"):  # always there, so that nothing below it moves
        waiting = st.empty()
    notes: list[Any] = []
    with st.sidebar:
        asked = fabric_form(notes, bring_controls)
        library_controls(asked)
    text = canonical(asked)
    shown: tuple[FabricRequest, FabricAnswer] | None = None
    lacking = refused = ""
    try:
        if notes:
            say_realised(notes, request_fabric(text))
        with waiting.container():
            answer = collapsed(text, "fabric")
        if answer is not None:
            waiting.empty()
            shown = asked, answer
    except InputError as error:
        refused = str(error)
    mark_results(earlier=shown is None)
    if shown is not None:
        st.session_state[LAST] = shown
    elif refused and asked.preset != OWN:
        problem.error(as_markdown(refused))
        with waiting.container():
            shown = st.session_state.get(LAST) or preset_answer(asked)
    else:
        lacking = refused
        shown = earlier_answer(asked)
    if shown is not None:
        show_answer(asked, *shown, lacking)
    elif asked.preset == OWN:
        no_heading(lacking)
        drawing_section(asked.preset, None)


def earlier_answer(asked: FabricRequest) -> tuple[FabricRequest, FabricAnswer] | None:
    """What to leave standing in grey; nothing of another fabric while a new drawing is none."""
    earlier: tuple[FabricRequest, FabricAnswer] | None = st.session_state.get(LAST)
    if asked.preset == OWN and earlier is not None and earlier[0].preset != OWN:
        return None
    return earlier


def preset_answer(asked: FabricRequest) -> tuple[FabricRequest, FabricAnswer] | None:
    """What to leave standing in grey where there is nothing else; None while it is collapsed."""
    preset = replace(asked, overrides={})
    answer = collapsed(canonical(preset), "preset")
    return None if answer is None else (preset, answer)


def collapsed(text: str, key: str) -> FabricAnswer | None:
    """What a fabric comes to; None while it is awaited, which is said."""
    return awaited(fabric_answer, text, what=COLLAPSING, key=key, place="fabric")


def show_answer(
    asked: FabricRequest, request: FabricRequest, answer: FabricAnswer, lacking: str
) -> None:
    """Facts, the drawing, levels and bill, the collective explorer, other fabrics beside it."""
    text = canonical(request)
    heading(request, answer, lacking)
    with st.container(key="results"):
        what_was_read(request.preset, answer)
        HeadlineRow(answer.headlines)
        picture_place = st.container()
    drawing_section(asked.preset, answer)
    with st.container(horizontal=True):
        edit_button(asked.preset, text, answer)
        take_along(request, answer)
        pinned = {"document": request.document, "overrides": request.overrides}
        pin_button("fabric", answer.title, pinned, key="fabric")
    # After the canvas, whose gestures are not to wait for it; of a drawing of one's own below the
    # canvas, which must not move under the pointer.
    with st.container() if asked.preset == OWN else picture_place:
        fabric_picture(request, text)
    with st.container(key="results-below"):
        levels(answer)
        bill_section(text, answer)
        order_section(request, text, answer)
        explorer(request, text, answer)
        beside(request)


main()
