"""The button that pins what a page shows as a cell of a notebook."""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from nest_core.documents import InputError, as_markdown, plural
from nest_core.documents.schema import in_labels
from nest_core.report.notebook import PinOutput, new_notebook, pin_cells
from nest_studio.components.show import told
from nest_studio.paths import page_script
from nest_studio.session.store import Conflict, SavedNotebook
from nest_studio.session.stored import notebooks

__all__ = ["last_used", "pin_button", "remember"]

FIRST_NAME = "My notebook"
"""What the first notebook is called where nobody names it."""

_ATTEMPTS = 5
_NAME = "notebook open"
_Output = Callable[[], PinOutput | None]


def last_used() -> str | None:
    """Return the notebook that this session had open or pinned to last."""
    name: str | None = st.session_state.get(_NAME)
    return name


def remember(name: str | None) -> None:
    """Have a notebook open when its page is next looked at; for callbacks of any page."""
    st.session_state[_NAME] = name


@st.fragment
def pin_button(
    kind: str,
    title: str,
    inputs: Mapping[str, Any],
    *,
    key: str,
    output: _Output | None = None,
) -> None:
    """Draw a popover in which a result is given a title, a note and a notebook.

    Parameters
    ----------
    kind : str
        One of `nest_core.report.notebook.ipynb.KINDS`.
    title : str
        Proposed; the person may change it.
    inputs : mapping
        What the kind's code reads.
    key : str
        Tells this button from others on the page.
    output : callable () -> PinOutput, optional
        What the page shows, called on the press; without it the cell is to be run in Jupyter.
    """
    box = st.popover(
        "Pin",
        type="tertiary",
        key=f"pin-{key}",
        on_change="rerun",
        help="Keep this in a notebook, with a note.",
    )
    if not box.open:
        st.session_state.pop(f"pinned-{key}", None)
        return
    with box, told():
        done, message = st.session_state.get(f"pinned-{key}", (False, ""))
        if done:
            st.success(as_markdown(message))
            if st.button("Open the notebook", key=f"pin-{key}-open"):
                st.switch_page(page_script("notebook"), query_params={})
        elif message:
            st.error(as_markdown(message))
        names = [entry.name for entry in notebooks().listed()]
        last = last_used()
        first = last if last in names else names[0] if names else FIRST_NAME
        options = names or [FIRST_NAME]
        st.selectbox(
            "Notebook, or a new name",
            options,
            index=options.index(first),
            accept_new_options=True,
            key=f"pin-{key}-notebook",
            help="1 to 100 characters.",
        )
        # A key of its own for every proposal, so that another result brings another title.
        st.text_input(
            "Title",
            title[:200],
            max_chars=200,
            key=f"pin-{key}-title-{title}",
            help="1 to 200 characters.",
        )
        st.text_area(
            "Note, Markdown",
            key=f"pin-{key}-note",
            max_chars=50_000,
            height=100,
            help="Up to 50,000 characters.",
        )
        st.button(
            "Pin to the notebook",
            on_click=_pin,
            key=f"pin-{key}-do",
            args=(kind, title, dict(inputs), key, output),
        )


def _pin(kind: str, title: str, inputs: dict[str, Any], key: str, output: _Output | None) -> None:
    state = st.session_state
    chosen_title = " ".join(state.get(f"pin-{key}-title-{title}", "").split()) or title
    name = (state.get(f"pin-{key}-notebook") or FIRST_NAME).strip()
    note = state.get(f"pin-{key}-note") or ""
    try:
        saved = _append(name, kind, chosen_title, note, inputs, output() if output else None)
    except InputError as error:
        state[f"pinned-{key}"] = False, in_labels(str(error))
        return
    state[f"pin-{key}-note"] = ""
    message = f"Pinned to {saved.name}: {plural(len(saved.notebook.cells), 'cell')}."
    state[f"pinned-{key}"] = True, message
    st.toast(as_markdown(message))  # also where the popover is shut by then


def _append(name: str, *pin: Any) -> SavedNotebook:
    """Add a pin to a notebook, new or not, whoever else writes to it."""
    store = notebooks()
    attempt = 1
    while True:
        before = store.open(name)
        notebook = before.notebook if before else new_notebook()
        notebook.cells += pin_cells(*pin)
        try:
            saved = store.save(name, notebook, before.revision if before else 0)
        except Conflict:
            if attempt == _ATTEMPTS:
                raise
            attempt += 1
        else:
            remember(name)
            return saved
