"""Slurm's host lists: ``node[01-32,40],login`` in and out.

Zero padding is kept, brackets may stand anywhere and several times; commas outside brackets
separate entries. How many names a list has is counted before any is made.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Sequence

from nest_core.fabric import MAX_DEVICES
from nest_core.interop.formats.values import Source

__all__ = ["compressed", "expanded"]

_ENTRY = re.compile(r"(?:[^\[\],\s]|\[[^\[\]\s]*\])+")
_PART = re.compile(r"\[([^\]]*)\]|([^\[]+)")
_RANGE = re.compile(r"([0-9]{1,12})(?:-([0-9]{1,12}))?")
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})")


def expanded(
    source: Source, where: int | str, text: str, max_names: int = MAX_DEVICES
) -> list[str]:
    """Return the names of a list, in its order.

    Raises
    ------
    InputError
        For what is no list, repeats a name or has more than ``max_names``.
    """
    names: list[str] = []
    for entry in _entries(source, where, text):
        parts = [
            _names(source, where, match[1], max_names) if match[1] is not None else [match[2]]
            for match in _PART.finditer(entry)
        ]
        if len(names) + math.prod(map(len, parts)) > max_names:
            raise _too_many(source, where, text, max_names)
        names += map("".join, itertools.product(*parts))
    source.require(
        len(set(names)) >= len(names),
        where,
        "must list every name once",
        text,
        "remove the repeated ones",
    )
    return names


def compressed(names: Iterable[str]) -> str:
    """Return a short list of the names, in their order.

    Examples
    --------
    >>> compressed(["node08", "node09", "node10", "login", "node1"])
    'node[08-10],login,node1'
    """
    runs: list[tuple[str, list[str]]] = []
    for name in names:
        match = _NUMBERED.fullmatch(name)
        stem, number = (match[1], match[2]) if match else (name, "")
        if number and runs and runs[-1][0] == stem and _follows(runs[-1][1][-1], number):
            runs[-1][1].append(number)
        else:
            runs.append((stem, [number]))
    entries: list[str] = []
    for (stem, _), group in itertools.groupby(runs, key=lambda run: (run[0], run[1] != [""])):
        inside = [n[0] if len(n) == 1 else f"{n[0]}-{n[-1]}" for _, n in group]
        if len(inside) == 1 and "-" not in inside[0]:
            entries.append(stem + inside[0])
        else:
            entries.append(f"{stem}[{','.join(inside)}]")
    return ",".join(entries)


def _follows(last: str, number: str) -> bool:
    # 9 to 10 keeps its padding only where there was none.
    plain = not last.startswith("0") and not number.startswith("0")
    same = bool(last) and (len(last) == len(number) or plain)
    return same and int(number) == int(last) + 1


def _entries(source: Source, where: int | str, text: str) -> Sequence[str]:
    entries: list[str] = []
    at = 0
    while True:
        match = _ENTRY.match(text, at)
        end = match.end() if match else at
        if match is None or (end < len(text) and text[end] != ","):
            raise source.wrong(
                where, "must have a host list such as node[01-32],login", text, "correct the list"
            )
        entries.append(match[0])
        if end == len(text):
            return entries
        at = end + 1


def _names(source: Source, where: int | str, inside: str, max_names: int) -> list[str]:
    numbers: list[str] = []
    for part in inside.split(","):
        match = _RANGE.fullmatch(part)
        if not match:
            raise source.wrong(
                where,
                "must have numbers and ranges in brackets",
                f"[{inside}]",
                "write them as in node[1-8,12]",
            )
        low, high = match[1], match[2] or match[1]
        source.require(
            int(high) >= int(low),
            where,
            "must have ranges that ascend",
            f"[{part}]",
            "swap the ends",
        )
        if len(numbers) + int(high) - int(low) >= max_names:
            raise _too_many(source, where, f"[{inside}]", max_names)
        # Padding is that of the lower end: node[01-12] has node01.
        width = len(low) if low.startswith("0") or len(low) == len(high) else 1
        numbers += [f"{number:0{width}d}" for number in range(int(low), int(high) + 1)]
    return numbers


def _too_many(source: Source, where: int | str, text: str, max_names: int) -> Exception:
    return source.wrong(where, f"must list at most {max_names:,} names", text, "shorten the range")
