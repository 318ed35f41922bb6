"""Long states of the address: stored once under a short key that follows from their content.

They are kept compressed: a drawing of 2,000 elements takes some ten kilobytes a step. Of each the
store knows when it was last opened, and beyond `MOST` it drops those that were not for longest.
Notebooks refer to none: their cells hold what they need themselves.
"""

import base64
import hashlib
import json
import zlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Row, delete, insert, select, type_coerce, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.types import NullType

from nest_core.documents import MAX_FILE_BYTES, InputError, require
from nest_studio.session.store.database import LINKS, Database, utc_now

__all__ = ["MOST", "StoredLinks"]

MOST = 5_000
"""States that a store keeps."""

_KEY_BYTES = 12
_NEWS = timedelta(hours=1)
_ROW = LINKS.c


class StoredLinks:
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
        text = _text(state)
        require(
            len(text) <= MAX_FILE_BYTES,  # escaped, a character is a byte
            "link",
            f"must hold at most {MAX_FILE_BYTES:,} bytes",
            len(text),
            "save a notebook or a file instead",
        )
        key = _key(text.encode())
        row = self._row(key)
        if row is None or _state(key, row.state) is None or not self._touched(key, row.opened):
            self._insert(key, zlib.compress(text.encode()))
        return key

    def get(self, key: str) -> dict[str, Any] | None:
        """The state of a key; None if there is none, or no longer.

        Raises
        ------
        InputError
            If what is stored is not what was put.
        """
        row = self._row(key)
        if row is None:
            return None
        state = _state(key, row.state)
        if state is None:
            raise InputError(
                "link", "must lead to what was stored under it", "damaged", "ask for another link"
            )
        self._touched(key, row.opened)
        return state

    def has(self, state: Mapping[str, Any]) -> bool:
        """Whether a state is kept, as it was put."""
        return self.get(_key(_text(state).encode())) is not None

    def _row(self, key: str) -> Row[Any] | None:
        # As it is: what is no blob would be made one.
        query = select(type_coerce(_ROW.state, NullType()).label("state"), _ROW.opened).where(
            _ROW.key == key
        )
        with self._database.transaction() as connection:
            return connection.execute(query).first()

    def _touched(self, key: str, opened: object) -> bool:
        """Note that a state was opened now; whether it is still there."""
        now = self._now()
        if _stamp(now - _NEWS) < str(opened) <= _stamp(now):
            return True
        statement = update(LINKS).where(_ROW.key == key).values(opened=_stamp(now))
        with self._database.transaction() as connection:
            return bool(connection.execute(statement).rowcount)

    def _insert(self, key: str, state: bytes) -> None:
        """Keep a new state, and only the last opened of the others."""
        row = {"key": key, "opened": _stamp(self._now()), "state": state}
        old = (
            select(_ROW.key)
            .where(_ROW.key != key)
            .order_by(_ROW.opened.desc(), _ROW.key)
            .offset(self._most - 1)
        )
        try:
            with self._database.transaction() as connection:
                # A key is its state's own: what differs is what is left of the same state.
                connection.execute(
                    delete(LINKS).where(_ROW.key == key, _ROW.state.is_distinct_from(state))
                )
                connection.execute(insert(LINKS).values(row))
                connection.execute(delete(LINKS).where(_ROW.key.in_(old)))
        except InputError as error:
            if not isinstance(error.__cause__, IntegrityError):
                raise  # else somebody put the same state since


def _text(state: Mapping[str, Any]) -> str:
    return json.dumps(state, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _key(text: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text).digest()[:_KEY_BYTES]).decode()


def _state(key: str, stored: object) -> dict[str, Any] | None:
    """A state as it was put under its key; None if it is damaged."""
    if not isinstance(stored, bytes):
        return None
    try:
        text = zlib.decompressobj().decompress(stored, MAX_FILE_BYTES + 1)
    except zlib.error:
        return None
    if _key(text) != key:
        return None
    state = json.loads(text)
    return state if isinstance(state, dict) else None


def _stamp(time: datetime) -> str:
    """Text that sorts by time."""
    return time.astimezone(UTC).isoformat(timespec="seconds")
