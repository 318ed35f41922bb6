"""Fabrics by name: documents that a person drew or brought, kept to be chosen again.

A document need not be a fabric yet: a drawing is kept as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from nest_core.errors import InputError
from nest_core.files import MAX_FILE_BYTES
from nest_core.presets import preset_names
from nest_core.store.database import FABRICS, Database, utc_now

__all__ = ["LONGEST", "Fabrics"]

LONGEST = 100
"""Characters of a name."""
_ROW = FABRICS.c


class Fabrics:
    """The fabrics of a database.

    Parameters
    ----------
    database : Database
    now : callable () -> datetime
        The time, with its zone.
    """

    def __init__(self, database: Database, now: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._now = now

    def names(self) -> tuple[str, ...]:
        """All of them, whatever the case of their letters."""
        with self._database.transaction() as connection:
            found = connection.execute(select(_ROW.name)).scalars().all()
        texts = (name for name in found if isinstance(name, str))
        return tuple(sorted(texts, key=lambda name: (name.casefold(), name)))

    def open(self, name: str) -> dict[str, Any] | None:
        """The document of a name; None if there is none.

        Raises
        ------
        InputError
            If what is stored is no document; it stays as it is.
        """
        with self._database.transaction() as connection:
            text = connection.execute(select(_ROW.document).where(_ROW.name == name)).scalar()
        if text is None:
            return None
        try:
            found = json.loads(text)
        except (TypeError, ValueError):
            found = None
        if not isinstance(found, dict):
            raise InputError(
                f"fabric {name}", "must be stored as a document", "damaged", "delete it"
            )
        return found

    def save(self, name: str, document: Mapping[str, Any], *, replace: bool = False) -> str:
        """Keep a document under a name, which is returned without blanks around it.

        Parameters
        ----------
        replace : bool
            Whether one of that name gives way.

        Raises
        ------
        InputError
            If the name is taken or cannot be one, or the document is too large.
        """
        own, text = _name(name), json.dumps(document)
        if len(text) > MAX_FILE_BYTES:
            raise InputError(
                "fabric",
                f"must hold at most {MAX_FILE_BYTES:,} bytes",
                len(text),
                "describe it by a kind",
            )
        row = {"document": text, "changed": self._now().isoformat(timespec="seconds")}
        with self._database.transaction() as connection:
            kept = update(FABRICS).where(_ROW.name == own).values(row)
            if replace and connection.execute(kept).rowcount:
                return own
            try:
                connection.execute(insert(FABRICS).values(row | {"name": own}))
            except IntegrityError as error:
                raise _taken(own) from error
        return own

    def rename(self, old: str, new: str) -> str:
        """Give a fabric another name, which is returned; errors as for `save`."""
        own = _name(new)
        with self._database.transaction() as connection:
            try:
                statement = update(FABRICS).where(_ROW.name == old).values({"name": own})
                done = connection.execute(statement).rowcount
            except IntegrityError as error:
                raise _taken(own) from error
        if not done:
            raise InputError("name", "must be of a fabric that is kept", old, "save it again")
        return own

    def delete(self, name: str) -> None:
        """Delete a fabric; nothing happens if there is none."""
        with self._database.transaction() as connection:
            connection.execute(delete(FABRICS).where(_ROW.name == name))


def _name(text: str) -> str:
    name = text.strip()
    if not 1 <= len(name) <= LONGEST or not name.isprintable():
        raise InputError("name", f"must be 1 to {LONGEST} characters", text, "choose a short one")
    if name in preset_names("fabrics"):
        raise InputError("name", "must not be that of a preset", name, "choose another")
    return name


def _taken(name: str) -> InputError:
    return InputError(
        "name", "must be free", name, "choose another, or open that one and save it again"
    )
