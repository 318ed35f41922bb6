"""What a form asks for and cannot be: one sentence in its labels, and buttons that mend it."""

from typing import Any

import streamlit as st

from nest_core.documents import InputError, as_markdown
from nest_core.documents.schema import fabric_key, in_labels
from nest_core.fabric.remedies import fabric_settings, remedies
from nest_core.scenario import Scenario
from nest_studio.form.fields import DrawnForm, hold

__all__ = ["say_refusal"]


def say_refusal(form: DrawnForm, scenario: Scenario, error: InputError, place: Any) -> None:
    """Say why a form asks for what cannot be, at a place and below the field that it is about.

    Below the sentence stands a button for each value of a fabric's setting that alone mends it.
    """
    settings = fabric_settings(table := scenario.fabric_table)
    words = as_markdown(in_labels(str(error), settings))
    place.error(words)
    if box := form.boxes.get(fabric_key(error.field)):
        box.caption(f":red[{words}]")
    with place.container(horizontal=True, horizontal_alignment="right", gap="small"):
        for key, value in remedies(table, error).items():
            of, (choice, *_) = settings[key], form.fields[key].shown(value) or (value,)
            text = f"Set {of.label} to {of.words(choice)} {of.unit}".removesuffix("number").strip()
            st.button(as_markdown(text), key=f"remedy-{key}", on_click=hold, args=(key, choice))
