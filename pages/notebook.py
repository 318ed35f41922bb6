"""The record of the work: notebooks at the left, the cells of the open one at the right."""

from __future__ import annotations

import streamlit as st

from nest_core.errors import InputError
from nest_core.quoting import as_markdown
from nest_studio.compare_state import go_to_compare
from nest_studio.notebook_shelf import empty_shelf, heading, no_cells, save_state, shelf
from nest_studio.notebook_state import current, follow_address, on_screen, take_problem
from nest_studio.notebook_view import cell_card, note_style
from nest_studio.open_plan import go_to_opened
from nest_studio.stored import kept_aside, notebooks


def main() -> None:
    """Draw the page."""
    go_to_opened()
    go_to_compare()
    note_style()
    problem = st.container(key="problem")
    try:
        listed = notebooks().listed()
        aside = kept_aside()
    except InputError as error:
        problem.error(as_markdown(error))
        return
    if aside:
        problem.warning(
            f"Notebooks that could not be read were kept beside the others as "
            f"{as_markdown(', '.join(aside))}; "
            "whoever runs the server can repair or remove them."
        )
    try:
        name = follow_address()
        notebook = current()
    except InputError as error:
        problem.error(as_markdown(error))
        with st.sidebar:
            shelf(listed, None)
        return
    if told := take_problem():
        problem.error(as_markdown(told))
    with st.sidebar:
        shelf(listed, name)
    if notebook is None:
        empty_shelf(name, bool(listed))
        return
    versions = [notebook]
    heading(notebook, lambda: versions[-1])
    state = st.container()
    if not notebook.cells:
        no_cells()
    for cell in notebook.cells:
        cell_card(notebook, cell)
    # Cells that were computed for the first time have been saved meanwhile.
    versions.append(on_screen() or notebook)
    with state:
        save_state(versions[-1])


main()
