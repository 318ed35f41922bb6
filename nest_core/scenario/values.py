"""Scenarios and fabrics from files, presets and overrides to the values the core works on.

A scenario names a fabric, an accelerator and a model, or holds a fabric inline; overrides and
``--set`` replace single keys before anything is checked, so every way in meets the same rules.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from nest_core.costs import Problem
from nest_core.documents import (
    InputError,
    assign,
    load_toml,
    looks_like_path,
    named_file,
    preset_names,
    printable,
    read_text,
    require,
    to_gib,
)
from nest_core.documents.failures import DEFAULT, load_failures
from nest_core.documents.schema import FabricFile, ScenarioFile, StackFile, check_plain, checked
from nest_core.documents.schema.failures import FailureFile
from nest_core.fabric import Fabric, build_fabric
from nest_core.hardware import (
    NARROW,
    UNCALIBRATED,
    Accelerator,
    Stack,
    accelerator_of,
    default_stack,
    load_stack,
    stack_of_table,
    stacks_of,
    under,
)
from nest_core.network import Network
from nest_core.planner import SearchSpace
from nest_core.scenario.job import Job
from nest_core.scenario.search_table import search_space
from nest_core.workload import check_modules, load_model, model_table, ordered

__all__ = [
    "HERE",
    "OF_FAILURES",
    "OF_PRICES",
    "ScenarioValues",
    "expanded",
    "fabric_document",
    "failures_of",
    "load_fabric",
    "scenario_document",
    "values_of",
]

_LOG = logging.getLogger(__name__)

OF_FAILURES, OF_PRICES = "failures.", "prices."
"""What keys of the failure file start with, and those of the price list."""

HERE = Path()
"""The folder in which a person's command or program runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioValues(Job):
    """Everything a plan depends on, as core values: a job, its fabric and the search space.

    Parameters
    ----------
    name, description : str
    fabric : Fabric
    expert_tensor : bool
        Whether tensor parallelism divides experts where neither the search nor a plan says.
    space : SearchSpace
    time_limit_s : float
    top : int
    baselines : tuple of str
    seed : int
        Of the random baselines.
    baseline_space : {"own", "paper"}
        What baselines choose from: all of ``space``, or the axes that each has in the paper.
    failures : FailureFile
        What days to train count with; no plan depends on it.
    """

    name: str
    description: str
    fabric: Fabric
    expert_tensor: bool
    space: SearchSpace
    time_limit_s: float
    top: int
    baselines: tuple[str, ...]
    failures: FailureFile = field(hash=False)
    seed: int = 0
    baseline_space: Literal["own", "paper"] = "own"

    def problem(self, recompute: Iterable[str] = (), network: Network | None = None) -> Problem:
        """Return the arrays that this scenario's plans are priced from.

        Parameters
        ----------
        recompute : iterable of str
            Recomputations beside those of the search space, as of a plan that is given.
        network : Network, optional
            The fabric, where it was collapsed already.

        Raises
        ------
        InputError
            If the model lacks a module of theirs.
        """
        more = tuple(recompute)
        check_modules(self.model, more, "plan.recompute")
        return replace(self, recomputations=ordered((*self.space.recompute, *more))).problem_on(
            network or self.fabric
        )


def scenario_document(name: str, folder: Path | None = None) -> tuple[dict[str, Any], Path | None]:
    """Return the TOML document of a scenario preset or file, and the folder its paths start from.

    Parameters
    ----------
    name : str
    folder : Path, optional
        Where a relative path starts; without it the name must be a preset's, and the document
        comes without a folder.
    """
    path = named_file("scenarios", name, folder, field="scenario")
    if name in preset_names("scenarios"):  # which has no paths: those in overrides are the asker's
        return load_toml(path), folder
    return load_toml(path), None if folder is None else path.parent


def values_of(
    document: Mapping[str, Any], overrides: Mapping[str, Any], folder: Path | None
) -> ScenarioValues:
    """Return what a `Scenario` of these comes to; InputError for what is no scenario."""
    merged, changes = expanded(document, overrides, folder)
    if any(key.startswith("workload.model.") for key in changes):
        _name_to_sizes(merged, changes, folder)
    for key, value in changes.items():
        if not key.startswith((OF_FAILURES, OF_PRICES)):  # which are read over whole files
            assign(merged, key, value)
    failures = failures_of(merged, changes, folder)
    return _scenario(checked(ScenarioFile, merged), failures, folder)


def failures_of(
    merged: Mapping[str, Any], changes: Mapping[str, Any], folder: Path | None
) -> FailureFile:
    """Return what strikes a scenario; parameters as `expanded` returns them."""
    return load_failures(
        changes.get("failures", merged.get("failures")) or DEFAULT,
        folder,
        {
            key.removeprefix(OF_FAILURES): value
            for key, value in changes.items()
            if key.startswith(OF_FAILURES)
        },
    )


def expanded(
    document: Mapping[str, Any],
    overrides: Mapping[str, Any] | None = None,
    folder: Path | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a scenario's document with fabric and accelerator in it, and what is to be changed.

    Parameters
    ----------
    document, overrides, folder
        As of a `Scenario`.

    Returns
    -------
    merged : dict
        Fabric and accelerator as tables, without ``override``; not yet checked as a scenario.
        Its tables are those of ``document``: `nest_core.documents.overrides.assign` copies what it
        changes.
    changes : dict
        The scenario's own overrides and those given, which go before, in the order in which
        `nest_core.documents.overrides.assign` takes them.

    Raises
    ------
    InputError
        If a fabric or accelerator is not known, or ``override`` is no table.
    """
    merged, given = dict(document), dict(overrides or {})
    check_plain("the scenario", merged)
    check_plain("the overrides", given)
    file_overrides = merged.pop("override", {})
    if not isinstance(file_overrides, dict):
        raise InputError("override", "must be a table", file_overrides, "write [override]")
    changes = {key: value for key, value in file_overrides.items() if key not in given} | given
    for key in ("fabric", "accelerator"):
        if key in changes:
            merged[key] = changes.pop(key)
        if key in merged:
            merged[key] = _table_of(key, merged[key], folder)
    rate = changes.get("accelerator.scale_up_GBps")
    if isinstance(merged.get("accelerator"), dict):
        rate = rate or merged["accelerator"].get("scale_up_GBps")
    if rate and isinstance(merged.get("fabric"), dict):
        _set_inside_rate(merged["fabric"], rate)
    return merged, changes


def _set_inside_rate(fabric: dict[str, Any], rate_GBps: float) -> None:
    """Give links inside nodes the accelerator's rate where the fabric's source states none."""
    assumed = fabric.get("assumed_inside_GBps")
    if assumed is None:
        return
    groups = {
        entry.id: entry.group
        for entry in checked(FabricFile, fabric, "fabric.").element or ()
        if entry.role != "nic"
    }

    def rated(table: dict[str, Any]) -> dict[str, Any]:
        change = {"bandwidth_GBps": rate_GBps}
        return table | change if table.get("bandwidth_GBps") == assumed else table

    tables = {
        "level": [
            table if place else rated(table)
            for place, table in enumerate(fabric.get("level") or ())
        ],
        "link": [
            rated(link)
            if groups.get(link["a"]) and groups[link["a"]] == groups.get(link["b"])
            else link
            for link in fabric.get("link") or ()
        ],
        "intra_node": rated(fabric.get("intra_node") or {}),
    }
    fabric |= {name: table for name, table in tables.items() if table}
    fabric["assumed_inside_GBps"] = rate_GBps


def load_fabric(name: str, folder: Path | None = HERE) -> Fabric:
    """Return a fabric preset, or a file in any format that can be imported.

    What a foreign format does not state is assumed, and logged as a warning.

    Parameters
    ----------
    name : str
    folder : Path, optional
        Where a relative path starts; None where the name may be a preset's only.
    """
    return build_fabric(checked(FabricFile, fabric_document(name, folder)))


def fabric_document(name: str, folder: Path | None = None) -> dict[str, Any]:
    """Return the document of a fabric preset, as its schema has it.

    Parameters
    ----------
    name : str
    folder : Path, optional
        Where a relative path starts; with it the name may be that of a file.
    """
    return _fabric_file(
        named_file(
            "fabrics",
            name,
            folder,
            field="fabric",
            file=".toml file or to another that can be imported",
            is_path=lambda text, path: looks_like_path(text, path) or _is_fabric(path),
        )
    )


def _is_fabric(path: Path) -> bool:
    """Return whether a file's ending is .toml, or that of a format that can be imported."""
    if path.suffix in ("", ".toml"):
        return path.suffix == ".toml"
    from nest_core.interop.formats import FORMATS  # yaml and XML are not for every start

    return any(e.reads and path.suffix.lower() in e.suffixes for e in FORMATS.values())


def _fabric_file(path: Path) -> dict[str, Any]:
    if path.suffix == ".toml":
        return load_toml(path)
    from nest_core.interop.formats import read_fabric  # yaml and XML are not for every start

    imported = read_fabric(read_text(path).encode(), path.name)
    for note in imported.notes:
        _LOG.warning("%s: %s", printable(path.name), printable(note))
    return imported.document


def _table_of(key: str, value: Any, folder: Path | None) -> Any:
    if key == "fabric" and isinstance(value, dict):
        return {"schema": 1, "name": "inline", **value}
    if not isinstance(value, str):
        return value
    if key == "accelerator":
        return load_toml(named_file("accelerators", value, None, field="accelerator"))
    return _fabric_file(
        named_file(
            "fabrics",
            value,
            folder,
            field="fabric",
            table=True,
            is_path=lambda _, path: _is_fabric(path),
        )
    )


def _name_to_sizes(document: dict[str, Any], changes: dict[str, Any], folder: Path | None) -> None:
    """Put the named model's table in its place, so that its single sizes can be changed."""
    if "workload" in changes:
        return
    if "workload.model" in changes:
        assign(document, "workload.model", changes.pop("workload.model"))
    work = document.get("workload")
    if isinstance(work, dict) and isinstance(work.get("model"), str):
        model = load_model(work["model"], folder)
        table = {"trace": work["model"]} if model.graphs else model_table(model)
        assign(document, "workload.model", table)


def _scenario(file: ScenarioFile, failures: FailureFile, folder: Path | None) -> ScenarioValues:
    fabric = build_fabric(file.fabric)
    accelerator = accelerator_of(file.accelerator, folder)
    stack = _stack(file.stack, accelerator, folder)
    model = load_model(file.workload.model, folder)
    work = file.workload
    names = file.baselines.names
    require(
        len(set(names)) >= len(names),
        "baselines.names",
        "must name every baseline once",
        names,
        "drop what stands twice",
    )
    require(
        work.precision in accelerator.precisions,
        "workload.precision",
        f"must be one that {accelerator.name} computes in",
        work.precision,
        "pick " + ", ".join(accelerator.precisions),
    )
    require(
        work.precision not in NARROW or "bf16" in accelerator.precisions,
        "accelerator.peak_TFLOPs",
        f"must give bf16 beside {work.precision}, which speeds projections only",
        list(accelerator.precisions),
        "add bf16",
    )
    profile = accelerator.profile
    if profile is not None and profile.precision != work.precision:
        raise InputError(
            "accelerator.profile",
            f"must have been measured in {work.precision}",
            profile.precision,
            "measure it with --precision, or leave it out",
        )
    require(
        accelerator.reserved_bytes < accelerator.memory_bytes,
        "accelerator.memory_GiB",
        f"must exceed accelerator.reserved_GiB = {to_gib(accelerator.reserved_bytes):g}",
        to_gib(accelerator.memory_bytes),
        "raise it",
    )
    require(
        not model.positions or work.sequence_length_tokens <= model.positions,
        "workload.sequence_length_tokens",
        f"must not exceed the {model.positions} positions that {model.name} has learned",
        work.sequence_length_tokens,
        "shorten the sequence",
    )
    return ScenarioValues(
        name=file.name,
        description=file.description,
        fabric=fabric,
        accelerator=under(accelerator, stack, work.precision),
        stack=stack,
        model=model,
        sequence=work.sequence_length_tokens,
        batch=work.global_batch_sequences,
        precision=work.precision,
        optimizer=work.optimizer,
        attention=stack.attention if work.attention == "stack" else work.attention,
        context=work.context,
        expert_tensor=work.expert_tensor,
        imbalance=work.imbalance,
        capacity=work.capacity,
        overlap=work.overlap,
        space=replace(
            search_space(file.search, work, model, fabric),
            sharded_gradients=stack.sharded_gradients,
        ),
        pad_batch=file.search.pad_batch,
        time_limit_s=file.search.time_limit_s or float("inf"),
        top=file.search.top,
        baselines=tuple(file.baselines.names),
        failures=failures,
        seed=file.baselines.seed,
        baseline_space=file.baselines.space,
        gradient_bytes=float(work.gradient_bytes or 0),
        dispatch=work.dispatch,
        collectives=work.collectives,
        expert_overlap=work.expert_overlap,
    )


def _stack(given: str | StackFile | None, accelerator: Accelerator, folder: Path | None) -> Stack:
    """Return the stack that is given, else the accelerator's default."""
    family = accelerator.family.name
    if given is None:
        return default_stack(family)
    stack = load_stack(given, folder) if isinstance(given, str) else stack_of_table(given)
    if family not in (*stack.families, UNCALIBRATED):
        raise InputError(
            "stack",
            f"must run on {accelerator.name}",
            stack.name,
            "pick " + (", ".join(usable.name for usable in stacks_of(family)) or "none"),
        )
    return stack
