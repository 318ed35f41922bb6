"""The model that a row of a table describes.

The columns give the sizes; the family says the rest (norm, activation, positions) and follows
from the model's name, else from what the notes state, else from the columns alone. Sizes that no
column holds (ranks of latent attention, shared experts, the width of a head) come from the notes,
else from a preset of the same structure.
"""

from __future__ import annotations

import re

from nest_core.calibration.training.runs import Run
from nest_core.documents.errors import require
from nest_core.documents.presets import kept_per_edition, load_toml, preset_names, preset_path
from nest_core.workload import Model

__all__ = ["BY_FACT", "BY_NAME", "PUBLISHED", "TIED", "family_of", "model_of"]

BY_NAME = (
    (r"deepseek-?v2", "deepseek_v2"),
    (r"deepseek-?v3|kimi-?k2|moonlight", "deepseek_v3"),
    (r"gpt-?oss", "gpt_oss"),
    (r"grok", "grok1"),
    (r"bloom", "bloom"),
    (r"\bmpt", "mpt"),
    (r"nemotron", "nemotron"),
    (r"qwen3-.*-a\d+b", "qwen3_moe"),
    (r"qwen3", "qwen3"),
    (r"qwen", "qwen2"),
    (r"\bbert", "bert"),
    (r"llama|mistral", "llama"),
)
"""Patterns in the model's name, ignoring case, and the family."""

BY_FACT = (
    ("attention kind", "mla", "deepseek_v3"),
    ("position", "alibi", "mpt"),
    ("activation", "relu2", "nemotron"),
)
"""What the notes state, and the family that has it, for names that say nothing."""

PUBLISHED = (
    (r"deepseek-?v2", {"ffn": 12_288, "shared_ffn": 3_072, "dense_blocks": 1}),
    (r"kimi-?k2", {"ffn": 18_432, "shared_ffn": 2_048, "dense_blocks": 1}),
    (r"moonlight", {"ffn": 11_264, "shared_ffn": 2_816, "dense_blocks": 1}),
    (r"deepseek-?v3-16b", {"ffn": 10_944, "shared_ffn": 2_816, "dense_blocks": 1}),
)
"""Sizes that no column holds of models without a preset, from their published configurations."""

TIED = ("gpt", "mpt", "bloom", "bert", "grok1")
"""Families whose head shares the embedding's weights; others do where a preset says so."""

LEARNED = ("gpt", "bert")
"""Families with learned position embeddings, one per token of the sequence."""


@kept_per_edition(1)
def _presets() -> tuple[dict[str, object], ...]:
    names = preset_names("models")
    return tuple(load_toml(preset_path("models", f"{name}.toml")) for name in names)


@kept_per_edition(1)
def _families() -> frozenset[str]:
    return frozenset(path.stem for path in preset_path("traces").glob("*.json"))


def family_of(run: Run) -> str:
    """Return the trace that a run's model uses.

    Raises
    ------
    InputError
        If the notes state a block that no trace has.
    """
    traced = _families()
    require(
        run.fact("attention kind") != "parallel",
        "model",
        "must have attention before the MLP",
        run.model,
        "trace one of its own",
    )
    candidates = [family for pattern, family in BY_NAME if re.search(pattern, run.model, re.I)]
    candidates += [family for fact, word, family in BY_FACT if run.fact(fact) == word]
    candidates += ["mixtral" if run.experts > 1 else "llama" if run.gated else "gpt"]
    return next((family for family in candidates if family in traced), candidates[-1])


def model_of(run: Run) -> Model:
    """Return the architecture of a run.

    Raises
    ------
    InputError
        If the row's sizes contradict one another.
    """
    family = family_of(run)
    preset = _nearest(run, family)
    latent = int(str(preset.get("kv_rank", 0))) > 0
    width = run.head_dim or _size(preset, "head_dim") or run.hidden // run.heads
    require(
        not (not run.head_dim and "head_dim" not in preset and run.hidden % run.heads),
        "heads",
        f"must divide hidden = {run.hidden}",
        run.heads,
        "state head_dim in notes",
    )
    dense = min(run.dense_layers or _size(preset, "dense_blocks"), run.layers - 1)
    mixture = run.experts > 1
    groups, top_groups = _groups(preset, run.experts)
    return Model(
        name=run.model,
        family=family,
        blocks=run.layers,
        hidden=run.hidden,
        heads=run.heads,
        kv_heads=run.heads if latent else run.kv_heads,
        head_dim=width,
        ffn=(_size(preset, "ffn") if dense else 0) if mixture else run.ffn,
        vocabulary=run.vocabulary,
        positions=run.sequence if family in LEARNED else 0,
        tied=run.fact("tied") == "yes" or bool(preset.get("tied", family in TIED)),
        window=_size(preset, "window"),
        experts=run.experts,
        top_k=run.top_k,
        expert_ffn=run.ffn if mixture else 0,
        shared_ffn=_size(preset, "shared_ffn") if mixture else 0,
        dense_blocks=dense if mixture else 0,
        q_rank=_size(preset, "q_rank"),
        kv_rank=_size(preset, "kv_rank"),
        rope_dim=_size(preset, "rope_dim"),
        value_dim=_size(preset, "value_dim"),
        expert_groups=groups,
        top_groups=top_groups,
        source=run.source,
    )


def _groups(preset: dict[str, object], experts: int) -> tuple[int, int]:
    """Return groups that tokens choose experts from, of a preset with as many experts; else one."""
    if preset.get("experts") != experts:
        return 1, 1
    return _size(preset, "expert_groups") or 1, _size(preset, "top_groups") or 1


def _size(preset: dict[str, object], field: str) -> int:
    value = preset.get(field, 0)
    return value if isinstance(value, int) else 0


def _nearest(run: Run, family: str) -> dict[str, object]:
    """Return the preset of the family with the row's widths; any with latent attention.

    Else nothing.
    """
    inner = "expert_ffn" if run.experts > 1 else "ffn"
    of_family = [preset for preset in _presets() if preset.get("family") == family]
    same = [
        preset
        for preset in of_family
        if (preset["hidden"], preset["heads"], preset.get(inner))
        == (run.hidden, run.heads, run.ffn)
    ]
    if run.fact("attention kind") == "mla":
        same = same or [preset for preset in _presets() if preset.get("kv_rank")]
    sizes = [sizes for pattern, sizes in PUBLISHED if re.search(pattern, run.model, re.I)]
    return {**(same or [{}])[0], **(sizes or [{}])[0]}
