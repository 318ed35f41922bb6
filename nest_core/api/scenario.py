"""What a library's user begins with: scenarios, fabrics, models and accelerators by name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from nest_core.documents import InputError, presets, require
from nest_core.documents.schema import AcceleratorFile, FabricFile, checked
from nest_core.fabric import Fabric, build_fabric
from nest_core.hardware import Accelerator, accelerator_of
from nest_core.hardware import load_accelerator as accelerator_preset
from nest_core.scenario import Scenario, as_written, fabric_document, scenario_document
from nest_core.workload import Model, model_files

__all__ = [
    "Named",
    "list_presets",
    "load",
    "load_accelerator",
    "load_fabric",
    "load_model",
]

Named: TypeAlias = str | Path | Mapping[str, Any]
"""A preset's name, a path, or the table that a file would hold."""

_HERE = Path()
_KINDS = ("accelerators", "fabrics", "failures", "models", "scenarios")


def load(scenario: Scenario | Named, overrides: Mapping[str, Any] | None = None) -> Scenario:
    """Return a scenario.

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
    require(
        isinstance(changes, Mapping) and all(isinstance(key, str) for key in changes),
        "overrides",
        "must be a table of dotted keys",
        changes,
        'write {"search.zero": 1}',
    )
    if isinstance(scenario, Scenario):
        return scenario.with_(**changes) if changes else scenario
    document, folder = (
        (as_written("scenario", scenario), _HERE)
        if isinstance(scenario, Mapping)
        else scenario_document(_text("scenario", scenario), _HERE)
    )
    loaded = Scenario(document, {key: as_written(key, changes[key]) for key in changes}, folder)
    _ = loaded.values  # which checks it
    return loaded


def load_fabric(fabric: Named) -> Fabric:
    """Return a fabric: a preset, a file in a format that can be imported, or a file's table.

    Raises
    ------
    InputError
        If there is none of this name, or it breaks a rule.
    """
    table = (
        {"schema": 1, "name": "inline", **as_written("fabric", fabric)}
        if isinstance(fabric, Mapping)
        else fabric_document(_text("fabric", fabric), _HERE)
    )
    return build_fabric(checked(FabricFile, table))


def load_model(model: Named) -> Model:
    """Return a model: a preset, a path to a Hugging Face ``config.json``, or a table of sizes.

    Raises
    ------
    InputError
        If there is none of this name, or it breaks a rule.
    """
    source = as_written("model", model) if isinstance(model, Mapping) else _text("model", model)
    return model_files.load_model(source, _HERE)


def load_accelerator(accelerator: str | Mapping[str, Any]) -> Accelerator:
    """Return an accelerator: a preset, or a table of its figures.

    Raises
    ------
    InputError
        If there is none of this name, or it breaks a rule.
    """
    if isinstance(accelerator, Mapping):
        return accelerator_of(
            checked(AcceleratorFile, as_written("accelerator", accelerator), "accelerator."), _HERE
        )
    return accelerator_preset(_text("accelerator", accelerator, "a preset's name or a table"))


def list_presets(kind: str = "scenarios") -> tuple[str, ...]:
    """Return names of the presets of one kind: scenarios, fabrics, failures, models, accelerators.

    Raises
    ------
    InputError
        If there is no such kind.
    """
    require(kind in _KINDS, "kind", "must be a kind of presets", kind, "pick " + ", ".join(_KINDS))
    return presets.preset_names(kind)


def _text(field: str, name: object, what: str = "a preset's name, a path or a table") -> str:
    if isinstance(name, str | Path):
        return str(name)
    raise InputError(field, f"must be {what}", name, "name one")
