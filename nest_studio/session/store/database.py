"""The database of the store: where it is, its tables, and short transactions on it.

SQLite runs with a write-ahead log, so that readers and a writer do not wait for each other, and
writers for at most `PATIENCE_S`. Whatever the database refuses becomes one sentence; a damaged file
is kept aside, and a new one begun.
"""

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock
from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    event,
    inspect,
    select,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import CreateTable

from nest_core.documents.errors import InputError, require
from nest_studio.session.store.files import (
    FOLDER,
    keep_aside,
    kept_aside,
    make_private,
    sqlite_file,
)

__all__ = [
    "ANSWERS",
    "DATABASE_VARIABLE",
    "FABRICS",
    "LINKS",
    "MEASUREMENTS",
    "NOTEBOOKS",
    "NOTEBOOK_VERSIONS",
    "STUDIES",
    "Database",
    "database_url",
    "utc_now",
]

DATABASE_VARIABLE = "NEST_STUDIO_DATABASE"
PATIENCE_S = 10.0
SCHEMA = 1
"""Of the tables; an SQLite file notes it as its ``user_version``."""

_LOG = logging.getLogger(__name__)
_TABLES = MetaData()
NOTEBOOKS = Table(
    "notebooks",
    _TABLES,
    Column("name", String(100), primary_key=True),
    Column("document", Text, nullable=False),
    Column("cells", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("created", String(40), nullable=False),
    Column("changed", String(40), nullable=False),
)
NOTEBOOK_VERSIONS = Table(
    "notebook_versions",
    _TABLES,
    Column("name", String(100), primary_key=True),
    Column("revision", Integer, primary_key=True),
    Column("document", Text, nullable=False),
    Column("changed", String(40), nullable=False),
)
LINKS = Table(
    "states",
    _TABLES,
    Column("key", String(40), primary_key=True),
    Column("opened", String(40), nullable=False),  # before the state, to be read without it
    Column("state", LargeBinary, nullable=False),
)


ANSWERS = Table(
    "answers",
    _TABLES,
    Column("key", String(64), primary_key=True),
    Column("answer", Text, nullable=False),
)


def _documents(name: str) -> Table:
    """A table of documents by name."""
    return Table(
        name,
        _TABLES,
        Column("name", String(100), primary_key=True),
        Column("document", Text, nullable=False),
        Column("changed", String(40), nullable=False),
    )


FABRICS, MEASUREMENTS = _documents("fabrics"), _documents("measurements")
STUDIES = _documents("studies")


def utc_now() -> datetime:
    """The time, with its zone."""
    return datetime.now(UTC)


def database_url(
    environment: Mapping[str, str] = os.environ,
    platform: str = sys.platform,
    home: Path | None = None,
) -> str:
    """Where the store is: the variable's URL, or a file in the person's data folder.

    Parameters
    ----------
    environment : mapping
        Read for ``NEST_STUDIO_DATABASE`` and the platform's data folder.
    platform : str
        As `sys.platform`.
    home : Path, optional
        The person's home folder.
    """
    url = environment.get(DATABASE_VARIABLE, "").strip()
    if url:
        return url
    folder = home or Path.home()
    if platform == "darwin":
        base = folder / "Library" / "Application Support"
    elif platform == "win32":
        base = Path(environment.get("LOCALAPPDATA") or folder / "AppData" / "Local")
    else:
        base = Path(environment.get("XDG_DATA_HOME") or folder / ".local" / "share")
    return str(URL.create("sqlite", database=str(base / FOLDER / "notebooks.sqlite")))


class Database:
    """A database with the store's tables; they are made where they are missing.

    Parameters
    ----------
    url : str
        As SQLAlchemy has it: ``sqlite:///notebooks.sqlite``,
        ``postgresql+psycopg://user@host/name``.

    Raises
    ------
    InputError
        If there is no such database, it cannot be read or written, or a newer studio made it.
    """

    def __init__(self, url: str) -> None:
        parsed = _parsed(url)
        self._file = sqlite_file(parsed)
        self._engine = _engine(parsed)
        # Whoever visits the studio may read it; the whole address is for the log.
        self._name = self._file.name if self._file else parsed.drivername
        self._begin()

    def kept_aside(self) -> tuple[str, ...]:
        """Names of damaged files that were kept beside this one, oldest first."""
        return kept_aside(self._file) if self._file else ()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A connection whose work is kept whole, or not at all if anything is raised."""
        if self._file and not self._file.exists():  # moved or deleted since
            self._begin()
        with self._connected() as connection:
            yield connection

    def _begin(self) -> None:
        """Make what is missing; keep aside what is damaged."""
        if self._file is None:
            self._make()
            return
        make_private(self._file)
        # One at a time: SQLite does not wait where two make a file at once, and who checks a
        # half-made one takes it for damaged.
        try:
            with FileLock(f"{self._file}.lock", PATIENCE_S, 0o600, poll_interval=0.01):
                if keep_aside(self._file, utc_now()):
                    make_private(self._file)
                self._make()
        except OSError as error:
            raise self._refused(error.strerror or "held by another program", error) from error

    def _make(self) -> None:
        of_sqlite = self._engine.dialect.name == "sqlite"
        with self._connected() as connection:  # nothing is written yet: it may not be for us
            if of_sqlite:
                self._check_version(connection)
            for table in _TABLES.sorted_tables:
                if inspect(connection).has_table(table.name):
                    connection.execute(select(table).limit(0))
            # The file remembers; asking again would wait for the others.
            if of_sqlite and connection.exec_driver_sql("PRAGMA journal_mode").scalar() != "wal":
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        with self._connected() as connection:
            for table in _TABLES.sorted_tables:
                connection.execute(CreateTable(table, if_not_exists=True))
            if of_sqlite and connection.exec_driver_sql("PRAGMA user_version").scalar() != SCHEMA:
                connection.exec_driver_sql(f"PRAGMA user_version={SCHEMA}")

    def _check_version(self, connection: Connection) -> None:
        version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
        require(
            version <= SCHEMA,
            "database",
            f"must have tables of version {SCHEMA} or older ({self._name})",
            version,
            f"use the newer Nest Studio that made it, or name another in {DATABASE_VARIABLE}",
        )

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except DBAPIError as error:
            message = str(error.orig) if self._file else type(error.orig).__name__
            raise self._refused(message, error.orig) from error
        except UnicodeDecodeError as error:  # a message of SQLite's that quotes what is damaged
            raise self._refused("damaged", error) from error

    def _refused(self, found: str, error: object) -> InputError:
        _LOG.error("%r: %s", self._engine.url, error)  # without its password
        return InputError(
            "database",
            f"must be one that can be read and written ({self._name})",
            found,
            f"move the file away, or name another in {DATABASE_VARIABLE}",
        )


def _parsed(url: str) -> URL:
    try:
        return make_url(url)
    except (ArgumentError, ValueError) as error:  # the text may hold a password
        raise InputError(
            DATABASE_VARIABLE,
            "must be a database's URL",
            "another text",
            "write sqlite:///FILE or postgresql+psycopg://USER@HOST/NAME",
        ) from error


def _engine(url: URL) -> Engine:
    if url.get_backend_name() == "sqlite":
        return _sqlite(url)
    try:
        return create_engine(url, pool_pre_ping=True)
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise InputError(
            DATABASE_VARIABLE,
            "must name a database whose driver is installed",
            url.drivername,
            "install the driver, or use sqlite",
        ) from error


def _sqlite(url: URL) -> Engine:
    # A connection for every transaction: opening one takes less than a millisecond, and none
    # keeps a file that was moved or deleted.
    engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": PATIENCE_S})
    event.listen(engine, "connect", _prepare)
    return engine


def _text(value: bytes) -> str | bytes:
    """Text as it is stored; what is no text stays bytes, and only its row cannot be read."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _prepare(connection: Any, record: Any) -> None:
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.text_factory = _text
