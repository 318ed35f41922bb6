"""What the pins ask for that a lesson can show or a page can open again: the shape of their inputs.

What the values mean is checked by whoever computes them. Scenarios name presets or hold tables,
never files: a notebook is passed around, and what it names must not be read from here.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, create_model

from nest_core.documents.errors import InputError
from nest_core.documents.schema import SchemaTable, check_plain, checked
from nest_core.scenario import Scenario
from nest_core.studies.parameters import renamed

__all__ = ["SCENARIO_KINDS", "checked_inputs"]


def _table(**fields: Any) -> type[BaseModel]:
    """Return a table of these fields: types, with their defaults where they may be left out."""
    defined: dict[str, Any] = {
        name: field if isinstance(field, tuple) else (field, ...) for name, field in fields.items()
    }
    return create_model("Inputs", __base__=SchemaTable, **defined)


_SCENARIO: dict[str, Any] = {"document": dict[str, Any], "overrides": (dict[str, Any], {})}
_AXIS: Any = _table(parameter=str, values=list[str | int | float])
_BUDGET: Any = _table(kind=Literal["price", "power"], value=(float | None, None))
_ENTRY: Any = _table(name=str, **_SCENARIO)
_PART: Any = _table(model=str | dict[str, Any], share=float)
_TABLES: Mapping[str, type[BaseModel]] = {
    "plan": _table(**_SCENARIO),
    "sweep": _table(**_SCENARIO, x=_AXIS, y=(_AXIS | None, None)),
    "comparison": _table(
        entries=list[_ENTRY],
        budget=(_BUDGET | None, None),
        failures=(bool, True),
        level_wise=(bool, False),
        device_usd=(float | None, None),
        prices=(dict[str, float | str] | None, None),
        assumed=(dict[str, float | str | None] | None, None),
    ),
    "ratios": _table(**_SCENARIO, mix=list[_PART], loss=float),
}
SCENARIO_KINDS = tuple(_TABLES)
"""Kinds of pins whose figures are of scenarios."""


def checked_inputs(kind: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of a pin, with the overrides that it may leave out.

    Parameters
    ----------
    kind : str
        One of `SCENARIO_KINDS`.
    inputs : mapping

    Raises
    ------
    InputError
        If they are not of this kind, or a scenario in them is none or names a file.
    """
    check_plain("inputs", inputs)
    renamed_inputs = {key: renamed(value) for key, value in inputs.items()}
    result = checked(_TABLES[kind], renamed_inputs, "inputs.").model_dump(exclude_unset=True)
    if kind == "comparison" and not 2 <= len(result["entries"]) <= 6:
        raise InputError(
            "inputs.entries", "must be two to six", len(result["entries"]), "change it"
        )
    scenarios = result["entries"] if kind == "comparison" else [result]
    for scenario in scenarios:
        scenario.setdefault("overrides", {})
        _ = Scenario(scenario["document"], scenario["overrides"]).values  # which checks it
    return result
