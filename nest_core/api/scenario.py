"""Scenarios as a library's user holds them: a document, what was changed in it, and its values."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, get_args

from pydantic import BaseModel

from nest_core import presets
from nest_core.errors import InputError
from nest_core.hardware import Accelerator
from nest_core.hardware import load_accelerator as accelerator_preset
from nest_core.hardware.accelerators import accelerator_of
from nest_core.scenario import Scenario as Values
from nest_core.scenario import expanded, fabric_document, resolve_scenario, scenario_document
from nest_core.scenario.titles import scenario_title
from nest_core.schema import (
    AcceleratorFile,
    FabricFile,
    ScenarioFile,
    check_plain,
    checked,
    names_of,
)
from nest_core.topology import Fabric
from nest_core.topology.files import build_fabric
from nest_core.workload import Model, model_files

__all__ = [
    "Named",
    "Scenario",
    "as_written",
    "list_presets",
    "load",
    "load_accelerator",
    "load_fabric",
    "load_model",
]

Named: TypeAlias = "str | Path | Mapping[str, Any]"
"""A preset's name, a path, or the table that a file would hold."""

_HERE = Path()
_OF_FILES = frozenset({"version", "name", "kind", "source", "names"})
_KINDS = ("accelerators", "fabrics", "models", "scenarios")


@dataclass(frozen=True, slots=True, repr=False)
class Scenario:
    """A training job on a fabric, and what the search for its plan may choose.

    Made by `load` and `with_`, which check it: a scenario that exists can be planned.

    Parameters
    ----------
    document : mapping
        The scenario file's tables (``docs``: "Scenario files").
    overrides : mapping
        Dotted keys of the document to the values that replace its own.
    folder : Path or None
        Where relative paths in them start.
    values : nest_core.scenario.Scenario
        What they come to, in SI units.
    """

    document: Mapping[str, Any]
    overrides: Mapping[str, Any]
    folder: Path | None
    values: Values

    @property
    def title(self) -> str:
        """Model, devices, fabric with its realised oversubscription, and batch."""
        return scenario_title(self.values)

    def __repr__(self) -> str:
        return f"<Scenario: {self.title}>"

    def with_(self, **changes: Any) -> Scenario:
        """The same scenario with some parameters changed.

        Parameters
        ----------
        **changes
            ``fabric``, ``accelerator`` and ``model`` take what `load_fabric`, `load_accelerator`
            and `load_model` take; every other name is that of a key of the scenario file or of
            its fabric, with or without its unit: ``micro_batch`` or ``micro_batch_sequences``,
            ``memory`` or ``memory_GiB``, ``oversubscription``. Values are in the key's unit.
            A dotted key (``**{"fabric.level.1.bandwidth_GBps": 50.0}``) names any other.

        Raises
        ------
        InputError
            For a name that the scenario does not have, and for a value that breaks a rule.

        Examples
        --------
        >>> load("llama2-7b-64-h100").with_(micro_batch=2, memory=40.0).values.space.micro_batch
        (2,)
        """
        known = dict(_keys(self.document, self.overrides, self.folder))
        overrides = dict(self.overrides)
        for name, value in changes.items():
            key = name if "." in name else known.get(name)
            if key is None:
                near = difflib.get_close_matches(name, known, 1)
                hint = f"write {near[0]}" if near else "name a key of the scenario file"
                raise InputError(name, "must be a parameter of this scenario", value, hint)
            for inner in [one for one in overrides if one == key or one.startswith(f"{key}.")]:
                del overrides[inner]
            overrides[key] = as_written(name, value)
        return _scenario(self.document, overrides, self.folder)


def load(scenario: Scenario | Named, overrides: Mapping[str, Any] | None = None) -> Scenario:
    """A scenario.

    Parameters
    ----------
    scenario : str, Path, mapping or Scenario
        A preset's name (`list_presets`), a path to a TOML file, its tables, or one that is loaded.
    overrides : mapping, optional
        Dotted keys of the file to the values that replace its own, as ``--set`` has them.

    Raises
    ------
    InputError
        If there is none of this name, or it breaks a rule.

    Examples
    --------
    >>> load("llama3-70b-1024-h100").values.fabric.devices
    1024
    """
    changes = {} if overrides is None else overrides
    if not isinstance(changes, Mapping) or not all(isinstance(key, str) for key in changes):
        raise InputError(
            "overrides", "must be a table of dotted keys", changes, 'write {"search.zero": 1}'
        )
    if isinstance(scenario, Scenario):
        return scenario.with_(**changes) if changes else scenario
    document, folder = (
        (as_written("scenario", scenario), _HERE)
        if isinstance(scenario, Mapping)
        else scenario_document(_text("scenario", scenario), _HERE)
    )
    return _scenario(document, {key: as_written(key, changes[key]) for key in changes}, folder)


def load_fabric(fabric: Named) -> Fabric:
    """A fabric: a preset, a file in any format that can be imported, or a fabric file's table.

    Raises
    ------
    InputError
        If there is none of this name, or it breaks a rule.
    """
    if isinstance(fabric, Mapping):
        table = {"schema": 1, "name": "inline", **as_written("fabric", fabric)}
    else:
        table = fabric_document(_text("fabric", fabric), _HERE)
    return build_fabric(checked(FabricFile, table))


def load_model(model: Named) -> Model:
    """A model: a preset, a path to a Hugging Face ``config.json``, or a table of sizes.

    Raises
    ------
    InputError
        If there is none of this name, or it breaks a rule.
    """
    asked = as_written("model", model) if isinstance(model, Mapping) else _text("model", model)
    return model_files.load_model(asked, _HERE)


def load_accelerator(accelerator: str | Mapping[str, Any]) -> Accelerator:
    """An accelerator: a preset, or a table of its figures.

    Raises
    ------
    InputError
        If there is none of this name, or it breaks a rule.
    """
    if isinstance(accelerator, Mapping):
        table = as_written("accelerator", accelerator)
        return accelerator_of(checked(AcceleratorFile, table, "accelerator."), _HERE)
    return accelerator_preset(_text("accelerator", accelerator, "a preset's name or a table"))


def list_presets(kind: str = "scenarios") -> tuple[str, ...]:
    """Names of the presets of one kind: scenarios, fabrics, models or accelerators.

    Raises
    ------
    InputError
        If there is no such kind.
    """
    if kind not in _KINDS:
        raise InputError("kind", "must be a kind of presets", kind, "pick " + ", ".join(_KINDS))
    return presets.preset_names(kind)


def _scenario(
    document: Mapping[str, Any], overrides: Mapping[str, Any], folder: Path | None
) -> Scenario:
    return Scenario(document, overrides, folder, resolve_scenario(document, overrides, folder))


def _text(field: str, name: object, what: str = "a preset's name, a path or a table") -> str:
    if isinstance(name, str | Path):
        return str(name)
    raise InputError(field, f"must be {what}", name, "name one")


def as_written(field: str, value: object) -> Any:
    """A value as a file would hold it: fabrics as their document, numpy's figures as Python's.

    Raises
    ------
    InputError
        If no file could hold it.
    """
    check_plain(field, value)
    return _plain(field, value)


def _plain(field: str, value: object) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Fabric):
        return value.document()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(f"{field}.{key}", entry) for key, entry in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list | tuple | range):
        return [_plain(field, entry) for entry in value]
    raise InputError(
        field, "must be text, a number, a list or a table", value, "write it as a file would"
    )


def _keys(
    document: Mapping[str, Any], overrides: Mapping[str, Any], folder: Path | None
) -> Iterator[tuple[str, str]]:
    """Names that `Scenario.with_` takes, and the dotted keys that they stand for."""
    merged, _ = expanded(document, overrides, folder)
    tables: list[tuple[str, type[BaseModel]]] = []
    kinds = {name: _table(field.annotation) for name, field in FabricFile.model_fields.items()}
    for name, kind in kinds.items():
        if kind is not None and isinstance(merged["fabric"].get(name), Mapping):
            tables.append((f"fabric.{name}.", kind))
    tables.append(("fabric.", FabricFile))
    for section in ("accelerator", "baselines", "search", "workload"):
        kind = _table(ScenarioFile.model_fields[section].annotation)
        if kind is not None:
            tables.append((f"{section}.", kind))
    for prefix, table in tables:  # a later one goes before: what is trained, then what it runs on
        for name, key in names_of(table):
            if name not in _OF_FILES:
                yield name, prefix + key
    yield from (("fabric", "fabric"), ("accelerator", "accelerator"))


def _table(annotation: object) -> type[BaseModel] | None:
    """The table among the types of a key; None where it has none, or a list of them."""
    if isinstance(annotation, type):
        return annotation if issubclass(annotation, BaseModel) else None
    if getattr(annotation, "__origin__", None) in (list, dict):
        return None
    return next(filter(None, map(_table, get_args(annotation))), None)
