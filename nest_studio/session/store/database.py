"""The database of the store: where it is, its tables, and short transactions on it.

SQLite runs with a write-ahead log, so that readers and a writer do not wait for each other, and
writers for at most `PATIENCE_S`. Whatever the database refuses becomes one sentence; a damaged file
is kept aside, and a new one begun.

The SQLite file of the store: nobody else's to read, and kept aside where it is damaged.
"""

import glob
import logging
import os
import sqlite3
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
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

__all__ = [
    "ANSWERS",
    "DATABASE_VARIABLE",
    "FABRICS",
    "FOLDER",
    "LINKS",
    "MEASUREMENTS",
    "NOTEBOOKS",
    "NOTEBOOK_VERSIONS",
    "STUDIES",
    "Database",
    "database_url",
    "keep_aside",
    "kept_aside",
    "make_private",
    "sqlite_file",
    "utc_now",
]

FOLDER = "nest-studio"
"""The folder of one's own in which the store lies unless it is told otherwise."""

_COMPANIONS = ("-wal", "-shm", "-journal")
_OURS = b"CREATE TABLE notebooks"
_ASIDE = ".damaged-"
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
# What a check of the whole file also reports, but rows show one by one.
_OF_ONE_ROW = "NULL value in "


def sqlite_file(url: URL) -> Path | None:
    """The file of a database; None for one in memory, of a ``file:`` address or of a server."""
    if url.get_backend_name() != "sqlite" or not url.database:
        return None
    plain = url.database != ":memory:" and not url.database.startswith("file:")
    return Path(url.database) if plain else None


def make_private(path: Path) -> None:
    """See that there is a file and its folder, and that only their owner may read them.

    A folder that was there already is left as it is, unless it is the studio's own.

    Raises
    ------
    InputError
        If there can be none, or it cannot be written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            "database",
            "must lie in a folder that can be made",
            str(error.strerror),
            "name another place",
        ) from error
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        if not stat.S_ISREG(path.stat().st_mode):
            raise FileNotFoundError(0, "something else than a file")
        _restrict(path, 0o600)
        for file in _companions(path):
            with suppress(FileNotFoundError):  # SQLite removes them when nobody needs them
                _restrict(file, 0o600)
        if path.parent.name == FOLDER:
            _restrict(path.parent, 0o700)
    except OSError as error:
        raise InputError(
            "database",
            f"must be a file that can be read and written ({path.name})",
            str(error.strerror),
            "give yourself the right to write it, or name another place",
        ) from error


def keep_aside(path: Path, now: datetime) -> Path | None:
    """Rename a store that is damaged, whole and with its companions; its new path, if it was.

    Nothing is written into a damaged file, and none is replaced.

    Raises
    ------
    InputError
        If it is damaged and never was a store of ours, or cannot be renamed; it is left there.
    """
    before = path.stat()
    if not _damaged(path):
        return None
    require(
        # It tells of a table of the store's, or what was written ahead of it does.
        any(file.exists() and _OURS in file.read_bytes() for file in (path, *_companions(path))),
        "database",
        f"must be one that can be read and written ({path.name})",
        "damaged, or another kind of file",
        "move the file away, or name another place",
    )
    if path.stat().st_ino != before.st_ino:  # another server was faster, and began a new one
        return None
    try:
        return _renamed(path, now)
    except OSError as error:
        raise InputError(
            "database",
            f"must be in a folder where a damaged file can be renamed ({path.name})",
            str(error.strerror),
            "move the file away, or name another place",
        ) from error


def kept_aside(path: Path) -> tuple[str, ...]:
    """Names of damaged stores beside a store, oldest first."""
    pattern = f"{glob.escape(path.stem + _ASIDE)}*{glob.escape(path.suffix)}"
    return tuple(sorted(file.name for file in path.parent.glob(pattern)))


def _restrict(path: Path, mode: int) -> None:
    """Take the rights of others away, as far as they are the owner's to take."""
    status = path.stat()
    owned = hasattr(os, "geteuid") and status.st_uid == os.geteuid()
    if owned and stat.S_IMODE(status.st_mode) & ~mode & 0o077:
        path.chmod(mode)


def _companions(path: Path) -> list[Path]:
    return [path.with_name(path.name + ending) for ending in _COMPANIONS]


def _damaged(path: Path) -> bool:
    """Whether SQLite finds a file broken; one that is empty, busy or closed to us is not."""
    # Read only: who writes also puts in what was written ahead, or deletes it.
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", timeout=1.0, uri=True)
    try:
        connection.text_factory = bytes  # lines quote what was found, in any encoding
        lines = connection.execute("PRAGMA quick_check").fetchall()
    except sqlite3.DatabaseError as error:
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED
    except UnicodeDecodeError:  # a message that quotes what it found
        return True
    finally:
        connection.close()
    expected = (b"ok", _OF_ONE_ROW.encode())
    return any(not line.startswith(expected) for (line,) in lines)


def _renamed(path: Path, now: datetime) -> Path:
    """Give a store and its companions a name beside it that nothing has."""
    stamp = f"{path.stem}{_ASIDE}{now:%Y-%m-%dT%H%M%S}"
    tries = (path.with_name(f"{stamp}{n or ''}{path.suffix}") for n in range(1000))
    aside = next(file for file in tries if not file.exists())
    # Companions first: a new store would take what they hold for its own.
    for file in (*_companions(path), path):
        if file.exists():
            file.rename(aside.with_name(aside.name + file.name.removeprefix(path.name)))
    return aside


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
    is_sqlite = url.get_backend_name() == "sqlite"
    # A connection for every transaction: opening one of SQLite's takes less than a millisecond,
    # and none keeps a file that was moved or deleted.
    options: dict[str, Any] = (
        {"poolclass": NullPool, "connect_args": {"timeout": PATIENCE_S}}
        if is_sqlite
        else {"pool_pre_ping": True}
    )
    try:
        engine = create_engine(url, **options)
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise InputError(
            DATABASE_VARIABLE,
            "must name a database whose driver is installed",
            url.drivername,
            "install the driver, or use sqlite",
        ) from error
    require(
        not engine.dialect.is_async,
        DATABASE_VARIABLE,
        "must name a driver that answers at once, not an asynchronous one",
        url.drivername,
        "write sqlite:///FILE or postgresql+psycopg://USER@HOST/NAME",
    )
    if is_sqlite:
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
