"""The preset behind a model's name, as frameworks and benchmarks write it."""

from __future__ import annotations

import re

from nest_core.documents.presets import preset_names
from nest_core.workload import Model, load_model

__all__ = ["model_columns", "preset_of", "sizes_of"]

ALIASES = {
    "gpt3": "gpt3-175b",
    "llama3405b": "llama3.1-405b",
    "deepseekv3671b": "deepseek-v3",
    "deepseekv3": "deepseek-v3",
}
"""Names whose letters and digits are not those of a preset."""

UNGATED = ("gpt", "bert", "bloom", "mpt", "nemotron")
"""Families whose MLP has no gate."""


def preset_of(name: str) -> str:
    """Return a preset's name; empty if none has these letters and digits.

    Examples
    --------
    >>> preset_of("llama3 8B"), preset_of("llama31_405b"), preset_of("gpt3"), preset_of("mine")
    ('llama3-8b', 'llama3.1-405b', 'gpt3-175b', '')
    """
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    plain = ALIASES.get(plain, plain)
    for preset in preset_names("models"):
        if plain in (preset, re.sub(r"[^a-z0-9]", "", preset)):
            return preset
    return ""


def model_columns(name: str) -> dict[str, str]:
    """Return columns of a run that say what model it is; none if no preset has the name.

    Raises
    ------
    InputError
        If the preset cannot be read.
    """
    preset = preset_of(name)
    return sizes_of(load_model(preset)) if preset else {}


def sizes_of(model: Model) -> dict[str, str]:
    """Return columns with a model's sizes."""
    experts = {"experts": str(model.experts), "topk": str(model.top_k)} if model.experts > 1 else {}
    return {
        "model": model.name,
        "layers": str(model.blocks),
        "hidden": str(model.hidden),
        "heads": str(model.heads),
        "kv_heads": str(model.kv_heads),
        "ffn_hidden": str(model.expert_ffn or model.ffn),
        "gated_mlp": str(int(model.family not in UNGATED)),
        "vocab": str(model.vocabulary),
        **experts,
    }
