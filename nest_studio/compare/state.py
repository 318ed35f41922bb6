"""Which scenarios are compared: a list in the session, in the address, and in ready-made sets.

An entry is a scenario with a name. The address carries all of them as one short text, so that a
link or a reload brings the comparison back; where drawings make it long, the store keeps it and
the address says under which key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import streamlit as st

from nest_core.documents.errors import InputError
from nest_core.documents.presets import preset_names
from nest_core.documents.schema import check_plain
from nest_core.documents.units import format_ratio
from nest_core.fabric.same_size import KINDS
from nest_core.scenario import Scenario, ScenarioValues, scenario_document
from nest_core.scenario.titles import accelerator_title
from nest_core.studies.comparison import BUDGET_OF, LONGEST_NAME, MOST
from nest_core.studies.designs import beside
from nest_core.studies.parameters import ratio_parameters
from nest_studio.form.fabric import fabric_document, own_names
from nest_studio.form.fields import Choice, field_of, said
from nest_studio.form.prices import use_prices
from nest_studio.form.scenario import DEFAULT_SCENARIO, changes_in_words, pinned_title
from nest_studio.session.open_plan import over_preset
from nest_studio.session.stored import keep, recall

__all__ = [
    "AS_ON_PLAN",
    "BUDGET",
    "BUDGETS",
    "ITS_OWN",
    "READY_MADE",
    "SAME_SIZE",
    "THOUSAND",
    "Entry",
    "add",
    "add_same_size",
    "can_undo",
    "described",
    "entries",
    "fabric_choices",
    "first_scenario",
    "follow_address",
    "go_to_compare",
    "inputs_of",
    "move",
    "refused",
    "remove",
    "rename",
    "same_size_words",
    "sound",
    "start_over",
    "undo",
    "use_inputs",
    "use_set",
]

AS_ON_PLAN = "as on Plan"
ITS_OWN = "its own"
LONGEST_ADDRESS = 4000
SAME_SIZE = (*KINDS, *(map(format_ratio, (1, 2, 3, 4, 8))))
"""What the first scenario's devices and NICs can be put on with one click."""
STEPS = 50
THOUSAND = 1000.0
BUDGETS = {"none": None, "network price": "price", "network power": "power"}
BUDGET = {
    "price": BUDGET_OF["price"].scaled(1 / THOUSAND, "k$"),
    "power": BUDGET_OF["power"].scaled(1 / THOUSAND, "kW"),
}
"""As a form asks for them, in thousands."""
_KEY = "compare entries"
_PAST = "compare past"
_NEXT = "compare next id"
_UNREAD = "compare link unread"
_OPENS = "compare opens"
_ADDRESS = "compare"
_REFUSED = "compare refused"
_BY_KEY = "kept."

Entry = dict[str, Any]
"""``id``, ``name`` and ``scenario``."""

Named = tuple[str, Scenario]
"""An entry of a set to be."""


def follow_address() -> str:
    """Bring back what the address names, else a first set; the sentence about a link unread."""
    if _KEY not in st.session_state:
        text = st.query_params.get(_ADDRESS, "")
        made = _read(text) if text else None
        st.session_state[_UNREAD] = bool(text) and made is None
        _put(_numbered(made or _ratios()))
        st.session_state[_PAST] = []
    text = _written(entries())
    if len(text) > LONGEST_ADDRESS:
        key = keep({_ADDRESS: text})
        text = key and _BY_KEY + key
    if text and st.query_params.get(_ADDRESS) != text:
        st.query_params[_ADDRESS] = text
    elif not text and _ADDRESS in st.query_params:
        del st.query_params[_ADDRESS]
    if not st.session_state.get(_UNREAD):
        return ""
    return "The link's comparison cannot be read; this is the one that the page begins with."


def entries() -> list[Entry]:
    """What is compared, in order."""
    found: list[Entry] = st.session_state[_KEY]
    return found


def _preset(name: str, overrides: Mapping[str, Any] | None = None) -> Scenario:
    return Scenario(scenario_document(name)[0], overrides or {})


def inputs_of(
    every: Sequence[Entry], budget: Any, *, failures: bool, level_wise: bool
) -> dict[str, Any]:
    """What `nest_core.studies.comparison.compared` takes."""
    listed = [
        {
            "name": one["name"],
            "document": one["scenario"].document,
            "overrides": one["scenario"].overrides,
        }
        for one in every
    ]
    asked = {"entries": listed, "budget": budget, "failures": failures}
    return asked | ({"level_wise": True} if level_wise else {})


def sound(every: Sequence[Entry]) -> tuple[list[Entry], list[str]]:
    """Entries that are scenarios, and a sentence on each that is none."""
    good, told = [], []
    for one in every:
        try:
            _ = one["scenario"].values
        except InputError as error:
            told.append(f"{one['name']} is left out: {error}")
        else:
            good.append(one)
    return good, told


def described(one: Entry) -> str:
    """What an entry is, with the changes that its title does not say; of none, what it asks for."""
    scenario: Scenario = one["scenario"]
    try:
        return pinned_title(scenario.title, scenario.overrides)
    except InputError:
        preset, overrides = over_preset(scenario)
        return f"no scenario: {preset} with {changes_in_words(overrides)}"


def first_scenario(every: Sequence[Entry]) -> ScenarioValues | None:
    """Of entries that are scenarios the first, which others are read against."""
    return every[0]["scenario"].values if every else None


def fabric_choices() -> tuple[str, ...]:
    """Fabrics that a scenario can be put on."""
    return (ITS_OWN, *own_names(), *preset_names("fabrics"))


# Changes, for callbacks.


def add(source: str, fabric: str) -> None:
    """Add a scenario preset, or the one on the Plan page, on its own fabric or another."""
    known = source in (AS_ON_PLAN, *preset_names("scenarios")) and fabric in fabric_choices()
    if len(entries()) >= MOST or not known:
        return
    scenario = _planned() if source == AS_ON_PLAN else _preset(source)
    name = "Plan" if source == AS_ON_PLAN else source
    if fabric != ITS_OWN:
        scenario = _on(scenario, fabric)
        name = fabric
    _change([*entries(), *_numbered([(name, scenario)])])


def same_size_words() -> str:
    """What is put on other fabrics: the devices of the first scenario, by number and name."""
    scenario = first_scenario(sound(entries())[0])
    if scenario is None:
        return "the same devices"
    return f"{scenario.fabric.devices:,} {accelerator_title(scenario.accelerator)}"


def add_same_size(key: str) -> None:
    """Add the first scenario's job on another topology of its size, or at another ratio."""
    picked = said(key, Choice(SAME_SIZE))
    st.session_state[key] = None
    every, _ = sound(entries())
    if picked is None or not every or len(entries()) >= MOST:
        return
    first: Scenario = every[0]["scenario"]
    try:
        scenario = Scenario(first.document, beside(first, picked))
        _ = scenario.values
    except InputError as error:
        st.session_state[_REFUSED] = str(error)
        return
    st.session_state.pop(_REFUSED, None)
    _change([*entries(), *_numbered([(picked, scenario)])])


def refused() -> str:
    """Why the fabric that was last asked for does not exist; empty where it does."""
    return str(st.session_state.get(_REFUSED, ""))


def remove(number: int) -> None:
    """Take an entry out."""
    _change([one for one in entries() if one["id"] != number])


def move(number: int, steps: int) -> None:
    """Move an entry up (negative) or down."""
    every = list(entries())
    ids = [one["id"] for one in every]
    if number in ids and 0 <= (to := ids.index(number) + steps) < len(every):
        every.insert(to, every.pop(ids.index(number)))
        _change(every)


def rename(number: int, key: str) -> None:
    """Give an entry the name that a text field holds, if there is any."""
    name = " ".join(str(st.session_state.get(key, "")).split())[:LONGEST_NAME]
    if name:
        _change([one | {"name": name} if one["id"] == number else one for one in entries()])


def use_set(key: str) -> None:
    """Compare the ready-made set that a choice names, and clear the choice."""
    picked = said(key, Choice(tuple(READY_MADE)))
    if picked is not None:
        _change(_numbered(READY_MADE[picked]()))
        st.session_state[key] = None


def use_inputs(inputs: Mapping[str, Any]) -> None:
    """Compare what a notebook's cell compares, on this page."""
    made = [
        (entry["name"][:LONGEST_NAME], Scenario(entry["document"], entry.get("overrides", {})))
        for entry in inputs["entries"]
    ]
    st.session_state.setdefault(_KEY, [])
    _change(_numbered(made))
    budget = inputs.get("budget") or {}
    kind = budget.get("kind")
    st.session_state["compare.budget"] = next(name for name, of in BUDGETS.items() if of == kind)
    value = budget.get("value")
    in_form = field_of(BUDGET[kind or "price"], empty=True)
    held = in_form.held(None if value is None else value / THOUSAND)
    if held is None:
        st.toast(f"This page cannot ask for a budget of {value:g}: that of the first stands here.")
    st.session_state["compare.budget_value"] = held[0] if held else None
    st.session_state["compare.failures"] = bool(inputs.get("failures", True))
    st.session_state["compare.level_wise"] = bool(inputs.get("level_wise", False))
    use_prices(inputs)
    st.session_state[_OPENS] = True


def go_to_compare() -> None:
    """Go to the Compare page if a callback has set what it compares."""
    if st.session_state.pop(_OPENS, False):
        st.switch_page("pages/compare.py", query_params={})


def start_over() -> None:
    """Back to what the page begins with."""
    _change(_numbered(_ratios()))


def can_undo() -> bool:
    """Whether there is a change to take back."""
    return bool(st.session_state.get(_PAST))


def undo() -> None:
    """Take the last change back, if there is one."""
    if can_undo():
        *past, last = st.session_state[_PAST]
        st.session_state[_PAST] = past
        _put(last)


def _change(every: list[Entry]) -> None:
    st.session_state[_PAST] = [*st.session_state.get(_PAST, []), entries()][-STEPS:]
    st.session_state[_UNREAD] = False
    st.session_state.pop(_REFUSED, None)
    _put(every)


def _put(every: list[Entry]) -> None:
    """Names are told apart: a later one of the same name gets a number."""
    named: list[Entry] = []
    taken: set[str] = set()
    for one in every:
        name, count = one["name"], 1
        while name in taken:
            count += 1
            name = f"{one['name'][: LONGEST_NAME - 5]} ({count})"
        taken.add(name)
        named.append(one | {"name": name})
    st.session_state[_KEY] = named


def _numbered(made: Sequence[Named]) -> list[Entry]:
    """Entries of their own: a widget belongs to an entry, not to a place in the list."""
    start = int(st.session_state.get(_NEXT, 0))
    st.session_state[_NEXT] = start + len(made)
    return [
        {"id": start + index, "name": name, "scenario": scenario}
        for index, (name, scenario) in enumerate(made)
    ]


# Ready-made sets.


def _planned() -> Scenario:
    """What the Plan page last showed, else its default."""
    planned: Scenario | None = st.session_state.get("last good")
    return planned or _preset(DEFAULT_SCENARIO)


def _ratios() -> list[Named]:
    """The Plan page's job at 1:1, 2:1 and 4:1 of the innermost tier that has a ratio."""
    scenario = _planned()
    ratios = ratio_parameters(scenario.fabric_table)
    if not ratios:
        scenario = _preset(DEFAULT_SCENARIO)
        ratios = ratio_parameters(scenario.fabric_table)
    return [_at_ratio(scenario, ratios[0].key, ratio) for ratio in (1.0, 2.0, 4.0)]


def _at_ratio(scenario: Scenario, key: str, ratio: float) -> Named:
    """An entry named by what its ratio comes to in whole ports; as asked where it is no fabric."""
    moved = Scenario(scenario.document, {**scenario.overrides, key: ratio})
    realised: tuple[float, ...] = ()
    with suppress(InputError):  # the page leaves the entry out and says why
        realised = moved.fabric.ratios
    return format_ratio((*realised, ratio)[0]), moved


def _fabrics(preset: str, fabrics: Mapping[str, str]) -> list[Named]:
    return [(name, _on(_preset(preset), fabric)) for name, fabric in fabrics.items()]


def _on(scenario: Scenario, fabric: str) -> Scenario:
    """The same job on another fabric, which keeps nothing of the first one's."""
    overrides = {
        key: value
        for key, value in scenario.overrides.items()
        if key != "fabric" and not key.startswith("fabric.")
    }
    overrides["fabric"] = fabric if fabric in preset_names("fabrics") else fabric_document(fabric)
    return Scenario(scenario.document, overrides)


READY_MADE: Mapping[str, Callable[[], list[Named]]] = {
    "Plan's job at 1:1, 2:1, 4:1": _ratios,
    "Rail-optimised, spine-leaf, rail-only (1,024 H100)": lambda: _fabrics(
        "llama3-70b-1024-h100",
        {
            "Rail-optimised": "dgx-superpod-h100",
            "Spine-leaf": "h100-spine-leaf-1024",
            "Rail-only": "rail-only-1024",
        },
    ),
    "Switches, mesh, torus (64 H100)": lambda: _fabrics(
        "llama2-7b-64-h100",
        {
            "Spine-leaf": "h100-spine-leaf-64",
            "Mesh in the node": "mi300x-mesh-64",
            "Torus": "tpu-v4-4x4x4",
        },
    ),
}
"""What architects compare most: the same job on other fabrics."""


# The address.


def _written(every: Sequence[Entry]) -> str:
    listed = [[one["name"], *over_preset(one["scenario"])] for one in every]
    return json.dumps(listed, separators=(",", ":"), ensure_ascii=False)


def _read(text: str) -> list[Named] | None:
    """The entries of an address, or None where it holds none."""
    if text.startswith(_BY_KEY):
        text = (recall(text.removeprefix(_BY_KEY)) or {}).get(_ADDRESS, "")
    try:
        listed = json.loads(text)
        check_plain("the comparison", listed)
    except (ValueError, RecursionError):  # no JSON, or InputError
        return None
    if not isinstance(listed, list) or not 1 <= len(listed) <= MOST:
        return None
    known = preset_names("scenarios")
    made: list[Named] = []
    for one in listed:
        if not (isinstance(one, list) and len(one) == 3):
            return None
        name, scenario, overrides = one
        named = isinstance(name, str) and name.strip()
        if not named or scenario not in known or not isinstance(overrides, dict):
            return None
        made.append((name.strip()[:LONGEST_NAME], _preset(scenario, overrides)))
    return made
