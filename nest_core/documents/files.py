"""The one place where files that people name are opened, read and written.

What is no regular file (a pipe, a device, a socket) is refused before it is opened, because
reading it may wait forever, never end, or do something. Texts are UTF-8, at most
`MAX_FILE_BYTES` long.
"""

import codecs
import io
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from nest_core.documents.errors import InputError, require

__all__ = [
    "MAX_FILE_BYTES",
    "MAX_LOG_BYTES",
    "check_writable",
    "content_blocks",
    "decoded",
    "is_packed",
    "log_blocks",
    "parsed_json",
    "read_bytes",
    "read_text",
    "write_file",
]

MAX_FILE_BYTES = 5_000_000
"""Larger files are refused before they are parsed."""

MAX_LOG_BYTES = 2_000_000_000
"""Of logs, which are read in pieces and never held whole."""

_BLOCK_BYTES = 1 << 20

_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_PACKED = (
    (b"\x1f\x8b", "gzip", ".gz"),
    (b"PK\x03\x04", "zip", ".zip"),
    (b"BZh", "bzip2", ".bz2"),
    (b"\xfd7zXZ\0", "xz", ".xz"),
    (b"\x28\xb5\x2f\xfd", "zstd", ".zst"),
)
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_DOCKER = re.compile(
    rb'''^\{"log":("(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"),"''', re.MULTILINE
)
# Opening a pipe that nobody writes to, or reads from, would wait; Windows has no such flag.
_AT_ONCE: int = getattr(os, "O_NONBLOCK", 0)


def read_text(path: Path) -> str:
    """Return the text of a file that a person named.

    Raises
    ------
    InputError
        If it cannot be opened, is no regular file, or is not what `decoded` takes.
    """
    return decoded(read_bytes(path, MAX_FILE_BYTES), str(path))


def read_bytes(path: Path, most: int) -> bytes:
    """Return what a file that a person named begins with: one byte over ``most``, if it is longer.

    Raises
    ------
    InputError
        If it cannot be opened or is no regular file.
    """
    with _opened(path) as file:
        return file.read(most + 1)


def log_blocks(path: Path) -> Iterator[bytes]:
    """Yield a log that a person named as pieces of whole lines, of about 1 MiB each.

    They may hold what is no UTF-8: output of many processes breaks characters. What overwrites its
    own line (a progress bar) is several lines, and a line that the end of the file cuts off is
    left out; one of more than a piece comes in parts.

    Raises
    ------
    InputError
        If it cannot be opened, is no regular file, packed, empty, no text, or too long.
    """
    with _opened(path) as file:
        start = file.peek(4096)[:4096]
        _check_log(start, os.fstat(file.fileno()).st_size, str(path))
        yield from _blocks_of(file, start)


def file_blocks(path: Path) -> Iterator[bytes]:
    """Yield a text that a person named as it is, in pieces of 1 MiB; same errors."""
    with _opened(path) as file:
        _check_log(file.peek(4096)[:4096], os.fstat(file.fileno()).st_size, str(path))
        while block := file.read(_BLOCK_BYTES):
            yield block


@contextmanager
def _opened(path: Path) -> Iterator[io.BufferedReader]:
    """Open a file that a person named; InputError for what cannot be read, also while it is."""
    name = str(path)
    try:
        _check_regular(name, os.stat(path).st_mode)
        with open(path, "rb", opener=_open_at_once) as file:
            _check_regular(name, os.fstat(file.fileno()).st_mode)  # it may have been replaced
            yield file
    except OSError as error:
        raise InputError(
            name, "must be a readable file", error.strerror, "check the path"
        ) from error
    except InputError:
        raise
    except ValueError as error:  # a NUL in the path, or characters that no path can hold
        raise InputError(name, "must be a file's path", str(error), "check the path") from error


def content_blocks(content: bytes, name: str) -> Iterator[bytes]:
    """Yield the lines of a log's content, as `log_blocks` has those of a file; same errors."""
    _check_log(content[:4096], len(content), name)
    yield from _blocks_of(io.BytesIO(content), content)


def _blocks_of(file: io.BufferedIOBase, start: bytes) -> Iterator[bytes]:
    # PowerShell writes UTF-16, with its mark.
    is_utf16 = start.startswith(_UTF16) and b"\0" in start
    read = (codecs.EncodedFile(file, "utf-8", "utf-16", "replace") if is_utf16 else file).read
    rest = b""
    while block := read(_BLOCK_BYTES):
        lines, end, rest = (rest + block.replace(b"\r", b"\n")).rpartition(b"\n")
        if not end and len(rest) >= _BLOCK_BYTES:  # no end of a line is in sight
            lines, rest = rest, b""
        # What Docker keeps of a container: its lines, each a text of JSON.
        texts = _DOCKER.findall(lines) if lines.startswith(b'{"log":') else ()
        yield (
            b"".join(
                str(json.loads(text)).replace("\r", "\n").encode("utf-8", "replace")
                for text in texts
            )
            or lines
        )


def _check_log(start: bytes, size: int, name: str) -> None:
    _check_packed(start, name)
    require(start, name, "must hold text", "empty", "name what the job or its profiler wrote")
    require(
        b"\0" not in start or start.startswith(_UTF16),
        name,
        "must be text",
        "binary",
        "name the text that the job or its profiler wrote",
    )
    require(
        size <= MAX_LOG_BYTES,
        name,
        f"must hold at most {MAX_LOG_BYTES:,} bytes",
        f"{size:,}",
        "cut it after some steps",
    )


def decoded(content: bytes, name: str) -> str:
    """Return the text of a file's content, read or uploaded; a byte order mark is left out.

    Parameters
    ----------
    name : str
        Of the file, for messages.

    Raises
    ------
    InputError
        If it is longer than `MAX_FILE_BYTES`, packed, or not UTF-8.
    """
    _check_packed(content, name)
    require(
        len(content) <= MAX_FILE_BYTES,
        name,
        f"must hold at most {MAX_FILE_BYTES:,} bytes",
        "larger",
        "split the file or name a generated fabric instead of listing it",
    )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            name,
            "must be UTF-8 text",
            f"{error.reason} at byte {error.start:,}",
            "save the file as UTF-8",
        ) from error


def _check_packed(content: bytes, name: str) -> None:
    for start, packer, ending in _PACKED:
        require(
            not content.startswith(start),
            name,
            "must be plain text",
            f"packed with {packer}",
            f"unpack it and name the file without {ending}",
        )


def parsed_json(text: str, name: str, remedy: str) -> Any:
    """Return what a JSON text holds.

    Raises
    ------
    InputError
        If it is none, or nests too deeply to be read.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(name, "must be valid JSON", str(error), remedy) from error


def is_packed(name: str) -> bool:
    """Whether a file's ending says that it is packed; `read_text` says what to do."""
    return name.lower().endswith(tuple(ending for _, _, ending in _PACKED))


def check_writable(path: Path, field: str) -> None:
    """Refuse a file that `write_file` could not write, before the work whose result it is for."""
    exists = os.path.lexists(path)
    _write(path, "ab", b"", field)
    if not exists:
        os.unlink(path)


def write_file(path: Path, content: str | bytes, field: str) -> None:
    """Write a file that a person named.

    Parameters
    ----------
    content : str or bytes
        Text is written as UTF-8, its line ends as they are.
    field : str
        The option that named it, for messages.

    Raises
    ------
    InputError
        If it cannot be written: a folder, a pipe that nobody reads, a full disk, a bad path.
    """
    _write(path, "wb", content, field)


def _write(path: Path, mode: Literal["ab", "wb"], content: str | bytes, field: str) -> None:
    try:
        with open(path, mode, opener=_open_at_once) as file:
            if _AT_ONCE:
                os.set_blocking(file.fileno(), True)
            file.write(content.encode() if isinstance(content, str) else content)
    except (OSError, ValueError) as error:  # also a NUL, or characters that no path can hold
        reason = error.strerror if isinstance(error, OSError) else str(error)
        rule = "must be a file that can be written"
        raise InputError(field, rule, reason, "check the path") from error


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | _AT_ONCE, 0o666)


def _check_regular(name: str, mode: int) -> None:
    """Refuse what is neither a file nor a folder, which the system itself refuses to open."""
    kind = next((words for is_kind, words in _KINDS if is_kind(mode)), None)
    require(kind is None, name, "must be a regular file", kind, "name a file on disk")
