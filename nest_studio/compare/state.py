"""Which scenarios are compared: a list in the session, in the address, and in ready-made sets.

An entry is a scenario with a name. The address carries all of them as one short text, so that a
link or a reload brings the comparison back; where drawings make it long, the store keeps it and
the address says under which key.
"""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from nest_core.documents import InputError, format_ratio, preset_names
from nest_core.documents.schema import check_plain, in_labels
from nest_core.fabric.same_size import KINDS
from nest_core.scenario import Scenario, accelerator_title, fabric_title, scenario_document
from nest_core.studies.comparison import BUDGET_OF, LONGEST_NAME, MOST, Comparison
from nest_core.studies.designs import beside
from nest_core.studies.parameters import ratio_parameters
from nest_studio.form import (
    DEFAULT_SCENARIO,
    OneOf,
    changes_in_words,
    fabric_document,
    field_of,
    own_names,
    pinned_title,
    use_prices,
    widget_value,
)
from nest_studio.plan.state import planned_scenario
from nest_studio.session.history import History
from nest_studio.session.open_plan import OPENS, over_preset
from nest_studio.session.stored import address, keep, recall, session_value, write_address

__all__ = [
    "AS_ON_PLAN",
    "BUDGET",
    "BUDGETS",
    "ITS_OWN",
    "READY_MADE",
    "SAME_SIZE",
    "THOUSAND",
    "CompareEntry",
    "ComparePage",
    "add",
    "add_same_size",
    "compare_fabric",
    "compare_page",
    "described",
    "entries",
    "fabric_choices",
    "follow_address",
    "inputs_of",
    "move",
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
RAILS = ("rail-optimised 2:1", "rail-optimised 4:1")
SAME_SIZE = (*KINDS, *RAILS, *(map(format_ratio, (1, 2, 3, 4, 8))))
"""What the first scenario's devices and NICs can be put on with one click."""
THOUSAND = 1000.0
BUDGETS = {"none": None, "network price": "price", "network power": "power"}
BUDGET = {
    "price": BUDGET_OF["price"].scaled(1 / THOUSAND, "k$"),
    "power": BUDGET_OF["power"].scaled(1 / THOUSAND, "kW"),
}
"""As a form asks for them, in thousands."""
_ADDRESS = "compare"
_BY_KEY = "kept."

NamedScenario = tuple[str, Scenario]
"""An entry of a set to be."""


@dataclass(frozen=True, slots=True)
class CompareEntry:
    """A scenario that is compared; widgets belong to its number, not to a place in the list."""

    number: int
    name: str
    scenario: Scenario


@dataclass
class ComparePage:
    """What Compare keeps of a session.

    Parameters
    ----------
    history : History or None
        Of what is compared, in order; None before the page was drawn.
    numbers : iterator of int
        Of entries, each once in a session.
    is_unread : bool
        Whether the link's comparison could not be read.
    refused : str
        Why the fabric that was last asked for does not exist; empty where it does.
    answer : (str, Comparison, dict) or None
        The last answer, with its jobs' keys and what it was asked.
    places : frozenset of str
        Where its designs are wanted.
    """

    history: History[tuple[CompareEntry, ...]] | None = None
    numbers: Iterator[int] = field(default_factory=itertools.count)
    is_unread: bool = False
    refused: str = ""
    answer: tuple[str, Comparison, dict[str, Any]] | None = None
    places: frozenset[str] = frozenset()

    def numbered(self, scenarios: Sequence[NamedScenario]) -> tuple[CompareEntry, ...]:
        """Return new entries."""
        return tuple(
            CompareEntry(next(self.numbers), name, scenario) for name, scenario in scenarios
        )

    def change(self, listed: Sequence[CompareEntry]) -> None:
        """Compare these from now on; names are told apart, a later one gets a number."""
        by_name: dict[str, CompareEntry] = {}
        for entry in listed:
            name, count = entry.name, 1
            while name in by_name:
                count += 1
                name = f"{entry.name[: LONGEST_NAME - 5]} ({count})"
            by_name[name] = replace(entry, name=name)
        step = tuple(by_name.values())
        self.history = self.history.changed(step) if self.history else History(step)
        self.is_unread, self.refused = False, ""


def compare_page() -> ComparePage:
    """Return what this session's Compare keeps."""
    return session_value(ComparePage)


def follow_address() -> str:
    """Bring back what the address names, else a first set; the sentence about a link unread."""
    page = compare_page()
    if page.history is None:
        text = address(_ADDRESS)
        scenarios = _read(text) if text else None
        page.change(page.numbered(scenarios or _ratios()))
        page.is_unread = bool(text) and scenarios is None
    listed = [[entry.name, *over_preset(entry.scenario)] for entry in entries()]
    text = json.dumps(listed, separators=(",", ":"), ensure_ascii=False)
    if len(text) > LONGEST_ADDRESS:
        key = keep({_ADDRESS: text})
        text = key and _BY_KEY + key
    write_address(_ADDRESS, text)
    return (
        ""
        if not page.is_unread
        else "The link's comparison cannot be read; this is the one that the page begins with."
    )


def entries() -> tuple[CompareEntry, ...]:
    """Return what is compared, in order; nothing before the page was drawn."""
    history = compare_page().history
    return history.present if history else ()


def _preset(name: str, overrides: Mapping[str, Any] | None = None) -> Scenario:
    return Scenario(scenario_document(name)[0], overrides or {})


def inputs_of(listed: Sequence[CompareEntry], asks: Mapping[str, Any]) -> dict[str, Any]:
    """Return a comparison's question as a notebook keeps it."""
    rows = [
        {
            "name": entry.name,
            "document": entry.scenario.document,
            "overrides": entry.scenario.overrides,
        }
        for entry in listed
    ]
    return {"entries": rows, **asks}


def sound(listed: Sequence[CompareEntry]) -> tuple[list[CompareEntry], list[str]]:
    """Return the entries that are scenarios, and a sentence on each that is none."""
    good, sentences = [], []
    for entry in listed:
        try:
            _ = entry.scenario.values
        except InputError as error:
            sentences.append(f"{entry.name} is left out: {in_labels(str(error))}")
        else:
            good.append(entry)
    return good, sentences


def described(entry: CompareEntry) -> str:
    """Return what an entry is, with the changes that its title does not say, or what it asks."""
    scenario = entry.scenario
    try:
        return pinned_title(scenario.title, scenario.overrides)
    except InputError:
        preset, overrides = over_preset(scenario)
        return f"no scenario: {preset} with {changes_in_words(overrides)}"


def fabric_choices() -> tuple[str, ...]:
    """Return the fabrics that a scenario can be put on."""
    return (ITS_OWN, *own_names(), *preset_names("fabrics"))


# Changes, for callbacks.


def add(source: str, fabric: str) -> None:
    """Add a scenario preset, or the one on the Plan page, on its own fabric or another."""
    is_offered = source in (AS_ON_PLAN, *preset_names("scenarios")) and fabric in fabric_choices()
    if len(entries()) >= MOST or not is_offered:
        return
    scenario, name = (
        (planned_scenario(), "Plan") if source == AS_ON_PLAN else (_preset(source), source)
    )
    if fabric != ITS_OWN:
        scenario, name = _on(scenario, fabric), fabric
    _compare([(name, scenario)], entries())


def same_size_words() -> str:
    """Return what is put on other fabrics: the devices of the first scenario, number and name."""
    good, _ = sound(entries())
    if not good:
        return "the same devices"
    first = good[0].scenario.values
    return f"{first.fabric.devices:,} {accelerator_title(first.accelerator)}"


def add_same_size(key: str) -> None:
    """Add the first scenario's job on another topology of its size, or at another ratio."""
    picked = widget_value(key, OneOf(SAME_SIZE))
    st.session_state[key] = None
    good, _ = sound(entries())
    if picked is None or not good or len(entries()) >= MOST:
        return
    first = good[0].scenario
    try:
        scenario = Scenario(first.document, beside(first, picked))
        _ = scenario.values
    except InputError as error:
        compare_page().refused = in_labels(
            f"{picked} {error.rule}: {error.remedy}." if error.field == "--compare" else str(error)
        )
        return
    _compare([(picked, scenario)], entries())


def remove(number: int) -> None:
    """Take an entry out."""
    compare_page().change([entry for entry in entries() if entry.number != number])


def move(number: int, steps: int) -> None:
    """Move an entry up (negative) or down."""
    listed = list(entries())
    numbers = [entry.number for entry in listed]
    if number in numbers and 0 <= (to := numbers.index(number) + steps) < len(listed):
        listed.insert(to, listed.pop(numbers.index(number)))
        compare_page().change(listed)


def rename(number: int, key: str) -> None:
    """Give an entry the name that a text field has, if there is any."""
    name = " ".join(str(st.session_state.get(key, "")).split())[:LONGEST_NAME]
    if name:
        compare_page().change(
            [replace(entry, name=name) if entry.number == number else entry for entry in entries()]
        )


def use_set(key: str) -> None:
    """Compare the ready-made set that a choice names, and clear the choice."""
    picked = widget_value(key, OneOf(tuple(READY_MADE)))
    if picked is not None:
        preset, fabrics = READY_MADE[picked]
        on_fabrics = [(name, _on(_preset(preset), fabric)) for name, fabric in fabrics.items()]
        _compare(on_fabrics or _ratios())
        st.session_state[key] = None


def _compare(scenarios: Sequence[NamedScenario], before: Sequence[CompareEntry] = ()) -> None:
    compare_page().change((*before, *compare_page().numbered(scenarios)))


def use_inputs(inputs: Mapping[str, Any]) -> None:
    """Compare what a notebook's cell compares, on this page."""
    if compare_page().history is None:
        compare_page().change(())  # so that undo has something to go back to
    _compare(
        [
            (entry["name"][:LONGEST_NAME], Scenario(entry["document"], entry.get("overrides", {})))
            for entry in inputs["entries"]
        ]
    )
    budget = inputs.get("budget") or {}
    kind, value = budget.get("kind"), budget.get("value")
    fitted = field_of(BUDGET[kind or "price"], empty=True).fit(
        None if value is None else value / THOUSAND
    )
    if fitted is None:
        st.toast(f"This page cannot ask for a budget of {value:g}: that of the first stands here.")
    st.session_state.update(
        {
            "compare.budget": next(name for name, of in BUDGETS.items() if of == kind),
            "compare.budget_value": fitted[0] if fitted else None,
            "compare.failures": bool(inputs.get("failures", True)),
            "compare.level_wise": bool(inputs.get("level_wise", False)),
        }
    )
    use_prices(inputs)
    st.session_state[OPENS] = "compare", dict[str, Any]()


def compare_fabric(scenario: Scenario) -> None:
    """Compare the Plan page's job on its own fabric and on that of a scenario, by its title."""
    planned, name = planned_scenario(), fabric_title(scenario.fabric)
    _compare([("Plan", planned), (name[:LONGEST_NAME], _on(planned, scenario.fabric_table))])


def start_over() -> None:
    """Go back to what the page begins with."""
    _compare(_ratios())


def undo() -> None:
    """Take the last change back, if there is one."""
    page = compare_page()
    if page.history:
        page.history = page.history.undone()


# Ready-made sets.


def _ratios() -> list[NamedScenario]:
    """Return the Plan page's job at 1:1, 2:1 and 4:1 of the innermost tier that has a ratio."""
    scenario = planned_scenario()
    ratios = ratio_parameters(scenario.fabric_table)
    if not ratios:
        scenario = _preset(DEFAULT_SCENARIO)
        ratios = ratio_parameters(scenario.fabric_table)
    entries: list[NamedScenario] = []
    for ratio in (1.0, 2.0, 4.0):
        moved = Scenario(scenario.document, {**scenario.overrides, ratios[0].key: ratio})
        name = format_ratio(ratio)
        with suppress(InputError):  # the page leaves the entry out and says why
            name = format_ratio((*moved.fabric.ratios, ratio)[0])  # in whole ports
        entries.append((name, moved))
    return entries


def _on(scenario: Scenario, fabric: str | dict[str, Any]) -> Scenario:
    """Return the same job on another fabric, which keeps nothing of the first one's."""
    overrides = {
        key: value
        for key, value in scenario.overrides.items()
        if key != "fabric" and not key.startswith("fabric.")
    }
    if isinstance(fabric, str) and fabric not in preset_names("fabrics"):
        fabric = fabric_document(fabric)
    return Scenario(scenario.document, overrides | {"fabric": fabric})


READY_MADE: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "Plan's job at 1:1, 2:1, 4:1": ("", {}),
    "Rail-optimised, spine-leaf, rail-only (1,024 H100)": (
        "llama3-70b-1024-h100",
        {
            "Rail-optimised": "dgx-superpod-h100",
            "Spine-leaf": "h100-spine-leaf-1024",
            "Rail-only": "rail-only-1024",
        },
    ),
    "Switches, mesh, torus (64 H100)": (
        "llama2-7b-64-h100",
        {
            "Spine-leaf": "h100-spine-leaf-64",
            "Mesh in the node": "mi300x-mesh-64",
            "Torus": "tpu-v4-4x4x4",
        },
    ),
}
"""What architects compare most, by title: a scenario preset on other fabrics, by their names."""


def _read(text: str) -> list[NamedScenario] | None:
    """Return the entries of an address, or None where it has none."""
    if text.startswith(_BY_KEY):
        text = (recall(text.removeprefix(_BY_KEY)) or {}).get(_ADDRESS, "")
    try:
        listed = json.loads(text)
        check_plain("the comparison", listed)
    except (ValueError, RecursionError):  # no JSON, or InputError
        return None
    if not isinstance(listed, list) or not 1 <= len(listed) <= MOST:
        return None
    scenarios: list[NamedScenario] = []
    for entry in listed:
        match entry:
            case [str(name), str(preset), {}] if name.strip() and preset in preset_names(
                "scenarios"
            ):
                scenarios.append((name.strip()[:LONGEST_NAME], _preset(preset, entry[2])))
            case _:
                return None
    return scenarios
