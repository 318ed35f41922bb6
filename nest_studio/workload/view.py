"""The parts of the workload page: its form, what it asks of the core, and the answer."""

import json
from collections import Counter
from dataclasses import asdict
from functools import partial
from operator import attrgetter
from typing import Any

import streamlit as st

from nest_core.api.layer import LayerRequest, layer, layer_job
from nest_core.costs.anatomy import Anatomy
from nest_core.costs.exchange_times import ExchangeTime, exchange_times
from nest_core.documents import InputError, as_markdown, edition, preset_names
from nest_core.documents.schema import parameter
from nest_core.hardware import load_accelerator
from nest_core.report.explain.layer_summary import (
    LAYER_WORDS,
    exchange_finding,
    exchange_rows,
    kept_finding,
    layer_headlines,
    layer_in_words,
    operator_rows,
)
from nest_core.report.explain.summary import accelerator_in_words, model_in_words
from nest_core.report.figures import Chart
from nest_core.report.figures.operators import graph_figure
from nest_core.report.figures.roofline import roofline_figure
from nest_core.report.notebook import PinOutput, table_output
from nest_core.report.tables import Table
from nest_core.scenario import Scenario
from nest_core.workload import Model, load_model, model_table
from nest_studio.components.show import facts, headline_row, show_picture
from nest_studio.form import (
    OWN_MODEL,
    Number,
    OneOf,
    Widget,
    chosen_model,
    field_of,
    follow_own_model,
    parameter_field,
    say_own_model,
    widget,
    widget_value,
)
from nest_studio.notebook.pins import pin_button
from nest_studio.plan.state import answer_of, plan_page, planned_scenario

__all__ = [
    "LayerRequest",
    "heading",
    "layer_form",
    "layers_of",
    "operators_view",
    "standard",
    "times_of",
]

KEPT = 16
TAKEN = "plan that the layer is from"

# What the page shows to a visitor who has planned nothing; the address leaves these out.
STANDARD: dict[str, Any] = {
    "layer.model": "llama3-70b",
    "layer.kind": LAYER_WORDS["block"],
    "layer.tp": 8,
    "layer.sp": True,
    "layer.cp": 1,
    "layer.ep": 1,
    "layer.micro_batch_sequences": 1,
    "layer.recompute": "none",
    "layer.accelerator": "h100-80gb",
    "layer.sequence_length_tokens": 8192,
    "layer.precision": "bf16",
    "layer.attention": "flash",
    "layer.context": "ring",
    "layer.expert_tensor": True,
    "layer.imbalance": 1.0,
    "layer.capacity": 0.0,
}
_CATALOGUE = {
    f"layer.{key.partition('.')[2]}": parameter(key)
    for key in (
        "search.tp",
        "search.sp",
        "search.cp",
        "search.ep",
        "search.micro_batch_sequences",
        "search.recompute",
        "workload.sequence_length_tokens",
        "workload.precision",
        "workload.attention",
        "workload.context",
        "workload.expert_tensor",
        "workload.imbalance",
        "workload.capacity",
    )
}
"""What widgets set, by their keys; bounds are those of scenario files, so that every plan can be
taken over."""
FIELDS: dict[str, Widget] = {
    "layer.model": OneOf((*preset_names("models"), OWN_MODEL)),
    "layer.accelerator": OneOf(preset_names("accelerators")),
    **{key: field_of(of) for key, of in _CATALOGUE.items()},
}
# As the themes of the configuration have it.
INKS = {"light": "#1B1F24", "dark": "#E4E7EA"}
KINDS = {words: kind for kind, words in LAYER_WORDS.items()}


_cached = st.cache_resource(
    max_entries=KEPT,
    show_spinner=False,
    hash_funcs={
        # Another one once a preset has changed.
        LayerRequest: lambda request: json.dumps([asdict(request), edition()], sort_keys=True),
        Scenario: attrgetter("key"),
    },
)


@_cached
def layers_of(request: LayerRequest) -> tuple[Anatomy, Anatomy]:
    """The layer on one device and on a rank of the strategy; InputError where there is none."""
    return layer(request)


@_cached
def times_of(request: LayerRequest, scenario: Scenario) -> tuple[str, tuple[ExchangeTime, ...]]:
    """Return a fabric's name, and what the layer's collectives take on it.

    Parameters
    ----------
    request : LayerRequest
    scenario : Scenario
        Whose fabric it is.

    Raises
    ------
    InputError
        Where the fabric has no room for the layer's ranks.
    """
    fabric = scenario.values.fabric
    return fabric.name, exchange_times(layer_job(request).problem_on(fabric), layers_of(request)[1])


@_cached
def _pictures_of(request: LayerRequest, ink: str) -> tuple[Chart, Chart]:
    before, after = layers_of(request)
    return graph_figure(before, after, ink), roofline_figure(after)


def standard() -> LayerRequest:
    """Return what the form asks for before anything is changed."""
    get = {key.removeprefix("layer."): value for key, value in STANDARD.items()}
    return LayerRequest(
        model=model_table(load_model(get["model"])),
        accelerator=get["accelerator"],
        kind=KINDS[get["kind"]],
        precision=get["precision"],
        attention=get["attention"],
        sequence=get["sequence_length_tokens"],
        micro_batch=get["micro_batch_sequences"],
        tp=get["tp"],
        sp=get["sp"],
        cp=get["cp"],
        ep=get["ep"],
        recompute=get["recompute"],
    )


def layer_form() -> LayerRequest:
    """Draw the form and return the layer and the strategy that it asks for."""
    _start_from_plan()
    st.subheader("Layer")
    picked = widget(
        "layer.model",
        OneOf((*preset_names("models"), *((OWN_MODEL,) if follow_own_model() else ()))),
        STANDARD["layer.model"],
        label="Model",
        on_change=_fit_model,
        help="A preset, or the model of one's own that the Plan page read.",
    )
    say_own_model(shown=picked == OWN_MODEL)
    model = chosen_model(picked)
    st.caption(as_markdown(model_in_words(model)), help=as_markdown(model.source) or None)
    kinds = [LAYER_WORDS[kind] for kind in model.kinds]
    if st.session_state.get("layer.kind") not in (None, *kinds):
        st.session_state["layer.kind"] = _usual(model)
    kind = widget(
        "layer.kind",
        OneOf(kinds),
        _usual(model),
        label="Layer",
        help="Distinct layers of the model; all blocks of a kind are alike.",
    )
    st.subheader("Strategy")
    degrees = {
        "tp": _field("tp"),
        "sp": _field("sp"),
        "cp": _field("cp"),
        "ep": _field("ep") if model.experts > 1 else 1,
        "micro_batch": _field("micro_batch_sequences"),
    }
    recompute = _field("recompute")
    with st.expander("Device, sequence, precision"):
        rest = _rest(model)
    return LayerRequest(
        model=model_table(model), kind=KINDS[kind], recompute=recompute, **degrees, **rest
    )


def _field(name: str, step: float = 1) -> Any:
    key = f"layer.{name}"
    look: dict[str, Any] = {"step": step} if isinstance(FIELDS[key], Number) else {}
    return parameter_field(_CATALOGUE[key], STANDARD[key], key=key, **look)


def _rest(model: Model) -> dict[str, Any]:
    accelerator = widget(
        "layer.accelerator",
        FIELDS["layer.accelerator"],
        STANDARD["layer.accelerator"],
        label="Accelerator",
        on_change=_fit_device,
        help="Its peaks, and what its family's kernels reach of them.",
    )
    device = load_accelerator(accelerator)
    st.caption(as_markdown(accelerator_in_words(device)), help=as_markdown(device.source) or None)
    settings = {
        "accelerator": accelerator,
        "sequence": _field("sequence_length_tokens", 1024),
        "precision": _field("precision"),
        "attention": _field("attention"),
        "context": _field("context"),
    }
    if model.experts == 1:
        return settings
    return settings | {
        "expert_tensor": _field("expert_tensor"),
        "imbalance": _field("imbalance", 0.1),
        "capacity": _field("capacity", 0.25),
    }


def _start_from_plan() -> None:
    """Take over what the Plan page shows when it changed; a link goes before on arrival."""
    planned = plan_page().scenario
    if planned is None or st.session_state.get(TAKEN) == planned:
        return
    arrived = "layer.model" not in st.session_state
    st.session_state[TAKEN] = planned
    if arrived and any(key.startswith("layer.") for key in st.query_params):
        return
    for key, value in _of_plan(planned).items():
        st.session_state[key] = value
        # A value given before its widget stands reaches the address only this way.
        if value != STANDARD[key]:
            st.query_params[key] = str(value).lower() if isinstance(value, bool) else str(value)


def _of_plan(planned: Scenario) -> dict[str, Any]:
    """Return the scenario of the Plan page, and the strategy of its plan if there is one."""
    scenario, model = planned.values, planned.setting("workload.model")
    settings = {
        "layer.model": OWN_MODEL if isinstance(model, dict) else model,
        "layer.accelerator": planned.setting("accelerator"),
        "layer.sequence_length_tokens": scenario.sequence,
        "layer.precision": scenario.precision,
        "layer.attention": scenario.attention,
        "layer.context": scenario.context,
        "layer.expert_tensor": scenario.expert_tensor,
        "layer.imbalance": scenario.imbalance,
        "layer.capacity": scenario.capacity,
        "layer.kind": _usual(scenario.model),
    }
    best = answer_of(planned).result.best
    if best is None:
        return settings
    point, recompute = best.plan.point, Counter(best.plan.recompute).most_common(1)[0][0]
    return settings | {
        "layer.tp": point.tp,
        "layer.sp": point.sp,
        "layer.cp": point.cp,
        "layer.ep": point.ep,
        "layer.expert_tensor": point.etp == point.tp,
        "layer.micro_batch_sequences": point.micro_batch,
        "layer.recompute": recompute,
    }


def _usual(model: Model) -> str:
    """Return the layer of which the model has most."""
    return LAYER_WORDS[max(model.runs, key=lambda run: run[1])[0]]


# A widget keeps its value when only its default changes, so these write what fits. What was never
# offered they leave alone: Streamlit puts its standard back when it draws the widget.


def _fit_model() -> None:
    picked = widget_value("layer.model", FIELDS["layer.model"])
    if picked is None or (picked == OWN_MODEL and not follow_own_model()):
        return
    model = chosen_model(picked)
    kinds = [LAYER_WORDS[kind] for kind in model.kinds]
    kind = st.session_state.get("layer.kind", "")
    if kind not in kinds or kind.endswith("block"):
        st.session_state["layer.kind"] = _usual(model)
    length = st.session_state.get("layer.sequence_length_tokens", 0)
    if model.positions and length > model.positions:
        st.session_state["layer.sequence_length_tokens"] = model.positions


def _fit_device() -> None:
    picked = widget_value("layer.accelerator", FIELDS["layer.accelerator"])
    if picked is None:
        return
    device = load_accelerator(picked)
    if st.session_state.get("layer.precision") not in device.precisions:
        st.session_state["layer.precision"] = next(
            name for name in parameter("workload.precision").options if name in device.precisions
        )


def heading(request: LayerRequest) -> None:
    """What is shown, and on what."""
    title, line = layer_in_words(layers_of(request)[1])
    title_column, pin_column = st.columns([12, 1], vertical_alignment="bottom")
    with title_column:
        facts(title, kind="nest-scenario")
        facts(line, kind="nest-quiet")
    with pin_column:
        pin_button(
            "layer", title, asdict(request), key="layer", output=partial(_pin_output, request)
        )


def _pin_output(request: LayerRequest) -> PinOutput:
    """Return the operators as a table, the graph and the roofline."""
    _, after = layers_of(request)
    subtitle = "Operators of one rank for one micro-batch"
    rows = tuple(operator_rows(after))
    return table_output(Table(kept_finding(after), subtitle, rows), _pictures_of(request, ""))


def operators_view(request: LayerRequest) -> None:
    """Headlines, the graph before and after, the roofline, operators and collectives."""
    _, after = layers_of(request)
    graph, roofline = _pictures_of(request, INKS.get(st.context.theme.type or "", ""))
    headline_row(layer_headlines(after))
    show_picture(graph, "operators")
    show_picture(roofline, "roofline")
    st.html(
        Table(
            kept_finding(after),
            "Operators of one rank for one micro-batch; a tensor that several keep counts with the "
            "first",
            operator_rows(after),
        ).to_html()
    )
    _collectives(request, after)


def _collectives(request: LayerRequest, after: Anatomy) -> None:
    """Every collective with its seconds on the fabric that was planned last, or the usual one."""
    if not after.exchanges:
        facts(exchange_finding(after), kind="nest-quiet")
        return
    try:
        fabric, times = times_of(request, planned_scenario())
    except InputError as error:
        facts(str(error), kind="nest-quiet")
        fabric, times = "", ()
    where = f" on {fabric}, all groups at once" if fabric else ""
    title = (
        f"Collectives of one rank for one micro-batch{where}; an all-to-all's buffer is what it "
        "sends"
    )
    st.html(Table(exchange_finding(after, times), title, exchange_rows(after, times)).to_html())
