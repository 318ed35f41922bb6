"""The JSON file of a notebook, ``schema = 1``: written, and read back with every key checked.

What cells ask for is plain JSON that means the same on any machine. Scenarios in a notebook name
presets or hold tables, never files: a notebook is passed around, and what a stranger's file names
must not be read from here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, Field

from nest_core.errors import InputError
from nest_core.files import MAX_FILE_BYTES
from nest_core.notebook.cells import MOST_CELLS, Cell, CellKind, Notebook, Row, Summary
from nest_core.presets import named_file
from nest_core.schema import Name, check_plain, checked
from nest_core.studies.parameter import MOST_VALUES, renamed

__all__ = ["from_json", "portable", "to_document", "to_json"]

MOST_ENTRIES = 6


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class PlanInputs(_Table):
    """A scenario: its document and the overrides by dotted key."""

    document: dict[str, Any]
    overrides: dict[str, Any] = {}


class SweptTable(_Table):
    """A parameter of a sweep and the values that it takes."""

    parameter: Annotated[str, Field(max_length=200)]
    values: Annotated[list[str | int | float], Field(max_length=MOST_VALUES)]


class SweepInputs(PlanInputs):
    """A scenario and what varies in it; `nest_core.studies.sweeps` checks the parameters."""

    x: SweptTable
    y: SweptTable | None = None


class EntryInputs(PlanInputs):
    """One scenario of a comparison."""

    name: Annotated[str, Field(min_length=1, max_length=200)]


class BudgetTable(_Table):
    """What a network may cost, US dollars, or draw, watts; without a value, as the first."""

    kind: Literal["price", "power"]
    value: Annotated[float, Field(gt=0, lt=1e15)] | None = None


class ComparisonInputs(_Table):
    """Scenarios side by side, and what they may cost."""

    entries: Annotated[list[EntryInputs], Field(min_length=2, max_length=MOST_ENTRIES)]
    budget: BudgetTable | None = None
    failures: bool = True
    device_usd: Annotated[float, Field(ge=0, lt=1e9)] | None = None
    prices: dict[str, float | str] | None = None


class PartTable(_Table):
    """A model of a mix and its part of the time."""

    model: str | dict[str, Any]
    share: Annotated[float, Field(gt=0, lt=1e9)]


class RatiosInputs(PlanInputs):
    """A scenario, a mix of models and a limit; `nest_core.studies.ratios` checks the shares."""

    mix: Annotated[list[PartTable], Field(min_length=1, max_length=MOST_ENTRIES)]
    loss: float


class StudyInputs(_Table):
    """A study's document; `nest_core.studies.study.study_of` checks what it means."""

    study: dict[str, Any]


class FabricInputs(PlanInputs):
    """A fabric's document, and overrides by dotted key (``fabric.clos...``)."""


class LayerInputs(_Table):
    """A layer and a strategy; `nest_core.api.layer` checks what they mean."""

    model: dict[str, Any]
    accelerator: Annotated[str, Field(max_length=200)]
    kind: Annotated[str, Field(max_length=200)]
    precision: Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "nvfp4"]
    attention: Literal["stack", "flash", "unfused"]
    sequence: Annotated[int, Field(ge=1, le=10_000_000)]
    micro_batch: Annotated[int, Field(ge=1, le=1_000_000)]
    tp: Annotated[int, Field(ge=1, le=1_048_576)]
    sp: bool
    cp: Annotated[int, Field(ge=1, le=1_048_576)]
    ep: Annotated[int, Field(ge=1, le=1_048_576)]
    recompute: Annotated[str, Field(max_length=200)]
    context: Literal["ring", "all_gather"] = "ring"
    expert_tensor: bool = True
    imbalance: Annotated[float, Field(ge=1, le=1000)] = 1.0
    capacity: Annotated[float, Field(ge=0, le=1000)] = 0.0


class WhyInputs(PlanInputs):
    """A scenario, and which explanation of its plan (`nest_core.notebook.explained.WHY`)."""

    part: Literal["binding", "axes", "shadow", "head-room", "equations"]


class LessonInputs(_Table):
    """A lesson and settings of its controls; `nest_core.notebook.explained` checks them."""

    lesson: Annotated[str, Field(max_length=200)]
    settings: Annotated[dict[str, str | int | float], Field(max_length=20)] = {}


class NoInputs(_Table):
    """Notes ask for nothing."""


_TABLES: Mapping[CellKind, type[_Table]] = {
    "plan": PlanInputs,
    "sweep": SweepInputs,
    "study": StudyInputs,
    "comparison": ComparisonInputs,
    "ratios": RatiosInputs,
    "fabric": FabricInputs,
    "layer": LayerInputs,
    "why": WhyInputs,
    "lesson": LessonInputs,
    "note": NoInputs,
}
_NAMED = {
    "fabric": ("fabrics", ".toml"),
    "workload.model": ("models", ".toml"),
    "accelerator": ("accelerators", ".toml"),
    "accelerator.profile": ("profiles", ".json"),
}


def portable(kind: CellKind, inputs: Mapping[str, Any], where: str = "inputs") -> dict[str, Any]:
    """Inputs as a notebook keeps them, checked.

    Parameters
    ----------
    kind : CellKind
    inputs : mapping
    where : str
        What messages call them.

    Raises
    ------
    InputError
        If they are not of this kind, or a scenario names a file.
    """
    check_plain(where, inputs)
    found = {key: renamed(value) for key, value in inputs.items()}
    checked(_TABLES[kind], found, f"{where}.")
    if "entries" in found:
        for number, entry in enumerate(found["entries"]):
            _check_names(entry, f"{where}.entries[{number}]")
    elif "document" in found:
        _check_names(found, where)
    elif kind == "layer":
        _check_name("accelerator", found["accelerator"], f"{where}.accelerator")
    for number, entry in enumerate(found.get("mix", ())):
        _check_name("workload.model", entry.get("model"), f"{where}.mix[{number}].model")
    return found


def _check_names(scenario: Mapping[str, Any], where: str) -> None:
    own = scenario["document"].get("override", {})
    if not isinstance(own, Mapping):
        raise InputError(f"{where}.document.override", "must be a table", own, "write one")
    for part in ("document", "overrides"):
        for key, value in _leaves(scenario.get(part, {}), ""):
            _check_name(key.removeprefix("override."), value, f"{where}.{part}.{key}")


def _check_name(key: str, value: object, where: str) -> None:
    """Refuse text under a key that names something, unless it names a preset."""
    if key in _NAMED and isinstance(value, str):
        kind, ending = _NAMED[key]
        named_file(kind, value, None, field=where, ending=ending, table=ending == ".toml")


def _leaves(table: Mapping[str, Any], before: str) -> Iterator[tuple[str, Any]]:
    """Dotted keys and values of a table and the tables in it."""
    for name, value in table.items():
        key = f"{before}{name}"
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{key}.")
        else:
            yield key, value


SCHEMA = 1
LONGEST_NOTE = 50_000
MOST_ROWS = 2_000
FIRST_YEAR, LAST_YEAR = 1970, 9998
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")

Text = Annotated[str, Field(max_length=2_000)]
Figure = str | float | int | bool | None


class SummaryTable(_Table):
    """``summary`` of a cell."""

    rows: Annotated[list[dict[str, Figure]], Field(max_length=MOST_ROWS)]
    versions: Annotated[dict[str, Text], Field(max_length=100)]
    date: Text


class CellTable(_Table):
    """One of ``cells``."""

    id: Text
    kind: CellKind
    title: Name
    note: Annotated[str, Field(max_length=LONGEST_NOTE)] = ""
    inputs: dict[str, Any] = {}
    summary: SummaryTable | None = None


class NotebookFile(_Table):
    """The whole file."""

    version: Literal[1] = Field(alias="schema")
    name: Text
    created: Text = ""
    changed: Text = ""
    cells: Annotated[list[CellTable], Field(max_length=MOST_CELLS)] = []


def to_json(notebook: Notebook) -> str:
    """The file of a notebook; `from_json` reads it back without loss."""
    return json.dumps(to_document(notebook), indent=1, ensure_ascii=False, allow_nan=False)


def to_document(notebook: Notebook) -> dict[str, Any]:
    """The fields of the file."""
    return {
        "schema": SCHEMA,
        "name": notebook.name,
        "created": notebook.created,
        "changed": notebook.changed,
        "cells": [_cell_document(cell) for cell in notebook.cells],
    }


def from_json(text: str, where: str = "notebook") -> Notebook:
    """The notebook of a file's text.

    Parameters
    ----------
    where : str
        What messages call the file.

    Raises
    ------
    InputError
        If it is over 5 MB, is no JSON, or not a notebook; the message names the first field at
        fault and its rule.
    """
    if len(text.encode()) > MAX_FILE_BYTES:
        raise InputError(
            where, f"must hold at most {MAX_FILE_BYTES:,} bytes", "larger", "split the notebook"
        )
    document = _parsed(text, where)
    if not isinstance(document, dict):
        raise InputError(where, "must be a JSON object", document, "export it from the studio")
    if "cells" not in document or "schema" not in document:
        raise InputError(
            where,
            "must be a notebook of the studio, with schema and cells",
            sorted(document)[:5],
            "export one as JSON",
        )
    file = checked(NotebookFile, document)
    for field, date in (("created", file.created), ("changed", file.changed)):
        if date:
            _check_date(field, date)
    cells = [_cell(number, table) for number, table in enumerate(file.cells)]
    return Notebook(file.name, tuple(cells), file.created, file.changed)


def _cell_document(cell: Cell) -> dict[str, Any]:
    summary = cell.summary and {
        "rows": [dict(row) for row in cell.summary.rows],
        "versions": dict(cell.summary.versions),
        "date": cell.summary.date,
    }
    return {
        "id": cell.id,
        "kind": cell.kind,
        "title": cell.title,
        "note": cell.note,
        "inputs": dict(cell.inputs),
        "summary": summary,
    }


def _cell(number: int, table: CellTable) -> Cell:
    where = f"cells[{number}]"
    if not _ID.fullmatch(table.id):
        raise InputError(
            f"{where}.id", "must be 1 to 64 letters, digits, - or _", table.id, "change it"
        )
    inputs = portable(table.kind, table.inputs, f"{where}.inputs")
    summary = None
    if table.summary is not None:
        _check_date(f"{where}.summary.date", table.summary.date)
        rows: tuple[Row, ...] = tuple(table.summary.rows)
        summary = Summary(rows, table.summary.versions, table.summary.date)
    return Cell(table.id, table.kind, table.title, table.note, inputs, summary)


def _check_date(field: str, text: str) -> None:
    try:
        date = datetime.fromisoformat(text)
        # Other time zones have the dates at the ends of the calendar a day later or earlier.
        told = date.tzinfo is not None and FIRST_YEAR <= date.year <= LAST_YEAR
    except ValueError:
        told = False
    if not told:
        raise InputError(
            field,
            f"must be a date with its time zone, from {FIRST_YEAR} to {LAST_YEAR}",
            text,
            "write 2026-11-22T12:04:00+00:00",
        )


def _parsed(text: str, where: str) -> Any:
    def refuse(constant: str) -> NoReturn:
        raise InputError(where, "must hold finite numbers", constant, "write null")

    def number(digits: str) -> float:
        return float(digits) if math.isfinite(float(digits)) else refuse(digits)

    try:
        document = json.loads(text, parse_constant=refuse, parse_float=number)
        json.dumps(document, ensure_ascii=False).encode()
    except RecursionError as error:
        raise InputError(
            where, "must not nest deeply", "nested too deeply", "flatten it"
        ) from error
    except InputError:
        raise
    except UnicodeEncodeError as error:
        raise InputError(
            where,
            "must hold whole characters",
            error.object[error.start : error.end],
            "remove the half ones",
        ) from error
    except ValueError as error:  # a syntax error, or a number too long to read
        raise InputError(where, "must be JSON", str(error), "export it from the studio") from error
    return document
