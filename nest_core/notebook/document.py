"""The JSON file of a notebook, ``schema = 1``: written, and read back with every key checked."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Annotated, Any, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, Field

from nest_core.errors import InputError
from nest_core.files import MAX_FILE_BYTES
from nest_core.notebook.cells import MOST_CELLS, Cell, CellKind, Notebook, Row, Summary
from nest_core.notebook.inputs import portable
from nest_core.schema import Name, checked

__all__ = ["from_json", "to_document", "to_json"]

SCHEMA = 1
LONGEST_NOTE = 50_000
MOST_ROWS = 2_000
FIRST_YEAR, LAST_YEAR = 1970, 9998
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")

Text = Annotated[str, Field(max_length=2_000)]
Figure = str | float | int | bool | None


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


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
            where, "must be a notebook of the studio, with schema and cells", sorted(document)[:5],
            "export one as JSON",
        )  # fmt: skip
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
            field, f"must be a date with its time zone, from {FIRST_YEAR} to {LAST_YEAR}", text,
            "write 2026-11-22T12:04:00+00:00",
        )  # fmt: skip


def _parsed(text: str, where: str) -> Any:
    def refuse(constant: str) -> NoReturn:
        raise InputError(where, "must hold finite numbers", constant, "write null")

    try:
        document = json.loads(text, parse_constant=refuse)
        json.dumps(document, ensure_ascii=False).encode()
    except RecursionError as error:
        raise InputError(
            where, "must not nest deeply", "nested too deeply", "flatten it"
        ) from error
    except InputError:
        raise
    except UnicodeEncodeError as error:
        raise InputError(
            where, "must hold whole characters", error.object[error.start : error.end],
            "remove the half ones",
        ) from error  # fmt: skip
    except ValueError as error:  # a syntax error, or a number too long to read
        raise InputError(where, "must be JSON", str(error), "export it from the studio") from error
    return document
