"""Values, tables and documents as TOML text that `tomllib` reads back equal.

Tables at the top become ``[name]``, lists of tables ``[[name]]``; whatever lies deeper is written
inline. `tomli-w` would break every short list over lines, which sizes and shapes do not deserve.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["toml_document", "toml_key", "toml_pairs", "toml_value"]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def toml_document(document: Mapping[str, Any]) -> str:
    """A document: plain keys first, then tables and lists of tables in their order.

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
    """A key, quoted where it has to be."""
    return key if _BARE_KEY.fullmatch(key) else _text(key)


def toml_value(value: Any) -> str:
    """A value on one line.

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
