"""Long states of the address: stored once under a short key that follows from their content.

They are kept compressed: a drawing of 2,000 elements takes some ten kilobytes a step.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import zlib
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError

from nest_core.errors import InputError
from nest_core.presets import MAX_FILE_BYTES
from nest_core.store.database import LINKS, Database, utc_now

__all__ = ["Links"]

_KEY_BYTES = 12


class Links:
    """States by key; the same state has the same key, here and in any other store.

    Parameters
    ----------
    database : Database
    now : callable () -> datetime
        The time, with its zone.
    """

    def __init__(self, database: Database, now: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._now = now

    def put(self, state: Mapping[str, Any]) -> str:
        """Keep a state of plain JSON and return its key: 16 letters, digits, ``-`` and ``_``.

        Raises
        ------
        InputError
            If it is over 5 MB, or the database refuses it.
        """
        text = json.dumps(state, sort_keys=True, separators=(",", ":"), allow_nan=False)
        if len(text) > MAX_FILE_BYTES:  # escaped, a character is a byte
            raise InputError(
                "link", f"must hold at most {MAX_FILE_BYTES:,} bytes", len(text),
                "save a notebook or a file instead",
            )  # fmt: skip
        digest = hashlib.sha256(text.encode()).digest()[:_KEY_BYTES]
        key = base64.urlsafe_b64encode(digest).decode()
        known = select(LINKS.c.key).where(LINKS.c.key == key)
        with self._database.transaction() as connection:
            if connection.execute(known).scalar() is not None:
                return key
        stamp = self._now().isoformat(timespec="seconds")
        row = {"key": key, "state": zlib.compress(text.encode()), "created": stamp}
        # Somebody else may have put the same state since.
        with contextlib.suppress(_Known), self._database.transaction() as connection:
            try:
                connection.execute(insert(LINKS).values(row))
            except IntegrityError as error:
                raise _Known from error
        return key

    def get(self, key: str) -> dict[str, Any] | None:
        """The state of a key; None if there is none."""
        with self._database.transaction() as connection:
            found = connection.execute(select(LINKS.c.state).where(LINKS.c.key == key)).scalar()
        return None if found is None else dict(json.loads(zlib.decompress(found)))


class _Known(Exception):
    """The row is there already."""
