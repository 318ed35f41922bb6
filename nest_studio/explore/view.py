"""The parts of the Explore page: which parameter to turn how far, and what came of it."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from nest_core.api import studies
from nest_core.documents import InputError, as_markdown, capital, csv_text, preset_names, require
from nest_core.documents.columns import column_words
from nest_core.documents.schema import Parameter, StudyTable, parameter
from nest_core.report.figures.study import ratio_rows, ratios_finding, ratios_picture
from nest_core.report.figures.sweep import pictures
from nest_core.report.notebook import output_of
from nest_core.report.tables import Table
from nest_core.scenario import Scenario, fabric_title
from nest_core.studies.parameters import (
    Value,
    parameter_named,
    parse_values,
    sweep_parameters,
    with_values,
)
from nest_core.studies.sweeps import MAX_MODELS, Ratios, Sweep
from nest_studio.components.show import download, facts, show_picture, told
from nest_studio.form.fields import (
    OneOf,
    SomeOf,
    Text,
    field_of,
    hold,
    parameter_field,
    settle,
    widget,
)
from nest_studio.notebook.pins import pin_button
from nest_studio.session.open_plan import open_plan, open_scenario

__all__ = [
    "ASKS",
    "BY_PARAMETERS",
    "DEFAULTS",
    "MIX",
    "MODELS",
    "PARTS",
    "RATIOS",
    "SHARED",
    "STUDIES",
    "SWEEP",
    "ExplorePage",
    "axes_of",
    "download_rows",
    "inputs_of",
    "mix_controls",
    "opening_controls",
    "openings",
    "questions",
    "reopen",
    "reopens",
    "rows_table",
    "show_ratios",
    "show_sweep",
    "title_of",
    "turn_controls",
    "values_of",
]

ASKS, QUESTION, FIRST, SECOND, POINT, MODELS, LOSS = (
    f"explore.{name}" for name in ("asks", "question", "x", "y", "point", "models", "loss")
)
SWEEP, RATIOS, SHARED, STUDIES = (
    "Sweep parameters",
    "Highest ratios",
    "Shared fabric",
    "Studies",
)
WHICH_RATIO, WHICH_ZERO = "How much oversubscription?", "Which micro-batch and ZeRO stage?"
BY_PARAMETERS = (QUESTION, FIRST, SECOND)
DEFAULTS = "explore defaults"
MIX = SomeOf(preset_names("models"), MAX_MODELS)
PERCENT = parameter("loss", StudyTable).scaled(100, "%")
PARTS = parameter("share", StudyTable)
OWN_QUESTION = "a question of my own"
_PLANE = "Micro-batch × ZeRO"
NOTHING_ELSE = "none"


@dataclass
class ExplorePage:
    """What Explore keeps of a session.

    Parameters
    ----------
    scenario : Scenario or None
        The last one that was none to be refused.
    run : (Scenario, axes) or None
        The large sweep that was started by hand.
    sweep : (Sweep, list of Parameter, Scenario) or None
        The last sweep, and what was asked.
    ratios : (Ratios, dict) or None
        The last highest ratios, likewise.
    """

    scenario: Scenario | None = None
    run: tuple[Scenario, Any] | None = None
    sweep: tuple[Sweep, list[Parameter], Scenario] | None = None
    ratios: tuple[Ratios, dict[str, Any]] | None = None


def title_of(scenario: Scenario) -> str:
    """Return the scenario's title; its fabric's where a parameter is yet to make one of it."""
    try:
        return scenario.title
    except InputError:
        return fabric_title(scenario.fabric)


def inputs_of(scenario: Scenario) -> dict[str, Any]:
    """Return a scenario as the plain values that studies take."""
    return {"document": scenario.document, "overrides": scenario.overrides}


def axes_of(turned: Sequence[Parameter]) -> list[tuple[str, tuple[Value, ...]]]:
    """Return parameters and values as a sweep takes them."""
    return [(parameter.name, parameter.values) for parameter in turned]


def questions(parameters: Sequence[Parameter]) -> dict[str, tuple[str, str]]:
    """Return ready-made questions and the parameters that they turn, as labels."""
    label = {parameter.name: parameter.label for parameter in parameters}
    ratios = [name for name in label if name.startswith("oversubscription.")]
    speeds = [name for name in label if name.startswith("speed.")]
    fastest = "speed.nic" if "speed.nic" in speeds else (speeds or [""])[-1]
    ready = [
        *((capital(label[name]), name, "") for name in ratios),
        *([("Two tiers at once", *ratios[-2:])] if len(ratios) > 1 else []),
        (_PLANE, "zero", "micro_batch"),
        ("Scaling", "devices", ""),
        ("Memory per device", "memory", ""),
        ("Sequence length × recomputation", "sequence", "recompute"),
        (capital(label.get(fastest, "")), fastest, ""),
        ("Node size", "node", ""),
    ]
    return {
        title: (label[first], label.get(second, NOTHING_ELSE))
        for title, first, second in ready
        if first in label
    }


def openings(parameters: Sequence[Parameter]) -> dict[str, tuple[str, str]]:
    """Return the questions that the page opens with, and the parameters they turn, as labels.

    The first is asked where nothing else is.
    """
    ready = questions(parameters)
    first = next(iter(ready))
    return ({} if first == _PLANE else {WHICH_RATIO: ready[first]}) | {WHICH_ZERO: ready[_PLANE]}


def opening_controls(
    parameters: Sequence[Parameter], labels: tuple[str, str]
) -> list[tuple[Parameter, str]]:
    """Return an opening question's parameters, and the text of their values."""
    by_label = {parameter.label: parameter for parameter in parameters}
    texts = []
    for label, column in zip(labels, st.columns(2, gap="small"), strict=True):
        if label in by_label:
            with column:
                texts.append((by_label[label], _values_text(by_label[label])))
    return texts


def turn_controls(parameters: Sequence[Parameter]) -> list[tuple[Parameter, str]]:
    """Return the question, its parameters, and the text of their values."""
    ready = questions(parameters)
    by_label = {parameter.label: parameter for parameter in parameters}
    options = (*ready, OWN_QUESTION)
    first, second, third = st.columns([2.4, 2.4, 3.2], gap="small")
    picked = widget(
        QUESTION,
        OneOf(options),
        options[0],
        label="Question",
        place=first,
        on_change=_take,
        args=(ready,),
        help="Sets the parameters; their values can be changed.",
    )
    standard = ready.get(picked, next(iter(ready.values())))
    turned: list[tuple[Parameter, str]] = []
    for place, (key, label) in enumerate(((FIRST, "Parameter"), (SECOND, "Second parameter"))):
        taken = turned[0][0].label if turned else ""
        free = (name for name in by_label if name != taken)
        names = (NOTHING_ELSE, *free) if place else tuple(free)
        name = widget(
            key,
            OneOf(names),
            standard[place] if standard[place] in names else names[0],
            label=label,
            place=second,
            on_change=hold,
            args=(QUESTION, OWN_QUESTION),
            help="What is swept; everything else stays as in the form.",
        )
        if name in by_label:
            with third:
                turned.append((by_label[name], _values_text(by_label[name])))
    return turned


def values_of(turned: list[tuple[Parameter, str]]) -> list[Parameter]:
    """Return the values that the texts give; InputError where one gives none."""
    return [replace(parameter, values=parse_values(parameter, text)) for parameter, text in turned]


def _values_text(parameter: Parameter) -> str:
    """Return the values to try; a parameter's own where nothing else was written."""
    key = values_key(parameter)
    usual = values_text(parameter.values)
    seen = st.session_state.get(DEFAULTS, {})
    if key in st.session_state and st.session_state[key] in ("", seen.get(key)):
        st.session_state[key] = usual  # the scenario changed, and with it what is worth trying
    st.session_state[DEFAULTS] = {**seen, key: usual}
    note = f" {capital(parameter.note)}." if parameter.note else ""
    return str(
        widget(
            key,
            Text(),
            usual,
            label=f"Values of {as_markdown(parameter.title)}",
            help=as_markdown(f"{capital(parameter.allowed)}, with commas between.{note}"),
        )
        or usual
    )


def values_key(parameter: Parameter) -> str:
    """Return the key of the field with a parameter's values."""
    return f"explore.{parameter.name}"


def values_text(values: Sequence[Value]) -> str:
    """Values as that field has them."""
    return ", ".join(value if isinstance(value, str) else f"{value:.12g}" for value in values)


def share_key(model: str) -> str:
    """Return the key of the field with a model's parts of a mix."""
    return f"explore.share.{model}"


def _take(ready: dict[str, tuple[str, str]]) -> None:
    if (parameters := ready.get(st.session_state.get(QUESTION, ""))) is not None:
        st.session_state[FIRST], st.session_state[SECOND] = parameters


def show_sweep(sweep: Sweep, turned: Sequence[Parameter], scenario: Scenario, pins: Any) -> None:
    """Figures, the point that was pointed at, and all points as a table.

    ``pins`` is where the way into a notebook stands.
    """
    if not sweep.points:
        facts("No point was planned before it was cancelled.")
        return
    first, *others = pictures(sweep)
    settle(POINT, OneOf(tuple(sweep.named(point) for point in sweep.points)))
    with pins:
        axes = ({"parameter": axis.name, "values": list(axis.values)} for axis in turned)
        pin_button(
            "sweep",
            first.title,
            inputs_of(scenario) | dict(itertools.zip_longest("xy", axes)),
            key="explore",
            output=lambda: output_of(studies.sweep_result(sweep)),
        )
    show_picture(
        replace(first, reading=f"{first.reading} Click a point."),
        "explore",
        on_pick=lambda number: _point_at(sweep, number),
    )
    _point(sweep, turned, scenario)
    columns = st.columns(min(2, max(1, len(others))), gap="medium")
    for number, picture in enumerate(others):
        show_picture(picture, f"explore-{number}", columns[number % len(columns)])
    with st.expander(f"All {len(sweep.points)} points in figures"):
        rows_table(sweep.rows())
        download_rows("↓ Points (CSV)", sweep.rows(), "points.csv")


def _point_at(sweep: Sweep, number: int) -> None:
    if number in range(len(sweep.points)):
        st.session_state[POINT] = sweep.named(sweep.points[number])


def _point(sweep: Sweep, turned: Sequence[Parameter], scenario: Scenario) -> None:
    """One point in words, and the way to its plan."""
    names = {sweep.named(point): point for point in sweep.points}
    best = max(sweep.points, key=lambda point: point.tokens_per_s or 0.0)
    first, middle, right = st.columns([2.4, 4.0, 1.6], vertical_alignment="center", gap="small")
    point = names[
        first.selectbox(
            "Point",
            tuple(names),
            index=list(names.values()).index(best),
            key=POINT,
            help="Click a point above, or pick one here.",
        )
    ]
    pairs = tuple(zip(turned, point.values, strict=True))
    words = ", ".join(
        f"{parameter.label} {parameter.words(value)} {parameter.unit}".strip()
        for parameter, value in pairs
        if parameter.fabric
    )
    with middle:
        facts(point.words or point.reason)
        note = "; ".join(point.realised)
        facts(capital(note) + "." if note else "", kind="nest-quiet")
    right.button(
        "Open in Plan",
        on_click=lambda: open_plan(
            Scenario(scenario.document, with_values(scenario.overrides, pairs)), words
        ),
        width="stretch",
        disabled=point.status == "invalid",
        key="explore-open",
        help="Sets the form to this point and shows its plan.",
    )


def rows_table(rows: Sequence[Mapping[str, Any]], formats: Mapping[str, str] | None = None) -> None:
    """Draw plain rows; figures of a column have equal decimals where no format says otherwise."""
    names = rows[0] if rows else ()
    columns = {
        name: [
            abs(value)
            for value in (row[name] for row in rows)
            if isinstance(value, float) and math.isfinite(value)
        ]
        for name in names
    }
    written = {name: _decimals(sizes) for name, sizes in columns.items() if sizes} | {
        **(formats or {})
    }
    st.dataframe(
        rows,
        hide_index=True,
        column_config={
            name: st.column_config.NumberColumn(column_words(name), format=written[name])
            if name in written
            else column_words(name)
            for name in names
        },
    )


def _decimals(sizes: Sequence[float]) -> str:
    """Return the format in which the largest of a column's figures has four digits."""
    least = min(filter(None, sizes), default=1.0)
    digits = 3 - math.floor(math.log10(max(sizes) or 1.0))
    return "%.4g" if digits < 0 or least < 10.0 ** (1 - digits) else f"%.{digits}f"


def download_rows(label: str, rows: Sequence[Mapping[str, Any]], name: str) -> None:
    """Draw a button that saves plain rows as CSV."""
    download(
        label,
        lambda: csv_text(list(rows[0]), [list(row.values()) for row in rows]),
        name,
        "text/csv",
        help="One row per point, units in the column names.",
    )


def mix_controls(scenario: Scenario) -> tuple[list[dict[str, Any]], float]:
    """Return the models, their shares of the time, and what may be lost."""
    model = str(scenario.overrides.get("workload.model", scenario.document["workload"]["model"]))
    names = preset_names("models")
    wide, narrow = st.columns([5, 1.4], gap="small")
    models = widget(
        MODELS,
        MIX,
        [model] if model in names else [names[0]],
        label="Models of the mix",
        place=wide,
        help=f"1 to {MAX_MODELS}; each trains with the form's batch and sequence length.",
    )
    loss = parameter_field(PERCENT, 2.0, step=0.5, key=LOSS, place=narrow, format="%.1f")
    require(models, "models of the mix", "must name one at least", "none", "pick a model")
    shares = {models[0]: 1.0}
    if len(models) > 1:
        for column, name in zip(st.columns(MAX_MODELS), models, strict=False):
            shares[name] = parameter_field(
                PARTS,
                1.0,
                key=share_key(name),
                place=column,
                label=f"{as_markdown(name)}, {PARTS.unit}",
                format="%.1f",
            )
    return [{"model": name, "share": shares[name]} for name in models], loss / 100


def show_ratios(ratios: Ratios, inputs: dict[str, Any], pins: Any) -> None:
    """Draw what every tier bears, as a table and as a figure; ``pins`` as in `show_sweep`."""
    if not ratios.tiers:
        facts("No tier was tried to its end before it was cancelled.")
        return
    with pins:
        pin_button(
            "ratios",
            ratios_finding(ratios),
            inputs,
            key="ratios",
            output=lambda: output_of(studies.ratios_result(ratios)),
        )
    st.html(
        Table(
            ratios_finding(ratios),
            "One tier at a time, the others as in the form",
            ratio_rows(ratios),
        ).to_html()
    )
    show_picture(ratios_picture(ratios), "explore-ratios")
    with st.expander("Every ratio that was tried"):
        rows_table(ratios.rows())
        download_rows("↓ Ratios (CSV)", ratios.rows(), "ratios.csv")


def reopens(inputs: Mapping[str, Any]) -> bool:
    """Whether the page can ask what a study was asked; its mixes are of presets."""
    mix = inputs.get("mix", ())
    return "x" in inputs or (bool(mix) and all(isinstance(member["model"], str) for member in mix))


def reopen(scenario: Scenario, inputs: Mapping[str, Any]) -> None:
    """Have a study's question opened on Explore, for callbacks; what cannot be is said.

    Parameters
    ----------
    scenario : Scenario
        What its form is to say.
    inputs : mapping
        What the study was asked (`nest_core.report.notebook.inputs`), which `reopens` took.
    """
    with told(st.toast):
        widgets = (
            _widgets_of_mix(inputs) if "mix" in inputs else _widgets_of_sweep(scenario, inputs)
        )
        st.session_state.pop(DEFAULTS, None)  # texts were worth a try there, and are asked here
        open_scenario("explore", scenario, widgets)


def _widgets_of_sweep(scenario: Scenario, inputs: Mapping[str, Any]) -> dict[str, Any]:
    parameters = sweep_parameters(scenario)
    turned = [
        (parameter_named(parameters, axis["parameter"]), axis["values"])
        for axis in (inputs["x"], inputs.get("y"))
        if axis
    ]
    labels = (*(parameter.label for parameter, _ in turned), NOTHING_ELSE)[:2]
    ready = {turns: question for question, turns in questions(parameters).items()}
    return {
        ASKS: SWEEP,
        QUESTION: ready.get((labels[0], labels[1]), OWN_QUESTION),
        FIRST: labels[0],
        SECOND: labels[1],
        **{values_key(parameter): values_text(values) for parameter, values in turned},
    }


def _widgets_of_mix(inputs: Mapping[str, Any]) -> dict[str, Any]:
    mix, loss = inputs["mix"], 100 * inputs["loss"]
    models = [member["model"] for member in mix]
    parts = {
        share_key(member["model"]): float(member["share"])
        for member in (mix if len(mix) > 1 else ())
    }
    askable = MIX.fit(models) and field_of(PERCENT).fit(loss)
    require(
        askable and all(map(field_of(PARTS).fit, parts.values())),
        "the mix",
        f"must be of different presets, {PARTS.allowed} parts each, and lose "
        f"{PERCENT.allowed} % for the form",
        parts or models,
        "open its scenario and ask anew",
    )
    return {ASKS: RATIOS, MODELS: models, LOSS: float(loss), **parts}
