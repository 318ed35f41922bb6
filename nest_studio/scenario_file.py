"""A request as the scenario file that asks for the same."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

__all__ = ["command_line", "scenario_toml"]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def scenario_toml(document: Mapping[str, Any], overrides: Mapping[str, Any]) -> str:
    """The document with the overrides in its ``[override]`` table, as TOML.

    Examples
    --------
    >>> print(scenario_toml({"schema": 1, "search": {"tp": {"max": 8}}}, {"a.b": [1.5, True]}))
    schema = 1
    <BLANKLINE>
    [search]
    tp = { max = 8 }
    <BLANKLINE>
    [override]
    "a.b" = [1.5, true]
    <BLANKLINE>
    """
    whole = dict(document)
    own = {**whole.pop("override", {}), **overrides}
    if own:
        whole["override"] = own
    plain = {key: value for key, value in whole.items() if not isinstance(value, Mapping)}
    tables = {key: value for key, value in whole.items() if isinstance(value, Mapping)}
    blocks = [_pairs(plain)]
    blocks += [f"[{_key(name)}]\n{_pairs(table)}" for name, table in tables.items()]
    return "\n\n".join(blocks) + "\n"


def command_line(scenario: str, overrides: Mapping[str, Any]) -> str:
    """The command that asks for the same.

    Examples
    --------
    >>> command_line("llama3-70b-1024-h100", {"accelerator.memory_GiB": 40.0})
    'nest-studio plan llama3-70b-1024-h100 --set accelerator.memory_GiB=40.0'
    """
    settings = [
        f"--set {shlex.quote(f'{key}={_value(value)}')}" for key, value in overrides.items()
    ]
    return " ".join(["nest-studio plan", scenario, *settings])


def _pairs(table: Mapping[str, Any]) -> str:
    return "\n".join(f"{_key(key)} = {_value(value)}" for key, value in table.items())


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    return "[" + ", ".join(_value(item) for item in value) + "]"
