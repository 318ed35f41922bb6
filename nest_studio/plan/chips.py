"""The line of chips below a plan's title: what is planned, each part one click from its field.

A chip holds copies of fields of the form. A copy is set to what the form holds before it is drawn,
and hands on what a person makes of it, so there is one state and the address says it once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from nest_core.documents.quoting import as_markdown
from nest_core.documents.schema import parameter
from nest_core.scenario import ScenarioValues
from nest_core.studies.parameters import ratio_parameters
from nest_studio.form.fabric import (
    DEVICES,
    fabric_choices,
    fabric_document,
    fabric_fields,
    pick_fabric,
)
from nest_studio.form.fields import Choice, Field, Number, label_of, said
from nest_studio.form.scenario import FORM, fit_device, fit_sequence

__all__ = ["chips"]


def chips(scenario: ScenarioValues) -> None:
    """Model, devices, fabric with its ratio, and batch."""
    fabric = scenario.fabric
    with st.popover(f"{_quiet('Model')} {as_markdown(scenario.model.name)}", key="chip-model"):
        _select("workload.model", "Model", FORM["workload.model"], fit_sequence)
    called = _short(scenario.accelerator.name)
    with st.popover(
        f"{_quiet('Devices')} {fabric.devices:,} {as_markdown(called)}", key="chip-devices"
    ):
        _select("accelerator", "Accelerator", FORM["accelerator"], fit_device)
        fields = fabric_fields(fabric_document(st.session_state["fabric"]))
        if DEVICES in fields:
            _number(DEVICES, "Size, devices", fields[DEVICES], 8)
    with st.popover(f"{_quiet('Fabric')} {as_markdown(fabric.arrangement())}", key="chip-fabric"):
        _select("fabric", "Fabric", Choice(fabric_choices()), pick_fabric)
        for ratio in ratio_parameters(fabric_document(st.session_state["fabric"])):
            _number(ratio.key, label_of(ratio), fields[ratio.key], 0.5)
    tokens = f"{scenario.batch:,} × {scenario.sequence:,} tokens"
    with st.popover(f"{_quiet('Batch')} {tokens}", key="chip-batch"):
        for key, step in (
            ("workload.global_batch_sequences", 64),
            ("workload.sequence_length_tokens", 1024),
        ):
            _number(key, label_of(parameter(key)), FORM[key], step)


def _quiet(word: str) -> str:
    return f":gray[:small[{word}]]"


def _short(name: str) -> str:
    """``H100`` of ``H100 SXM 80 GB``."""
    return name.split(" SXM")[0].split(" PCIe")[0]


def _copied(key: str) -> str:
    """The copy's key, which holds what the form does."""
    copy = f"chip {key}"
    st.session_state[copy] = st.session_state[key]
    return copy


def _hand_on(key: str, field: Field, then: Callable[[], None] | None) -> None:
    value = said(f"chip {key}", field)
    if value is None:
        return
    st.session_state[key] = value
    if then is not None:
        then()


def _select(key: str, label: str, field: Field, then: Callable[[], None]) -> None:
    if key not in st.session_state or not isinstance(field, Choice):
        return
    st.selectbox(
        label,
        field.options,
        key=_copied(key),
        on_change=_hand_on,
        args=(key, field, then),
        help="The same field as in the form at the left.",
    )


def _number(key: str, label: str, field: Field, step: float) -> None:
    if not isinstance(field, Number) or key not in st.session_state:
        return
    kind: Any = type(field.least)
    st.number_input(
        as_markdown(label),
        field.least,
        field.most,
        step=kind(step),
        key=_copied(key),
        on_change=_hand_on,
        args=(key, field, None),
        help=f"{field.least:,g} to {field.most:,g}. The same field as in the form at the left.",
    )
