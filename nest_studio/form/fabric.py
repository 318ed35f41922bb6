"""The widgets of a fabric: its preset, size and oversubscription ratios.

The **Plan** and **Design** pages draw the same widgets; their keys are the dotted keys of scenario
files.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st

from nest_core.bill.prices import load_prices
from nest_core.documents import as_markdown, format_ratio, preset_names
from nest_core.documents.schema import Parameter
from nest_core.fabric import Fabric
from nest_core.fabric.files import COUNTED, DEPENDENT, counted, fabric_settings, with_setting
from nest_core.scenario import Scenario
from nest_core.scenario import fabric_document as preset_document
from nest_core.studies.parameters import ratio_parameters
from nest_studio.form.fields import (
    DrawnForm,
    Listed,
    Number,
    OneOf,
    PresetOrOwn,
    Text,
    Widget,
    field_of,
    fold,
    label_of,
    widget_value,
)
from nest_studio.session.own_fabric import (
    OWN,
    forget_places,
    is_drawing,
    is_named,
    kept_names,
    open_from_library,
    open_kept,
    own_document,
    say_in_address,
)

__all__ = [
    "DEFAULT_FABRIC",
    "DEVICES",
    "MEANING",
    "MEANINGS",
    "RATIOS",
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
DEFAULT_FABRIC = "h100-spine-leaf-1024"
"""What the Design page begins with."""
DEVICES = "fabric.clos.devices"
RATIOS = "fabric.clos.oversubscription"
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


def fabric_group(form: DrawnForm) -> dict[str, Any]:
    """Draw a fabric's preset and every setting that it has, and return its document.

    Parameters
    ----------
    form : DrawnForm
        With the fabric that is chosen at first among its standards; takes the places for
        realised ratios.
    """
    _lost_fabric()
    _follow_library()
    form.fields["fabric"] = PresetOrOwn(
        fabric_choices(), own_option=OWN, table=partial(fabric_document, OWN)
    )
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
    table, in_sight = fabric, st.container()
    form.fields |= fabric_fields(fabric)
    form.standards |= fabric_standards(fabric)
    with in_sight:
        for group in (*COUNTED, ""):
            table = _draw_group(form, table, group)
    settings = fabric_settings(table)
    folds = dict.fromkeys(of.group for of in settings.values() if of.group not in (*COUNTED, ""))
    for number, group in enumerate(folds):
        with fold(group, f"fold-fabric-{number}", form=form) as summary:
            before, table = table, _draw_group(form, table, group)
            summary("changed" if table != before else "")
    for key, (neutral, is_meant) in DEPENDENT.items():
        if key in settings and settings[key].present is not None and not is_meant(table):
            form.values[key] = neutral
    with in_sight:
        _draw_ratios(form, fabric, table)
    return fabric


def _draw_group(form: DrawnForm, table: dict[str, Any], group: str) -> dict[str, Any]:
    """Draw the settings of a group, and return the document with what they are set to."""
    ratios = {ratio.key for ratio in ratio_parameters(table)}
    for key, of in fabric_settings(table).items():
        if of.group != group or not DEPENDENT.get(key, (None, bool))[1](table) or key in ratios:
            continue
        look: dict[str, Any] = {"format": "%g"} if of.kind is float else {}
        if key == DEVICES:
            look = {"label": "Size, devices", "step": table["clos"]["devices_per_node"]}
        if form.draw(key, of, **look) != form.standards[key]:
            table = with_setting(table, key, form.fields[key].stated(form.values[key]))
            form.fields = fabric_fields(table) | form.fields
            form.standards = fabric_standards(table) | form.standards
    return table


def _draw_ratios(form: DrawnForm, fabric: dict[str, Any], table: dict[str, Any]) -> None:
    """Draw the ratios that a fabric's tiers have, each with a place for what it becomes.

    Where there are other tiers than in its document, what files say is the list of them all.
    """
    ratios = ratio_parameters(table)
    for ratio in ratios:
        takes = form.fields[ratio.key]
        if isinstance(takes, Number):
            bounds = f"{takes.low:g} to {takes.high:g}."
            text = f"{bounds} {ratio.text} What it becomes stands below."
            look = {"label": as_markdown(label_of(ratio)), "help": text, "slider": True}
            form.draw(ratio.key, ratio, step=0.5, format="%g:1", **look)
        form.notes.append(st.empty())
    if "clos" in table and len(ratios) != len(ratio_parameters(fabric)):
        form.fields[RATIOS] = Text()
        form.standards[RATIOS] = fabric["clos"].get("oversubscription", [])
        form.values[RATIOS] = [form.values[ratio.key] for ratio in ratios]
        form.standards |= {ratio.key: form.values[ratio.key] for ratio in ratios}
    if not ratios and is_drawing(table):
        st.caption("The ratio of a drawn tier is a field below its canvas on Design.")
    elif not ratios:
        st.caption("This fabric has no switch tiers to oversubscribe; its links are what they are.")


def say_realised(form: DrawnForm, fabric: Fabric) -> None:
    """Draw what a fabric's ratios become in whole ports, in the places of its form."""
    for note, realised in zip(form.notes, fabric.realised_ratios(), strict=True):
        note.caption(as_markdown(f"realised {realised}"))


def fabric_fields(fabric: Mapping[str, Any]) -> dict[str, Widget]:
    """Return what the widgets of a fabric's document take, by key."""
    fields = {key: _field(of) for key, of in fabric_settings(dict(fabric)).items()}
    for ratio in ratio_parameters(fabric):
        fields[ratio.key] = Number(min(1.0, ratio.present), max(ratio.usual or 1.0, ratio.present))
    return fields | {
        key: OneOf(tuple(of), meanings=of) for key, of in counted(dict(fabric)).items()
    }


def _field(of: Parameter) -> Widget:
    """Return what the widget of a fabric's setting takes: nothing only where its file has none."""
    if of.key == MEANING:
        return MEANINGS
    if of.name == "optics":
        return OneOf(load_prices().media, empty=of.present is None)
    if of.kind is list:
        return Listed()
    if of.kind is str:
        words = {_KINDS.get(choice, choice.replace("_", "-")): choice for choice in of.choices}
        is_empty = of.present is None and of.default is None
        return OneOf(tuple(words), is_empty, words) if words else Text()
    return field_of(of, empty=of.present is None and of.default is None)


def fabric_words(fabric: Mapping[str, Any], chosen: Mapping[str, Any]) -> str:
    """Return a fabric's kind and what its ratios are set to."""
    kind = str(chosen.get("fabric.kind", fabric["kind"]))
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
    is_wanted = is_named() or st.session_state.get(FAILED, False)
    st.session_state[FAILED] = own_document() is None and is_wanted
    if st.session_state[FAILED]:
        st.info(
            f"{OWN}, as the link has it, is not in this studio's store, which may be another than "
            "where the link was made. What was exported can be imported again."
        )


def fabric_standards(fabric: Mapping[str, Any]) -> dict[str, Any]:
    """Return what every widget of a fabric's document has at first."""
    settings, fields = fabric_settings(dict(fabric)), fabric_fields(fabric)
    ratios = {ratio.key: ratio.present for ratio in ratio_parameters(fabric)}
    present = {
        key: of.default if of.present is None else of.present for key, of in settings.items()
    }
    return {
        key: (fields[key].shown(value) or (None,))[0] for key, value in (present | ratios).items()
    }


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
