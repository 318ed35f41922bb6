"""Numbers back to products of symbols."""

import math
from collections.abc import Mapping
from functools import lru_cache
from itertools import combinations

__all__ = ["symbolise"]


_MOST_SYMBOLS = 3
_MOST_FACTOR = 8


def symbolise(length: int, symbols: Mapping[str, int]) -> list[str | int]:
    """Return a dimension as a product of symbols and, rarely, a whole number.

    Exact products win, of as few symbols as possible, earlier symbols first; then products
    times a factor of at most 8, as in a projection to queries, keys and values at once. A
    length that is neither stays a number; 1 is the empty product.

    Parameters
    ----------
    length : int
    symbols : mapping of str to int
        Sizes above 1.

    Examples
    --------
    >>> symbolise(35, {"heads": 5, "head_dim": 7, "hidden": 11})
    ['heads', 'head_dim']
    >>> symbolise(33, {"heads": 5, "head_dim": 7, "hidden": 11})
    [3, 'hidden']
    >>> symbolise(1, {"hidden": 11}), symbolise(13, {"hidden": 11})
    ([], [13])
    """
    return list(_symbolise(length, tuple(symbols.items())))


@lru_cache(maxsize=4096)
def _symbolise(length: int, symbols: tuple[tuple[str, int], ...]) -> tuple[str | int, ...]:
    if length <= 1:
        return () if length == 1 else (length,)
    dividing = [(name, size) for name, size in symbols if length % size == 0]
    scaled: tuple[str | int, ...] | None = None
    for number in range(1, _MOST_SYMBOLS + 1):
        for chosen in combinations(dividing, number):
            product = math.prod(size for _, size in chosen)
            if length % product:
                continue
            names = tuple(name for name, _ in chosen)
            factor = length // product
            if factor == 1:
                return names
            if scaled is None and factor <= _MOST_FACTOR:
                scaled = (factor, *names)
    return scaled or (length,)
