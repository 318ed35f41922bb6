"""What commands print: one JSON object, or text for people; how far a search is, and its end.

A search that is watched from a terminal says where it is, and an interrupt ends it early.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TextIO

import typer

from nest_core.documents import (
    InputError,
    humanise_seconds,
    load_toml,
    named_file,
    plain,
    preset_names,
    printable,
)

if TYPE_CHECKING:
    from nest_core.planner import Progress

__all__ = [
    "Failures",
    "JsonFlag",
    "emit",
    "emit_parts",
    "failure_tables",
    "interrupts",
    "show",
    "tell_share",
    "unprinted",
    "watched",
]

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
"""The option ``--json`` that every command with a result takes."""

Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a dotted key with a TOML value."),
]
"""The option ``--set`` that every command on a scenario takes."""

Failures = Annotated[
    str | None,
    typer.Option(
        "--failures",
        metavar="NAME",
        help="Published failure rates by name, or a file (TOML); the scenario's by default, which "
        "are llama3-405b unless it names others.",
    ),
]
"""The option ``--failures`` of every command that tells days to train."""


def failure_tables(failures: str | None) -> dict[str, Any]:
    """Return the setting of a scenario that ``--failures`` is: a preset's name, or a file's."""
    if failures is None or failures in preset_names("failures"):
        return {} if failures is None else {"failures": failures}
    return {"failures": load_toml(named_file("failures", failures, Path(), field="failures"))}


def emit(
    result: Mapping[str, object],
    as_json: bool,
    human: Callable[[Mapping[str, Any]], str],
) -> None:
    """Print a command's result, and end the stream here so that what cannot be printed shows here.

    Parameters
    ----------
    result : Mapping
        The fields of ``shared/cli.md``; made `plain` first.
    as_json : bool
        One JSON object on one line, or the text.
    human : callable
        Plain result to text.

    Raises
    ------
    InputError
        If standard output is closed or full. Who reads a pipe may stop when they have seen enough.
    """
    fields = plain(result)
    emit_parts(
        ((json.dumps(fields, allow_nan=False) if as_json else printable(human(fields))), "\n")
    )


def emit_parts(parts: Iterable[str]) -> None:
    """Print a text in parts, as they are made; raises as `emit`."""
    if sys.stdout is None:  # closed before the start
        raise unprinted("closed")
    try:
        sys.stdout.writelines(parts)
        sys.stdout.flush()
    except BrokenPipeError:
        return
    except OSError as error:
        raise unprinted(error.strerror) from error


def unprinted(reason: object) -> InputError:
    """Return the error that standard output does not take what a command prints."""
    return InputError(
        "standard output", "must take what is printed", reason, "print to a file that has room"
    )


class Printable(Protocol):
    """What the API answers with."""

    def to_json(self) -> Mapping[str, object]:
        """Return its fields."""


def show(result: Printable, as_json: bool) -> None:
    """Print a result of the API as `emit` prints fields."""
    emit(result.to_json() if as_json else {}, as_json, lambda _: str(result))


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
