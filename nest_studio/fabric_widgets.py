"""The widgets of a fabric: its preset, size and oversubscription ratios.

The **Plan** and **Design** pages draw the same widgets; their keys are the dotted keys of scenario
files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from nest_core.presets import preset_names
from nest_core.quoting import as_markdown
from nest_core.scenario import fabric_document as preset_document
from nest_studio.fields import Choice, Field, Number, said, settle
from nest_studio.own_fabric import KEPT, OWN, carry, forget_places, is_drawing, own_document

__all__ = [
    "ADDRESS",
    "DEVICES",
    "LARGEST_RATIO",
    "MEANING",
    "MEANINGS",
    "RatioField",
    "fabric_document",
    "fabric_fields",
    "fabric_group",
    "fabric_standards",
    "ratio_fields",
    "reset_fabric",
]

ADDRESS: Any = "query-params"
"""What binds a widget to the address."""

LARGEST_RATIO = 16.0
LARGEST_CLOS = 131_072
DEVICES = "fabric.clos.devices"
MEANING = "fabric.clos.oversubscribe"
LOST = "own fabric is lost"
MEANINGS = {"takes uplinks away": "remove_uplinks", "splits the ports anew": "split_radix"}


@dataclass(frozen=True, slots=True)
class RatioField:
    """One oversubscription: its dotted key, what it is called, and its value in the preset."""

    key: str
    label: str
    value: float


def ratio_fields(fabric: Mapping[str, Any]) -> tuple[RatioField, ...]:
    """The oversubscription ratios that a fabric document has, innermost first."""
    if "clos" in fabric:
        names = ("edge", "aggregation") if fabric["kind"] == "fat_tree" else ("leaf", "spine")
        return tuple(
            RatioField(f"fabric.clos.oversubscription.{tier}", names[tier], float(ratio))
            for tier, ratio in enumerate(fabric["clos"].get("oversubscription", ()))
        )
    return tuple(
        RatioField(
            f"fabric.level.{index}.oversubscription",
            str(level["name"]),
            float(level.get("oversubscription", 1.0)),
        )
        for index, level in enumerate(fabric.get("level", ()))
        if index
    )


def fabric_group(chosen: dict[str, Any], standard: Mapping[str, Any], notes: list[Any]) -> None:
    """Preset, size and ratios of a fabric; ``notes`` takes the places for realised ratios."""
    st.subheader("Fabric")
    _lost_fabric()
    names = _names()
    settle("fabric", Choice(names))
    chosen["fabric"] = st.selectbox(
        "Fabric", names, index=names.index(standard["fabric"]), key="fabric",
        bind=ADDRESS, on_change=reset_fabric,
        help=f"Switches, links and nodes: a preset, or {OWN} as the Design page drew or read it.",
    )  # fmt: skip
    carry(shown=chosen["fabric"] == OWN)
    fabric = fabric_document(chosen["fabric"])
    fields = fabric_fields(fabric)
    for key, field in fields.items():
        settle(key, field)
    if is_drawing(fabric) and chosen["fabric"] == OWN:
        st.caption("Drawn on the Design page.")  # what it was first called says nothing of it
    else:
        st.caption(as_markdown(fabric["name"]), help=as_markdown(fabric.get("source", "")) or None)
    if "clos" in fabric:
        per_node = fabric["clos"]["devices_per_node"]
        chosen[DEVICES] = st.number_input(
            "Size, devices", fields[DEVICES].least, fields[DEVICES].most,
            fabric["clos"]["devices"], per_node, key=DEVICES, bind=ADDRESS,
            help=as_markdown(f"{per_node} to 131,072, in nodes of {per_node}; many leaves need")
            + " a fabric with another switch tier.",
        )  # fmt: skip
    ratios = ratio_fields(fabric)
    if "clos" in fabric and ratios:
        chosen[MEANING] = MEANINGS[st.selectbox(
            "Oversubscription", tuple(MEANINGS), key=MEANING, bind=ADDRESS,
            index=list(MEANINGS.values()).index(fabric_standards(fabric)[MEANING]),
            help="A fixed leaf loses uplinks, its nodes stay; or the ports of a switch are split "
            "anew, so that a leaf holds more nodes and there are fewer of them.",
        )]  # fmt: skip
    for ratio in ratios:
        chosen[ratio.key] = st.slider(
            f"{as_markdown(ratio.label.capitalize())} oversubscription, down : up",
            fields[ratio.key].least, fields[ratio.key].most, ratio.value, 0.5,
            key=ratio.key, bind=ADDRESS, format="%.1f : 1",
            help="1 to 16; 1 : 1 is full bisection. What it becomes stands below.",
        )  # fmt: skip
        notes.append(st.empty())
    if not ratios:
        st.caption("This fabric has no switch tiers to oversubscribe; its links are what they are.")


def fabric_fields(fabric: Mapping[str, Any]) -> dict[str, Any]:
    """What the widgets of a fabric's document take, by key."""
    fields: dict[str, Field] = {
        ratio.key: Number(min(1.0, ratio.value), max(LARGEST_RATIO, ratio.value))
        for ratio in ratio_fields(fabric)
    }
    if "clos" in fabric:
        per_node, devices = fabric["clos"]["devices_per_node"], fabric["clos"]["devices"]
        fields[DEVICES] = Number(min(per_node, devices), max(LARGEST_CLOS, devices))
        fields[MEANING] = Choice(tuple(MEANINGS))
    return fields


def _names() -> tuple[str, ...]:
    return (*((OWN,) if own_document() is not None else ()), *preset_names("fabrics"))


def _lost_fabric() -> None:
    """Say that an address asks for a fabric of one's own that this session never had."""
    if own_document() is not None:
        st.session_state.pop(LOST, None)
    elif st.query_params.get("fabric") == OWN or st.query_params.get(KEPT):
        st.session_state[LOST] = True
    if st.session_state.get(LOST):
        st.info(
            f"{OWN}, as the link has it, is not in this studio's store, which may be another than "
            "where the link was made. What was exported can be imported again."
        )


def fabric_standards(fabric: Mapping[str, Any]) -> dict[str, Any]:
    """The value of every widget that stands for a fabric's document."""
    standards: dict[str, Any] = {field.key: field.value for field in ratio_fields(fabric)}
    if "clos" in fabric:
        standards[DEVICES] = fabric["clos"]["devices"]
        standards[MEANING] = fabric["clos"].get("oversubscribe", "remove_uplinks")
    return standards


def fabric_document(name: str) -> dict[str, Any]:
    """The document of a fabric preset, or of the person's own fabric."""
    if name == OWN:
        return forget_places(own_document() or {})
    return preset_document(name)


def reset_fabric() -> None:
    """Set the fabric widgets to what the chosen fabric says, for callbacks."""
    picked = said("fabric", Choice(_names()))
    if picked is None:
        return
    words = {value: word for word, value in MEANINGS.items()}
    for key, value in fabric_standards(fabric_document(picked)).items():
        st.session_state[key] = words[value] if key == MEANING else value
