"""A fabric and what a collective costs on it: the form at the left, the answer at the right."""

from dataclasses import replace

import streamlit as st

from nest_core.documents import InputError
from nest_core.scenario import Scenario
from nest_studio.compare.state import compare_fabric
from nest_studio.components.show import AnswerArea, headline_row, nothing_yet
from nest_studio.design.bill import bill_section, order_section
from nest_studio.design.canvas import design_page, drawing_section, edit_button, take_up_edits
from nest_studio.design.view import (
    bring_controls,
    explorer,
    fabric_form,
    fabric_picture,
    heading,
    levels,
    library_controls,
    no_heading,
    pin_output,
    take_along,
    what_was_read,
)
from nest_studio.form import is_own, say_realised, say_refusal
from nest_studio.jobs.tasks.fabrics import FabricAnswer, fabric_answer
from nest_studio.jobs.waiting import panel, submitted
from nest_studio.notebook.pins import pin_button
from nest_studio.paths import page_script
from nest_studio.session.own_fabric import follow_address, is_drawing


def main() -> None:
    """Draw the page."""
    follow_address()
    area = AnswerArea("design")
    take_up_edits()
    problem = st.container(key="problem")
    with st.container(key="waiting"):  # always there, so that nothing below it moves
        waiting = st.empty()
    with st.sidebar:
        scenario, form = fabric_form(bring_controls)
        library_controls(scenario)
    page, has_own = design_page(), is_own(scenario)
    answered: tuple[Scenario, FabricAnswer] | None = None
    refused = ""
    try:
        if form.notes:
            say_realised(form, scenario.fabric)
        area.awaits(scenario)
        with waiting.container():
            job = submitted(fabric_answer, scenario, place="fabric", edited=True)
            answer = panel(job, "Collapsing the fabric into levels", key="fabric")
        if answer is not None:
            waiting.empty()
            answered = page.answer = scenario, answer
    except InputError as error:
        area.awaits(None)
        if is_drawing(scenario.fabric_table):
            refused = str(error)
        else:
            say_refusal(form, scenario, error, problem)
            if page.answer is None:
                nothing_yet("No fabric yet")
    if answered is None and page.answer is not None and (not has_own or is_own(page.answer[0])):
        answered = page.answer  # nothing of another fabric while a new drawing is none
    if answered is not None:
        show_answer(area, scenario, *answered, refused)
    elif has_own:
        no_heading(refused)
        drawing_section(None, own=True)


def show_answer(
    area: AnswerArea, asked: Scenario, request: Scenario, answer: FabricAnswer, lacking: str
) -> None:
    """Draw facts, the drawing, levels and bill, and the collective explorer."""
    has_own = is_own(asked)
    with area.part("results", request):
        heading(request, answer, lacking)
        what_was_read(answer, own=is_own(request))
        headline_row(answer.headlines)
        picture_place = st.container()
    drawing_section(answer, own=has_own)
    with st.container(horizontal=True):
        edit_button(request, answer, own=has_own)
        take_along(request, answer)
        if st.button("Compare", key="to-compare", help="The Plan page's job on it and on its own."):
            compare_fabric(request)
            st.switch_page(page_script("compare"), query_params={})
        pinned = {
            "document": replace(request, overrides={}).fabric_table,
            "overrides": request.overrides,
        }
        pin_button("fabric", answer.title, pinned, key="fabric", output=lambda: pin_output(answer))
    # After the canvas, whose gestures are not to wait for it; of a drawing of one's own below the
    # canvas, which must not move under the pointer.
    with st.container() if has_own else picture_place, area.part("results-picture", request):
        fabric_picture(request)
    with area.part("results-below", request):
        levels(answer)
        bill_section(request, answer)
        order_section(request, answer)
        explorer(request, answer)


main()
