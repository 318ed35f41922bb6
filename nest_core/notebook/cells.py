"""Notebooks as values: named, ordered cells, and the edits that make a new one of an old.

A cell holds what was asked (plain JSON) and what came out when it was pinned, so that a later
run can say what changed. Nothing here reads a clock or computes a plan. Values inside ``inputs``
and ``rows`` are replaced and never changed in place.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from nest_core.errors import InputError
from nest_core.units import signed_percent

__all__ = [
    "MOST_CELLS",
    "Cell",
    "CellKind",
    "Notebook",
    "Row",
    "Summary",
    "add_cell",
    "changes",
    "delete_cell",
    "duplicate_cell",
    "move_cell",
    "new_id",
    "rename",
    "replace_cell",
]

CellKind = Literal[
    "plan", "sweep", "study", "comparison", "ratios", "fabric", "layer", "why", "lesson", "note"
]
MOST_CELLS = 200
LONGEST_NAME = 100
_SAME = 1e-9

Row = Mapping[str, str | float | int | bool | None]
"""One line of results: names with their units, and figures in those units."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a cell's inputs led to, when it was pinned or last run again.

    Parameters
    ----------
    rows : tuple of Row
        One for a plan; one per point of a sweep, entry of a comparison, or ratio of a tier.
    versions : mapping of str to str
        Of what computed it.
    date : str
        When, ISO 8601 in UTC.
    """

    rows: tuple[Row, ...]
    versions: Mapping[str, str]
    date: str


@dataclass(frozen=True, slots=True)
class Cell:
    """One entry of a notebook.

    Parameters
    ----------
    id : str
        Unique in its notebook: letters, digits, ``-`` and ``_``.
    kind : CellKind
    title : str
    note : str
        Markdown.
    inputs : mapping
        Plain JSON, as the kind's function in `nest_core.notebook.kinds` takes it; empty for notes.
    summary : Summary or None
        None for notes, and until the cell was first computed.
    """

    id: str
    kind: CellKind
    title: str
    note: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    summary: Summary | None = None


@dataclass(frozen=True, slots=True)
class Notebook:
    """Cells in their order.

    Parameters
    ----------
    name : str
        1 to 100 characters, without line breaks and without space at either end.
    cells : tuple of Cell
    created, changed : str
        When it was first and last saved, ISO 8601 in UTC; empty until then.
    """

    name: str
    cells: tuple[Cell, ...] = ()
    created: str = ""
    changed: str = ""

    def __post_init__(self) -> None:
        _check_name(self.name)
        if len(self.cells) > MOST_CELLS:
            raise InputError(
                "cells", f"must be at most {MOST_CELLS}", len(self.cells), "start another notebook"
            )
        if len({cell.id for cell in self.cells}) != len(self.cells):
            ids = [cell.id for cell in self.cells]
            twice = next(name for name in ids if ids.count(name) > 1)
            raise InputError("cells", "must have different ids", twice, "change one of them")

    def cell(self, cell_id: str) -> Cell:
        """The cell of an id.

        Raises
        ------
        InputError
            If there is none: another tab may have deleted it.
        """
        return self.cells[self.place(cell_id)]

    def place(self, cell_id: str) -> int:
        """Where a cell stands, from 0; InputError if it is not there."""
        for place, cell in enumerate(self.cells):
            if cell.id == cell_id:
                return place
        raise InputError("cell", "must be in the notebook", cell_id, "reload the notebook")


def new_id() -> str:
    """An id that no cell has yet, with near certainty."""
    return secrets.token_hex(6)


def rename(notebook: Notebook, name: str) -> Notebook:
    """The notebook under another name; InputError for one that it cannot have."""
    return replace(notebook, name=name)


def add_cell(notebook: Notebook, cell: Cell, place: int | None = None) -> Notebook:
    """The notebook with one cell more, before ``place`` or at the end."""
    at = len(notebook.cells) if place is None else place
    return replace(notebook, cells=(*notebook.cells[:at], cell, *notebook.cells[at:]))


def replace_cell(notebook: Notebook, cell: Cell) -> Notebook:
    """The notebook with a cell in place of the one with its id."""
    at = notebook.place(cell.id)
    return replace(notebook, cells=(*notebook.cells[:at], cell, *notebook.cells[at + 1 :]))


def delete_cell(notebook: Notebook, cell_id: str) -> Notebook:
    """The notebook without a cell."""
    at = notebook.place(cell_id)
    return replace(notebook, cells=notebook.cells[:at] + notebook.cells[at + 1 :])


def move_cell(notebook: Notebook, cell_id: str, steps: int) -> Notebook:
    """The notebook with a cell further down, or up for negative steps; its ends stop it.

    Examples
    --------
    >>> notebook = Notebook("N", (Cell("a", "note", "A"), Cell("b", "note", "B")))
    >>> [cell.id for cell in move_cell(notebook, "b", -1).cells]
    ['b', 'a']
    """
    at = notebook.place(cell_id)
    to = min(max(at + steps, 0), len(notebook.cells) - 1)
    return add_cell(delete_cell(notebook, cell_id), notebook.cells[at], to)


def duplicate_cell(notebook: Notebook, cell_id: str, copy_id: str) -> Notebook:
    """The notebook with a copy of a cell below it."""
    at = notebook.place(cell_id)
    cell = notebook.cells[at]
    return add_cell(notebook, replace(cell, id=copy_id, title=f"{cell.title} (copy)"), at + 1)


def changes(before: Summary, after: Summary) -> tuple[str, ...]:
    """What differs between two summaries of the same inputs, one line per figure.

    Figures count as the same within one part in 10^9: what another processor's rounding does.

    Examples
    --------
    >>> then = Summary(({"iteration time, s": 2.0, "plan": "tp 8"},), {}, "")
    >>> now = Summary(({"iteration time, s": 2.5, "plan": "tp 8"},), {}, "")
    >>> changes(then, now)
    ('iteration time, s: 2 → 2.5 (+25.0 %)',)
    """
    if len(before.rows) != len(after.rows):
        return (f"rows: {len(before.rows)} → {len(after.rows)}",)
    found = []
    for number, (old, new) in enumerate(zip(before.rows, after.rows, strict=True), start=1):
        where = f"row {number}, " if len(before.rows) > 1 else ""
        for name in dict.fromkeys((*old, *new)):
            then, now = old.get(name), new.get(name)
            if not _same(then, now):
                found.append(f"{where}{name}: {_shown(then)} → {_shown(now)}{_by(then, now)}")
    return tuple(found)


def _check_name(name: str) -> None:
    if not 1 <= len(name) <= LONGEST_NAME:
        raise InputError(
            "notebook name", f"must have 1 to {LONGEST_NAME} characters", name, "choose another"
        )
    if name != name.strip() or not name.isprintable():
        raise InputError(
            "notebook name", "must be one line without space at its ends", name, "choose another"
        )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and value is not None else None


def _same(then: object, now: object) -> bool:
    first, second = _number(then), _number(now)
    if first is None or second is None or isinstance(then, bool) != isinstance(now, bool):
        return then == now
    return abs(first - second) <= _SAME * max(abs(first), abs(second))


def _shown(value: object) -> str:
    number = _number(value)
    if value is None:
        return "–"
    return f"{number:.6g}" if number is not None and not isinstance(value, bool) else str(value)


def _by(then: object, now: object) -> str:
    first, second = _number(then), _number(now)
    if not first or second is None or isinstance(then, bool) or isinstance(now, bool):
        return ""
    return f" ({signed_percent(second / first - 1)})"
