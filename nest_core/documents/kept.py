"""A cache with two bounds: how many answers it keeps, and how much memory they take together.

`functools.lru_cache` counts answers only. Where one may be a kilobyte or a megabyte, as what is
asked for decides, a number of them is no bound.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

__all__ = ["kept_within"]

P = ParamSpec("P")
T = TypeVar("T")


def kept_within(
    entries: int, most_bytes: int, size: Callable[[T], int]
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Keep the last answers of a function of hashable arguments, as far as both bounds allow.

    Parameters
    ----------
    entries : int
    most_bytes : int
        Of all answers that are kept; a single one may be larger.
    size : callable (answer) -> int
        What one takes, bytes.
    """

    def kept(function: Callable[P, T]) -> Callable[P, T]:
        found: OrderedDict[object, tuple[T, int]] = OrderedDict()
        held = 0
        lock = threading.Lock()

        @wraps(function)
        def answer(*args: P.args, **kwargs: P.kwargs) -> T:
            nonlocal held
            key = (args, tuple(kwargs.items()))
            with lock:
                if key in found:
                    found.move_to_end(key)
                    return found[key][0]
            made = function(*args, **kwargs)
            with lock:
                if key not in found:
                    found[key] = made, size(made)
                    held += found[key][1]
                while len(found) > 1 and (len(found) > entries or held > most_bytes):
                    held -= found.popitem(last=False)[1][1]
            return made

        return answer

    return kept
