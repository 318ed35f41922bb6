"""What is no model is refused in one sentence that names the field."""

from __future__ import annotations

import re
from typing import Any

import pytest

from nest_core.documents.errors import InputError
from nest_core.documents.presets import preset_names
from nest_core.workload.model_files import load_model, model_of, model_table
from nest_core.workload.models import Model

DENSE: dict[str, Any] = {
    "name": "m", "family": "llama", "blocks": 2, "hidden": 8, "heads": 8, "kv_heads": 4,
    "head_dim": 2, "ffn": 8, "vocabulary": 16,
}  # fmt: skip
MIXTURE = {**DENSE, "family": "mixtral", "ffn": 0, "experts": 4, "top_k": 2, "expert_ffn": 8}
LATENT = {
    **MIXTURE, "family": "deepseek_v3", "kv_heads": 8, "shared_ffn": 8, "dense_blocks": 1,
    "ffn": 8, "q_rank": 4, "kv_rank": 4, "rope_dim": 2, "value_dim": 2,
}  # fmt: skip

BAD: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (DENSE, {"heads": 6}, "model.kv_heads must divide model.heads = 6, but is 4"),
    (DENSE, {"blocks": 0}, "model.blocks must be at least 1, but is 0"),
    (DENSE, {"blocks": 1999}, "model.blocks must be at most 1,998, but is 1999"),
    (DENSE, {"hidden": -1}, "model.hidden must be at least 1, but is -1"),
    (DENSE, {"hidden": 10**7 + 1}, "model.hidden must be at most 10,000,000"),
    (DENSE, {"hidden": 8.0}, "model.hidden must be a whole number, but is 8.0"),
    (DENSE, {"hidden": True}, "model.hidden must be a whole number, but is True"),
    (DENSE, {"window": -4}, "model.window must be at least 0, but is -4"),
    (DENSE, {"top_k": 2}, "model.top_k must not exceed model.experts = 1, but is 2"),
    (DENSE, {"ffn": 0}, "model.ffn must be at least 1 for 2 dense blocks, but is 0"),
    (DENSE, {"expert_ffn": 8}, "model.expert_ffn must be 0 in a model of one expert, but is 8"),
    (DENSE, {"dense_blocks": 1}, "model.dense_blocks must be 0 in a model of one expert"),
    (MIXTURE, {"top_k": 0}, "model.top_k must be at least 1, but is 0"),
    (MIXTURE, {"top_k": 5}, "model.top_k must not exceed model.experts = 4, but is 5"),
    (MIXTURE, {"expert_ffn": 0}, "model.expert_ffn must be at least 1 with 4 experts, but is 0"),
    (MIXTURE, {"ffn": 8}, "model.ffn must be 0 where no block has a dense MLP, but is 8"),
    (MIXTURE, {"dense_blocks": 2}, "model.dense_blocks must be fewer than model.blocks = 2"),
    (LATENT, {"kv_rank": 0}, "model.kv_rank must be at least 1 beside model.q_rank, but is 0"),
    (LATENT, {"moe_every": 2}, "model.moe_every must be 1 beside model.dense_blocks"),
    (DENSE, {"moe_every": 2}, "model.moe_every must be 1 in a model of one expert, but is 2"),
    (LATENT, {"kv_heads": 4}, "model.kv_heads must equal model.heads = 8 in latent attention"),
    (LATENT, {"ffn": 0}, "model.ffn must be at least 1 for 1 dense blocks, but is 0"),
]


@pytest.mark.parametrize(("base", "change", "message"), BAD, ids=[message for *_, message in BAD])
def test_sizes_that_contradict_are_refused(base, change, message):
    Model(**base)
    with pytest.raises(InputError, match=re.escape(message)):
        Model(**{**base, **change})


UNFIT: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (DENSE, {"family": "gpt9"}, "model.family must be one whose operators were traced, but is"),
    (DENSE, {"family": "mixtral"}, "model.family must be one that has dense blocks, but is"),
    (MIXTURE, {"family": "llama"}, "model.family must be one that has mixture-of-experts blocks"),
    (DENSE, {"family": "gpt"}, "model.positions must be at least 1 in a model of family gpt"),
    (DENSE, {"positions": 4}, "model.positions must be 0 in a model of family llama, but is 4"),
    (DENSE, {"kv_heads": 8, "q_rank": 1, "kv_rank": 1, "rope_dim": 1, "value_dim": 1},
     "model.q_rank must be 0 in a model of family llama, but is 1"),
    (LATENT, {"shared_ffn": 0}, "model.shared_ffn must be at least 1 in a model of family deep"),
    (LATENT, {"q_rank": 0}, "model.q_rank must be at least 1 in a model of family deepseek_v3"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("base", "change", "message"), UNFIT, ids=[message for *_, message in UNFIT]
)
def test_sizes_that_the_family_does_not_have_are_refused(base, change, message):
    Model(**base).check_family()
    model = Model(**{**base, **change})
    with pytest.raises(InputError, match=re.escape(message)):
        model.check_family()


@pytest.mark.parametrize("name", preset_names("models"))
def test_presets_and_their_tables_are_the_same_model(name):
    model = load_model(name)
    assert model_of(model_table(model)) == model
    assert load_model(model_table(model)) == model
    assert model.source


TABLES: list[tuple[dict[str, Any], str]] = [
    ({}, "workload.model.name is required"),
    ({**DENSE, "heads": 6}, "workload.model.kv_heads must divide workload.model.heads = 6"),
    ({**DENSE, "hidden": "8"}, "workload.model.hidden must be a whole number, but is '8'"),
    ({**DENSE, "hidden": -8}, "workload.model.hidden must be at least 1, but is -8"),
    ({**DENSE, "hiden": 8}, "workload.model.hiden is not a known key, but is 8: write hidden"),
    ({**DENSE, "family": "gpt9"}, "workload.model.family must be one whose operators were"),
]


@pytest.mark.parametrize(("table", "message"), TABLES, ids=[message for _, message in TABLES])
def test_tables_are_refused_by_their_own_names(table, message):
    with pytest.raises(InputError, match=re.escape(message)):
        load_model(table)


def test_what_is_neither_preset_nor_file_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"workload\.model must be a preset, a path to"):
        load_model("gpt5", tmp_path)
    with pytest.raises(InputError, match="must be a readable file"):
        load_model("nowhere/config.json", tmp_path)
