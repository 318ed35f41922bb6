"""Long states of the address: stored once under a short key that follows from their content.

They are kept compressed: a drawing of 2,000 elements takes some ten kilobytes a step. Of each the
store knows when it was last opened, and beyond `MOST` it drops those that were not for longest.
Notebooks refer to none: their cells hold what they need themselves.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from nest_core.errors import InputError
from nest_core.files import MAX_FILE_BYTES
from nest_core.store.database import LINKS, Database, utc_now

__all__ = ["MOST", "Links"]

MOST = 5_000
"""States that a store keeps."""

_KEY_BYTES = 12
_NEWS = timedelta(hours=1)
_ROW = LINKS.c


class Links:
    """States by key; the same state has the same key, here and in any other store.

    Parameters
    ----------
    database : Database
    now : callable () -> datetime
        The time, with its zone.
    most : int
        States that are kept, at least 1.

    Notes
    -----
    When a state was opened is known to the hour, so that few readers have to write. Several
    sessions may put and get at once: a state is dropped in the transaction that puts a newer one,
    never the one just put, and whoever puts a state that was dropped meanwhile puts it anew.
    """

    def __init__(
        self, database: Database, now: Callable[[], datetime] = utc_now, most: int = MOST
    ) -> None:
        self._database = database
        self._now = now
        self._most = most

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
        with self._database.transaction() as connection:
            opened = connection.execute(select(_ROW.opened).where(_ROW.key == key)).scalar()
        if opened is None or not self._touched(key, opened):
            self._insert(key, zlib.compress(text.encode()))
        return key

    def get(self, key: str) -> dict[str, Any] | None:
        """The state of a key; None if there is none, or no longer."""
        query = select(_ROW.state, _ROW.opened).where(_ROW.key == key)
        with self._database.transaction() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            return None
        self._touched(key, row.opened)
        return dict(json.loads(zlib.decompress(row.state)))

    def _touched(self, key: str, opened: str) -> bool:
        """Note that a state was opened now; whether it is still there."""
        now = self._now()
        if now < datetime.fromisoformat(opened) + _NEWS:
            return True
        statement = update(LINKS).where(_ROW.key == key).values(opened=_stamp(now))
        with self._database.transaction() as connection:
            return bool(connection.execute(statement).rowcount)

    def _insert(self, key: str, state: bytes) -> None:
        """Keep a new state, and only the last opened of the others."""
        row = {"key": key, "opened": _stamp(self._now()), "state": state}
        others = select(_ROW.key).where(_ROW.key != key)
        old = others.order_by(_ROW.opened.desc(), _ROW.key).offset(self._most - 1)
        try:
            with self._database.transaction() as connection:
                connection.execute(insert(LINKS).values(row))
                connection.execute(delete(LINKS).where(_ROW.key.in_(old)))
        except InputError as error:
            if not isinstance(error.__cause__, IntegrityError):
                raise  # else somebody put the same state since


def _stamp(time: datetime) -> str:
    """Text that sorts by time."""
    return time.astimezone(UTC).isoformat(timespec="seconds")
