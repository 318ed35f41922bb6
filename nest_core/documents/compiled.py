"""Loops that are compiled once and kept on disk.

What numpy would do in a dozen passes over arrays, or not at all, as one loop over their elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

__all__ = ["compiled"]

_F = TypeVar("_F", bound=Callable[..., Any])


def compiled(function: _F) -> _F:
    """numba.njit with its result typed as the function itself.

    It releases the GIL, and divides by zero as numpy does.
    """
    return cast(_F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
