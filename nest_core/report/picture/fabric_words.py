"""Words that pictures of every kind of fabric share."""

from __future__ import annotations

from nest_core.documents.units import humanise_rate

__all__ = ["count_words", "plural", "rate_words"]

PLURALS = {"leaf": "leaves", "spine": "spines", "switch": "switches", "core": "core switches"}
PLURALS |= {"edge": "edge switches", "aggregation": "aggregation switches"}


def plural(name: str, count: int) -> str:
    """A tier's name for so many of its switches.

    Examples
    --------
    >>> plural("leaf", 1), plural("leaf", 32), plural("edge", 1)
    ('leaf', 'leaves', 'edge switch')
    """
    several = PLURALS.get(name, f"{name}s")
    if count != 1:
        return several
    return several.removesuffix("es") if several.endswith("switches") else name


def count_words(count: int, gone: int, name: str) -> str:
    """Say how many there are, and of how many where some have failed.

    Examples
    --------
    >>> count_words(15, 1, "spine"), count_words(1, 0, "edge")
    ('15 of 16 spines', '1 edge switch')
    """
    total = count + gone
    return f"{count:,}{f' of {total:,}' if gone else ''} {plural(name, total)}"


def rate_words(bytes_per_second: float) -> str:
    """A rate without a decimal that says nothing, unbroken.

    Examples
    --------
    >>> rate_words(50e9) == "50\u00a0GB/s"
    True
    """
    number, unit = humanise_rate(bytes_per_second).split()
    return f"{number.removesuffix('.0')}\u00a0{unit}"
