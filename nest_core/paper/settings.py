"""What stands for the paper's clusters and models, from ``presets/paper/own.toml``."""

from __future__ import annotations

from functools import cache
from typing import Any

from nest_core.presets import load_toml, preset_path

__all__ = ["model_name", "settings"]


@cache
def settings() -> dict[str, Any]:
    """The whole document; do not change it."""
    return load_toml(preset_path("paper", "own.toml"))


def model_name(model: str) -> str:
    """A model's name for people."""
    return str(settings()["model"][model]["name"])
