"""The widgets of a fabric: its preset, size and oversubscription ratios.

The **Plan** and **Design** pages draw the same widgets; their keys are the dotted keys of scenario
files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from nest_core.documents.presets import preset_names
from nest_core.documents.quoting import as_markdown
from nest_core.documents.schema import parameter
from nest_core.documents.units import format_ratio
from nest_core.fabric import Fabric
from nest_core.scenario import Scenario
from nest_core.scenario import fabric_document as preset_document
from nest_core.studies.parameters import ratio_parameters
from nest_studio.form.fields import (
    ADDRESS,
    Choice,
    Field,
    Number,
    field_of,
    label_of,
    number_of,
    said,
    settle,
)
from nest_studio.form.folds import put_back
from nest_studio.session.library import kept_names, open_from_library, open_kept
from nest_studio.session.own_fabric import KEPT, OWN, carry, forget_places, is_drawing, own_document

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
_KINDS = {"leaf_spine": "spine-leaf", "fat_tree": "fat-tree"} | {
    name: name.replace("_", "-") for name in ("rail_optimised", "rail_only", "dual_plane")
}
MEANINGS = {"removes uplinks": "remove_uplinks", "splits the ports anew": "split_radix"}


def fabric_scenario(choice: str, overrides: Mapping[str, Any] | None = None) -> Scenario:
    """Return a scenario of a fabric alone: a preset by name, any other as its document."""
    is_preset = choice in preset_names("fabrics")
    return Scenario({"fabric": choice if is_preset else fabric_document(choice)}, overrides or {})


def is_own(scenario: Scenario) -> bool:
    """Return whether its fabric is no preset."""
    return not isinstance(scenario.document["fabric"], str)


def fabric_group(chosen: dict[str, Any], standard: Mapping[str, Any], notes: list[Any]) -> None:
    """Preset, size and ratios of a fabric; ``notes`` takes the places for realised ratios."""
    _lost_fabric()
    _follow_library()
    names = fabric_choices()
    settle("fabric", Choice(names))
    with put_back("fabric", standard, reset_fabric):
        chosen["fabric"] = st.selectbox(
            "Fabric",
            names,
            index=names.index(standard["fabric"]),
            key="fabric",
            bind=ADDRESS,
            on_change=pick_fabric,
            help=f"Switches, links and nodes: a preset, {OWN} as the Design page drew or read it, "
            f"or one from the library, which becomes {OWN}.",
        )
    carry(shown=chosen["fabric"] == OWN)
    fabric = fabric_document(chosen["fabric"])
    fields, as_drawn = fabric_fields(fabric), fabric_standards(fabric)
    for key, field in fields.items():
        settle(key, field)
    if is_drawing(fabric) and chosen["fabric"] == OWN:
        st.caption("Drawn on the Design page.")  # what it was first called says nothing of it
    else:
        st.caption(as_markdown(fabric["name"]), help=as_markdown(fabric.get("source", "")) or None)
    if "clos" in fabric:
        per_node = fabric["clos"]["devices_per_node"]
        with put_back(DEVICES, as_drawn):
            chosen[DEVICES] = number_of(
                parameter(DEVICES), fabric["clos"]["devices"], per_node, label="Size, devices"
            )
    ratios = ratio_parameters(fabric)
    if "clos" in fabric and ratios:
        usual = next(word for word, said in MEANINGS.items() if said == as_drawn[MEANING])
        with put_back(MEANING, {MEANING: usual}):
            chosen[MEANING] = MEANINGS[
                st.selectbox(
                    label_of(parameter(MEANING)),
                    tuple(MEANINGS),
                    key=MEANING,
                    bind=ADDRESS,
                    index=tuple(MEANINGS).index(usual),
                    help=parameter(MEANING).text,
                )
            ]
    for ratio in ratios:
        key, field = ratio.key, fields[ratio.key]
        with put_back(key, as_drawn):
            chosen[key] = st.slider(
                as_markdown(label_of(ratio)),
                field.least,
                field.most,
                ratio.present,
                0.5,
                key=key,
                bind=ADDRESS,
                format="%g:1",
                help=f"{field.least:g} to {field.most:g}. {ratio.text} What it becomes stands "
                "below.",
            )
        notes.append(st.empty())
    if not ratios and is_drawing(fabric):
        st.caption("The ratio of a drawn tier is a field below its canvas on Design.")
    elif not ratios:
        st.caption("This fabric has no switch tiers to oversubscribe; its links are what they are.")


def say_realised(notes: list[Any], fabric: Fabric) -> None:
    """What a fabric's ratios become in whole ports, in the places that `fabric_group` took."""
    for note, realised in zip(notes, fabric.realised_ratios(), strict=True):
        note.caption(as_markdown(f"realised {realised}"))


def fabric_fields(fabric: Mapping[str, Any]) -> dict[str, Any]:
    """What the widgets of a fabric's document take, by key."""
    fields: dict[str, Field] = {
        ratio.key: Number(min(1.0, present), max(ratio.usual or 1.0, present))
        for ratio in ratio_parameters(fabric)
        if isinstance(present := ratio.present, float)
    }
    if "clos" in fabric:
        fields[DEVICES] = field_of(parameter(DEVICES))
        fields[MEANING] = Choice(tuple(MEANINGS))
    return fields


def fabric_words(chosen: Mapping[str, Any]) -> str:
    """What the fabric's fields hold, in a few words."""
    fabric = fabric_document(chosen["fabric"])
    kind = next((name for name in ("clos", "torus", "dragonfly") if name in fabric), "")
    if kind == "clos":
        kind = _KINDS.get(str(fabric.get("kind")), "switched")
    elif not kind:
        kind = "drawn" if is_drawing(fabric) else "levels"
    ratios = [format_ratio(chosen[r.key]) for r in ratio_parameters(fabric) if r.key in chosen]
    return " ".join([kind, *ratios])


def fabric_choices() -> tuple[str, ...]:
    """Fabrics that a scenario can be put on: a person's own first."""
    return (*own_names(), *preset_names("fabrics"))


def own_names() -> tuple[str, ...]:
    """What the fabrics are called that a person drew or brought: the present one, the library's."""
    return (*((OWN,) if own_document() is not None else ()), *kept_names())


def _follow_library() -> None:
    """Open a fabric of the library that an address names, or a session held under its name."""
    asked = st.session_state.get(_CHOICE, st.query_params.get(_CHOICE))
    if isinstance(asked, str) and asked in kept_names():
        open_from_library(asked)
        if st.query_params.get(_CHOICE) == asked:  # which the widget would read again
            st.query_params[_CHOICE] = OWN
            st.rerun()


def pick_fabric() -> None:
    """Take over what was chosen; for callbacks."""
    chosen = said(_CHOICE, Choice(fabric_choices()))
    if chosen in kept_names():
        open_from_library(chosen)
    reset_fabric()


def _lost_fabric() -> None:
    """Say that an address asks for a fabric of one's own that this session never had."""
    if own_document() is not None:
        st.session_state.pop(FAILED, None)
    elif st.query_params.get("fabric") == OWN or st.query_params.get(KEPT):
        st.session_state[FAILED] = True
    if st.session_state.get(FAILED):
        st.info(
            f"{OWN}, as the link has it, is not in this studio's store, which may be another than "
            "where the link was made. What was exported can be imported again."
        )


def fabric_standards(fabric: Mapping[str, Any]) -> dict[str, Any]:
    """The value of every widget that stands for a fabric's document."""
    standards: dict[str, Any] = {ratio.key: ratio.present for ratio in ratio_parameters(fabric)}
    if "clos" in fabric:
        standards[DEVICES] = fabric["clos"]["devices"]
        standards[MEANING] = fabric["clos"].get("oversubscribe", parameter(MEANING).default)
    return standards


def fabric_document(name: str) -> dict[str, Any]:
    """The document of a fabric preset, or of the person's own fabric."""
    if name == OWN:
        return forget_places(own_document() or {})
    if name not in preset_names("fabrics") and (kept := open_kept(name)) is not None:
        return forget_places(kept)
    return preset_document(name)


def reset_fabric() -> None:
    """Set the fabric widgets to what the chosen fabric says, for callbacks."""
    picked = said("fabric", Choice(fabric_choices()))
    if picked is None:
        return
    words = {value: word for word, value in MEANINGS.items()}
    for key, value in fabric_standards(fabric_document(picked)).items():
        st.session_state[key] = words[value] if key == MEANING else value
