"""A search that is watched from a terminal: where it is, and a way to end it early."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, TextIO

from nest_core.planner import Progress
from nest_core.units import humanise_seconds
from nest_studio.pools import cores, processes

__all__ = ["watched", "workers"]

EVERY_S = 0.5


@contextmanager
def watched(
    stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[tuple[Callable[[Progress], None], Callable[[], bool]]]:
    """What `search` takes as ``progress`` and ``stop``.

    Progress goes to standard error where that is a terminal. The first interrupt (Ctrl-C) ends
    the search with the best plan so far; a second one the program.
    """
    out = stream or sys.stderr
    asked: list[int] = []
    shown = [clock()]

    def interrupted(number: int, frame: Any) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    def progress(now: Progress) -> None:
        if out.isatty() and clock() - shown[0] >= EVERY_S:
            shown[0] = clock()
            print(f"\r{_line(now)}", end="", file=out, flush=True)

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield progress, lambda: bool(asked)
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def workers(
    stream: TextIO | None = None,
) -> Iterator[tuple[Executor, Callable[[float, str], None]]]:
    """Processes for what is done many times over, one per core, and who is told how far it is.

    An interrupt is heard by this process alone: theirs end with it.
    """
    out = stream or sys.stderr

    def tell(share: float, words: str) -> None:
        if out.isatty():
            print(f"\r{share:4.0%} {words}  ", end="", file=out, flush=True)

    with processes(cores()) as pool:
        yield pool, tell


def _line(now: Progress) -> str:
    best = humanise_seconds(now.best_s) if now.best_s < float("inf") else "none yet"
    return (
        f"{now.solved:,} solved, {now.bounded:,} bounded, {now.infeasible:,} infeasible of "
        f"{now.points:,}; best {best}, at least {humanise_seconds(now.lower_bound_s)}  "
    )
