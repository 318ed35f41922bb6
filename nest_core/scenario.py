"""Scenarios and fabrics from files, presets and overrides to the values the core works on.

A scenario names a fabric, an accelerator and a model, or holds a fabric inline; overrides and
``--set`` replace single keys before anything is checked, so every way in meets the same rules.
"""

from __future__ import annotations

import copy
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from nest_core.costs.problem import Problem
from nest_core.errors import InputError
from nest_core.hardware import Accelerator, load_family, load_profile
from nest_core.job import Job
from nest_core.model_files import load_model, model_table
from nest_core.overrides import assign, setting
from nest_core.planner.space import SearchSpace
from nest_core.presets import load_toml, preset_names, preset_path, read_text
from nest_core.schema import (
    AcceleratorFile,
    FabricFile,
    ScenarioFile,
    check_plain,
    checked,
)
from nest_core.search_table import search_space
from nest_core.topology import Fabric
from nest_core.topology.files import build_fabric
from nest_core.units import TERA, from_gbps_bytes, from_gib, to_gib
from nest_core.workload import Model

__all__ = [
    "Scenario",
    "expanded",
    "fabric_document",
    "load_accelerator",
    "load_fabric",
    "load_model",
    "load_scenario",
    "resolve_scenario",
    "scenario_document",
]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything a plan depends on, as core values.

    Parameters
    ----------
    name, description : str
    fabric : Fabric
    accelerator : Accelerator
    model : Model
    sequence, batch : int
        Tokens per sequence, sequences per iteration.
    precision, optimizer, attention : str
    context, expert_tensor, imbalance, capacity, overlap, gradient_bytes
        See `Job`.
    space : SearchSpace
    time_limit_s : float
    top : int
    baselines : tuple of str
    seed : int
        Of the random baselines.
    """

    name: str
    description: str
    fabric: Fabric
    accelerator: Accelerator
    model: Model
    sequence: int
    batch: int
    precision: str
    optimizer: str
    attention: Literal["flash", "unfused"]
    context: Literal["ring", "all_gather"]
    expert_tensor: bool
    imbalance: float
    capacity: float
    overlap: Literal["none", "ideal", "fitted"]
    space: SearchSpace
    time_limit_s: float
    top: int
    baselines: tuple[str, ...]
    gradient_bytes: float = 0.0
    seed: int = 0

    def problem(self) -> Problem:
        """The arrays that this scenario's plans are priced from."""
        return self.job.problem(self.fabric)

    @property
    def job(self) -> Job:
        """What is trained, without the fabric and the search space."""
        return Job(
            self.accelerator, self.model, self.sequence, self.batch, self.precision,
            self.optimizer, self.attention, self.context, self.expert_tensor, self.imbalance,
            self.capacity, self.overlap, self.gradient_bytes,
        )  # fmt: skip


def load_scenario(name: str, sets: Iterable[str] = ()) -> Scenario:
    """A scenario preset or file, with ``KEY=VALUE`` settings applied.

    Raises
    ------
    InputError
        For anything that keeps it from being a scenario.
    """
    document, folder = scenario_document(name)
    overrides: dict[str, Any] = {}
    for text in sets:
        key, value = setting(text)
        overrides.pop(key, None)  # a later setting comes after everything before it
        overrides[key] = value
    return resolve_scenario(document, overrides, folder)


def scenario_document(name: str) -> tuple[dict[str, Any], Path]:
    """The TOML document of a scenario preset or file, and the folder its paths start from."""
    path = _locate("scenarios", name)
    return load_toml(path), path.parent


def resolve_scenario(
    document: Mapping[str, Any],
    overrides: Mapping[str, Any] | None = None,
    folder: Path | None = None,
) -> Scenario:
    """A document with overrides by dotted key, checked and turned into core values."""
    merged, changes = expanded(document, overrides, folder)
    if any(key.startswith("workload.model.") for key in changes):
        _name_to_sizes(merged, changes, folder)
    for key, value in changes.items():
        assign(merged, key, value)
    return _scenario(checked(ScenarioFile, merged), folder)


def expanded(
    document: Mapping[str, Any],
    overrides: Mapping[str, Any] | None = None,
    folder: Path | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A scenario's document with its fabric and accelerator in it, and what is to be changed there.

    Parameters
    ----------
    document, overrides, folder
        As `resolve_scenario` takes them.

    Returns
    -------
    merged : dict
        Fabric and accelerator as tables, without ``override``; not yet checked as a scenario.
    changes : dict
        The scenario's own overrides and those given, which go before, in the order in which
        `nest_core.overrides.assign` takes them.

    Raises
    ------
    InputError
        If a fabric or accelerator is not known, or ``override`` is no table.
    """
    check_plain("the scenario", dict(document))
    check_plain("the overrides", dict(overrides or {}))
    merged = copy.deepcopy(dict(document))
    own = merged.pop("override", {})
    if not isinstance(own, dict):
        raise InputError("override", "must be a table", own, "write [override]")
    asked = copy.deepcopy(dict(overrides or {}))
    changes = {key: value for key, value in own.items() if key not in asked} | asked
    for key in ("fabric", "accelerator"):
        if key in changes:
            merged[key] = changes.pop(key)
        if key in merged:
            merged[key] = _table_of(key, merged[key], folder)
    return merged, changes


def load_fabric(name: str) -> Fabric:
    """A fabric preset, or a file in any format that can be imported.

    What a foreign format does not state is assumed, and logged as a warning.
    """
    return build_fabric(checked(FabricFile, fabric_document(name)))


def fabric_document(name: str) -> dict[str, Any]:
    """The document of a fabric preset or file, as its schema has it."""
    return _fabric_file(_locate("fabrics", name))


def load_accelerator(name: str) -> Accelerator:
    """An accelerator preset."""
    _known_preset("accelerators", name, "accelerator")
    entry = load_toml(preset_path("accelerators", f"{name}.toml"))
    return _accelerator(checked(AcceleratorFile, entry, "accelerator."))


def _locate(kind: str, name: str) -> Path:
    if name in preset_names(kind):
        return preset_path(kind, f"{name}.toml")
    path = Path(name)
    if path.suffix == ".toml" or "/" in name or os.path.exists(name):
        return path
    rule = "must be a preset or a path to a .toml file"
    if kind == "fabrics":
        rule += " or to another that can be imported"
        if path.suffix and path.suffix.lower() in _importable():
            return path
    raise InputError(
        kind.removesuffix("s"), rule, name, "presets are " + ", ".join(preset_names(kind))
    )


def _importable() -> set[str]:
    """Endings of fabric files that can be imported."""
    from nest_core.topology.formats import FORMATS  # yaml and XML are not for every start

    return {suffix for entry in FORMATS.values() if entry.reads for suffix in entry.suffixes}


def _fabric_file(path: Path) -> dict[str, Any]:
    if path.suffix == ".toml":
        return load_toml(path)
    from nest_core.topology.formats import read_fabric  # yaml and XML are not for every start

    found = read_fabric(read_text(path).encode(), path.name)
    for note in found.notes:
        _LOG.warning("%s: %s", path.name, note)
    return found.document


def _known_preset(kind: str, name: str, field: str) -> None:
    if name not in preset_names(kind):
        raise InputError(
            field, "must be one of the presets", name, "pick " + ", ".join(preset_names(kind))
        )


def _table_of(key: str, value: Any, folder: Path | None) -> Any:
    if key == "fabric" and isinstance(value, dict):
        return {"schema": 1, "name": "inline", **value}
    if not isinstance(value, str):
        return value
    if key == "accelerator":
        _known_preset("accelerators", value, "accelerator")
        return load_toml(preset_path("accelerators", f"{value}.toml"))
    if value in preset_names("fabrics"):
        return load_toml(preset_path("fabrics", f"{value}.toml"))
    suffix = Path(value).suffix
    if suffix != ".toml" and (not suffix or suffix.lower() not in _importable()):
        raise InputError(
            "fabric", "must be a preset, a path to a .toml file or a table", value,
            "name a file whose ending can be imported, or a preset: "
            + ", ".join(preset_names("fabrics")),
        )  # fmt: skip
    return _fabric_file((folder or Path()) / value)


def _name_to_sizes(document: dict[str, Any], changes: dict[str, Any], folder: Path | None) -> None:
    """Put the named model's table in its place, so that its single sizes can be changed."""
    if "workload" in changes:
        return
    if "workload.model" in changes:
        assign(document, "workload.model", changes.pop("workload.model"))
    work = document.get("workload")
    if isinstance(work, dict) and isinstance(work.get("model"), str):
        work["model"] = model_table(load_model(work["model"], folder))


def _accelerator(file: AcceleratorFile, folder: Path | None = None) -> Accelerator:
    return Accelerator(
        name=file.name,
        family=load_family(file.family),
        peak_flops=tuple((name, peak * TERA) for name, peak in file.peak_TFLOPs.items()),
        matmul_flops=tuple((name, rate * TERA) for name, rate in file.matmul_TFLOPs.items()),
        memory_bytes=from_gib(file.memory_GiB),
        memory_bandwidth_Bps=from_gbps_bytes(file.memory_bandwidth_GBps),
        units=file.units,
        tile=(file.tile[0], file.tile[1]),
        reserved_bytes=from_gib(file.reserved_GiB),
        source=file.source,
        power_w=file.power_W,
        links=(file.collectives and file.collectives.links) or "",
        network=(file.collectives and file.collectives.network) or "",
        profile=load_profile(file.profile, folder) if file.profile else None,
    )


def _scenario(file: ScenarioFile, folder: Path | None) -> Scenario:
    fabric = build_fabric(file.fabric)
    accelerator = _accelerator(file.accelerator, folder)
    model = load_model(file.workload.model, folder)
    work = file.workload
    if work.precision not in accelerator.precisions:
        raise InputError(
            "workload.precision", f"must be one that {accelerator.name} computes in",
            work.precision, "pick " + ", ".join(accelerator.precisions),
        )  # fmt: skip
    if work.precision == "fp8" and "bf16" not in accelerator.precisions:
        raise InputError(
            "accelerator.peak_TFLOPs", "must give bf16 beside fp8, which speeds projections only",
            list(accelerator.precisions), "add bf16",
        )  # fmt: skip
    profile = accelerator.profile
    if profile is not None and profile.precision != work.precision:
        raise InputError(
            "accelerator.profile", f"must have been measured in {work.precision}",
            profile.precision, "measure it with --precision, or leave it out",
        )  # fmt: skip
    if accelerator.reserved_bytes >= accelerator.memory_bytes:
        raise InputError(
            "accelerator.memory_GiB",
            f"must exceed accelerator.reserved_GiB = {to_gib(accelerator.reserved_bytes):g}",
            to_gib(accelerator.memory_bytes), "raise it",
        )  # fmt: skip
    if model.positions and work.sequence_length_tokens > model.positions:
        raise InputError(
            "workload.sequence_length_tokens",
            f"must not exceed the {model.positions} positions that {model.name} has learned",
            work.sequence_length_tokens, "shorten the sequence",
        )  # fmt: skip
    return Scenario(
        name=file.name,
        description=file.description,
        fabric=fabric,
        accelerator=accelerator,
        model=model,
        sequence=work.sequence_length_tokens,
        batch=work.global_batch_sequences,
        precision=work.precision,
        optimizer=work.optimizer,
        attention=work.attention,
        context=work.context,
        expert_tensor=work.expert_tensor,
        imbalance=work.imbalance,
        capacity=work.capacity,
        overlap=work.overlap,
        space=search_space(file.search, work, model, fabric),
        time_limit_s=file.search.time_limit_s,
        top=file.search.top,
        baselines=tuple(file.baselines.names),
        seed=file.baselines.seed,
        gradient_bytes=float(work.gradient_bytes or 0),
    )
