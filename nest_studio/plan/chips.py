"""The line of chips below a plan's title: what is planned, each part one click from its field.

An open chip has copies of fields of the form. A copy is set to what the form has before it is
drawn, and hands on what a person makes of it, so there is one state and the address says it once.
"""

from collections.abc import Callable
from typing import Any

import streamlit as st

from nest_core.documents.schema import parameter
from nest_core.documents.text import as_markdown
from nest_core.scenario import ScenarioValues
from nest_core.studies.parameters import ratio_parameters
from nest_studio.form import (
    DEVICES,
    FORM,
    Number,
    OneOf,
    Widget,
    fabric_choices,
    fabric_document,
    fabric_fields,
    fit_device,
    fit_sequence,
    hold,
    label_of,
    pick_fabric,
    widget,
    widget_value,
)
from nest_studio.session.history import form_value

__all__ = ["chips"]


def chips(scenario: ScenarioValues) -> None:
    """Draw model, devices, fabric with its ratio, and batch."""
    fabric = scenario.fabric
    accelerator = scenario.accelerator.name.split(" SXM")[0].split(" PCIe")[0]
    for name, text, draw in (
        ("Model", as_markdown(scenario.model.name), _model),
        ("Devices", f"{fabric.devices:,} {as_markdown(accelerator)}", _devices),
        ("Fabric", as_markdown(fabric.arrangement()), _fabric),
        ("Batch", f"{scenario.batch:,} × {scenario.sequence:,} tokens", _batch),
    ):
        label, key = f":gray[:small[{name}]] {text}", f"chip-{name.lower()}"
        with st.popover(label, key=key, on_change="rerun") as chip:
            if chip.open:
                draw()


def _model() -> None:
    _copy("workload.model", "Model", FORM["workload.model"], fit_sequence)


def _devices() -> None:
    _copy("accelerator", "Accelerator", FORM["accelerator"], fit_device)
    fields = fabric_fields(fabric_document(form_value("fabric")))
    if DEVICES in fields:
        _copy(DEVICES, "Size, devices", fields[DEVICES], step=8)


def _fabric() -> None:
    _copy("fabric", "Fabric", OneOf(fabric_choices()), pick_fabric)
    fabric = fabric_document(form_value("fabric"))
    for ratio in ratio_parameters(fabric):
        _copy(ratio.key, label_of(ratio), fabric_fields(fabric)[ratio.key], step=0.5)


def _batch() -> None:
    for key, step in (
        ("workload.global_batch_sequences", 64),
        ("workload.sequence_length_tokens", 1024),
    ):
        _copy(key, label_of(parameter(key)), FORM[key], step=step)


def _copy(
    key: str, label: str, takes: Widget, then: Callable[[], None] | None = None, **look: Any
) -> None:
    """Draw a copy of a field, which has what the form has."""
    if (value := form_value(key)) is None:  # a tier that the form has taken away
        return
    st.session_state[copy := f"chip {key}"] = value
    bounds = f"{takes.low:,g} to {takes.high:,g}. " if isinstance(takes, Number) else ""
    widget(
        copy,
        takes,
        value,
        label=as_markdown(label),
        bind=None,
        on_change=_hand_on,
        args=(key, takes, then),
        help=f"{bounds}The same field as in the form at the left.",
        **look,
    )


def _hand_on(key: str, takes: Widget, then: Callable[[], None] | None) -> None:
    if (value := widget_value(f"chip {key}", takes)) is not None:
        hold(key, value, then)
