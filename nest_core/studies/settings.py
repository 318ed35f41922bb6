"""What a scenario asks for, key by key, so that scenarios can be read against each other.

Every key of the scenario's file with its value, defaults filled in, in the order of the files.
Names, descriptions and sources say nothing that a plan depends on and are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nest_core.documents.overrides import assign
from nest_core.documents.schema import ScenarioFile, checked
from nest_core.scenario import Scenario, expanded

__all__ = ["differing", "settings_of"]

_LEFT_OUT = ("schema", "name", "description", "source")
_MODEL = "workload.model"
_LISTED = 16
"""Longer lists of tables are given by their length."""


def settings_of(scenario: Scenario) -> dict[str, str]:
    """Return dotted keys of a scenario, which must be one, and their values as text.

    Examples
    --------
    >>> from nest_core.scenario import scenario_document
    >>> document, _ = scenario_document("llama2-7b-64-h100")
    >>> found = settings_of(Scenario(document, {"accelerator.memory_GiB": 40.0}))
    >>> found["accelerator.memory_GiB"], found["workload.model"], found["search.idle_devices"]
    ('40', 'llama2-7b', 'true')
    """
    merged, changes = expanded(scenario.document, scenario.overrides, scenario.folder)
    sizes = {key: changes.pop(key) for key in list(changes) if key.startswith(f"{_MODEL}.")}
    for key, value in changes.items():
        assign(merged, key, value)
    whole = checked(ScenarioFile, merged).model_dump(by_alias=True, exclude_none=True)
    del whole["baselines"]
    found: dict[str, str] = {}
    _flatten("", whole, found)
    model = whole["workload"]["model"]
    found[_MODEL] = str(model["name"] if isinstance(model, dict) else model)
    return found | {key: _text(value) for key, value in sizes.items()}


def differing(every: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """Keys whose values are not the same in all, in the order of the first.

    A key that some lack counts if all have the table it stands in: a torus has no
    ``fabric.clos``, which ``fabric.kind`` says already.
    """
    keys = dict.fromkeys(key for one in every for key in one)
    return tuple(
        key
        for key in keys
        if len({one.get(key) for one in every}) > 1
        and all(key in one or _has_table(one, key.rpartition(".")[0]) for one in every)
    )


def _has_table(one: Mapping[str, str], table: str) -> bool:
    return any(key.startswith(f"{table}.") for key in one)


def _flatten(path: str, value: Any, found: dict[str, str]) -> None:
    if isinstance(value, dict) and set(value) != {"min", "max"}:
        for key, inner in value.items():
            if key not in _LEFT_OUT:
                _flatten(f"{path}.{key}" if path else key, inner, found)
    elif isinstance(value, list) and value and isinstance(value[0], dict | float):
        if isinstance(value[0], dict) and len(value) > _LISTED:
            found[path] = f"{len(value):,} entries"
            return
        for index, inner in enumerate(value):
            _flatten(f"{path}.{index}", inner, found)
    else:
        found[path] = _text(value)


def _text(value: Any) -> str:
    """A value as a person reads it.

    Examples
    --------
    >>> [_text(value) for value in (1.0, True, [0, 1], {"min": 1, "max": 16}, [])]
    ['1', 'true', '0, 1', '1 to 16', 'none']
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:,.6g}"
    if isinstance(value, dict):
        most = value.get("max", 10_000_000)
        return (
            f"{value.get('min', 1)} or more"
            if most == 10_000_000
            else (f"{value.get('min', 1)} to {most}")
        )
    if isinstance(value, list):
        return ", ".join(_text(entry) for entry in value) or "none"
    return str(value)
