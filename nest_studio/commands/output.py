"""What commands print: one JSON object, or text for people."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Protocol

import typer

from nest_core.documents import InputError, plain, printable

__all__ = ["JsonFlag", "emit", "emit_parts", "show", "unprinted"]

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
"""The option ``--json`` that every command with a result takes."""

Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a dotted key with a TOML value."),
]
"""The option ``--set`` that every command on a scenario takes."""


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
