"""A cache with two bounds: how many answers it keeps, and how much memory they take together.

`functools.lru_cache` counts answers only. Where one may be a kilobyte or a megabyte, as what is
asked for decides, a number of them is no bound.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from typing import ParamSpec, TypeVar

__all__ = ["kept_within"]

P = ParamSpec("P")
T = TypeVar("T")


def kept_within(
    entries: int,
    most_bytes: int,
    size: Callable[[T], int],
    content: Callable[..., Hashable] | None = None,
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Keep the last answers of a function, as far as both bounds allow.

    Parameters
    ----------
    entries : int
    most_bytes : int
        Of all answers that are kept; a single one may be larger.
    size : callable (answer) -> int
        What one takes, bytes.
    content : callable, optional
        Takes what the function takes, and returns what its answer depends on; where it is left
        out, the arguments, which are hashable then.
    """

    def kept(function: Callable[P, T]) -> Callable[P, T]:
        cache: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        total = 0
        lock = threading.Lock()

        @wraps(function)
        def answer(*args: P.args, **kwargs: P.kwargs) -> T:
            nonlocal total
            key = content(*args, **kwargs) if content else (args, tuple(kwargs.items()))
            with lock:
                if key in cache:
                    cache.move_to_end(key)
                    return cache[key][0]
            value = function(*args, **kwargs)
            with lock:
                if key not in cache:
                    cache[key] = value, size(value)
                    total += cache[key][1]
                while len(cache) > 1 and (len(cache) > entries or total > most_bytes):
                    total -= cache.popitem(last=False)[1][1]
            return value

        return answer

    return kept
