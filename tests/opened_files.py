"""Which files are opened while something runs: Python's own audit events tell, whoever asks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["opened_below"]

_watched: list[tuple[str, list[str]]] = []


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if _watched and event in ("open", "os.listdir", "os.scandir"):
        path = arguments[0]
        if isinstance(path, str | bytes | os.PathLike):
            whole = os.path.realpath(os.fsdecode(path))
            for folder, found in _watched:
                if whole.startswith(folder + os.sep):
                    found.append(whole)


sys.addaudithook(_note)


@contextmanager
def opened_below(folder: Path) -> Iterator[list[str]]:
    """What this process opens below a folder meanwhile."""
    found: list[str] = []
    entry = (os.path.realpath(folder), found)
    _watched.append(entry)
    try:
        yield found
    finally:
        _watched.remove(entry)
