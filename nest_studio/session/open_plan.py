"""Opening a scenario on the page that works on it: its form is set to a preset with overrides.

Points of Explore, scenarios of Compare and cells of notebooks all come this way, to Plan or, with
a question, to Explore. A callback sets the form, and the page's run after it goes there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitAPIException

from nest_core.documents.errors import InputError
from nest_core.documents.presets import preset_names
from nest_core.documents.quoting import as_markdown
from nest_core.documents.schema import LONGEST_NAME, FabricFile, checked
from nest_core.fabric.files import build_fabric
from nest_core.scenario import Scenario, scenario_document
from nest_core.scenario.titles import fabric_title
from nest_core.workload.model_files import model_of
from nest_studio.form.fabric import (
    MEANING,
    MEANINGS,
    fabric_document,
    fabric_fields,
    reset_fabric,
)
from nest_studio.form.model import OWN_MODEL, use_model
from nest_studio.form.pinning import DEGREES, PINS, pin_words
from nest_studio.form.scenario import FORM, ORDERS, offloads_in_words, start_over
from nest_studio.session.own_fabric import OWN, forget_places, own_document, start
from nest_studio.session.own_stack import KEPT_AS, OWN_STACK, kept_name

__all__ = ["go_to_opened", "open_plan", "open_scenario", "over_preset", "unsaid"]

_OPENS = "a scenario opens"
_WHOLE = ("fabric", "accelerator", "stack", "workload.model", "search.offload", *DEGREES)
_ASIDE = ("schema", "name", "description", "source", "override")

Table = Mapping[str, Any]


def over_preset(scenario: Scenario) -> tuple[str, dict[str, Any]]:
    """Return the preset that needs the fewest overrides to become a scenario, and these.

    A key that the preset has and the document leaves out becomes None.
    """
    document, overrides = scenario.document, scenario.overrides
    own = document.get("override", {})
    wanted = {key: value for key, value in own.items() if key not in overrides} | dict(overrides)
    here = dict(_leaves(document))
    found = []
    for name in preset_names("scenarios"):
        preset, _ = scenario_document(name)
        if preset == document:
            return name, dict(overrides)
        there = dict(_leaves(preset))
        keys = [key for key in {**here, **there} if here.get(key) != there.get(key)]
        found.append((len(keys), name, {key: here.get(key) for key in keys} | wanted))
    _, name, changed = min(found, key=lambda entry: entry[:2])
    return name, changed


def unsaid(scenario: Scenario) -> str:
    """Return a sentence on the overrides that the form cannot say; empty if it says all."""
    return _unsaid(over_preset(scenario)[1])


def _unsaid(overrides: Table) -> str:
    left = [
        key
        for key, value in overrides.items()
        if key.partition(".")[0] != "fabric" and _held(key, value) is None
    ]
    return f"Its form cannot say {', '.join(left)} as it is; all else is set." if left else ""


def open_plan(scenario: Scenario, called: str = "") -> None:
    """Have a scenario opened on Plan, for callbacks; parameters as in `open_scenario`."""
    open_scenario("plan", scenario, {}, called)


def open_scenario(page: str, scenario: Scenario, asked: Table, called: str = "") -> None:
    """Set the form, for callbacks; what cannot be opened is said and stays here.

    Parameters
    ----------
    page : str
        A file of ``pages/`` that draws the form.
    scenario : Scenario
        Of several degrees the form takes the largest; what else it cannot say (`unsaid`) stays as
        in the preset.
    asked : mapping
        The page's other widgets, by key.
    called : str
        What the name of a fabric that no widget makes gets at its end; it is opened as the
        person's own.
    """
    preset, overrides = over_preset(scenario)
    document, _ = scenario_document(preset)
    try:
        fabric, ratios, table = _fabric(Scenario(document, overrides), called)
    except InputError as error:
        st.toast(as_markdown(error))
        return
    st.session_state["scenario"] = preset
    start_over()
    if table is not None and forget_places(own_document() or {}) != table:
        start({"schema": 1, "name": "inline", **table})
    st.session_state["fabric"] = fabric
    reset_fabric()
    widgets: dict[str, Any] = {"fabric": fabric}
    for key, value in overrides.items():
        widgets |= _held(key, value) or _limit(key, value)
    widgets |= ratios
    if widgets.get("workload.model") == OWN_MODEL:
        use_model(dict(overrides["workload.model"]))
    widgets |= asked
    st.session_state.update(widgets)
    if told := _unsaid(overrides):
        st.toast(as_markdown(told))
    st.session_state[_OPENS] = page, {"scenario": preset} | widgets


def go_to_opened(*, form_is_here: bool = False) -> None:
    """Go to the page whose form a callback has set, if one has.

    Parameters
    ----------
    form_is_here : bool
        Whether this page draws the form too, and has drawn it: then the address follows by itself,
        and else it is given what the form was set to.
    """
    opened: tuple[str, dict[str, Any]] | None = st.session_state.pop(_OPENS, None)
    if opened is None:
        return
    page, widgets = opened
    told = {} if form_is_here else {key: _in_address(value) for key, value in widgets.items()}
    said = {key: text for key, text in told.items() if text is not None}
    # Without parameters Streamlit would clear those that widgets are bound to, and refuses.
    try:
        st.switch_page(f"pages/{page}.py", query_params=said)
    except StreamlitAPIException:  # a late press: that page was opened before, and has its widgets
        st.switch_page(f"pages/{page}.py", query_params={})


def _in_address(value: Any) -> str | list[str] | None:
    """A widget's value as the address has it; None for one that is empty."""
    if isinstance(value, list):
        return [str(entry) for entry in value]
    return None if value is None else str(value)


def _held(key: str, value: Any) -> dict[str, Any] | None:
    """What widgets hold for the value of a key; None where they cannot hold it."""
    if key in PINS:
        told = pin_words(key, value)
        return None if told is None else {key: told}
    if key == "search.order":
        return next(({key: word} for word, order in ORDERS.items() if order == value), None)
    if key == "workload.model" and not isinstance(value, str):
        return {key: OWN_MODEL} if _is_model(value) else None
    if key == "stack" and isinstance(value, Mapping):
        name = kept_name(value)
        return {key: OWN_STACK, KEPT_AS: name} if name else None
    if key == "search.offload":
        value = offloads_in_words(value)
    held = FORM[key].held(value) if key in FORM and value != OWN_MODEL else None
    return held and {key: held[0]}


def _is_model(value: Any) -> bool:
    try:
        return isinstance(value, Mapping) and bool(model_of(value))
    except InputError:
        return False


def _limit(key: str, value: Any) -> dict[str, Any]:
    """The upper end of a range of degrees that the form has no words for."""
    told = (
        pin_words(key, {"max": value.get("max")}) if key in DEGREES and _is_table(value) else None
    )
    return {} if told is None else {key: told}


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping)


def _fabric(scenario: Scenario, called: str) -> tuple[str, dict[str, Any], dict[str, Any] | None]:
    """The fabric's choice, its widgets' values, and the document if it is no preset."""
    overrides = scenario.overrides
    choice = overrides.get("fabric", scenario.document["fabric"])
    named = isinstance(choice, str) and choice in preset_names("fabrics")
    changes = {key: value for key, value in overrides.items() if key.startswith("fabric.")}
    if named or isinstance(choice, Mapping):
        inline = {"schema": 1, "name": "inline"}
        whole = fabric_document(choice) if named else _sound({**inline, **choice})
        fields = fabric_fields(whole)
        held = {key: _ratio(fields, key, value) for key, value in changes.items()}
        if None not in held.values():
            widgets = {key: found[0] for key, found in held.items() if found}
            return (choice, widgets, None) if named else (OWN, widgets, whole)
    return OWN, {}, _named(scenario.fabric_table, called)


def _named(table: Table, called: str) -> dict[str, Any]:
    """A fabric's document under the name of what it is now."""
    whole = {"schema": 1, "name": "inline", **_stated(table)}
    title = fabric_title(build_fabric(checked(FabricFile, whole)))
    return {**whole, "name": ", ".join(filter(None, [title, called]))[:LONGEST_NAME]}


def _sound(table: dict[str, Any]) -> dict[str, Any]:
    """The table of a fabric; InputError if it is none."""
    build_fabric(checked(FabricFile, table, "fabric."))
    return _stated(table)


def _stated(table: Table) -> dict[str, Any]:
    """A table without what JSON calls null, which says as little as a missing key."""
    return {key: value for key, value in table.items() if value is not None}


def _ratio(fields: Table, key: str, value: Any) -> tuple[Any] | None:
    """What the widget of a fabric's key holds for a value, in a tuple; None where it cannot."""
    if key == MEANING:
        value = next((word for word, meaning in MEANINGS.items() if meaning == value), None)
    held: tuple[Any] | None = fields[key].held(value) if key in fields else None
    in_half_steps = held is None or not isinstance(held[0], float) or (2 * held[0]).is_integer()
    return held if in_half_steps else None


def _leaves(table: Table, before: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted keys and values of what a document sets, with tables of a choice whole."""
    for name, value in table.items():
        key = f"{before}{name}"
        if key in _ASIDE:
            continue
        if isinstance(value, Mapping) and key not in _WHOLE:
            yield from _leaves(value, f"{key}.")
        else:
            yield key, value
