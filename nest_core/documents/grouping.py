"""Values put together by what they share."""

from collections.abc import Iterable
from typing import TypeVar

__all__ = ["grouped", "summed"]

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
