"""The form of a scenario: widgets whose keys are the dotted keys of scenario files.

A form starts from a scenario preset and collects what differs from it, so that the page, the
address, ``--set`` and the downloaded file are the same thing.

What it asks for and cannot be is said in its labels, with buttons that mend it; what a fabric goes
with and the form does not have (another accelerator, a larger batch) is proposed.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import streamlit as st

from nest_core.calibration.acceptance.expected import accelerator_in
from nest_core.documents import InputError, as_markdown, format_ratio, preset_names, to_gib
from nest_core.documents.schema import StackFile, checked, fabric_key, in_labels, parameter
from nest_core.fabric import Fabric
from nest_core.fabric.files import COUNTED, fabric_settings, remedies
from nest_core.hardware import Stack, default_stack, load_accelerator, load_stack, stack_of_table
from nest_core.report.explain import accelerator_in_words, model_in_words, stack_in_words
from nest_core.scenario import Scenario, scenario_document
from nest_core.workload import NO_OFFLOAD, Offload, model_of, model_table
from nest_studio.components.show import facts
from nest_studio.form.fabric import (
    MEANING,
    MEANINGS,
    RATIOS,
    fabric_group,
    fabric_words,
    reset_fabric,
)
from nest_studio.form.fields import (
    DrawnForm,
    OneOf,
    PresetOrOwn,
    SomeOf,
    Text,
    Widget,
    field_of,
    fold,
    hold,
    widget,
    widget_value,
)
from nest_studio.form.model import (
    OWN_MODEL,
    chosen_model,
    own_controls,
    own_table,
    say_own_model,
)
from nest_studio.form.pinning import ANY, PINS, Pin
from nest_studio.session.history import history_buttons, remember_step
from nest_studio.session.own_fabric import (
    KEPT_AS,
    OWN,
    OWN_STACK,
    own_stack,
    own_stack_control,
    stack_name,
)
from nest_studio.session.training_run import RUN

__all__ = [
    "DEFAULT_SCENARIO",
    "FORM",
    "MEMORY",
    "NODE",
    "changes_in_words",
    "fit_device",
    "fit_sequence",
    "other_accelerator",
    "pinned_title",
    "say_refusal",
    "scaled_batch",
    "scenario_form",
    "scenario_heading",
    "start_over",
]

NODE = "fabric.clos.devices_per_node"
FEWER = 4
"""Times fewer tokens on a device than the preset's are worth a word."""


def other_accelerator(form: DrawnForm, fabric: Fabric, accelerator: str, place: Any) -> str:
    """Say where nodes are larger than an accelerator is sold in, and return one that is.

    Parameters
    ----------
    form : DrawnForm
        Below whose node size the sentence stands too.
    fabric : Fabric
    accelerator : str
        A preset.
    place : container

    Returns
    -------
    str
        The one that the fabric's name tells, if its scale-up domain holds such nodes, else the
        preset with the smallest that does; empty where there is none, or none is needed.
    """
    device, size = load_accelerator(accelerator), getattr(fabric, "devices_per_node", 0)
    most = device.scale_up_devices
    if not 0 < most < size:
        return ""
    words = f"Nodes of {size} devices: {device.name} is sold with at most {most} in one domain."
    for box in dict.fromkeys((place, form.boxes.get(NODE, place))):
        box.caption(f":orange[{as_markdown(words)}]")
    domains = (
        (load_accelerator(name).scale_up_devices, name) for name in preset_names("accelerators")
    )
    return min(
        (domain for domain in domains if domain[0] >= size),
        key=lambda domain: (domain[1] != accelerator_in(fabric.name), domain),
        default=(0, ""),
    )[1]


def scaled_batch(
    batch: int, sequence: int, devices: int, usual: tuple[int, int], place: Any
) -> int:
    """Say what a device has of a batch that did not grow with the fabric, and return one that did.

    Parameters
    ----------
    batch, sequence, devices : int
        Sequences, their tokens, and the devices that share them.
    usual : (int, int)
        Batch and devices of the preset.
    place : container

    Returns
    -------
    int
        0 where a device has as much as in the preset, but for less than `FEWER` times.
    """
    fitting = round(usual[0] * devices / usual[1])
    if batch * FEWER > fitting:
        return 0
    place.caption(
        f":orange[{batch * sequence / devices:,.0f} tokens a device, {batch / devices:.2g} "
        f"sequences: {devices / usual[1]:.3g} times the preset's devices, batch {batch:,}.]"
    )
    return fitting


DEFAULT_SCENARIO = "llama3-70b-1024-h100"
PRESET_BEFORE = "model preset before"
USUAL_STACK = "newest measured"
MEMORY = "accelerator.memory_GiB"

BATCH = "workload.global_batch_sequences"
_STEPS = {BATCH: 64, "workload.sequence_length_tokens": 1024}
"""Numbers of the workload, and by how much their buttons change them."""
_CHOICES = ("workload.precision", "workload.optimizer", "workload.attention")
_OF_MIXTURES = ("workload.dispatch", "workload.expert_overlap")
"""Drawn for mixtures of experts alone."""
_RULES = ("search.stage_strategies", "search.memory_rule")
_OFFLOADS: Mapping[str, Any] = {
    offload.spelled: offload.shares or "none"
    for offload in (
        NO_OFFLOAD,
        Offload(optimizer=0.5),
        Offload(optimizer=1.0),
        Offload(activations=0.5),
        Offload(activations=1.0),
        Offload(activations=1.0, optimizer=1.0),
    )
}
_ORDERS = {
    "both": None,
    "replicas of a stage side by side": ["tp", "cp", "dp", "pp"],
    "stages of a replica side by side": ["tp", "cp", "pp", "dp"],
}
_LISTS: Mapping[str, Widget] = {
    "search.zero_group": SomeOf(("all", *(2**n for n in range(1, 11)))),
    "search.offload": SomeOf(tuple(_OFFLOADS), meanings=_OFFLOADS),
    "search.schedule": SomeOf(parameter("search.schedule").options),
}
"""Of which the form chooses several."""
_NAMED = {
    "fabric": "fabric",
    "accelerator": "accelerator",
    "stack": "software stack",
    "workload.model": "model",
    "search.order": "placement",
}
_IN_TITLES = ("fabric", "accelerator", "workload.model", "workload.global_batch_sequences")


def _is_model(value: Mapping[str, Any]) -> bool:
    try:
        return bool(model_of(value))
    except InputError:
        return False


FORM: Mapping[str, Widget] = {
    "scenario": OneOf(preset_names("scenarios")),
    "workload.model": PresetOrOwn(
        (*preset_names("models"), OWN_MODEL),
        own_option=OWN_MODEL,
        table=lambda: model_table(chosen_model(OWN_MODEL)),
        is_one=_is_model,
    ),
    "accelerator": OneOf(preset_names("accelerators")),
    "stack": PresetOrOwn(
        (USUAL_STACK, *preset_names("stacks"), OWN_STACK),
        meanings={USUAL_STACK: None},
        own_option=OWN_STACK,
        table=own_stack,
        is_one=lambda table: stack_name(table) is not None,
    ),
    KEPT_AS: Text(),
    **{key: field_of(parameter(key)) for key in (MEMORY, *_STEPS, *_CHOICES, *_OF_MIXTURES)},
    **{key: field_of(parameter(key)) for key in _RULES},
    **{key: Pin(key, is_narrow=len(label) > 6) for key, label in PINS.items()},
    **_LISTS,
    "search.order": OneOf(tuple(_ORDERS), meanings=_ORDERS),
    **RUN,
}
"""The fields of the form but the fabric's, by key."""


def scenario_form() -> tuple[Scenario, DrawnForm]:
    """Draw the form and return what it asks for, and itself."""
    with st.container(horizontal=True, gap=None, key="form-head"):
        head = st.empty()
        history = st.container(key="form-history")  # filled last, when it is known what changed
    preset = widget(
        "scenario",
        FORM["scenario"],
        DEFAULT_SCENARIO,
        label="Scenario preset",
        on_change=start_over,
        label_visibility="collapsed",
        help="Where the form starts: choosing one sets all.",
    )
    document, _ = scenario_document(preset)
    form = DrawnForm(dict(FORM), _standards(document))
    with fold("Fabric", "fold-fabric", form=form) as summary:
        summary(fabric_words(fabric_group(form), form.values))
    proposed = st.container(gap=None, key="form-proposed")
    with fold("Workload", "fold-workload", form=form) as summary:
        _workload_group(form)
        tokens = form.values["workload.sequence_length_tokens"]
        summary(f"{tokens:,} tokens, {form.values['workload.precision']}")
    with fold("Limits", "fold-limits", form=form) as summary:
        _limits_group(form)
        summary(f"{form.values[MEMORY]:g} GiB")
    with fold("Pins", "fold-pins", opened=True, form=form) as summary:
        columns = st.columns(2, gap="small")
        for number, (key, label) in enumerate(PINS.items()):
            with columns[number % 2]:
                form.draw(
                    key,
                    parameter(key),
                    label=label,
                    bounds="any, up to n, exactly n, n or m, n to m.",
                )
        pinned = sum(form.values[key].startswith("exactly") for key in PINS)
        summary(f"{pinned} pinned" if pinned else "none")
    remember_step({key: form.values[key] for key in form.boxes}, ("scenario", KEPT_AS, *RUN))
    different = form.overrides
    count = f'<span class="nest-count">{len(different)} changed</span>'
    head.html(f'<div class="nest-title">{count if different else "Scenario"}</div>')
    with history:
        history_buttons(start_over)
    scenario = Scenario(document, different)
    with suppress(InputError), proposed:  # what is refused is said above the page
        _propose(form, scenario.fabric, Scenario(document).fabric.devices)
    return scenario, form


def _propose(form: DrawnForm, fabric: Fabric, usual_devices: int) -> None:
    """Draw one button for the accelerator and the batch that a fabric goes with."""
    batch, sequence = (form.values[key] for key in _STEPS)
    other = other_accelerator(form, fabric, form.values["accelerator"], st)
    scaled = scaled_batch(
        batch, sequence, fabric.devices, (form.standards[BATCH], usual_devices), st
    )
    if changes := {
        key: value for key, value in {"accelerator": other, BATCH: scaled}.items() if value
    }:
        words = ", ".join(filter(None, [other, f"batch {scaled:,}" if scaled else ""]))
        st.button(f"Use {words}", key="proposed", on_click=_take_up, args=(changes,))


def _take_up(changes: Mapping[str, Any]) -> None:
    st.session_state.update(changes)
    if "accelerator" in changes:
        fit_device()


def _workload_group(form: DrawnForm) -> None:
    """Draw the model, with the controls of one's own, and what it is trained with."""
    picked = form.draw(
        "workload.model",
        label="Model",
        on_change=fit_sequence,
        help=f"A preset, or {OWN_MODEL}: a config.json pasted or uploaded, or its sizes. One with "
        "learned positions limits the sequence length.",
    )
    if picked == OWN_MODEL:
        own_controls(
            own_table(st.session_state.setdefault(PRESET_BEFORE, form.standards["workload.model"])),
            fit_sequence,
        )
    else:
        st.session_state[PRESET_BEFORE] = picked
        say_own_model(shown=False)
    model = chosen_model(picked)
    words = model_in_words(model)
    st.caption(
        as_markdown(f"{model.name}: {words}" if picked == OWN_MODEL else words),
        help=as_markdown(model.source) or None,
    )
    for key, step in _STEPS.items():
        form.draw(key, parameter(key), step=step)
    for key in (*_CHOICES, *(_OF_MIXTURES if model.experts > 1 else ())):
        form.draw(key, parameter(key))


def _limits_group(form: DrawnForm) -> None:
    picked = form.draw(
        "accelerator",
        label="Accelerator",
        on_change=fit_device,
        help="Peak rates and memory; choosing one sets the memory below, and a precision that it "
        "has.",
    )
    accelerator = load_accelerator(picked)
    st.caption(
        as_markdown(accelerator_in_words(accelerator)), help=as_markdown(accelerator.source) or None
    )
    family = accelerator.family.name
    choice = form.draw(
        "stack",
        label="Software stack",
        help="Kernels, overlap and what they reach are those of runs that were measured under it; "
        "the newest with enough of them on the device, if none is chosen.",
    )
    stack = _stack(choice, family)
    st.caption(as_markdown(stack_in_words(stack, family)), help=as_markdown(stack.source))
    form.standards[MEMORY] = _memory(picked)
    form.draw(MEMORY, parameter(MEMORY), step=4, format="%.1f")
    for key in _LISTS:
        form.draw(key, parameter(key), bounds="What the plan may choose from.")
    form.draw(
        "search.order",
        label="Placement",
        help="Which ranks sit on neighbouring devices, tensor-parallel ranks always first.",
    )
    for key in _RULES:
        form.draw(key, parameter(key))


def _stack(choice: str, family: str) -> Stack:
    """Return the stack of a choice in the form; the usual one until a kept one is named."""
    if choice == OWN_STACK:
        own_stack_control()
        table = own_stack()
        return stack_of_table(checked(StackFile, table)) if table else default_stack(family)
    return default_stack(family) if choice == USUAL_STACK else load_stack(choice)


def changes_in_words(overrides: Mapping[str, Any]) -> str:
    """Return what differs from the preset, by the names of fields."""
    return ", ".join(_change(key, value) for key, value in overrides.items())


def _change(key: str, value: Any) -> str:
    words = (MEANINGS if key == MEANING else FORM.get(key, Text())).shown(value)
    if words:
        (value,) = words
    elif isinstance(value, Mapping):
        value = {"fabric": OWN, "workload.model": OWN_MODEL, "stack": OWN_STACK}.get(key, value)
    if key in COUNTED:
        return f"{len(value['shape'] if isinstance(value, Mapping) else value)} {COUNTED[key]}"
    if key == RATIOS:
        return f"oversubscription {' and '.join(map(format_ratio, value))}"
    if isinstance(value, list):
        value = " or ".join(map(str, value))
    text = f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, int) and not isinstance(value, bool):
        text = f"{value:,}"
    if re.fullmatch(r"fabric\..*oversubscription(\.\d)?", key):
        tier = int(key.rpartition(".")[2]) if key[-1].isdigit() else 0
        return f"oversubscription{f' of tier {tier + 1}' if tier else ''} {text}:1"
    if key.startswith("fabric."):
        text = text.replace("_", "-")
    name = PINS.get(key) or _NAMED.get(key)
    with suppress(KeyError):  # a link may name others too, which are called as there
        name = name or parameter(key).label
    return f"{name or key} {text}"


def scenario_heading(title: str, overrides: Mapping[str, Any]) -> None:
    """Draw what is asked, and what in it is not as in the preset."""
    words = changes_in_words(overrides)
    facts(title, kind="nest-scenario")
    facts(f"Changed: {words}" if words else "As in the preset.", kind="nest-quiet")


def pinned_title(title: str, overrides: Mapping[str, Any]) -> str:
    """Return a scenario's title with the changes that it does not say by itself."""
    more = {key: value for key, value in overrides.items() if not key.startswith(_IN_TITLES)}
    return f"{title}; {changes_in_words(more)}" if more else title


def _memory(accelerator: str) -> float:
    return to_gib(load_accelerator(accelerator).memory_bytes)


def _standards(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what every widget has that stands for a preset's document."""
    standards = {"fabric": document["fabric"], MEMORY: _memory(document["accelerator"])}
    for key, takes in FORM.items():
        if key not in standards and key not in (KEPT_AS, "scenario", *RUN):
            given = Scenario(document).setting(key)
            value = parameter(key).default if given is None and key != "search.order" else given
            (standards[key],) = takes.shown(value) or (ANY,)
    return standards


# A widget keeps its value when only its default changes, so these write the new defaults. What was
# never offered they leave alone: Streamlit puts its standard back when it draws the widget.


def start_over() -> None:
    """Set the form to its scenario preset, for callbacks."""
    preset = _value("scenario")
    if preset is not None:
        st.session_state.update(_standards(scenario_document(preset)[0]))
        reset_fabric()


def fit_device() -> None:
    """Follow the accelerator with its memory, stack and a precision, for callbacks."""
    picked = _value("accelerator")
    if picked is None:
        return
    st.session_state["stack"] = USUAL_STACK
    st.session_state[MEMORY] = _memory(picked)
    computes_in = load_accelerator(picked).precisions
    if _value("workload.precision") not in computes_in:
        st.session_state["workload.precision"] = next(
            name for name in parameter("workload.precision").options if name in computes_in
        )


def fit_sequence() -> None:
    """Shorten the sequence to what the model takes, for callbacks."""
    picked = _value("workload.model")
    if picked is None:
        return
    if picked == OWN_MODEL:
        own_table(st.session_state[PRESET_BEFORE])
    positions = chosen_model(picked).positions
    if positions and (_value("workload.sequence_length_tokens") or 0) > positions:
        st.session_state["workload.sequence_length_tokens"] = positions


def _value(key: str) -> Any:
    return widget_value(key, FORM[key])


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
