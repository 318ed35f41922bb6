"""One parameter of a sweep: its values, and what a value changes in a scenario.

It turns a value into overrides of the scenario's document, so that every point of a study is a
scenario that can be written down, opened and planned by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nest_core.errors import InputError
from nest_core.schema import Parameter
from nest_core.units import format_ratio

__all__ = [
    "SweepParameter",
    "Value",
    "distinct",
    "parameter_named",
    "parse_values",
    "renamed",
    "value_words",
    "with_values",
]

Value = int | float | str
Changes = Callable[[Any], dict[str, Any]]
MOST_VALUES = 40


@dataclass(frozen=True, slots=True)
class SweepParameter:
    """A parameter that a scenario has, to be swept.

    Parameters
    ----------
    key : str
        How requests and addresses name it.
    of : Parameter
        The entry of the catalogue with its bounds and unit.
    label : str
        What it is called in this scenario.
    defaults : tuple of value
        Worth a sweep, in order.
    present : value or None
        What the scenario has; None where the search chooses.
    doubling : bool
        Whether a step is a factor rather than a difference.
    fabric : bool
        Whether it changes the fabric.
    note : str
        What stays as it is while it varies.
    """

    key: str
    of: Parameter
    label: str
    defaults: tuple[Value, ...]
    present: Value | None
    _changes: Changes
    doubling: bool = False
    fabric: bool = False
    note: str = ""

    @property
    def unit(self) -> str:
        """Empty where a value speaks for itself."""
        return self.of.unit

    @property
    def title(self) -> str:
        """Label and unit, for an axis or a widget."""
        return f"{self.label}, {self.unit}" if self.unit else self.label

    def overrides(self, value: Value) -> dict[str, Any]:
        """Dotted keys of a scenario document and what this value makes of them.

        Raises
        ------
        InputError
            If no fabric of this shape has the value.
        """
        return self._changes(value)

    def words(self, value: Value) -> str:
        """A value as axes and labels show it.

        Examples
        --------
        >>> from nest_core.scenario import scenario_document
        >>> from nest_core.studies.parameters import sweep_parameters
        >>> document, _ = scenario_document("llama2-7b-64-h100")
        >>> found = sweep_parameters(document, {})
        >>> parameter_named(found, "zero").words(3), parameter_named(found, "devices").words(1024)
        ('ZeRO 3', '1,024')
        """
        return value_words(self.key, value)


def value_words(key: str, value: Value | None) -> str:
    """Return a value of a parameter as axes and labels show it."""
    if key == "zero":
        return f"ZeRO {value}"
    if key.startswith("oversubscription") and isinstance(value, int | float):
        return format_ratio(value, 6)
    return f"{value:,.12g}" if isinstance(value, int | float) else str(value)


def parameter_named(
    found: Iterable[SweepParameter], key: object, field: str = "parameter"
) -> SweepParameter:
    """One of them by its key."""
    by_key = {parameter.key: parameter for parameter in found}
    if not isinstance(key, str) or key not in by_key:
        raise InputError(
            field, "must be one that this scenario has", key, "pick " + ", ".join(by_key)
        )
    return by_key[key]


def renamed(swept: Any) -> Any:
    """What a sweep varies under the name it has now; notebooks written before call it a knob."""
    if isinstance(swept, Mapping) and swept.keys() == {"knob", "values"}:
        return {"parameter": swept["knob"], "values": swept["values"]}
    return swept


def parse_values(parameter: SweepParameter, text: str) -> tuple[Value, ...]:
    """Values that a person wrote, separated by commas; in order, each once.

    Raises
    ------
    InputError
        If one is no value of the parameter, there is none, or there are more than forty.

    Examples
    --------
    >>> from nest_core.scenario import scenario_document
    >>> from nest_core.studies.parameters import sweep_parameters
    >>> document, _ = scenario_document("llama2-7b-64-h100")
    >>> parse_values(parameter_named(sweep_parameters(document, {}), "zero"), "3, 0,1, 3")
    (0, 1, 3)
    """
    parts = [part.strip() for part in text.replace(";", ",").split(",")]
    return distinct(parameter, [parameter.of.read(part) for part in parts if part], parameter.label)


def distinct(parameter: SweepParameter, values: Sequence[object], field: str) -> tuple[Value, ...]:
    """Values checked and in order, each once."""
    if not 1 <= len(values) <= MOST_VALUES:
        raise InputError(
            field, f"must have 1 to {MOST_VALUES} values", len(values), "write 1, 2, 4"
        )
    found = dict.fromkeys(parameter.of.checked(value) for value in values)
    if parameter.of.choices:
        return tuple(choice for choice in parameter.of.choices if choice in found)
    return tuple(sorted(found))


def with_values(
    overrides: Mapping[str, Any], pairs: Iterable[tuple[SweepParameter, Value]]
) -> dict[str, Any]:
    """Overrides with parameters turned; what a parameter sets comes last."""
    turned = dict(overrides)
    for parameter, value in pairs:
        for key, setting in parameter.overrides(value).items():
            turned.pop(key, None)
            turned[key] = setting
    return turned
