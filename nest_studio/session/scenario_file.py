"""A request as the scenario file that asks for the same."""

import shlex
from collections.abc import Mapping
from typing import Any

from nest_core.documents.overrides import toml_document, toml_value
from nest_core.documents.schema import LONGEST_NAME

__all__ = ["command_line", "scenario_toml"]


def scenario_toml(
    document: Mapping[str, Any], overrides: Mapping[str, Any], title: str = ""
) -> str:
    """The document with the overrides in its ``[override]`` table, as TOML.

    With overrides it is no longer what its name and description say: the title, if one is given,
    stands in their place.

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
    table = dict(document)
    if overrides and title:
        table = {key: value for key, value in table.items() if key != "description"}
        table["name"] = title[:LONGEST_NAME]
    changes = {**table.pop("override", {}), **overrides}
    if changes:
        table["override"] = changes
    return toml_document(table)


def command_line(scenario: str, overrides: Mapping[str, Any]) -> str:
    """The command that asks for the same; a stack of one's own is named as Measurements exports it.

    Examples
    --------
    >>> command_line("llama3-70b-1024-h100", {"accelerator.memory_GiB": 40.0})
    'nest-studio plan llama3-70b-1024-h100 --set accelerator.memory_GiB=40.0'
    """
    stack = overrides.get("stack")
    file = {"stack": f"{stack.get('name')}.toml"} if isinstance(stack, Mapping) else {}
    settings = [
        f"--set {shlex.quote(f'{key}={toml_value(value)}')}"
        for key, value in {**overrides, **file}.items()
    ]
    return " ".join(["nest-studio plan", scenario, *settings])
