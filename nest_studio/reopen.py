"""Questions of notebooks' cells, asked again on the Explore page: its widgets, by key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from nest_core.errors import InputError
from nest_core.scenario import scenario_document
from nest_core.studies.parameter import parameter_named
from nest_core.studies.parameters import sweep_parameters
from nest_studio.explore_view import (
    ASKS,
    DEFAULTS,
    FIRST,
    LOSS,
    MIX,
    MODELS,
    NOTHING_ELSE,
    OWN_QUESTION,
    PARTS,
    PERCENT,
    QUESTION,
    RATIOS,
    SECOND,
    SWEEP,
    questions,
    share_key,
    values_key,
    values_text,
)
from nest_studio.fields import field_of
from nest_studio.open_plan import open_scenario
from nest_studio.show import told

__all__ = ["reopen", "reopens"]


def reopens(inputs: Mapping[str, Any]) -> bool:
    """Whether the page can ask what a study was asked; its mixes are of presets."""
    mix = inputs.get("mix", ())
    return "x" in inputs or (bool(mix) and all(isinstance(one["model"], str) for one in mix))


def reopen(scenario: str, overrides: Mapping[str, Any], inputs: Mapping[str, Any]) -> None:
    """Have a study's question opened on Explore, for callbacks; what cannot be is said.

    Parameters
    ----------
    scenario : str
        The preset of its form.
    overrides : mapping
        What its form is to say.
    inputs : mapping
        What the study was asked (`nest_core.notebook.document`), which `reopens` took.
    """
    with told(st.toast):
        asked = _mix(inputs) if "mix" in inputs else _swept(scenario, overrides, inputs)
        st.session_state.pop(DEFAULTS, None)  # texts were worth a try there, and are asked here
        open_scenario("explore", scenario, overrides, asked)


def _swept(
    scenario: str, overrides: Mapping[str, Any], inputs: Mapping[str, Any]
) -> dict[str, Any]:
    document, _ = scenario_document(scenario)
    found = sweep_parameters(document, overrides)
    turned = [(parameter_named(found, one["parameter"]), one["values"]) for one in _both(inputs)]
    labels = (*(parameter.label for parameter, _ in turned), NOTHING_ELSE)[:2]
    ready = {turns: question for question, turns in questions(found).items()}
    return {
        ASKS: SWEEP,
        QUESTION: ready.get((labels[0], labels[1]), OWN_QUESTION),
        FIRST: labels[0],
        SECOND: labels[1],
        **{values_key(parameter): values_text(values) for parameter, values in turned},
    }


def _both(inputs: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for one in (inputs["x"], inputs.get("y")) if one]


def _mix(inputs: Mapping[str, Any]) -> dict[str, Any]:
    mix, loss = inputs["mix"], 100 * inputs["loss"]
    models = [one["model"] for one in mix]
    parts = {share_key(one["model"]): one["share"] for one in mix if len(mix) > 1}
    askable = MIX.held(models) and field_of(PERCENT).held(loss)
    if not (askable and all(map(field_of(PARTS).held, parts.values()))):
        raise InputError(
            "the mix",
            f"must be of different presets, {PARTS.allowed} parts each, and lose "
            f"{PERCENT.allowed} % for the form",
            parts or models,
            "open its scenario and ask anew",
        )
    held = {key: float(part) for key, part in parts.items()}
    return {ASKS: RATIOS, MODELS: models, LOSS: float(loss), **held}
