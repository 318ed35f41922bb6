"""Measurements by name: documents of plain values, of which the store knows nothing more."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from nest_core.errors import InputError
from nest_core.files import MAX_FILE_BYTES
from nest_core.store.database import MEASUREMENTS, Database, utc_now

__all__ = ["Kept", "KeptMeasurements"]

_ROW = MEASUREMENTS.c


@dataclass(frozen=True, slots=True)
class Kept:
    """A set in the list: its name, how many entries it has, when it was saved (ISO, UTC)."""

    name: str
    entries: int
    changed: str


class KeptMeasurements:
    """The measurements of a database.

    Parameters
    ----------
    database : Database
    now : callable () -> datetime
        The time, with its zone.
    """

    def __init__(self, database: Database, now: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._now = now

    def listed(self) -> tuple[Kept, ...]:
        """All sets by name, whatever the case of its letters; rows without a name are left out."""
        with self._database.transaction() as connection:
            rows = connection.execute(select(_ROW.name, _ROW.entries, _ROW.changed)).all()
        found = (
            Kept(
                row.name,
                row.entries if isinstance(row.entries, int) else 0,
                row.changed if isinstance(row.changed, str) else "",
            )
            for row in rows
            if isinstance(row.name, str)
        )
        return tuple(sorted(found, key=lambda each: (each.name.casefold(), each.name)))

    def open(self, name: str) -> dict[str, Any] | None:
        """The document of a name; None if there is none.

        Raises
        ------
        InputError
            If what is stored is no document; it stays as it is, and its name taken.
        """
        with self._database.transaction() as connection:
            text = connection.execute(select(_ROW.document).where(_ROW.name == name)).scalar()
        if text is None:
            return None
        try:
            document = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise _damaged(name) from error
        if not isinstance(document, dict):
            raise _damaged(name)
        return document

    def save(self, name: str, document: Mapping[str, Any], entries: int, *, over: bool) -> None:
        """Keep a document.

        Parameters
        ----------
        name : str
        document : mapping
            Plain JSON.
        entries : int
            How many the list says it has.
        over : bool
            Whether it may take the place of one that has the name.

        Raises
        ------
        InputError
            If the name is taken, the document is too large, or the database refuses it.
        """
        text = json.dumps(document, allow_nan=False)
        if len(text) > MAX_FILE_BYTES:
            raise InputError(
                "measurements",
                f"must hold at most {MAX_FILE_BYTES:,} bytes",
                len(text),
                "keep some of them under another name",
            )
        stamp = self._now().astimezone(UTC).isoformat(timespec="seconds")
        row = {"name": name, "document": text, "entries": entries, "changed": stamp}
        with self._database.transaction() as connection:
            if over:
                connection.execute(delete(MEASUREMENTS).where(_ROW.name == name))
            try:
                connection.execute(insert(MEASUREMENTS).values(row))
            except IntegrityError as error:
                raise _taken(name) from error

    def rename(self, name: str, to: str, document: Mapping[str, Any]) -> None:
        """Give a set another name; ``document`` is what it holds under that.

        Raises
        ------
        InputError
            If the name is taken, or there is no such set any more.
        """
        changed = {"name": to, "document": json.dumps(document, allow_nan=False)}
        with self._database.transaction() as connection:
            try:
                statement = update(MEASUREMENTS).where(_ROW.name == name).values(changed)
                done = connection.execute(statement).rowcount
            except IntegrityError as error:
                raise _taken(to) from error
        if not done:
            raise InputError(
                f"measurements {name}",
                "must still have their name",
                "renamed or deleted",
                "keep them under a new one",
            )

    def delete(self, name: str) -> None:
        """Delete a set; nothing happens if there is none."""
        with self._database.transaction() as connection:
            connection.execute(delete(MEASUREMENTS).where(_ROW.name == name))


def _taken(name: str) -> InputError:
    return InputError("name", "must not be taken", name, "choose another, or replace what has it")


def _damaged(name: str) -> InputError:
    return InputError(
        f"measurements {name}",
        "must be stored as a document",
        "damaged",
        "open another; this one is left as it is",
    )
