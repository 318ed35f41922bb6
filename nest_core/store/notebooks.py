"""Notebooks by name. Each has a revision; who saves must have seen the present one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sqlalchemy import Update, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from nest_core.errors import InputError
from nest_core.files import MAX_FILE_BYTES
from nest_core.notebook import Notebook, from_json, to_json
from nest_core.notebook.cells import rename
from nest_core.store.database import NOTEBOOKS, Database, utc_now

__all__ = ["Conflict", "Listed", "Notebooks", "Saved"]

_ROW = NOTEBOOKS.c
_MOST_REVISIONS = 2**53


class Conflict(InputError):
    """Somebody else was faster: the notebook changed since it was opened, or its name is taken."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A notebook as it is in the store, and which of its versions that is."""

    notebook: Notebook
    revision: int


@dataclass(frozen=True, slots=True)
class Listed:
    """A notebook in the list: its name, how many cells it has, when it was saved (ISO, UTC)."""

    name: str
    cells: int
    changed: str


class Notebooks:
    """The notebooks of a database.

    Parameters
    ----------
    database : Database
    now : callable () -> datetime
        The time, with its zone.
    """

    def __init__(self, database: Database, now: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._now = now

    def listed(self) -> tuple[Listed, ...]:
        """All notebooks by name, whatever the case of its letters.

        Rows whose name is no text are left out: nobody could ask for one.
        """
        with self._database.transaction() as connection:
            rows = connection.execute(select(_ROW.name, _ROW.cells, _ROW.changed)).all()
        found = (
            Listed(
                row.name,
                row.cells if isinstance(row.cells, int) else 0,
                row.changed if isinstance(row.changed, str) else "",
            )
            for row in rows
            if isinstance(row.name, str)
        )
        return tuple(sorted(found, key=lambda entry: (entry.name.casefold(), entry.name)))

    def open(self, name: str) -> Saved | None:
        """The notebook of a name; None if there is none.

        Raises
        ------
        InputError
            If what is stored is no notebook; it stays as it is, and its name taken.
        """
        with self._database.transaction() as connection:
            row = connection.execute(select(NOTEBOOKS).where(_ROW.name == name)).first()
        if row is None:
            return None
        document, revision = row.document, row.revision
        counted = isinstance(revision, int) and 1 <= revision < _MOST_REVISIONS
        if not isinstance(document, str) or not counted:
            raise InputError(
                f"notebook {name}",
                "must be stored as text of a counted version",
                f"{type(document).__name__} of version {revision!r}",
                "open another; this one is left as it is",
            )
        found = from_json(document, f"notebook {name}")
        return Saved(found if found.name == name else rename(found, name), revision)

    def save(self, notebook: Notebook, revision: int = 0) -> Saved:
        """Store a notebook over the revision that it was made from, or as a new one.

        Parameters
        ----------
        revision : int
            What `open` or the last `save` returned; 0 for a notebook that must not exist yet.

        Raises
        ------
        Conflict
            If the store has a newer revision, or none; if a new notebook's name is taken.
        InputError
            If the notebook is too large, or the database refuses it.
        """
        stamp = self._now().astimezone(UTC).isoformat(timespec="seconds")
        kept = replace(notebook, created=notebook.created or stamp, changed=stamp)
        row = _row(kept, revision + 1)
        if not revision:
            self._insert(row)
            return Saved(kept, 1)
        with self._database.transaction() as connection:
            done = connection.execute(_at(notebook.name, revision).values(row)).rowcount
        if not done:
            raise self._newer(notebook.name, revision)
        return Saved(kept, revision + 1)

    def rename(self, saved: Saved, name: str) -> Saved:
        """Give a notebook another name; errors as for `save`."""
        kept = rename(saved.notebook, name)
        if name == saved.notebook.name:
            return saved
        statement = _at(saved.notebook.name, saved.revision)
        with self._database.transaction() as connection:
            try:
                done = connection.execute(statement.values(_row(kept, saved.revision + 1))).rowcount
            except IntegrityError as error:
                raise _taken(name) from error
        if not done:
            raise self._newer(saved.notebook.name, saved.revision)
        return Saved(kept, saved.revision + 1)

    def delete(self, name: str, revision: int) -> None:
        """Delete a notebook as it was seen; nothing happens if there is none.

        Raises
        ------
        Conflict
            If the store has another revision.
        """
        seen = delete(NOTEBOOKS).where(_ROW.name == name, _ROW.revision == revision)
        with self._database.transaction() as connection:
            if connection.execute(seen).rowcount:
                return
            there = connection.execute(select(_ROW.revision).where(_ROW.name == name)).first()
        if there:
            raise self._newer(name, revision)

    def _newer(self, name: str, revision: int) -> Conflict:
        query = select(_ROW.revision).where(_ROW.name == name)
        with self._database.transaction() as connection:
            present = connection.execute(query).scalar()
        if present is None:
            rule, found = "must still have its name", "renamed or deleted"
        else:
            rule, found = f"must still be version {revision}, which was opened", present
        return Conflict(
            f"notebook {name}", rule, found, "reload it, or save yours under another name"
        )

    def _insert(self, row: dict[str, str | int]) -> None:
        with self._database.transaction() as connection:
            try:
                connection.execute(insert(NOTEBOOKS).values(row))
            except IntegrityError as error:
                raise _taken(str(row["name"])) from error


def _at(name: str, revision: int) -> Update:
    return update(NOTEBOOKS).where(_ROW.name == name, _ROW.revision == revision)


def _row(notebook: Notebook, revision: int) -> dict[str, str | int]:
    document = to_json(notebook)
    if len(document.encode()) > MAX_FILE_BYTES:
        raise InputError(
            "notebook",
            f"must hold at most {MAX_FILE_BYTES:,} bytes",
            len(document.encode()),
            "split it",
        )
    return {
        "name": notebook.name,
        "document": document,
        "cells": len(notebook.cells),
        "revision": revision,
        "created": notebook.created,
        "changed": notebook.changed,
    }


def _taken(name: str) -> Conflict:
    return Conflict(
        "notebook name", "must not be taken", name, "choose another or open that notebook"
    )
