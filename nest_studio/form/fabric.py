"""The widgets of a fabric: its preset, size and oversubscription ratios.

The **Plan** and **Design** pages draw the same widgets; their keys are the dotted keys of scenario
files.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st

from nest_core.documents import as_markdown, format_ratio, preset_names
from nest_core.documents.schema import parameter
from nest_core.fabric import Fabric
from nest_core.scenario import Scenario
from nest_core.scenario import fabric_document as preset_document
from nest_core.studies.parameters import ratio_parameters
from nest_studio.form.fields import (
    DrawnForm,
    Number,
    OneOf,
    PresetOrOwn,
    Widget,
    field_of,
    label_of,
    widget_value,
)
from nest_studio.session.library import kept_names, open_from_library, open_kept
from nest_studio.session.own_fabric import (
    OWN,
    forget_places,
    is_drawing,
    is_named,
    own_document,
    say_in_address,
)

__all__ = [
    "DEVICES",
    "MEANING",
    "MEANINGS",
    "fabric_choices",
    "fabric_document",
    "fabric_fields",
    "fabric_group",
    "fabric_scenario",
    "fabric_standards",
    "fabric_words",
    "is_own",
    "own_names",
    "pick_fabric",
    "reset_fabric",
    "say_realised",
]

_CHOICE = "fabric"
DEVICES = "fabric.clos.devices"
MEANING = "fabric.clos.oversubscribe"
FAILED = "own fabric is lost"
_KINDS = {
    "leaf_spine": "spine-leaf",
    "tpu_slice": "torus",
    "hierarchical": "levels",
    "graph": "drawn",
}
"""Kinds that are not called by their key."""
_MEANINGS = {"removes uplinks": "remove_uplinks", "splits the ports anew": "split_radix"}
MEANINGS = OneOf(tuple(_MEANINGS), meanings=_MEANINGS)


def fabric_scenario(choice: str, overrides: Mapping[str, Any] | None = None) -> Scenario:
    """Return a scenario of a fabric alone: a preset by name, any other as its document."""
    is_preset = choice in preset_names("fabrics")
    return Scenario({"fabric": choice if is_preset else fabric_document(choice)}, overrides or {})


def is_own(scenario: Scenario) -> bool:
    """Return whether its fabric is no preset."""
    return not isinstance(scenario.document["fabric"], str)


def fabric_group(form: DrawnForm, notes: list[Any]) -> dict[str, Any]:
    """Draw preset, size and ratios of a fabric, and return its document.

    Parameters
    ----------
    form : DrawnForm
        With the fabric that is chosen at first among its standards.
    notes : list
        Takes the places for realised ratios.
    """
    _lost_fabric()
    _follow_library()
    own_table = partial(fabric_document, OWN)
    form.fields["fabric"] = PresetOrOwn(fabric_choices(), own_option=OWN, table=own_table)
    choice = form.draw(
        "fabric",
        label="Fabric",
        on_change=pick_fabric,
        help=f"Switches, links and nodes: a preset, {OWN} as the Design page drew or read it, "
        f"or one from the library, which becomes {OWN}.",
    )
    say_in_address(shown=choice == OWN)
    fabric = fabric_document(choice)
    if is_drawing(fabric) and choice == OWN:
        st.caption("Drawn on the Design page.")  # what it was first called says nothing of it
    else:
        st.caption(as_markdown(fabric["name"]), help=as_markdown(fabric.get("source", "")) or None)
    ratios = {ratio.key: ratio for ratio in ratio_parameters(fabric)}
    fields = fabric_fields(fabric)
    form.fields |= fields
    form.standards |= fabric_standards(fabric)
    for key, takes in fields.items():
        look: dict[str, Any] = {}
        if key in ratios and isinstance(takes, Number):
            look = {
                "label": as_markdown(label_of(ratios[key])),
                "help": f"{takes.low:g} to {takes.high:g}. {ratios[key].text} What it becomes "
                "stands below.",
                "slider": True,
                "step": 0.5,
                "format": "%g:1",
            }
        elif key == DEVICES:
            look = {"label": "Size, devices", "step": fabric["clos"]["devices_per_node"]}
        elif not ratios:
            continue
        form.draw(key, ratios.get(key) or parameter(key), **look)
        if key in ratios:
            notes.append(st.empty())
    if not ratios and is_drawing(fabric):
        st.caption("The ratio of a drawn tier is a field below its canvas on Design.")
    elif not ratios:
        st.caption("This fabric has no switch tiers to oversubscribe; its links are what they are.")
    return fabric


def say_realised(notes: list[Any], fabric: Fabric) -> None:
    """Draw what a fabric's ratios become in whole ports, in the places that `fabric_group` took."""
    for note, realised in zip(notes, fabric.realised_ratios(), strict=True):
        note.caption(as_markdown(f"realised {realised}"))


def fabric_fields(fabric: Mapping[str, Any]) -> dict[str, Widget]:
    """Return what the widgets of a fabric's document take, by key."""
    fields: dict[str, Widget] = {}
    if "clos" in fabric:
        fields = {DEVICES: field_of(parameter(DEVICES)), MEANING: MEANINGS}
    for ratio in ratio_parameters(fabric):
        fields[ratio.key] = Number(min(1.0, ratio.present), max(ratio.usual or 1.0, ratio.present))
    return fields


def fabric_words(fabric: Mapping[str, Any], chosen: Mapping[str, Any]) -> str:
    """Return a fabric's kind and what its ratios are set to."""
    kind = str(fabric["kind"])
    ratios = [format_ratio(chosen[r.key]) for r in ratio_parameters(fabric) if r.key in chosen]
    return " ".join([_KINDS.get(kind, kind.replace("_", "-")), *ratios])


def fabric_choices() -> tuple[str, ...]:
    """Fabrics that a scenario can be put on: a person's own first."""
    return (*own_names(), *preset_names("fabrics"))


def own_names() -> tuple[str, ...]:
    """Return the names of a person's own fabrics: the present one, then the library's."""
    return (*((OWN,) if own_document() is not None else ()), *kept_names())


def _follow_library() -> None:
    """Open a fabric of the library that an address names, or a session held under its name."""
    name = st.session_state.get(_CHOICE, st.query_params.get(_CHOICE))
    if isinstance(name, str) and name in kept_names():
        open_from_library(name)
        if st.query_params.get(_CHOICE) == name:  # which the widget would read again
            st.query_params[_CHOICE] = OWN
            st.rerun()


def pick_fabric() -> None:
    """Take over what was chosen; for callbacks."""
    chosen = widget_value(_CHOICE, OneOf(fabric_choices()))
    if chosen in kept_names():
        open_from_library(chosen)
    reset_fabric()


def _lost_fabric() -> None:
    """Say that an address asks for a fabric of one's own that this session never had."""
    if own_document() is not None:
        st.session_state.pop(FAILED, None)
    elif is_named():
        st.session_state[FAILED] = True
    if st.session_state.get(FAILED):
        st.info(
            f"{OWN}, as the link has it, is not in this studio's store, which may be another than "
            "where the link was made. What was exported can be imported again."
        )


def fabric_standards(fabric: Mapping[str, Any]) -> dict[str, Any]:
    """Return what every widget of a fabric's document has at first."""
    standards: dict[str, Any] = {ratio.key: ratio.present for ratio in ratio_parameters(fabric)}
    if "clos" in fabric:
        standards[DEVICES] = fabric["clos"]["devices"]
        meaning = fabric["clos"].get("oversubscribe", parameter(MEANING).default)
        (standards[MEANING],) = MEANINGS.shown(meaning) or MEANINGS.options
    return standards


def fabric_document(name: str) -> dict[str, Any]:
    """Return the document of a fabric preset, or of the person's own fabric."""
    if name == OWN:
        return forget_places(own_document() or {})
    if name not in preset_names("fabrics") and (document := open_kept(name)) is not None:
        return forget_places(document)
    return preset_document(name)


def reset_fabric() -> None:
    """Set the fabric widgets to what the chosen fabric says, for callbacks."""
    picked = widget_value("fabric", OneOf(fabric_choices()))
    if picked is not None:
        st.session_state.update(fabric_standards(fabric_document(picked)))
