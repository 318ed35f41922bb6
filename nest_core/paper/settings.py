"""What the paper and its artifact print, and what stands here for its clusters and models.

From ``presets/paper/printed.toml`` and ``presets/paper/own.toml``.

References
----------
NEST, MLSys 2026 (figures, tables, text); scai-tech/Nest (MIT), reference results and README.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from nest_core.documents.presets import load_toml, preset_path

__all__ = ["cluster_name", "model_name", "printed", "printed_rows", "settings"]


@cache
def settings() -> dict[str, Any]:
    """The whole document; do not change it."""
    return load_toml(preset_path("paper", "own.toml"))


def cluster_name(setup: str) -> str:
    """A cluster's name for people."""
    return str(settings()["cluster"][setup]["name"])


def model_name(model: str) -> str:
    """A model's name for people."""
    return str(settings()["model"][model]["name"])


@cache
def printed() -> dict[str, Any]:
    """The whole document; do not change it."""
    return load_toml(preset_path("paper", "printed.toml"))


def printed_rows(figure: str) -> dict[tuple[str, int, int], dict[str, float]]:
    """Relative throughputs of a figure, and NEST's search seconds, by cell.

    Returns
    -------
    dict
        From model, devices and micro-batch to ``{planner: figure}``; empty where the paper
        shows a picture and the artifact prints nothing.
    """
    return {
        (row["model"], row["devices"], row["micro_batch"]): {
            key: value
            for key, value in row.items()
            if key not in ("model", "devices", "micro_batch")
        }
        for row in printed()["figures"][figure]["rows"]
    }
