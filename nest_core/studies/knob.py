"""One knob of a study: its range, its values, and what a value changes in a scenario.

A knob turns a value into overrides of the scenario's document, so that every point of a study is
a scenario that can be written down, opened and planned by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nest_core.errors import InputError

__all__ = ["Knob", "Value", "distinct", "knob_named", "number_knob", "parse_values", "with_values"]

Value = int | float | str
Changes = Callable[[Any], dict[str, Any]]
MOST_VALUES = 40


@dataclass(frozen=True, slots=True)
class Knob:
    """Something to turn.

    Parameters
    ----------
    key : str
        How requests and addresses name it.
    label, unit : str
        What it is called; empty where a value speaks for itself.
    low, high : float
        Allowed range, ends included; unused where there are ``choices``.
    whole : bool
        Whether values are integers.
    choices : tuple of str
        The only values there are, where it has no range.
    defaults : tuple of value
        Worth a sweep, in order.
    present : value or None
        What the scenario has; None where the search chooses.
    doubling : bool
        Whether a step is a factor rather than a difference.
    fabric : bool
        Whether it changes the fabric.
    note : str
        What stays as it is while it turns.
    """

    key: str
    label: str
    unit: str
    low: float
    high: float
    whole: bool
    choices: tuple[str, ...]
    defaults: tuple[Value, ...]
    present: Value | None
    doubling: bool
    fabric: bool
    note: str
    _changes: Changes

    @property
    def title(self) -> str:
        """Label and unit, for an axis or a widget."""
        return f"{self.label}, {self.unit}" if self.unit else self.label

    @property
    def allowed(self) -> str:
        """The range, or the choices, in words."""
        if self.choices:
            return " or ".join(self.choices)
        kind = "whole numbers " if self.whole else ""
        return f"{kind}{self.low:,.12g} to {self.high:,.12g}"

    def checked(self, value: object, field: str = "") -> Value:
        """A value as this knob takes it.

        Raises
        ------
        InputError
            If it is no value of this knob.
        """
        name = field or self.label
        if self.choices:
            if value not in self.choices:
                raise InputError(name, f"must be {self.allowed}", value, "pick one of them")
            return str(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(name, "must be a number", value, f"give {self.allowed}")
        if not self.low <= value <= self.high or (self.whole and value != int(value)):
            raise InputError(name, f"must lie in {self.allowed}", value, "change or remove it")
        return int(value) if self.whole else float(value)

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
        >>> from nest_core.studies.knobs import knobs
        >>> document, _ = scenario_document("llama2-7b-64-h100")
        >>> found = knobs(document, {})
        >>> knob_named(found, "zero").words(3), knob_named(found, "devices").words(1024)
        ('ZeRO 3', '1,024')
        """
        if self.key == "zero":
            return f"ZeRO {value}"
        if self.key.startswith("oversubscription"):
            return f"{value:g}:1"
        return value if isinstance(value, str) else f"{value:,.12g}"


def knob_named(found: Iterable[Knob], key: object, field: str = "knob") -> Knob:
    """One of them by its key."""
    by_key = {knob.key: knob for knob in found}
    if not isinstance(key, str) or key not in by_key:
        raise InputError(
            field, "must be one that this scenario has", key, "pick " + ", ".join(by_key)
        )
    return by_key[key]


def parse_values(knob: Knob, text: str) -> tuple[Value, ...]:
    """Values that a person wrote, separated by commas; in order, each once.

    Raises
    ------
    InputError
        If one is no value of the knob, there is none, or there are more than forty.

    Examples
    --------
    >>> from nest_core.scenario import scenario_document
    >>> from nest_core.studies.knobs import knobs
    >>> document, _ = scenario_document("llama2-7b-64-h100")
    >>> parse_values(knob_named(knobs(document, {}), "zero"), "3, 0,1, 3")
    (0, 1, 3)
    """
    parts = [part.strip() for part in text.replace(";", ",").split(",")]
    return distinct(knob, [_read(knob, part) for part in parts if part], knob.label)


def distinct(knob: Knob, values: Sequence[object], field: str) -> tuple[Value, ...]:
    """Values checked and in order, each once."""
    if not 1 <= len(values) <= MOST_VALUES:
        raise InputError(
            field, f"must have 1 to {MOST_VALUES} values", len(values), "write 1, 2, 4"
        )
    found = dict.fromkeys(knob.checked(value, field) for value in values)
    if knob.choices:
        return tuple(choice for choice in knob.choices if choice in found)
    return tuple(sorted(found))


def _read(knob: Knob, text: str) -> Value:
    if knob.choices:
        return text
    try:
        number = float(text)
    except ValueError:
        rule = "must be numbers with commas between"
        raise InputError(knob.label, rule, text, "write 1, 2, 4") from None
    if not math.isfinite(number):
        raise InputError(knob.label, "must be a finite number", text, "change or remove it")
    return int(number) if number == int(number) else number


def with_values(
    overrides: Mapping[str, Any], pairs: Iterable[tuple[Knob, Value]]
) -> dict[str, Any]:
    """Overrides with knobs turned; what a knob sets comes last."""
    turned = dict(overrides)
    for knob, value in pairs:
        for key, setting in knob.overrides(value).items():
            turned.pop(key, None)
            turned[key] = setting
    return turned


def number_knob(
    key: str,
    label: str,
    unit: str,
    bounds: tuple[float, float],
    defaults: Iterable[float],
    present: Value | None,
    changes: Changes,
    *,
    whole: bool = False,
    doubling: bool = False,
    fabric: bool = False,
    note: str = "",
) -> Knob:
    """A knob with a range; its defaults are those within, and what the scenario has."""
    low, high = bounds
    kept = {value for value in defaults if low <= value <= high}
    if isinstance(present, int | float) and low <= present <= high:
        kept.add(present)
    values = tuple(int(value) if whole else float(value) for value in sorted(kept))
    return Knob(
        key, label, unit, low, high, whole, (), values, present, doubling, fabric, note, changes
    )
