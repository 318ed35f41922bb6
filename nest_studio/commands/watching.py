"""A search that is watched from a terminal: where it is, and a way to end it early."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any, TextIO

from nest_core.documents import humanise_seconds
from nest_core.planner import Progress

__all__ = ["interrupts", "tell_share", "watched"]

EVERY_S = 0.5


@contextmanager
def interrupts(event: Event | None = None) -> Iterator[Event]:
    """Return an event that the first Ctrl-C sets; a second one ends the program."""
    stopped = event or threading.Event()

    def interrupted(number: int, frame: Any) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        stopped.set()

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def watched(
    stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[tuple[Callable[[Progress], None], Callable[[], bool]]]:
    """Return what `search` takes as ``progress`` and ``stop``.

    Progress goes to standard error where that is a terminal. The first interrupt (Ctrl-C) ends
    the search with the best plan so far; a second one the program.
    """
    out, last_print = stream or sys.stderr, [clock()]

    def progress(now: Progress) -> None:
        if out.isatty() and clock() - last_print[0] >= EVERY_S:
            last_print[0] = clock()
            best = humanise_seconds(now.best_s) if now.best_s < float("inf") else "none yet"
            line = (
                f"{now.solved:,} solved, {now.bounded:,} bounded, {now.infeasible:,} infeasible of "
                f"{now.points:,}; best {best}, at least {humanise_seconds(now.lower_bound_s)}  "
            )
            print(f"\r{line}", end="", file=out, flush=True)

    with interrupts() as stopped:
        yield progress, stopped.is_set


def tell_share(share: float, words: str) -> None:
    """Print how far something is to standard error, where that is a terminal."""
    if sys.stderr.isatty():
        print(f"\r{100 * share:3.0f} % {words}  ", end="", file=sys.stderr, flush=True)
