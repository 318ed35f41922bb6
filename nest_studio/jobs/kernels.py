"""The compiled loops of the planner, built before anybody waits for a plan."""

from __future__ import annotations

import sys

import nest_core as nest

__all__ = ["build_kernels"]

_SCENARIO = "llama2-7b-64-h100"
_SETTINGS = {
    "search.layouts": "uneven",
    "search.recompute": ["none", "full", {"uniform": 2}],
}
"""With them, a plan and its baselines run every kernel."""


def build_kernels() -> None:
    """Compile the kernels that are not on disk, and say so on standard error.

    They go beside their modules; into the user's cache where that cannot be written; into the
    folder NUMBA_CACHE_DIR where that is set.
    """
    from nest_core.api.answer import plan
    from nest_core.documents.compiled import are_built

    if not are_built():
        words = "Compiling the planner, once for this installation: up to a minute."
        print(words, file=sys.stderr, flush=True)
        plan(nest.load(_SCENARIO, _SETTINGS))
