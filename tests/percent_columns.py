"""Percentages of one column: whether their decimals are equal."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["printed_rows", "uneven"]

_PERCENT = re.compile(r"[+−-]?[\d,]+(?:\.(\d+))? %")


def uneven(rows: Iterable[Mapping[Any, str]]) -> list[list[str]]:
    """Return the percentages of every column whose cells differ in decimals."""
    columns: dict[Any, dict[str, str]] = defaultdict(dict)
    for row in rows:
        for name, cell in row.items():
            if figure := _PERCENT.fullmatch(cell):
                columns[name][cell] = figure[1] or ""
    return [list(cells) for cells in columns.values() if len(set(map(len, cells.values()))) > 1]


def printed_rows(text: str, head: str) -> list[dict[int, str]]:
    """Return the rows of the printed table whose first line begins with some words."""
    _, _, below = text.partition(head)
    header, *lines = (re.split(r"\s{2,}", line.strip()) for line in (head + below).splitlines())
    return [dict(enumerate(line)) for line in lines if len(line) == len(header)]
