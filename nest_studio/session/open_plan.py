"""Opening a scenario on the page that works on it: its form is set to a preset with overrides.

Points of Explore, scenarios of Compare and cells of notebooks all come this way, to Plan or, with
a question, to Explore. A callback sets the form, and the page's run after it goes there.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitAPIException

from nest_core.documents import as_markdown, preset_names
from nest_core.documents.schema import LONGEST_NAME, FabricFile, checked
from nest_core.fabric.files import build_fabric
from nest_core.scenario import Scenario, fabric_title, scenario_document
from nest_studio.components.show import told
from nest_studio.form import (
    FORM,
    OWN_MODEL,
    fabric_document,
    fabric_fields,
    reset_fabric,
    start_over,
    use_model,
)
from nest_studio.form.pinning import DEGREES
from nest_studio.paths import page_script
from nest_studio.session.own_fabric import (
    KEPT_AS,
    OWN,
    OWN_STACK,
    forget_places,
    own_document,
    stack_name,
    start,
)
from nest_studio.session.training_run import FAILURES, RUN

__all__ = ["OPENS", "go_to_opened", "open_plan", "open_scenario", "over_preset", "unsaid"]

OPENS = "a scenario opens"
_WHOLE = ("fabric", "accelerator", "stack", "workload.model", "search.offload", *DEGREES)
_ASIDE = ("schema", "name", "description", "source", "override")

Table = Mapping[str, Any]


def over_preset(scenario: Scenario) -> tuple[str, dict[str, Any]]:
    """Return the preset that needs the fewest overrides to become a scenario, and these.

    A key that the preset has and the document leaves out becomes None.
    """
    document, overrides = scenario.document, scenario.overrides
    wanted = {
        key: value for key, value in document.get("override", {}).items() if key not in overrides
    } | dict(overrides)
    leaves = dict(_leaves(document))
    changed: list[tuple[int, str, dict[str, Any]]] = []
    for name in preset_names("scenarios"):
        preset, _ = scenario_document(name)
        if preset == document:
            return name, dict(overrides)
        preset_leaves = dict(_leaves(preset))
        keys = [key for key in leaves | preset_leaves if leaves.get(key) != preset_leaves.get(key)]
        changed.append((len(keys), name, {key: leaves.get(key) for key in keys} | wanted))
    _, name, over = min(changed, key=lambda entry: entry[:2])
    return name, over


def unsaid(scenario: Scenario) -> str:
    """Return a sentence on the overrides that the form cannot say; empty if it says all."""
    return _unsaid(over_preset(scenario)[1])


def _unsaid(overrides: Table) -> str:
    keys = [
        key
        for key, value in overrides.items()
        if key.partition(".")[0] != "fabric" and _shown(key, value) is None
    ]
    return f"Its form cannot say {', '.join(keys)} as it is; all else is set." if keys else ""


def open_plan(scenario: Scenario, called: str = "") -> None:
    """Have a scenario opened on Plan, for callbacks; parameters as in `open_scenario`."""
    open_scenario("plan", scenario, {}, called)


@told(st.toast)
def open_scenario(page: str, scenario: Scenario, more: Table, called: str = "") -> None:
    """Set the form, for callbacks; what cannot be opened is said and stays here.

    Parameters
    ----------
    page : str
        A file of ``pages/`` that draws the form.
    scenario : Scenario
        Of several degrees the form takes the largest; what else it cannot say (`unsaid`) stays as
        in the preset.
    more : mapping
        The page's other widgets, by key.
    called : str
        What the name of a fabric that no widget makes gets at its end; it is opened as the
        person's own.
    """
    preset, overrides = over_preset(scenario)
    fabric, ratios, table = _fabric(Scenario(scenario_document(preset)[0], overrides), called)
    st.session_state["scenario"] = preset
    start_over()
    if table is not None and forget_places(own_document() or {}) != table:
        start({"schema": 1, "name": "inline", **table})
    st.session_state["fabric"] = fabric
    reset_fabric()
    widgets: dict[str, Any] = {"fabric": fabric}
    for key, value in overrides.items():
        words = _shown(key, value) or _limit(key, value)
        if words:
            (widgets[FAILURES if key == "failures" else key],) = words
    widgets |= ratios
    if widgets.get("workload.model") == OWN_MODEL:
        use_model(dict(overrides["workload.model"]))
    if widgets.get("stack") == OWN_STACK:
        widgets[KEPT_AS] = stack_name(overrides["stack"])
    widgets |= more
    st.session_state.update(widgets)
    if sentence := _unsaid(overrides):
        st.toast(as_markdown(sentence))
    st.session_state[OPENS] = page, {"scenario": preset} | widgets


def go_to_opened(*, form_is_here: bool = False) -> None:
    """Go to the page whose form a callback has set, if one has.

    Parameters
    ----------
    form_is_here : bool
        Whether this page draws the form too, and has drawn it: then the address follows by itself,
        and else it is given what the form was set to.
    """
    opened: tuple[str, dict[str, Any]] | None = st.session_state.pop(OPENS, None)
    if opened is None:
        return
    page, widgets = opened
    texts: dict[str, Any] = {
        key: [str(entry) for entry in value] if isinstance(value, list) else str(value)
        for key, value in widgets.items()
        if value is not None and not form_is_here
    }
    # Without parameters Streamlit would clear those that widgets are bound to, and refuses.
    try:
        st.switch_page(page_script(page), query_params=texts)
    except StreamlitAPIException:  # a late press: that page was opened before, and has its widgets
        st.switch_page(page_script(page), query_params={})


def _shown(key: str, value: Any) -> tuple[Any] | None:
    """Return what a widget has for the value of a key; None where it cannot have it."""
    field = RUN[FAILURES] if key == "failures" else FORM.get(key)
    return field.shown(value) if field else None


def _limit(key: str, value: Any) -> tuple[Any] | None:
    """Return the upper end of a range of degrees that the form has no words for."""
    return (
        FORM[key].shown({"max": value.get("max")})
        if key in DEGREES and isinstance(value, Mapping)
        else None
    )


def _fabric(scenario: Scenario, called: str) -> tuple[str, dict[str, Any], dict[str, Any] | None]:
    """Return the fabric's choice, its widgets' values, and the document if it is no preset."""
    overrides = scenario.overrides
    choice = overrides.get("fabric", scenario.document["fabric"])
    is_preset = isinstance(choice, str) and choice in preset_names("fabrics")
    if is_preset or isinstance(choice, Mapping):
        document = fabric_document(choice) if is_preset else _sound(choice)
        fields, widgets = fabric_fields(document), dict[str, Any]()
        for key, value in overrides.items():
            words = fields[key].shown(value) if key in fields else None
            # Of ratios a slider reaches half steps alone.
            if words and (not isinstance(words[0], float) or (2 * words[0]).is_integer()):
                (widgets[key],) = words
            elif key.startswith("fabric."):
                break
        else:
            return (choice, widgets, None) if is_preset else (OWN, widgets, document)
    table = _stated({"schema": 1, "name": "inline", **scenario.fabric_table})
    title = fabric_title(build_fabric(checked(FabricFile, table)))
    return OWN, {}, {**table, "name": ", ".join(filter(None, [title, called]))[:LONGEST_NAME]}


def _sound(table: Table) -> dict[str, Any]:
    """Return the document of a fabric's table; InputError if it is none."""
    document = _stated({"schema": 1, "name": "inline", **table})
    build_fabric(checked(FabricFile, document, "fabric."))
    return document


def _stated(table: Table) -> dict[str, Any]:
    """Return a table without what JSON calls null, which says as little as a missing key."""
    return {key: value for key, value in table.items() if value is not None}


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
