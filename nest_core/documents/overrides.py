"""Overrides: single keys of a document, by dotted name; and documents as TOML text.

``[override]`` tables, ``--set`` and the app's form all end here, before anything is checked. Text
is such that `tomllib` reads it back equal: tables at the top become ``[name]``, lists of tables
``[[name]]``; whatever lies deeper is written inline. `tomli-w` would break every short list over
lines, which sizes and shapes do not deserve.
"""

import copy
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from nest_core.documents.errors import InputError, require
from nest_core.documents.presets import MAX_KEY_PARTS

__all__ = [
    "MAX_SETTING",
    "assign",
    "setting",
    "settings",
    "toml_document",
    "toml_key",
    "toml_pairs",
    "toml_value",
]

MAX_SETTING = 8192
"""Characters of one ``KEY=VALUE``: tomllib takes memory with the square of a dotted key."""


def setting(text: str, option: str = "--set") -> tuple[str, Any]:
    """Key and value of one ``--set KEY=VALUE``, or of another option; the value is TOML."""
    key, equals, value = (part.strip() for part in text.partition("="))
    require(equals and key, option, "must read KEY=VALUE", text, "write a name, = and its value")
    require(
        len(text) <= MAX_SETTING,
        option,
        f"must hold at most {MAX_SETTING:,} characters",
        text,
        "write a scenario file",
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


def settings(texts: Iterable[str], option: str = "--set") -> dict[str, Any]:
    """Values by key of many ``KEY=VALUE``; a later one comes after everything before it."""
    values: dict[str, Any] = {}
    for text in texts:
        key, value = setting(text, option)
        values.pop(key, None)
        values[key] = value
    return values


def assign(document: dict[str, Any], key: str, value: Any) -> None:
    """Set a dotted key; numbers index lists; missing tables are made.

    Tables and lists on the way are copied first: what else holds them stays as it is.
    """
    place: Any = document
    *tables, last = key.split(".")
    require(
        len(tables) < MAX_KEY_PARTS,
        "override",
        f"must have keys of at most {MAX_KEY_PARTS} parts",
        key,
        "shorten the key",
    )
    for part in tables:
        inner = copy.copy(_entry(place, part, key))
        place[int(part) if isinstance(place, list) else part] = inner
        place = inner
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


_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def toml_document(document: Mapping[str, Any]) -> str:
    """Return a document: plain keys first, then tables and lists of tables in their order.

    Examples
    --------
    >>> print(toml_document({"level": [{"name": "node", "sizes": [4, 3]}], "schema": 1}))
    schema = 1
    <BLANKLINE>
    [[level]]
    name = "node"
    sizes = [4, 3]
    <BLANKLINE>
    """
    plain: dict[str, Any] = {}
    blocks: list[str] = []
    for key, value in document.items():
        if isinstance(value, Mapping):
            blocks.append(f"[{toml_key(key)}]\n{toml_pairs(value)}".rstrip("\n"))
        elif isinstance(value, list) and value and all(isinstance(it, Mapping) for it in value):
            blocks += [f"[[{toml_key(key)}]]\n{toml_pairs(item)}" for item in value]
        else:
            plain[key] = value
    return "\n\n".join([toml_pairs(plain), *blocks]) + "\n"


def toml_pairs(table: Mapping[str, Any]) -> str:
    """One ``key = value`` per line."""
    return "\n".join(f"{toml_key(key)} = {toml_value(value)}" for key, value in table.items())


def toml_key(key: str) -> str:
    """Return a key, quoted where it has to be."""
    return key if _BARE_KEY.fullmatch(key) else _text(key)


def toml_value(value: Any) -> str:
    """Return a value on one line.

    Examples
    --------
    >>> toml_value([1.5, True, {"a b": "c"}])
    '[1.5, true, { "a b" = "c" }]'
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        inside = ", ".join(f"{toml_key(key)} = {toml_value(item)}" for key, item in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    return "[" + ", ".join(toml_value(item) for item in value) + "]"


def _text(text: str) -> str:
    # JSON's escapes are TOML's, except that TOML also wants DEL escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
