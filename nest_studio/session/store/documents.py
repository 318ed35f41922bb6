"""Documents by name, long states of the address and rows of studies by key; no more is known.

A table of documents has a name, a document (JSON) and when it was saved (ISO, UTC) in every row:
fabrics, drawn or brought, that need not be fabrics yet, and measurements.

A state is stored once, under a short key that follows from its content, and compressed: a drawing
of 2,000 elements takes some ten kilobytes a step. Of each the store knows when it was last opened,
and beyond `MOST` it drops those that were not for longest. Notebooks refer to none: their cells
hold what they need themselves.

The key of a study's row stands for everything that it depends on.
"""

import base64
import hashlib
import itertools
import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from sqlalchemy import Row, Table, delete, insert, select, type_coerce, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.types import NullType

from nest_core.documents import MAX_FILE_BYTES, InputError, preset_names, require
from nest_core.studies.rows import TRANSIENT, RowCache, StudyRow
from nest_studio.session.store.database import (
    ANSWERS,
    FABRICS,
    LINKS,
    MEASUREMENTS,
    STUDIES,
    Database,
    utc_now,
)

__all__ = [
    "LONGEST",
    "MOST",
    "DocumentKind",
    "Documents",
    "StoredAnswers",
    "StoredLinks",
]

LONGEST = 100
"""Characters of a name."""

DocumentKind = Literal["fabrics", "measurements", "studies"]
_KINDS: Mapping[DocumentKind, tuple[Table, str, str]] = {
    "fabrics": (FABRICS, "fabric", "fabrics"),
    "measurements": (MEASUREMENTS, "set of measurements", ""),
    "studies": (STUDIES, "study", "studies"),
}
"""Table, what messages call one, and the kind of presets whose names none can have."""


class Documents:
    """The documents of one kind.

    Parameters
    ----------
    database : Database
    kind : {"fabrics", "measurements", "studies"}
    now : callable () -> datetime
        The time, with its zone.
    """

    def __init__(
        self, database: Database, kind: DocumentKind, now: Callable[[], datetime] = utc_now
    ) -> None:
        self._table, self._noun, self._preset = _KINDS[kind]
        self._database, self._row, self._now = database, self._table.c, now

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


def _taken(name: str) -> InputError:
    return InputError("name", "must not be taken", name, "choose another, or replace what has it")


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


_AT_ONCE = 500
"""Keys of one question: SQLite takes 999 parameters at least."""


class StoredAnswers(RowCache):
    """The rows of a database (`RowCache`); what is `TRANSIENT` is this run's alone.

    Parameters
    ----------
    database : Database
    """

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database

    def get(self, keys: Iterable[str]) -> dict[str, StudyRow]:
        """Return the stored rows among ``keys``."""
        rows_by_key: dict[str, StudyRow] = {}
        rest = iter(keys)
        while part := list(itertools.islice(rest, _AT_ONCE)):
            query = select(ANSWERS.c.key, ANSWERS.c.answer).where(ANSWERS.c.key.in_(part))
            with self._database.transaction() as connection:
                rows = connection.execute(query).all()
            rows_by_key |= {key: StudyRow.from_json(json.loads(answer)) for key, answer in rows}
            rows_by_key |= {key: self.rows[key] for key in part if key in self.rows}
        return rows_by_key

    def put(self, rows: Mapping[str, StudyRow]) -> None:
        """Store rows in one transaction; those that are `TRANSIENT` for this run alone."""
        self.rows |= {key: row for key, row in rows.items() if row.status in TRANSIENT}
        lasting = [
            {"key": key, "answer": json.dumps(row.to_json())}
            for key, row in rows.items()
            if row.status not in TRANSIENT
        ]
        if not lasting:
            return
        with self._database.transaction() as connection:
            row_keys = [row["key"] for row in lasting]
            for first in range(0, len(row_keys), _AT_ONCE):  # another run may have come first
                connection.execute(
                    delete(ANSWERS).where(ANSWERS.c.key.in_(row_keys[first : first + _AT_ONCE]))
                )
            connection.execute(insert(ANSWERS), lasting)
