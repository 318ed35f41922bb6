"""The compiled loops of planner and simulation, built before anybody waits for a plan."""

import sys
from typing import Any

import nest_core as nest

__all__ = ["build_kernels"]

_SCENARIO = "llama2-7b-64-h100"
_SETTINGS: tuple[dict[str, Any], ...] = (
    {"search.layouts": "uneven", "search.recompute": ["none", "full", {"uniform": 2}]},
    {"fabric": "drawn-8", "fabric.routing": "adaptive"},
)
"""Plans of them, with their baselines, and what failures leave of one run every kernel."""


def build_kernels() -> None:
    """Compile all kernels, unless that was done before, and say so on standard error.

    They go beside their modules; into the user's cache where that cannot be written; into the
    folder NUMBA_CACHE_DIR where that is set.
    """
    from nest_core.api.answer import plan
    from nest_core.documents.compiled import build_mark
    from nest_core.reliability import simulation  # noqa: F401  # its loops are among all

    mark = build_mark()
    if not mark.exists():
        print(
            "Compiling the planner, once for this installation: up to a minute.",
            file=sys.stderr,
            flush=True,
        )
        for settings in _SETTINGS:
            plan(nest.load(_SCENARIO, settings))
        nest.goodput(_SCENARIO, "dp=64,tp=1")
        mark.touch()
