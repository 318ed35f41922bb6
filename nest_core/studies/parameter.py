"""One parameter of a sweep: its values, and what a value changes in a scenario.

It turns a value into overrides of the scenario's document, so that every point of a study is a
scenario that can be written down, opened and planned by itself.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nest_core.documents.errors import InputError
from nest_core.documents.schema import Parameter

__all__ = [
    "Value",
    "distinct",
    "parameter_named",
    "parse_values",
    "renamed",
    "with_values",
]

Value = int | float | str
MOST_VALUES = 40


def parameter_named(
    available: Sequence[Parameter], name: str, field: str = "parameter"
) -> Parameter:
    """Return the parameter of a name; of a family, as of all tiers' ratios, the first.

    Raises
    ------
    InputError
        If the scenario has none; the nearest name is the remedy.
    """
    families = {each.name.partition(".")[0]: each for each in reversed(available)}
    by_name = families | {each.name: each for each in available}
    if name in by_name:
        return by_name[name]
    near = difflib.get_close_matches(name, [*by_name, *(each.key for each in available)], 1)
    hint = f"write {near[0]}" if near else "pick " + ", ".join(each.name for each in available)
    raise InputError(field, "must be a parameter of the scenario", name, hint)


def renamed(swept: Any) -> Any:
    """What a sweep varies under the name it has now; notebooks written before call it a knob."""
    if isinstance(swept, Mapping) and swept.keys() == {"knob", "values"}:
        return {"parameter": swept["knob"], "values": swept["values"]}
    return swept


def parse_values(parameter: Parameter, text: str) -> tuple[Value, ...]:
    """Values that a person wrote, separated by commas; in order, each once.

    Raises
    ------
    InputError
        If one is no value of the parameter, there is none, or there are more than forty.

    Examples
    --------
    >>> from nest_core.scenario import Scenario, scenario_document
    >>> from nest_core.studies.parameters import sweep_parameters
    >>> document, _ = scenario_document("llama2-7b-64-h100")
    >>> parse_values(parameter_named(sweep_parameters(Scenario(document)), "zero"), "3, 0,1, 3")
    (0, 1, 3)
    """
    parts = [part.strip() for part in text.replace(";", ",").split(",")]
    return distinct(parameter, [parameter.read(part) for part in parts if part], parameter.label)


def distinct(parameter: Parameter, values: Sequence[object], field: str) -> tuple[Value, ...]:
    """Values checked and in order, each once."""
    if not 1 <= len(values) <= MOST_VALUES:
        raise InputError(
            field, f"must have 1 to {MOST_VALUES} values", len(values), "write 1, 2, 4"
        )
    found = dict.fromkeys(parameter.checked(value) for value in values)
    if parameter.choices:
        return tuple(choice for choice in parameter.choices if choice in found)
    return tuple(sorted(found))


def with_values(
    overrides: Mapping[str, Any], pairs: Iterable[tuple[Parameter, Value]]
) -> dict[str, Any]:
    """Overrides with parameters turned; what a parameter sets comes last."""
    turned = dict(overrides)
    for parameter, value in pairs:
        for key, setting in parameter.overrides(value).items():
            turned.pop(key, None)
            turned[key] = setting
    return turned
