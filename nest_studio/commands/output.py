"""What commands print: one JSON object, or text for people."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Annotated, Any

import typer

from nest_core.errors import InputError, printable

__all__ = ["JsonFlag", "emit", "plain", "table", "unprinted"]

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
"""The option ``--json`` that every command with a result takes."""


def plain(value: object) -> Any:
    """A value in JSON's terms: tuples as arrays, numpy as Python, NaN and infinity as null.

    Raises
    ------
    TypeError
        If the value has no such form: a defect of the command that prints it.
    """
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    raise TypeError(f"no JSON form for {type(value).__name__}")


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
    text = json.dumps(fields, allow_nan=False) if as_json else printable(human(fields))
    if sys.stdout is None:  # closed before the start
        raise unprinted("closed")
    try:
        print(text)
        sys.stdout.flush()
    except BrokenPipeError:
        return
    except OSError as error:
        raise unprinted(error.strerror) from error


def unprinted(reason: object) -> InputError:
    """That standard output does not take what a command prints."""
    return InputError(
        "standard output", "must take what is printed", reason, "print to a file that has room"
    )


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows as aligned text: numbers to the right, the rest to the left, None as a dash."""
    cells = [["–" if cell is None else _one_line(cell) for cell in row] for row in rows]
    columns = list(zip(header, *cells, strict=True))
    widths = [max(map(len, column)) for column in columns]
    numeric = [all(_is_number(cell) for cell in column[1:]) for column in columns]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in [list(header), *cells]
    )


def _one_line(cell: object) -> str:
    return printable(str(cell)).replace("\n", " ")


def _is_number(cell: str) -> bool:
    return cell == "–" or cell[:1].isdigit() or (cell[:1] == "-" and cell[1:2].isdigit())
