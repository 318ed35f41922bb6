"""Documents by name: what a person keeps to open again, of which the store knows nothing more.

A table has a name, a document (JSON) and when it was saved (ISO, UTC) in every row: fabrics, drawn
or brought, that need not be fabrics yet, and measurements.
"""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Table, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from nest_core.documents import MAX_FILE_BYTES, InputError, preset_names, require
from nest_studio.session.store.database import FABRICS, MEASUREMENTS, STUDIES, Database, utc_now

__all__ = ["LONGEST", "Documents", "kept_fabrics", "kept_measurements", "kept_studies"]

LONGEST = 100
"""Characters of a name."""


class Documents:
    """The documents of a table.

    Parameters
    ----------
    database : Database
    table : Table
    noun : str
        What messages call one.
    preset : str
        Kind of presets whose names none can have; empty: any name is free.
    now : callable () -> datetime
        The time, with its zone.
    """

    def __init__(
        self,
        database: Database,
        table: Table,
        noun: str,
        preset: str = "",
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._database, self._table, self._row = database, table, table.c
        self._noun, self._preset, self._now = noun, preset, now

    def names(self) -> tuple[str, ...]:
        """All of them, whatever the case of their letters; rows without a name are left out."""
        with self._database.transaction() as connection:
            rows = connection.execute(select(self._row.name)).scalars().all()
        return tuple(
            sorted(
                (name for name in rows if isinstance(name, str)),
                key=lambda name: (name.casefold(), name),
            )
        )

    def open(self, name: str) -> dict[str, Any] | None:
        """The document of a name; None if there is none.

        Raises
        ------
        InputError
            If what is stored is no document; it stays as it is, and its name taken.
        """
        query = select(self._row.document).where(self._row.name == name)
        with self._database.transaction() as connection:
            text = connection.execute(query).scalar()
        if text is None:
            return None
        try:
            document = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise InputError(
                f"{self._noun} {name}",
                "must be stored as a document",
                "damaged",
                "open another, or delete it; it is left as it is",
            )
        return document

    def changed(self, name: str) -> str:
        """When one was saved last (ISO, UTC); empty if there is none."""
        query = select(self._row.changed).where(self._row.name == name)
        with self._database.transaction() as connection:
            return str(connection.execute(query).scalar() or "")

    def save(self, name: str, document: Mapping[str, Any], *, replace: bool = False) -> str:
        """Keep a document under a name, which is returned without blanks around it.

        Parameters
        ----------
        name : str
        document : mapping
            Plain JSON.
        replace : bool
            Whether one of that name gives way.

        Raises
        ------
        InputError
            If the name is taken or cannot be one, or the document is too large.
        """
        stripped = self._named(name)
        row = self._row_of(document)
        with self._database.transaction() as connection:
            statement = update(self._table).where(self._row.name == stripped).values(row)
            if replace and connection.execute(statement).rowcount:
                return stripped
            try:
                connection.execute(insert(self._table).values(row | {"name": stripped}))
            except IntegrityError as error:
                raise _taken(stripped) from error
        return stripped

    def rename(self, old: str, new: str, document: Mapping[str, Any] | None = None) -> str:
        """Give one another name, which is returned; errors as for `save`.

        Parameters
        ----------
        old, new : str
        document : mapping, optional
            What it holds from now on; without, what it held.
        """
        stripped = self._named(new)
        changed = {"name": stripped} | ({} if document is None else self._row_of(document))
        with self._database.transaction() as connection:
            try:
                statement = update(self._table).where(self._row.name == old).values(changed)
                done = connection.execute(statement).rowcount
            except IntegrityError as error:
                raise _taken(stripped) from error
        require(
            done,
            "name",
            f"must be of a {self._noun} that is kept",
            old,
            "save it again",
        )
        return stripped

    def delete(self, name: str) -> None:
        """Delete one; nothing happens if there is none."""
        with self._database.transaction() as connection:
            connection.execute(delete(self._table).where(self._row.name == name))

    def _row_of(self, document: Mapping[str, Any]) -> dict[str, str]:
        text = json.dumps(document, allow_nan=False)
        require(
            len(text) <= MAX_FILE_BYTES,
            self._noun,
            f"must hold at most {MAX_FILE_BYTES:,} bytes",
            len(text),
            "keep less of it under a name",
        )
        return {
            "document": text,
            "changed": self._now().astimezone(UTC).isoformat(timespec="seconds"),
        }

    def _named(self, text: str) -> str:
        name = text.strip()
        require(
            1 <= len(name) <= LONGEST and name.isprintable(),
            "name",
            f"must be 1 to {LONGEST} characters",
            text,
            "choose a short one",
        )
        require(
            not self._preset or name not in preset_names(self._preset),
            "name",
            "must not be that of a preset",
            name,
            "choose another",
        )
        return name


def kept_fabrics(database: Database) -> Documents:
    """The fabrics of a database."""
    return Documents(database, FABRICS, "fabric", preset="fabrics")


def kept_measurements(database: Database) -> Documents:
    """The measurements of a database."""
    return Documents(database, MEASUREMENTS, "set of measurements")


def kept_studies(database: Database) -> Documents:
    """The studies of a database."""
    return Documents(database, STUDIES, "study", preset="studies")


def _taken(name: str) -> InputError:
    return InputError("name", "must not be taken", name, "choose another, or replace what has it")
