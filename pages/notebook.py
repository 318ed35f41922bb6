"""The record of the work: notebooks at the left, the cells of the open one at the right."""

import streamlit as st

from nest_core.documents import InputError, as_markdown
from nest_core.documents.schema import in_labels
from nest_studio.components.show import facts, told
from nest_studio.notebook.view import (
    draw_cells,
    follow_address,
    heading,
    note_style,
    shelf,
    take_problem,
)
from nest_studio.session.open_plan import go_to_opened
from nest_studio.session.stored import kept_aside, notebooks


def main() -> None:
    """Draw the page."""
    go_to_opened()
    note_style()
    if problem := take_problem():
        st.error(as_markdown(problem))
    try:
        entries, aside = notebooks().listed(), kept_aside()
    except InputError as error:
        st.error(as_markdown(in_labels(str(error))))
        return
    if aside:
        st.warning(
            f"Notebooks that could not be read were kept beside the others as "
            f"{as_markdown(', '.join(aside))}; "
            "whoever runs the server can repair or remove them."
        )
    name = follow_address()
    saved = None
    with told():
        saved = notebooks().open(name) if name else None
        if name and saved is None:
            st.warning(as_markdown(f"There is no notebook named {name}: pick one at the left."))
    with st.sidebar:
        shelf(entries, name, saved)
    if saved is not None:
        heading(saved)
        draw_cells(saved)
    elif not name:
        facts("The record of the work", kind="nest-scenario")
        facts(
            "Press Pin on another page: what it shows is added to a notebook, with your words, the "
            "code that computes it again in Jupyter, and its figures. Notebooks are .ipynb files: "
            "work on one in Jupyter and open it here again."
        )


main()
