"""Checks of values from a file: each returns the value or raises `InputError`.

No check prints more of a value than fits a line, and none walks into it: a file nested
a thousand levels deep is refused by its type alone. They are written by hand, for ``solve`` answers
within half a second and pydantic takes a good part of that to load.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from nest_core.documents.errors import InputError, require

__all__ = [
    "MAX_DEVICES",
    "MAX_LAYERS",
    "Check",
    "choice",
    "count",
    "entries",
    "flag",
    "mapping",
    "number",
    "refuse_repeated_keys",
    "table",
    "whole",
]

MAX_DEVICES = 1_048_576
MAX_LAYERS = 2_000
# Beyond it a figure is a slip of the pen, and sums could leave the range of floats.
LARGEST_FIGURE = 1e18

Check = Callable[[object, str], Any]
"""Takes a value and what messages call it."""


def _shown(value: object) -> object:
    """Return what an error may print of `value`: scalars as they are, the rest by its type."""
    if isinstance(value, int) and abs(value) > LARGEST_FIGURE:
        return f"an integer of {value.bit_length()} bits"
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return f"a {type(value).__name__}"


def mapping(value: object, field: str) -> Mapping[str, object]:
    """Return a mapping with any text keys."""
    if not isinstance(value, Mapping):
        raise InputError(field, "must be an object with named keys", _shown(value), "give one")
    for key in value:
        require(isinstance(key, str), field, "must have text keys", _shown(key), "quote the key")
    return value


def table(
    value: object,
    field: str,
    required: Mapping[str, Check],
    optional: Mapping[str, Check],
    prefix: str | None = None,
) -> dict[str, Any]:
    """Return the checked values of a mapping that has all `required` keys and no unknown one.

    Messages call its values by `prefix` and their key; ``field.`` where none is given.
    """
    given, prefix = mapping(value, field), f"{field}." if prefix is None else prefix
    checks = {**required, **optional}
    for key in given:
        require(key in checks, field, "must have known keys only", key, "remove or rename the key")
    for key in required:
        require(key in given, field, f"must have the key {key}", "missing", f"add {key}")
    return {key: check(given[key], prefix + key) for key, check in checks.items() if key in given}


def entries(
    value: object, field: str, max_count: int, check: Check, min_count: int = 1
) -> tuple[Any, ...]:
    """Return the checked entries of a list."""
    if not isinstance(value, list | tuple):
        raise InputError(field, "must be a list", _shown(value), "give the entries as a list")
    if not min_count <= len(value) <= max_count:
        rule = f"must have {min_count} to {max_count:,} entries"
        raise InputError(field, rule, len(value), "change the list")
    return tuple(check(entry, f"{field}[{index}]") for index, entry in enumerate(value))


def number(value: object, field: str, lowest: float = 0.0) -> float:
    """Return a finite number from `lowest`; a bool is none."""
    bounds = f"from {lowest:g} to {LARGEST_FIGURE:g}"
    return float(_within(value, field, lowest, LARGEST_FIGURE, bounds))


def whole(value: object, field: str, lowest: int, largest: int) -> int:
    """Return a whole number from `lowest` to `largest`; 4096.0 is one, as the artifact writes."""
    figure = _within(value, field, lowest, largest, f"from {lowest:,} to {largest:,}")
    require(figure == int(figure), field, "must be a whole number", _shown(value), "round it")
    return int(figure)


count: Check = partial(whole, lowest=1, largest=MAX_DEVICES)
"""Checks a number of devices."""


def _within(value: object, field: str, lowest: float, largest: float, bounds: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(field, "must be a number", _shown(value), "give a plain number")
    if not lowest <= value <= largest:  # also refuses NaN, which compares with nothing
        raise InputError(field, f"must be {bounds}", _shown(value), "correct the figure")
    return value


def flag(value: object, field: str) -> bool:
    """Return a bool, and nothing that merely converts to one."""
    if not isinstance(value, bool):
        raise InputError(field, "must be true or false", _shown(value), "give true or false")
    return value


def choice(value: object, field: str, options: Sequence[str]) -> str:
    """Return one of the given texts."""
    if not isinstance(value, str) or value not in options:
        rule = f"must be one of {', '.join(options)}"
        raise InputError(field, rule, _shown(value), "choose one of them")
    return value


def refuse_repeated_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Build a JSON object, refusing a key that stands twice: one of the two would be lost."""
    built = dict(pairs)
    if len(built) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        rule = "must not repeat a key in an object"
        raise InputError("instance file", rule, counts.most_common(1)[0][0], "keep one of them")
    return built
