"""Values as JSON has them, and rows as aligned text or Markdown: what results print."""

import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from numbers import Integral, Real
from typing import Any

from nest_core.documents.errors import printable

__all__ = ["markdown_table", "plain", "table", "truncated"]

_NARROWEST = 8


def plain(value: object) -> Any:
    """Return a value in JSON's terms: tuples as arrays, numpy as Python, NaN and infinity as null.

    Raises
    ------
    TypeError
        If the value has no such form.
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


def table(header: Sequence[str], rows: Iterable[Sequence[object]], most: int | None = None) -> str:
    """Rows as aligned text: numbers to the right, the rest to the left, None as a dash.

    With ``most`` characters per line the widest columns are folded until lines are as short.

    Examples
    --------
    >>> print(table(["level", "what it is"], [["leaf", "a switch of its own"]], most=20))
    level  what it is
    leaf   a switch of
           its own
    """
    cells = [
        ["–" if cell is None else printable(str(cell)).replace("\n", " ") for cell in row]
        for row in rows
    ]
    columns = list(zip(header, *cells, strict=True))
    widths = [max(map(len, column)) for column in columns]
    while most and sum(widths) + 2 * (len(widths) - 1) > most and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    numeric = [all(re.match(r"–$|-?\d", cell) for cell in column[1:]) for column in columns]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for row in [list(header), *cells]
        for line in zip_longest(
            *(
                textwrap.wrap(cell, width) if len(cell) > width else [cell]
                for cell, width in zip(row, widths, strict=True)
            ),
            fillvalue="",
        )
    )


def markdown_table(
    header: Sequence[str], rows: Iterable[Sequence[object]], words: int = 1
) -> list[str]:
    """Lines of a table in Markdown: the first columns are words, the rest figures at the right.

    Examples
    --------
    >>> markdown_table(["", "runs"], [["all", 3]])
    ['| | runs |', '|---|---:|', '| all | 3 |']
    """
    lines = ["|".join(["", *(f" {name} " if name else " " for name in header), ""])]
    lines.append("|" + "---|" * words + "---:|" * (len(header) - words))
    lines += [f"| {' | '.join(map(str, row))} |" for row in rows]
    return lines


def truncated(text: str, most: int) -> str:
    """Return a text of at most so many characters; a longer one ends in an ellipsis.

    Examples
    --------
    >>> truncated("rail-optimised", 6)
    'rail-…'
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"
