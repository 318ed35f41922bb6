"""The SQLite file of the store: nobody else's to read, and kept aside where it is damaged."""

import glob
import os
import sqlite3
import stat
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from sqlalchemy.engine import URL

from nest_core.documents.errors import InputError, require

__all__ = ["FOLDER", "keep_aside", "kept_aside", "make_private", "sqlite_file"]

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
