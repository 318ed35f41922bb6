"""A study: a scenario, or a mix of them, at every point of the product of its axes.

Points are numbered row by row, the last axis fastest. What a point depends on is hashed
(`Study.key`): documents and the files that they name, overrides, presets, and the sources of the
spine. So an answer is found again by whoever asks for the same, and by nobody after a change.
"""

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from nest_core.documents import load_toml, named_file, preset_path, require
from nest_core.documents.columns import RENAMED
from nest_core.documents.schema import (
    Parameter,
    ScenarioFile,
    checked,
    parameter,
)
from nest_core.documents.schema.study import (
    MOST_VALUES,
    AxisTable,
    BoundTable,
    DesignTable,
    RangeTable,
    StudyFile,
)
from nest_core.scenario import Scenario, scenario_document
from nest_core.studies.designs import beside
from nest_core.studies.parameters import Value, parameter_named, sweep_parameters, with_values

__all__ = [
    "EFFECTIVE",
    "Member",
    "Study",
    "StudyPoint",
    "load_study",
    "study_of",
    "study_text",
]

MOST_POINTS = 1_000_000
WORST_LOSS, EFFECTIVE = "worst_loss", "effective_tokens_per_s"
SPINE = (
    "documents",
    "fabric",
    "network",
    "workload",
    "hardware",
    "costs",
    "planner",
    "scenario",
    "studies",
    "bill",
    "reliability",
)
"""Packages that an answer follows from."""


@dataclass(frozen=True, slots=True)
class Member:
    """One scenario of a mix.

    Parameters
    ----------
    name : str
    scenario : Scenario
        With the study's overrides of its own in its document's ``override``.
    weight : float
        Its share of all tokens that are trained; of a mix they add up to 1.
    content : str
        Stands for all that its answers depend on but the overrides.
    """

    name: str
    scenario: Scenario
    weight: float = 1.0
    content: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class StudyPoint:
    """One scenario of a study at one of its points.

    Parameters
    ----------
    key : str
        Stands for everything that its row depends on.
    number : int
    member : Member
    overrides : mapping
        Of the member's document.
    details : tuple of str
        What else is asked of its plan: ``"interval"``, or one of `Study.details`.
    """

    key: str
    number: int
    member: Member
    overrides: Mapping[str, Any]
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Study:
    """A study, read and checked.

    Parameters
    ----------
    name, question : str
    members : tuple of Member
    axes : tuple of Parameter
    metrics : tuple of str
        Columns of a result, of `nest_core.documents.schema.study.METRICS`.
    constraints : dict of (float or None, float or None)
        What a metric must be at least, and at most.
    design : DesignTable or None
        Where fabrics are sought rather than axes turned; then it has no axes of its own.
    """

    name: str
    question: str
    members: tuple[Member, ...]
    axes: tuple[Parameter, ...]
    metrics: tuple[str, ...]
    constraints: Mapping[str, tuple[float | None, float | None]]
    design: DesignTable | None = None

    def __len__(self) -> int:
        return math.prod(len(axis.values) for axis in self.axes)

    @property
    def details(self) -> tuple[str, ...]:
        """What takes more than a plan, where that is asked: one failed switch, goodput."""
        return tuple(
            name
            for name in (WORST_LOSS, EFFECTIVE)
            if name in self.metrics or name in self.constraints
        )

    def values(self, number: int) -> dict[str, Value]:
        """Return a point's values by the axes' columns; the last axis varies fastest."""
        places = np.unravel_index(number, [len(axis.values) for axis in self.axes])
        return {
            axis.column: axis.values[place] for axis, place in zip(self.axes, places, strict=True)
        }

    def overrides(self, number: int) -> dict[str, Any]:
        """Return a point's overrides of its scenarios; what a later axis sets goes before."""
        return with_values({}, zip(self.axes, self.values(number).values(), strict=True))

    def key(self, member: Member, overrides: Mapping[str, Any]) -> str:
        """Return what stands for the answer of a member under overrides, by content."""
        text = json.dumps(overrides, sort_keys=True, default=str)
        return hashlib.sha256(
            f"{member.content} {text} {' '.join(self.details)}".encode()
        ).hexdigest()

    def points(self) -> Iterator[StudyPoint]:
        """Yield every scenario of the mix at every point, in order."""
        for number in range(len(self)):
            overrides = self.overrides(number)
            for member in self.members:
                yield StudyPoint(
                    self.key(member, overrides), number, member, overrides, self.details
                )


def load_study(name: str, folder: Path | None = None) -> Study:
    """Return a study preset or file.

    Parameters
    ----------
    name : str
    folder : Path, optional
        Where a relative path starts; None where the name may be a preset's only.

    Raises
    ------
    InputError
        For anything that keeps it from being a study, an axis that is no parameter among it.
    """
    path = named_file("studies", name, folder, field="study")
    return study_of(load_toml(path), path.parent if folder is not None else None)


def study_text(name: str) -> str:
    """Return the file of a study preset."""
    return named_file("studies", name, None, field="study").read_text(encoding="utf-8")


def study_of(document: Mapping[str, Any], folder: Path | None = None) -> Study:
    """Return a study's document, as its file has it; parameters and errors as of `load_study`."""
    file = checked(StudyFile, dict(document))
    scenarios = (
        [(file.scenario, 1.0)] if file.scenario else [(m.scenario, m.weight) for m in file.mix]
    )
    total = sum(weight for _, weight in scenarios)
    members = []
    for scenario_name, weight in scenarios:
        document, where = scenario_document(scenario_name, folder)
        merged = {**document, "override": {**document.get("override", {}), **file.overrides}}
        members.append(
            Member(
                scenario_name, Scenario(merged, {}, where), weight / total, _content(merged, where)
            )
        )
    axes = tuple(
        _axis(table, members[0], f"axes[{number}]") for number, table in enumerate(file.axes)
    )
    keys = [axis.column for axis in axes]
    for number, key in enumerate(keys):
        require(
            key not in keys[:number],
            f"axes[{number}].parameter",
            "must stand once",
            key,
            "take it out of one axis",
        )
    study = Study(
        file.name,
        file.question,
        tuple(members),
        axes,
        tuple(dict.fromkeys(RENAMED.get(name, name) for name in file.metrics)),
        {RENAMED.get(name, name): _bound(name, bound) for name, bound in file.constraints.items()},
        file.design,
    )
    require(
        len(study) <= MOST_POINTS,
        "axes",
        f"must make at most {MOST_POINTS:,} points",
        len(study),
        "take values out",
    )
    return study


def _bound(name: str, table: BoundTable) -> tuple[float | None, float | None]:
    require(
        table.least is not None or table.most is not None,
        f"constraints.{name}",
        "must have min or max",
        "neither",
        "write one",
    )
    return table.least, table.most


def _axis(table: AxisTable, member: Member, where: str) -> Parameter:
    if table.designs is not None:
        designs = {name: beside(member.scenario, name) for name in table.designs}
        return Parameter("design", "design", values=tuple(designs), changes=designs.__getitem__)
    name = table.parameter or ""
    if name in ("fabric", "accelerator"):
        return Parameter(name, name, key=name, values=tuple(dict.fromkeys(table.values or ())))
    turned = _parameter(name, member, f"{where}.parameter")
    given: Sequence[Value] = (
        _of_range(table.range, turned.kind is int, f"{where}.range")
        if table.range
        else table.values or []
    )
    values = [turned.checked(value, f"{where}.values[{n}]") for n, value in enumerate(given)]
    changes = {value: turned.overrides(value) for value in values}
    return replace(turned, values=tuple(changes), changes=changes.__getitem__)


def _parameter(name: str, member: Member, field: str) -> Parameter:
    """Return any parameter of the catalogue by its key, or one that the scenario has to sweep."""
    with suppress(KeyError):
        catalogued = parameter(name, ScenarioFile)
        numbers = [f" (no. {int(part) + 1})" for part in name.split(".") if part.isdigit()]
        return replace(catalogued, name=name, label=catalogued.label + "".join(numbers))
    return parameter_named(sweep_parameters(member.scenario), name, field)


def _of_range(table: RangeTable, is_whole: bool, field: str) -> list[Value]:
    """Return both ends and what lies between; whole numbers where all are and the parameter is."""
    steps = (
        math.log(table.stop / table.start, table.factor)
        if table.factor
        else (table.stop - table.start) / (table.step or 1.0)
    )
    count = math.floor(steps + 1e-9) + 1
    require(
        count <= MOST_VALUES,
        field,
        f"must have at most {MOST_VALUES:,} values",
        count,
        "widen the step",
    )
    values = [
        table.start * table.factor**n if table.factor else table.start + n * (table.step or 1.0)
        for n in range(count)
    ]
    rounded = [round(value, 9) for value in values]
    return [int(number) if is_whole and number.is_integer() else number for number in rounded]


def _digest(paths: Iterable[Path]) -> str:
    """Of files, by name and content."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        with path.open("rb") as file:
            digest.update(f"{path.name} {hashlib.file_digest(file, 'sha256').hexdigest()}".encode())
    return digest.hexdigest()


@lru_cache(maxsize=1)
def _surroundings() -> str:
    """Of the spine's sources and the presets, once a process."""
    root = Path(__file__).resolve().parents[1]
    sources = (path for name in SPINE for path in (root / name).rglob("*.py"))
    presets = (path for path in preset_path().rglob("*") if path.is_file())
    return _digest(sources) + _digest(presets)


def _content(document: Mapping[str, Any], folder: Path | None) -> str:
    """Of a scenario's document, the files that it names, and what all answers follow from."""
    files: set[Path] = set()
    pending: list[Any] = [document]
    while pending:
        value = pending.pop()
        if isinstance(value, dict | list):
            pending.extend(value.values() if isinstance(value, dict) else value)
        elif isinstance(value, str) and folder is not None and os.path.isfile(folder / value):
            files.add(folder / value)
    content = f"{json.dumps(document, sort_keys=True, default=str)} {_digest(files)} "
    return hashlib.sha256((content + _surroundings()).encode()).hexdigest()
