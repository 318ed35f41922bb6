"""Values as JSON has them, and rows as aligned text or Markdown: what results print.

Words of people in languages in which some text acts: Markdown, labels of plots, spreadsheets.

Names, labels, notes and messages come from addresses, uploads, notebooks and drawings, and are
shown to others. There they are text: no picture is fetched, no style applied, no formula computed.
Every place that puts a word it did not choose into one of these languages quotes it here; HTML has
`html.escape`.

Values put together by what they share.
"""

import csv
import io
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from numbers import Integral, Real
from typing import Any, TypeVar

from nest_core.documents.errors import printable

__all__ = [
    "as_cell",
    "as_markdown",
    "as_plot",
    "csv_text",
    "grouped",
    "of_cell",
    "plain",
    "summed",
    "table",
    "truncated",
]

Key = TypeVar("Key")
Value = TypeVar("Value")
Number = TypeVar("Number", int, float)


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Return the values of every key, keys and values in the order in which they come.

    Examples
    --------
    >>> grouped([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def summed(pairs: Iterable[tuple[Key, Number]]) -> dict[Key, Number]:
    """Return the sum of the numbers of every key, keys in the order in which they come.

    Examples
    --------
    >>> summed([("a", 1), ("b", 2), ("a", 3)])
    {'a': 4, 'b': 2}
    """
    return {key: sum(numbers) for key, numbers in grouped(pairs).items()}


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


def truncated(text: str, most: int) -> str:
    """Return a text of at most so many characters; a longer one ends in an ellipsis.

    Examples
    --------
    >>> truncated("rail-optimised", 6)
    'rail-…'
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


# What begins something inside a line of Markdown as the studio's front end reads it: CommonMark
# with strike-through, mathematics and directives (":red[...]"). An underscore or a colon acts only
# at the edge of a word.
_INSIDE = re.compile(r"[\\`*\[\]<&$~]|(?<![^\W_])_|_(?![^\W_])|:(?=[^\W\d_])")
_AT_START = re.compile(r"^(?:>|#(?=#{0,5}(?:\s|$))|[-+](?=[\s-]|$)|\d+(?=[.)](?:\s|$)))")

# Plot labels know a few tags and read their attributes, style among them; these are our own.
_OWN_STYLE = r"""span style=(["'])(?:font-size:\d+px|color:(?:#[0-9A-Fa-f]+|rgba?\([\d., ]+\)))\1"""
_PLOT_TAG = re.compile(rf"<(?!(?:/?(?:b|i|sub|sup|extra)|br|/span|{_OWN_STYLE})>)")

# What spreadsheets take for a formula, in East Asian widths too.
_FORMULA = re.compile(r"'*[\t\r\n]|[\s']*[=+@\uFF0B\uFF0D\uFF1D\uFF20-]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


def as_markdown(words: object) -> str:
    """Words as one line of Markdown that shows them as they are.

    Examples
    --------
    >>> print(as_markdown("![a rack](https://elsewhere.example/x.png), head_dim 8"))
    !\\[a rack\\](https://elsewhere.example/x.png), head_dim 8
    """
    return _AT_START.sub(_started, _INSIDE.sub(r"\\\g<0>", re.sub(r"\s", " ", str(words)).strip()))


def _started(matches: re.Match[str]) -> str:
    """Quote what begins a line; of a list's number the full stop, so that its digits stay."""
    return matches[0] + "\\" if matches[0].isdigit() else "\\" + matches[0]


def as_plot(value: Any) -> Any:
    """Return a figure's plain values with every tag quoted that our own labels do not use.

    Parameters
    ----------
    value : Any
        What `plotly` makes of a figure: texts, numbers, and lists and tables of them.

    Examples
    --------
    >>> as_plot({"text": ["<b>node</b><br>3", "<span style='cursor: url(//x)'>rack"]})
    {'text': ['<b>node</b><br>3', "&lt;span style='cursor: url(//x)'>rack"]}
    """
    if isinstance(value, str):
        return _PLOT_TAG.sub("&lt;", value)
    if isinstance(value, Mapping):
        return {key: as_plot(entry) for key, entry in value.items()}
    return [as_plot(entry) for entry in value] if isinstance(value, list | tuple) else value


def as_cell(value: Any) -> Any:
    """Return a value as a cell of CSV, with an apostrophe before what a spreadsheet would compute.

    Numbers stay numbers, also those that are written as text.

    Examples
    --------
    >>> [as_cell(value) for value in ("=1+1", "-1.5e3", -2, "spine", "'=1")]
    ["'=1+1", '-1.5e3', -2, 'spine', "''=1"]
    """
    acts = isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value)
    return f"'{value}" if acts else value


def of_cell(text: str) -> str:
    """Return the text that `as_cell` made a cell of, as spreadsheets too read it.

    Examples
    --------
    >>> of_cell("'=1+1"), of_cell("'tis")
    ('=1+1', "'tis")
    """
    rest = text.removeprefix("'")
    return rest if rest != text and as_cell(rest) == text else text


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a header and rows as CSV; empty cells for None, line feeds for all line ends."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in (columns, *rows):
        # The writer quotes a line feed, but not a carriage return that would end the row as well.
        writer.writerow(
            value.replace("\r", "\n") if isinstance(value, str) else value
            for value in map(as_cell, row)
        )
    return text.getvalue()
