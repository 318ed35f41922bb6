"""Notebooks by name. Each has a revision; who saves must have seen the present one.

What a save replaces is kept: the last `VERSIONS_KEPT` versions of every notebook.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from nbformat import NotebookNode
from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from nest_core.documents import InputError, require
from nest_core.report.notebook import read_notebook, write_notebook
from nest_studio.session.store.database import NOTEBOOK_VERSIONS, NOTEBOOKS, Database, utc_now

__all__ = ["VERSIONS_KEPT", "Conflict", "NotebookEntry", "Notebooks", "SavedNotebook"]

VERSIONS_KEPT = 10
_ROW, _OLD = NOTEBOOKS.c, NOTEBOOK_VERSIONS.c
_MAX_NAME = 100
_MAX_REVISION = 2**53


class Conflict(InputError):
    """Somebody else was faster: the notebook changed since it was opened, or its name is taken."""


@dataclass(frozen=True, slots=True)
class SavedNotebook:
    """A notebook as it is in the store, which of its versions that is and when it was saved."""

    name: str
    notebook: NotebookNode
    revision: int
    changed: str


@dataclass(frozen=True, slots=True)
class NotebookEntry:
    """A name, or an earlier version: how many cells or which revision, when saved (ISO, UTC)."""

    name: str
    count: int
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

    def listed(self) -> tuple[NotebookEntry, ...]:
        """Return all notebooks by name, whatever the case of its letters, with counts of cells.

        Rows whose name is no text are left out: nobody could ask for one.
        """
        with self._database.transaction() as connection:
            rows = connection.execute(select(_ROW.name, _ROW.cells, _ROW.changed)).all()
        entries = (
            NotebookEntry(
                row.name,
                row.cells if isinstance(row.cells, int) else 0,
                row.changed if isinstance(row.changed, str) else "",
            )
            for row in rows
            if isinstance(row.name, str)
        )
        return tuple(sorted(entries, key=lambda entry: (entry.name.casefold(), entry.name)))

    def open(self, name: str) -> SavedNotebook | None:
        """Return the notebook of a name; None if there is none.

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
        counted = isinstance(revision, int) and 1 <= revision < _MAX_REVISION
        if not isinstance(document, str) or not counted:
            raise InputError(
                f"notebook {name}",
                "must be stored as text of a counted version",
                f"{type(document).__name__} of version {revision!r}",
                "open another; this one is left as it is",
            )
        notebook = read_notebook(document, f"notebook {name}")
        return SavedNotebook(name, notebook, revision, str(row.changed))

    def save(self, name: str, notebook: NotebookNode, revision: int = 0) -> SavedNotebook:
        """Store a notebook over the revision that it was made from, or as a new one.

        Parameters
        ----------
        name : str
        notebook : NotebookNode
        revision : int
            What `open` or the last `save` returned; 0 for a notebook that must not exist yet.

        Raises
        ------
        Conflict
            If the store has a newer revision, or none; if a new notebook's name is taken.
        InputError
            If the name cannot be one, the notebook is too large, or the database refuses it.
        """
        _check_name(name)
        stamp = self._now().astimezone(UTC).isoformat(timespec="seconds")
        row: dict[str, str | int] = {
            "document": write_notebook(notebook),
            "cells": len(notebook.cells),
            "revision": revision + 1,
            "changed": stamp,
        }
        with self._database.transaction() as connection:
            if revision:
                _keep_version(connection, name, revision)
                _replace(connection, name, revision, row)
            else:
                _insert(connection, row | {"name": name, "created": stamp})
        return SavedNotebook(name, notebook, revision + 1, stamp)

    def rename(self, saved: SavedNotebook, name: str) -> None:
        """Give a notebook, with its versions, another name; errors as for `save`."""
        _check_name(name)
        with self._database.transaction() as connection:
            try:
                _replace(connection, saved.name, saved.revision, {"name": name})
            except IntegrityError as error:
                raise _taken(name) from error
            connection.execute(
                update(NOTEBOOK_VERSIONS).where(_OLD.name == saved.name).values(name=name)
            )

    def delete(self, saved: SavedNotebook) -> None:
        """Delete a notebook as it was seen, with its versions; nothing happens if there is none.

        Raises
        ------
        Conflict
            If the store has another revision.
        """
        seen = (_ROW.name == saved.name, _ROW.revision == saved.revision)
        with self._database.transaction() as connection:
            if connection.execute(delete(NOTEBOOKS).where(*seen)).rowcount:
                connection.execute(delete(NOTEBOOK_VERSIONS).where(_OLD.name == saved.name))
            elif _revision(connection, saved.name) is not None:
                raise _newer(connection, saved.name, saved.revision)

    def versions(self, name: str) -> tuple[NotebookEntry, ...]:
        """Return the earlier versions of a notebook by revision, the latest first."""
        query = select(_OLD.revision, _OLD.changed).where(_OLD.name == name)
        with self._database.transaction() as connection:
            rows = connection.execute(query.order_by(_OLD.revision.desc())).all()
        return tuple(NotebookEntry(name, row.revision, str(row.changed)) for row in rows)

    def version(self, name: str, revision: int) -> NotebookNode:
        """Return an earlier version.

        Raises
        ------
        InputError
            If it is not kept any more, or is no notebook.
        """
        query = select(_OLD.document).where(_OLD.name == name, _OLD.revision == revision)
        with self._database.transaction() as connection:
            document = connection.execute(query).scalar()
        if not isinstance(document, str):
            rule = f"must be one of the last {VERSIONS_KEPT}"
            raise InputError(f"version of {name}", rule, revision, "pick a later one")
        return read_notebook(document, f"version {revision} of {name}")


def _keep_version(connection: Connection, name: str, revision: int) -> None:
    """Copy what the notebook is now to its versions, and drop the oldest of them."""
    now = select(_ROW.name, _ROW.revision, _ROW.document, _ROW.changed)
    now = now.where(_ROW.name == name, _ROW.revision == revision)
    try:
        connection.execute(
            insert(NOTEBOOK_VERSIONS).from_select(["name", "revision", "document", "changed"], now)
        )
    except IntegrityError as error:  # another tab has just replaced this revision
        raise _conflict(
            name, f"must still be version {revision}, which was opened", "newer"
        ) from error
    oldest = _OLD.revision <= revision - VERSIONS_KEPT
    connection.execute(delete(NOTEBOOK_VERSIONS).where(_OLD.name == name, oldest))


def _insert(connection: Connection, row: dict[str, str | int]) -> None:
    try:
        connection.execute(insert(NOTEBOOKS).values(row))
    except IntegrityError as error:
        raise _taken(str(row["name"])) from error


def _replace(connection: Connection, name: str, revision: int, row: dict[str, str | int]) -> None:
    if not connection.execute(
        update(NOTEBOOKS).where(_ROW.name == name, _ROW.revision == revision).values(row)
    ).rowcount:
        raise _newer(connection, name, revision)


def _revision(connection: Connection, name: str) -> int | None:
    return connection.execute(select(_ROW.revision).where(_ROW.name == name)).scalar()


def _newer(connection: Connection, name: str, revision: int) -> Conflict:
    present = _revision(connection, name)
    return (
        _conflict(name, "must still have its name", "renamed or deleted")
        if present is None
        else _conflict(name, f"must still be version {revision}, which was opened", present)
    )


def _conflict(name: str, rule: str, value: object) -> Conflict:
    return Conflict(f"notebook {name}", rule, value, "look at it as it is now, and do it again")


def _check_name(name: str) -> None:
    require(
        1 <= len(name) <= _MAX_NAME and name == name.strip() and name.isprintable(),
        "notebook name",
        f"must be one line of 1 to {_MAX_NAME} characters without space at its ends",
        name,
        "choose another",
    )


def _taken(name: str) -> Conflict:
    return Conflict(
        "notebook name", "must not be taken", name, "choose another or open that notebook"
    )
