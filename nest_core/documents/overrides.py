"""Overrides: single keys of a document, by dotted name.

``[override]`` tables, ``--set`` and the app's form all end here, before anything is checked.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from typing import Any

from nest_core.documents.errors import InputError
from nest_core.documents.presets import MAX_KEY_PARTS

__all__ = ["MAX_SETTING", "assign", "setting", "settings"]

MAX_SETTING = 8192
"""Characters of one ``KEY=VALUE``: tomllib takes memory with the square of a dotted key."""


def setting(text: str, option: str = "--set") -> tuple[str, Any]:
    """Key and value of one ``--set KEY=VALUE``, or of another option; the value is TOML."""
    key, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not key:
        raise InputError(option, "must read KEY=VALUE", text, "give a dotted key and a TOML value")
    if len(text) > MAX_SETTING:
        raise InputError(
            option, f"must hold at most {MAX_SETTING:,} characters", text, "write a scenario file"
        )
    malformed = InputError(
        f"{option} {key}", "must be a TOML value", value, "put text in double quotes"
    )
    try:
        parsed = tomllib.loads(f"value = {value}")
    except (ValueError, RecursionError) as error:  # also a number too long to read
        raise malformed from error
    if set(parsed) != {"value"}:  # further lines
        raise malformed
    return key, parsed["value"]


def settings(texts: Iterable[str]) -> dict[str, Any]:
    """Values by key of many ``KEY=VALUE``; a later one comes after everything before it."""
    values: dict[str, Any] = {}
    for text in texts:
        key, value = setting(text)
        values.pop(key, None)
        values[key] = value
    return values


def assign(document: dict[str, Any], key: str, value: Any) -> None:
    """Set a dotted key; numbers index lists; missing tables are made."""
    place: Any = document
    *tables, last = key.split(".")
    if len(tables) >= MAX_KEY_PARTS:
        raise InputError(
            "override", f"must have keys of at most {MAX_KEY_PARTS} parts", key, "shorten the key"
        )
    for part in tables:
        place = _entry(place, part, key)
    _entry(place, last, key)
    place[int(last) if isinstance(place, list) else last] = value


def _entry(place: Any, part: str, key: str) -> Any:
    if isinstance(place, dict):
        return place.setdefault(part, {})
    short = len(part) < 10 and part.isdecimal()
    if isinstance(place, list) and short and int(part) < len(place):
        return place[int(part)]
    raise InputError(
        "override", "must have keys that lead into tables and lists", key, "correct the key"
    )
