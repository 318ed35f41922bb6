"""The button that pins what a page shows as a cell of a notebook."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from nest_core.errors import InputError
from nest_core.notebook import Cell, CellKind, Summary, new_id
from nest_core.notebook.document import portable
from nest_core.notebook.kinds import versions
from nest_core.quoting import as_markdown
from nest_studio.notebook_state import FIRST_NAME, cells_in_words, last_used, pin
from nest_studio.stored import notebooks

__all__ = ["pin_button"]

Rows = Callable[[], Sequence[Mapping[str, Any]]]


def pin_button(
    kind: CellKind, title: str, inputs: Mapping[str, Any], *, key: str, rows: Rows | None = None
) -> None:
    """A popover in which a result is given a title, a note and a notebook.

    Parameters
    ----------
    kind : CellKind
    title : str
        Proposed; the person may change it.
    inputs : mapping
        What the kind's function takes (`nest_core.notebook.kinds`).
    key : str
        Tells this button from others on the page.
    rows : callable () -> sequence of mapping, optional
        The result's figures as the page has them (`rows` of it);
        asked for on the press. Without it they are kept when the cell is first drawn.
    """
    _popover(kind, title, dict(inputs), key, rows)


@st.fragment
def _popover(
    kind: CellKind, title: str, inputs: dict[str, Any], key: str, rows: Rows | None
) -> None:
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
    with box:
        done, told = st.session_state.get(f"pinned-{key}", (False, ""))
        if done:
            st.success(as_markdown(told))
            if st.button("Open the notebook", key=f"pin-{key}-open"):
                st.switch_page("pages/notebook.py", query_params={})
        elif told:
            st.error(as_markdown(told))
        try:
            names = [entry.name for entry in notebooks().listed()]
        except InputError as error:
            st.error(as_markdown(error))
            return
        known = last_used()
        first = known if known in names else names[0] if names else FIRST_NAME
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
            args=(kind, title, inputs, key, rows),
        )


def _pin(kind: CellKind, title: str, inputs: dict[str, Any], key: str, rows: Rows | None) -> None:
    state = st.session_state
    asked = " ".join(state.get(f"pin-{key}-title-{title}", "").split()) or title
    name = state.get(f"pin-{key}-notebook") or FIRST_NAME
    try:
        cell = Cell(
            new_id(),
            kind,
            asked,
            state.get(f"pin-{key}-note") or "",
            portable(kind, inputs),
            _summary(rows),
        )
        made = pin(name, cell)
    except InputError as error:
        state[f"pinned-{key}"] = False, str(error)
        return
    state[f"pin-{key}-note"] = ""
    state[f"pinned-{key}"] = True, f"Pinned to {made.name}: {cells_in_words(len(made.cells))}."


def _summary(rows: Rows | None) -> Summary | None:
    if rows is None:
        return None
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Summary(tuple(rows()), versions(), now)
