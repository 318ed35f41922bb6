"""Checks of single values from text: each returns the value or raises `InputError`.

No check prints more of a value than fits a line, and none walks into it: a file nested
a thousand levels deep is refused by its type alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nest_core.documents.errors import InputError

__all__ = [
    "LARGEST_FIGURE",
    "MAX_DEVICES",
    "MAX_LAYERS",
    "choice",
    "flag",
    "non_empty_list",
    "number",
    "refuse_repeated_keys",
    "shown",
    "table",
    "whole",
]

MAX_DEVICES = 1_048_576
MAX_LAYERS = 2_000
# Beyond it a figure is a slip of the pen, and sums could leave the range of floats.
LARGEST_FIGURE = 1e18


def shown(value: object) -> object:
    """What an error may print of `value`: scalars as they are, the rest by its type."""
    if isinstance(value, int) and abs(value) > LARGEST_FIGURE:
        return f"an integer of {value.bit_length()} bits"
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return f"a {type(value).__name__}"


def table(
    value: object, field: str, required: Sequence[str], optional: Sequence[str] | None
) -> Mapping[str, object]:
    """A mapping that has all of `required` and nothing beyond `optional` (None: any key)."""
    if not isinstance(value, Mapping):
        raise InputError(field, "must be an object with named keys", shown(value), "give one")
    for key in value:
        if not isinstance(key, str):
            raise InputError(field, "must have text keys", shown(key), "quote the key")
        if optional is not None and key not in required and key not in optional:
            raise InputError(field, "must have known keys only", key, "remove or rename the key")
    for key in required:
        if key not in value:
            raise InputError(field, f"must have the key {key}", "missing", f"add {key}")
    return value


def non_empty_list(value: object, field: str, most: int, things: str) -> Sequence[object]:
    """A list of 1 to `most` entries."""
    if not isinstance(value, list | tuple):
        raise InputError(field, "must be a list", shown(value), f"give the {things} as a list")
    if not 1 <= len(value) <= most:
        raise InputError(
            field, f"must have 1 to {most:,} entries", len(value), f"change the {things}"
        )
    return value


def number(
    value: object, field: str, lowest: float = 0.0, largest: float = LARGEST_FIGURE
) -> float:
    """A finite number from `lowest` to `largest`; a bool is none."""
    return float(_within(value, field, lowest, largest, f"from {lowest:g} to {largest:g}"))


def whole(value: object, field: str, lowest: int, largest: int) -> int:
    """A whole number from `lowest` to `largest`; 4096.0 is one, as the artifact writes it."""
    checked = _within(value, field, lowest, largest, f"from {lowest:,} to {largest:,}")
    if checked != int(checked):
        raise InputError(field, "must be a whole number", shown(value), "round it")
    return int(checked)


def _within(value: object, field: str, lowest: float, largest: float, bounds: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(field, "must be a number", shown(value), "give a plain number")
    if not lowest <= value <= largest:  # also refuses NaN, which compares with nothing
        raise InputError(field, f"must be {bounds}", shown(value), "correct the figure")
    return value


def flag(value: object, field: str) -> bool:
    """A bool, and nothing that merely converts to one."""
    if not isinstance(value, bool):
        raise InputError(field, "must be true or false", shown(value), "give true or false")
    return value


def choice(value: object, field: str, options: Sequence[str]) -> str:
    """One of the given texts."""
    if not isinstance(value, str) or value not in options:
        raise InputError(
            field, f"must be one of {', '.join(options)}", shown(value), "choose one of them"
        )
    return value


def refuse_repeated_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Build a JSON object, refusing a key that stands twice: one of the two would be lost."""
    built = dict(pairs)
    if len(built) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise InputError(
                    "instance file", "must not repeat a key in an object", key, "keep one of them"
                )
            seen.add(key)
    return built
