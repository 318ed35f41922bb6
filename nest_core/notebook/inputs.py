"""What cells ask for: plain JSON that means the same on any machine.

Scenarios in a notebook name presets or hold tables, never files: a notebook is passed around,
and what a stranger's file names must not be read from here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from nest_core.errors import InputError
from nest_core.notebook.cells import CellKind
from nest_core.presets import named_file
from nest_core.schema import check_plain, checked
from nest_core.studies.knob import MOST_VALUES

__all__ = ["portable"]

MOST_ENTRIES = 6


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class PlanInputs(_Table):
    """A scenario: its document and the overrides by dotted key."""

    document: dict[str, Any]
    overrides: dict[str, Any] = {}


class KnobTable(_Table):
    """A knob and the values that it takes."""

    knob: Annotated[str, Field(max_length=200)]
    values: Annotated[list[str | int | float], Field(max_length=MOST_VALUES)]


class SweepInputs(PlanInputs):
    """A scenario and the knobs that are turned; `nest_core.studies.sweep` checks the knobs."""

    x: KnobTable
    y: KnobTable | None = None


class EntryInputs(PlanInputs):
    """One scenario of a comparison."""

    name: Annotated[str, Field(min_length=1, max_length=200)]


class BudgetTable(_Table):
    """What a network may cost, US dollars, or draw, watts; without a value, as the first."""

    kind: Literal["price", "power"]
    value: Annotated[float, Field(gt=0, lt=1e15)] | None = None


class ComparisonInputs(_Table):
    """Scenarios side by side, and what they may cost."""

    entries: Annotated[list[EntryInputs], Field(min_length=2, max_length=MOST_ENTRIES)]
    budget: BudgetTable | None = None
    failures: bool = True
    device_usd: Annotated[float, Field(ge=0, lt=1e9)] | None = None


class PartTable(_Table):
    """A model of a mix and its part of the time."""

    model: str | dict[str, Any]
    share: Annotated[float, Field(gt=0, lt=1e9)]


class RatiosInputs(PlanInputs):
    """A scenario, a mix of models and a limit; `nest_core.studies.ratios` checks the shares."""

    mix: Annotated[list[PartTable], Field(min_length=1, max_length=MOST_ENTRIES)]
    loss: float


class NoInputs(_Table):
    """Notes ask for nothing."""


_TABLES: Mapping[CellKind, type[_Table]] = {
    "plan": PlanInputs,
    "sweep": SweepInputs,
    "comparison": ComparisonInputs,
    "ratios": RatiosInputs,
    "note": NoInputs,
}
_NAMED = {
    "fabric": ("fabrics", ".toml"),
    "workload.model": ("models", ".toml"),
    "accelerator": ("accelerators", ".toml"),
    "accelerator.profile": ("profiles", ".json"),
}


def portable(kind: CellKind, inputs: Mapping[str, Any], where: str = "inputs") -> dict[str, Any]:
    """Inputs as a notebook keeps them, checked.

    Parameters
    ----------
    kind : CellKind
    inputs : mapping
    where : str
        What messages call them.

    Raises
    ------
    InputError
        If they are not of this kind, or a scenario names a file.
    """
    found = dict(inputs)
    check_plain(where, found)
    checked(_TABLES[kind], found, f"{where}.")
    if "entries" in found:
        for number, entry in enumerate(found["entries"]):
            _check_names(entry, f"{where}.entries[{number}]")
    elif found:
        _check_names(found, where)
    for number, entry in enumerate(found.get("mix", ())):
        _check_name("workload.model", entry.get("model"), f"{where}.mix[{number}].model")
    return found


def _check_names(scenario: Mapping[str, Any], where: str) -> None:
    own = scenario["document"].get("override", {})
    if not isinstance(own, Mapping):
        raise InputError(f"{where}.document.override", "must be a table", own, "write one")
    for part in ("document", "overrides"):
        for key, value in _leaves(scenario.get(part, {}), ""):
            _check_name(key.removeprefix("override."), value, f"{where}.{part}.{key}")


def _check_name(key: str, value: object, where: str) -> None:
    """Refuse text under a key that names something, unless it names a preset."""
    if key in _NAMED and isinstance(value, str):
        kind, ending = _NAMED[key]
        named_file(kind, value, None, field=where, ending=ending, table=ending == ".toml")


def _leaves(table: Mapping[str, Any], before: str) -> Iterator[tuple[str, Any]]:
    """Dotted keys and values of a table and the tables in it."""
    for name, value in table.items():
        key = f"{before}{name}"
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{key}.")
        else:
            yield key, value
