"""The library of fabrics by the form: save the shown one, open, rename and delete."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from nest_core.documents.errors import InputError
from nest_core.documents.quoting import as_markdown
from nest_core.scenario import Scenario
from nest_studio.components.show import facts
from nest_studio.design.state import design_page
from nest_studio.form.fabric import is_own, reset_fabric
from nest_studio.form.fields import OneOf, Text, widget, widget_value
from nest_studio.session.library import kept_names, open_from_library, opened_name, remember
from nest_studio.session.own_fabric import is_drawing, own_document
from nest_studio.session.store.documents import LONGEST
from nest_studio.session.stored import fabrics

__all__ = ["library_controls"]

_SAVE, _PICK, _RENAME = "library.save", "library.pick", "library.rename"


def library_controls(scenario: Scenario) -> None:
    """A box with the library; what was refused stands below it."""
    design_page().library_scenario = scenario
    with st.popover("Library", width="stretch"):
        facts("Fabrics kept by name, to be chosen on Plan and Compare too.", kind="nest-quiet")
        widget(
            _SAVE,
            Text(),
            opened_name(),
            label=f"Name, 1 to {LONGEST} characters",
            bind=None,
            max_chars=LONGEST,
            help="The one that is open is saved over under its own name; no other is.",
        )
        st.button("Save the shown fabric", on_click=_save, width="stretch", key="library.saving")
        names = kept_names()
        if names:
            text = "Opened, it becomes your own fabric."
            widget(_PICK, OneOf(names), names[0], label="Kept", bind=None, help=text)
            with st.container(horizontal=True, gap="small"):
                st.button("Open", on_click=_open, key="library.open")
                st.button("Delete", on_click=_delete, key="library.delete")
            widget(_RENAME, Text(), "", label="New name", bind=None, max_chars=LONGEST)
            st.button("Rename", on_click=_rename, key="library.renaming")
        else:
            facts("Nothing is kept yet.", kind="nest-quiet")
    if problem := design_page().problems.get("library"):
        st.error(as_markdown(problem))


def _told(act: Callable[[], None]) -> None:
    design_page().problems.pop("library", None)
    try:
        act()
    except InputError as error:
        design_page().problems["library"] = str(error)


def _save() -> None:
    name = widget_value(_SAVE, Text()) or ""
    scenario = design_page().library_scenario
    if scenario is None:
        return
    document = own_document() if is_own(scenario) else None
    if document is None or not is_drawing(document):
        document = scenario.fabric_table

    def act() -> None:
        remember(fabrics().save(name, document, replace=name.strip() == opened_name()))

    _told(act)


def _open() -> None:
    name = widget_value(_PICK, OneOf(kept_names()))
    if name is not None:
        design_page().problems.pop("library", None)
        open_from_library(name)
        reset_fabric()
        st.session_state[_SAVE] = name


def _rename() -> None:
    old, new = widget_value(_PICK, OneOf(kept_names())), widget_value(_RENAME, Text()) or ""

    def act() -> None:
        name = fabrics().rename(old, new)
        if opened_name() == old:
            remember(name)
        st.session_state[_PICK] = name

    if old is not None:
        _told(act)


def _delete() -> None:
    name = widget_value(_PICK, OneOf(kept_names()))
    if name is not None:
        _told(lambda: fabrics().delete(name))
