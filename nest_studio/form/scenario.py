"""The form of a scenario: widgets whose keys are the dotted keys of scenario files.

A form starts from a scenario preset and collects what differs from it, so that the page, the
address, ``--set`` and the downloaded file are the same thing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import streamlit as st

from nest_core.documents.presets import load_toml, named_file, preset_names
from nest_core.documents.quoting import as_markdown
from nest_core.documents.schema import StackFile, checked, parameter
from nest_core.explain.summary import accelerator_in_words, model_in_words
from nest_core.explain.validity import stack_in_words
from nest_core.hardware import load_accelerator
from nest_core.hardware.stacks import Stack, default_stack, load_stack, stack_of_table
from nest_core.planner.baselines import NAMES as BASELINES
from nest_core.scenario import Scenario, scenario_document
from nest_core.workload.model_files import model_table
from nest_core.workload.offload import NO_OFFLOAD, Offload
from nest_studio.components.show import facts
from nest_studio.form.fabric import (
    MEANING,
    MEANINGS,
    fabric_document,
    fabric_group,
    fabric_standards,
    fabric_words,
    reset_fabric,
)
from nest_studio.form.fields import (
    ADDRESS,
    Choice,
    Field,
    Number,
    Several,
    Text,
    choice_of,
    field_of,
    help_of,
    label_of,
    number_of,
    said,
    settle,
)
from nest_studio.form.folds import fold, put_back
from nest_studio.form.model import (
    OWN_MODEL,
    chosen_model,
    own_controls,
    own_table,
    set_own_model_aside,
)
from nest_studio.form.pinning import ANY, PINS, Pin, pin_field, pin_words, pinned_value
from nest_studio.session.history import history_buttons, remember
from nest_studio.session.own_fabric import OWN
from nest_studio.session.own_stack import KEPT_AS, OWN_STACK, own_stack, own_stack_control

__all__ = [
    "DEFAULT_SCENARIO",
    "FORM",
    "changes_in_words",
    "fit_device",
    "fit_sequence",
    "offloads_in_words",
    "pinned_title",
    "scenario_form",
    "scenario_heading",
    "start_over",
    "use_memory",
]

DEFAULT_SCENARIO = "llama3-70b-1024-h100"
PRESET_BEFORE = "model preset before"
USUAL_STACK = "newest measured"

_NUMBERS = (
    "workload.global_batch_sequences",
    "workload.sequence_length_tokens",
    "accelerator.memory_GiB",
)
_CHOICES = (
    "workload.precision",
    "workload.optimizer",
    "workload.attention",
    "search.stage_strategies",
    "search.memory_rule",
)
_OF_MIXTURES = ("workload.dispatch", "workload.expert_overlap")
"""Drawn for mixtures of experts alone."""
OFFLOADS: Mapping[str, Any] = {
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
"""What the form offers, in a word and as a file has it."""
_LISTS: Mapping[str, tuple[Any, ...]] = {
    "search.zero_group": ("all", *(2**n for n in range(1, 11))),
    "search.offload": tuple(OFFLOADS),
    "search.schedule": parameter("search.schedule").options,
}
"""Of which the form chooses several, and what there is to choose."""
RUN: Mapping[str, Field] = {
    "run.tokens_T": Number(1e-6, 1e6, empty=True),
    "run.usd_per_gpu_hour": Number(0.01, 1000.0, empty=True),
    "run.reference": Choice(tuple(BASELINES)[1:]),
}
"""Of a training run: no part of the scenario, but kept beside it in the address."""
_OWN = {"fabric": OWN, "workload.model": OWN_MODEL, "stack": OWN_STACK}
_NAMED = {
    "fabric": "fabric",
    "accelerator": "accelerator",
    "stack": "software stack",
    "workload.model": "model",
    "search.order": "placement",
}
_IN_TITLES = ("fabric", "accelerator", "workload.model", "workload.global_batch_sequences")
ORDERS = {
    "both": None,
    "replicas of a stage side by side": ["tp", "cp", "dp", "pp"],
    "stages of a replica side by side": ["tp", "cp", "pp", "dp"],
}


FORM: Mapping[str, Field] = {
    "scenario": Choice(preset_names("scenarios")),
    "workload.model": Choice((*preset_names("models"), OWN_MODEL)),
    "accelerator": Choice(preset_names("accelerators")),
    "stack": Choice((USUAL_STACK, *preset_names("stacks"), OWN_STACK)),
    KEPT_AS: Text(),
    **{key: field_of(parameter(key)) for key in (*_NUMBERS, *_CHOICES, *_OF_MIXTURES)},
    **{key: Pin(key) for key in PINS},
    **{key: Several(options) for key, options in _LISTS.items()},
    "search.order": Choice(tuple(ORDERS)),
    **RUN,
}
"""The fields of the form but the fabric's, by key."""


def scenario_form(ratio_notes: list[Any]) -> Scenario:
    """Draw the form and return what it asks for.

    Parameters
    ----------
    ratio_notes : list
        Receives one empty slot per oversubscription slider, for what the ratio becomes.
    """
    with st.container(horizontal=True, gap=None, key="form-head"):
        head = st.empty()
        history = st.container(key="form-history")  # filled last, when it is known what changed
    for key, each in FORM.items():
        if key not in PINS:  # a pin says what it could not read
            settle(key, each)
    names = preset_names("scenarios")
    scenario = st.selectbox(
        "Scenario preset",
        names,
        index=names.index(DEFAULT_SCENARIO),
        key="scenario",
        bind=ADDRESS,
        on_change=start_over,
        label_visibility="collapsed",
        help="Where the form starts: choosing one sets all.",
    )
    document, _ = scenario_document(scenario)
    standard = _standards(document)
    chosen: dict[str, Any] = {}
    with fold("Fabric", "fold-fabric") as summary:
        fabric_group(chosen, standard, ratio_notes)
        summary(fabric_words(chosen))
    with fold("Workload", "fold-workload") as summary:
        _workload_group(chosen, standard)
        tokens = chosen["workload.sequence_length_tokens"]
        summary(f"{tokens:,} tokens, {chosen['workload.precision']}")
    with fold("Limits", "fold-limits") as summary:
        _limits_group(chosen, standard)
        summary(f"{chosen['accelerator.memory_GiB']:g} GiB")
    with fold("Pins", "fold-pins", opened=True) as summary:
        _pins_group(chosen, standard)
        held = sum(chosen[key].startswith("exactly") for key in PINS)
        summary(f"{held} pinned" if held else "none")
    fabric = chosen["fabric"]
    standard |= fabric_standards(fabric_document(fabric))
    if chosen["accelerator"] != standard["accelerator"]:
        standard["accelerator.memory_GiB"] = _memory(chosen["accelerator"])
    different = {key: value for key, value in chosen.items() if value != standard[key]}
    if fabric == OWN:
        different["fabric"] = fabric_document(OWN)
    if chosen["stack"] == OWN_STACK:
        different["stack"] = own_stack() or USUAL_STACK
        if different["stack"] == standard["stack"]:
            del different["stack"]
    if chosen["workload.model"] == OWN_MODEL:
        different["workload.model"] = model_table(chosen_model(OWN_MODEL))
    remember(("scenario", *chosen, KEPT_AS, *RUN))
    count = len(different)
    said = f'<span class="nest-count">{count} changed</span>' if count else "Scenario"
    head.html(f'<div class="nest-title">{said}</div>')
    with history:
        history_buttons(start_over)
    return Scenario(document, _overrides(different))


def _workload_group(chosen: dict[str, Any], standard: Mapping[str, Any]) -> None:
    with put_back("workload.model", standard, fit_sequence):
        chosen["workload.model"] = _model(standard)
    _number("workload.global_batch_sequences", 64, chosen, standard)
    _number("workload.sequence_length_tokens", 1024, chosen, standard)
    for key in ("workload.precision", "workload.optimizer", "workload.attention"):
        _pick(key, chosen, standard)
    if chosen_model(chosen["workload.model"]).experts > 1:
        dispatch, overlap = map(parameter, _OF_MIXTURES)
        _pick(dispatch.key, chosen, standard)
        with put_back(overlap.key, standard):
            chosen[overlap.key] = st.checkbox(
                label_of(overlap),
                standard[overlap.key],
                key=overlap.key,
                bind=ADDRESS,
                help=help_of(overlap),
            )


def _model(standard: Mapping[str, Any]) -> str:
    """The model's choice, with the controls of a model of one's own."""
    picked: str = _choice(
        "Model",
        (*preset_names("models"), OWN_MODEL),
        "workload.model",
        standard,
        f"A preset, or {OWN_MODEL}: a config.json pasted or uploaded, or its sizes. One with "
        "learned positions limits the sequence length.",
        on_change=fit_sequence,
    )
    if picked == OWN_MODEL:
        before = st.session_state.setdefault(PRESET_BEFORE, standard["workload.model"])
        own_controls(own_table(before), fit_sequence)
    else:
        st.session_state[PRESET_BEFORE] = picked
        set_own_model_aside()
    model = chosen_model(picked)
    words = model_in_words(model)
    st.caption(
        as_markdown(f"{model.name}: {words}" if picked == OWN_MODEL else words),
        help=as_markdown(model.source) or None,
    )
    return picked


def _limits_group(chosen: dict[str, Any], standard: Mapping[str, Any]) -> None:
    with put_back("accelerator", standard, fit_device):
        chosen["accelerator"] = _choice(
            "Accelerator",
            preset_names("accelerators"),
            "accelerator",
            standard,
            "Peak rates and memory; choosing one sets the memory below, and a precision that it "
            "has.",
            on_change=fit_device,
        )
    accelerator = load_accelerator(chosen["accelerator"])
    st.caption(
        as_markdown(accelerator_in_words(accelerator)), help=as_markdown(accelerator.source) or None
    )
    family = accelerator.family.name
    with put_back("stack", standard):
        chosen["stack"] = _choice(
            "Software stack",
            (USUAL_STACK, *preset_names("stacks"), OWN_STACK),
            "stack",
            standard,
            "Kernels, overlap and what they reach are those of runs that were measured under it; "
            "the newest with enough of them on the device, if none is chosen.",
        )
    stack = _stack(chosen["stack"], family)
    st.caption(as_markdown(stack_in_words(stack, family)), help=as_markdown(stack.source))
    memory = {"accelerator.memory_GiB": _memory(chosen["accelerator"])}
    _number("accelerator.memory_GiB", 4, chosen, memory, format="%.1f")
    for key, options in _LISTS.items():
        of = parameter(key)
        with put_back(key, standard):
            picked = st.multiselect(
                label_of(of),
                options,
                standard[key],
                key=key,
                bind=ADDRESS,
                help=f"What the plan may choose from. {help_of(of)}",
            )
        chosen[key] = [option for option in options if option in picked]
    with put_back("search.order", standard):
        chosen["search.order"] = _choice(
            "Placement",
            tuple(ORDERS),
            "search.order",
            standard,
            "Which ranks sit on neighbouring devices, tensor-parallel ranks always first.",
        )
    for key in ("search.stage_strategies", "search.memory_rule"):
        _pick(key, chosen, standard)


def _pins_group(chosen: dict[str, Any], standard: Mapping[str, Any]) -> None:
    columns = st.columns(2, gap="small")
    for number, key in enumerate(PINS):
        with columns[number % 2], put_back(key, standard):
            chosen[key] = pin_field(key, standard[key])


def _pick(key: str, chosen: dict[str, Any], standard: Mapping[str, Any]) -> None:
    with put_back(key, standard):
        chosen[key] = choice_of(parameter(key), standard[key])


def _stack(choice: str, family: str) -> Stack:
    """The stack of a choice in the form; the usual one until a kept one is named."""
    if choice == OWN_STACK:
        own_stack_control()
        table = own_stack()
        return stack_of_table(checked(StackFile, table)) if table else default_stack(family)
    return default_stack(family) if choice == USUAL_STACK else load_stack(choice)


def _number(
    key: str, step: float, chosen: dict[str, Any], standard: Mapping[str, Any], **look: Any
) -> None:
    with put_back(key, standard):
        chosen[key] = number_of(parameter(key), standard[key], step, **look)


def _choice(
    label: str,
    options: tuple[Any, ...],
    key: str,
    standard: Mapping[str, Any],
    text: str,
    on_change: Any = None,
) -> Any:
    return st.selectbox(
        label,
        options,
        index=options.index(standard[key]),
        key=key,
        bind=ADDRESS,
        help=text,
        **({"on_change": on_change} if on_change else {}),
    )


def changes_in_words(overrides: Mapping[str, Any]) -> str:
    """What differs from the preset, by the names of fields; of a fabric or model, that it is so."""
    return ", ".join(_change(key, value) for key, value in overrides.items())


def _change(key: str, value: Any) -> str:
    if key in PINS:
        return f"{PINS[key]} {pin_words(key, value) or value}"
    if isinstance(value, Mapping):
        value = _OWN.get(key, value)
    if isinstance(value, list):
        value = " or ".join(map(str, value))
    if key == MEANING:
        value = next((words for words, meant in MEANINGS.items() if meant == value), value)
    shown = f"{value:g}" if isinstance(value, float) else value
    if isinstance(value, int) and not isinstance(value, bool):
        shown = f"{value:,}"
    if re.fullmatch(r"fabric\..*oversubscription(\.\d)?", key):
        tier = int(key.rpartition(".")[2]) if key[-1].isdigit() else 0
        return f"oversubscription{f' of tier {tier + 1}' if tier else ''} {shown}:1"
    return f"{_NAMED.get(key) or _label(key)} {shown}"


def _label(key: str) -> str:
    """A parameter's; what no scenario has, a link may say too, and is called as there."""
    try:
        return parameter(key).label or key
    except KeyError:
        return key


def scenario_heading(title: str, overrides: Mapping[str, Any]) -> None:
    """What is asked, and what in it is not as in the preset."""
    changes = changes_in_words(overrides)
    facts(title, kind="nest-scenario")
    facts(f"Changed: {changes}" if changes else "As in the preset.", kind="nest-quiet")


def pinned_title(title: str, overrides: Mapping[str, Any]) -> str:
    """A scenario's title with the changes that it does not say by itself."""
    more = {key: value for key, value in overrides.items() if not key.startswith(_IN_TITLES)}
    return f"{title}; {changes_in_words(more)}" if more else title


def _accelerator(name: str) -> dict[str, Any]:
    return load_toml(named_file("accelerators", name, None, field="accelerator"))


def _memory(accelerator: str) -> float:
    return float(_accelerator(accelerator)["memory_GiB"])


def _standards(document: Mapping[str, Any]) -> dict[str, Any]:
    """The value of every widget that stands for a preset's document."""
    work = document["workload"]
    return {
        "fabric": document["fabric"],
        "accelerator": document["accelerator"],
        "stack": document.get("stack", USUAL_STACK),
        "accelerator.memory_GiB": _memory(document["accelerator"]),
        "workload.model": work["model"],
        **{key: _given(document, key) for key in (*_NUMBERS[:2], *_CHOICES, *_OF_MIXTURES)},
        **{key: pin_words(key, _given(document, key)) or ANY for key in PINS},
        **{key: _several(_given(document, key), options) for key, options in _LISTS.items()},
        "search.offload": offloads_in_words(_given(document, "search.offload")),
        "search.order": "both",
    }


def _several(value: Any, options: tuple[Any, ...]) -> list[Any]:
    """What a document lists, or pins; where it says nothing, all."""
    if value is None:
        return list(options)
    return list(value) if isinstance(value, list) else [value]


def offloads_in_words(value: Any) -> list[str | None]:
    """What a document lists, or pins, in the form's words; None where it has none."""
    return [
        next((word for word, table in OFFLOADS.items() if table == one), None)
        for one in _several(value, ())
    ]


def _given(document: Mapping[str, Any], key: str) -> Any:
    """What a document says under a key of one of its tables, else the file's default."""
    table, _, name = key.partition(".")
    return document.get(table, {}).get(name, parameter(key).default)


def _overrides(different: Mapping[str, Any]) -> dict[str, Any]:
    """Widget values that differ as overrides of a scenario document."""
    overrides = dict(different)
    for key in PINS:
        if key in different:
            value = pinned_value(key, different[key])
            overrides[key] = _free(key) if value is None else value
    if overrides.get("stack") == USUAL_STACK:
        overrides["stack"] = None
    if "search.order" in overrides:
        overrides["search.order"] = ORDERS[overrides["search.order"]]
    if "search.offload" in overrides:
        overrides["search.offload"] = [OFFLOADS[word] for word in overrides["search.offload"]]
    return overrides


def _free(key: str) -> Any:
    """What says that an axis is free where the preset holds it."""
    options = parameter(key).options
    return list(options) if key in ("search.zero", "search.recompute") else {"min": 1}


# A widget keeps its value when only its default changes, so these write the new defaults. What was
# never offered they leave alone: Streamlit puts its standard back when it draws the widget.


def start_over() -> None:
    """Set the form to its scenario preset, for callbacks."""
    scenario = _said("scenario")
    if scenario is None:
        return
    document, _ = scenario_document(scenario)
    for key, value in _standards(document).items():
        st.session_state[key] = value
    reset_fabric()


def fit_device() -> None:
    """Follow the accelerator with its memory, stack and a precision, for callbacks."""
    picked = _said("accelerator")
    if picked is None:
        return
    st.session_state["stack"] = USUAL_STACK
    accelerator = _accelerator(picked)
    use_memory(float(accelerator["memory_GiB"]))
    computes_in = accelerator["peak_TFLOPs"]
    if _said("workload.precision") not in computes_in:
        st.session_state["workload.precision"] = next(
            name for name in parameter("workload.precision").options if name in computes_in
        )


def fit_sequence() -> None:
    """Shorten the sequence to what the model takes, for callbacks."""
    picked = _said("workload.model")
    if picked is None:
        return
    if picked == OWN_MODEL:
        own_table(st.session_state[PRESET_BEFORE])
    positions = chosen_model(picked).positions
    if positions and (_said("workload.sequence_length_tokens") or 0) > positions:
        st.session_state["workload.sequence_length_tokens"] = positions


def _said(key: str) -> Any:
    return said(key, FORM[key])


def use_memory(gib: float) -> None:
    """Set the memory per device, for a button's callback."""
    st.session_state["accelerator.memory_GiB"] = gib
