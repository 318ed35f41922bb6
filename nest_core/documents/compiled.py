"""Loops that are compiled once and kept on disk.

What numpy would do in a dozen passes over arrays, or not at all, as one loop over their elements.
"""

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from nest_core.documents.errors import InputError

__all__ = ["KERNELS", "build_mark", "compiled"]

_F = TypeVar("_F", bound=Callable[..., Any])

KERNELS: list[Any] = []
"""The compiled loops of all modules that are imported so far."""


def compiled(function: _F) -> _F:
    """numba.njit with its result typed as the function itself.

    It releases the GIL, and divides by zero as numpy does. What is on disk is compiled anew when
    the function's file changes, or what it may read of others: numba looks at its own file alone.

    Raises
    ------
    InputError
        If no folder can be written that numba would keep it in.
    """
    try:
        kernel: Any = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError as error:
        raise InputError(
            "NUMBA_CACHE_DIR",
            "must name a folder that can be written, for no usual one can",
            os.environ.get("NUMBA_CACHE_DIR"),
            "set it",
        ) from error
    on_disk = kernel._cache._cache_file
    read = [on_disk._source_stamp, *map(_stamp, function.__globals__.values())]
    kernel.kernel_stamp = hashlib.sha256(repr(read).encode()).hexdigest()
    on_disk._source_stamp = kernel.kernel_stamp
    KERNELS.append(kernel)
    return cast(_F, kernel)


def _stamp(value: object) -> object:
    """Return what tells one edition of a module's global from another, if kernels can read it."""
    return (
        value
        if isinstance(value, int | float)
        else getattr(value, "kernel_stamp", getattr(value, "_fields", None))
    )


def build_mark() -> Path:
    """Return the file that says that `KERNELS` as they are have been built for this processor."""
    first = KERNELS[0]
    build = (
        numba.__version__,
        first.targetctx.codegen().magic_tuple(),
        sorted(kernel.kernel_stamp for kernel in KERNELS),
    )
    digest = hashlib.sha256(repr(build).encode()).hexdigest()
    return Path(first.stats.cache_path) / f"built-{digest[:16]}.{sys.implementation.cache_tag}.nbi"
