"""A ``config.json`` gives the sizes of its model, or one sentence that names the key."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nest_core.documents.errors import InputError
from nest_core.documents.files import MAX_FILE_BYTES
from nest_core.scenario import Scenario, load_scenario, scenario_document
from nest_core.workload.hugging_face import read_config
from nest_core.workload.model_files import load_model
from nest_core.workload.models import Model

FILES = sorted((Path(__file__).resolve().parent.parent / "data" / "configs").glob("*.json"))
CONFIGS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FILES
}
quick = settings(max_examples=200, derandomize=True, database=None, deadline=None)


def anonymous(model: Model) -> Model:
    return replace(model, name="", source="")


def refusal(text: str | bytes) -> str:
    with pytest.raises(InputError) as caught:
        read_config(text, "m")
    return str(caught.value)


def changed(name: str, **keys: Any) -> str:
    """A configuration with keys set; `...` takes one out; ``a__b`` is b of the object a."""
    config = copy.deepcopy(CONFIGS[name])
    for key, value in keys.items():
        *tables, last = key.split("__")
        place = config
        for table in tables:
            place = place[table]
        if value is ...:
            del place[last]
        else:
            place[last] = value
    return json.dumps(config)


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_published_configuration_is_its_preset(path):
    """A failure: a key of the family is read as the wrong size."""
    if path.stem == "gpt2-xl":  # no preset: 1,557,611,200 is the count of the checkpoint
        assert load_model(path.name, path.parent).parameters == 1_557_611_200
    else:
        assert anonymous(load_model(path.name, path.parent)) == anonymous(load_model(path.stem))
        load_model(path.name, path.parent).check_family()


DEFAULTS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("llama2-7b", {"num_key_value_heads": ...}, {"kv_heads": 32}),
    ("llama2-7b", {"num_key_value_heads": None}, {"kv_heads": 32}),
    ("llama2-7b", {"head_dim": 64}, {"head_dim": 64}),
    ("llama2-7b", {"head_dim": None}, {"head_dim": 128}),
    ("llama2-7b", {"tie_word_embeddings": ...}, {"tied": False}),
    ("llama2-7b", {"tie_word_embeddings": True}, {"tied": True}),
    ("mistral-7b", {"sliding_window": ...}, {"window": 4096}),
    ("mistral-7b", {"sliding_window": None}, {"window": 0}),
    ("mixtral-8x7b", {"sliding_window": 128}, {"window": 128}),
    ("qwen3-8b", {"head_dim": ...}, {"head_dim": 128}),
    ("gpt2-xl", {}, {"ffn": 6400, "kv_heads": 25, "head_dim": 64, "tied": True}),
    ("gpt2-xl", {"n_inner": 100}, {"ffn": 100}),
    ("mpt-7b", {"expansion_ratio": ...}, {"ffn": 16384}),
    ("mpt-7b", {"attn_config": {"model_type": ""}}, {"ffn": 16384}),
    ("mpt-7b", {"attn_config": None}, {"ffn": 16384}),
    ("deepseek-v3", {"first_k_dense_replace": 0}, {"dense_blocks": 0, "ffn": 0}),
    ("deepseek-v3", {"n_shared_experts": 2}, {"shared_ffn": 4096}),
    ("grok-1", {"model_type": "grok", "num_experts": ..., "num_local_experts": 8}, {"experts": 8}),
    ("bloom-176b", {"n_embed": ..., "hidden_size": 14336}, {"hidden": 14336}),
    ("llama2-7b", {"_name_or_path": "/data/llm"}, {"name": "m"}),
    ("llama2-7b", {}, {"name": "meta-llama/Llama-2-7b-hf"}),
]


@pytest.mark.parametrize(("name", "keys", "sizes"), DEFAULTS, ids=[str(case) for case in DEFAULTS])
def test_a_missing_key_means_what_is_documented(name, keys, sizes):
    """Hugging Face transformers, the configuration class of each type."""
    model = read_config(changed(name, **keys), "m")
    assert {field: getattr(model, field) for field in sizes} == sizes


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("llama2-7b", {"hidden_size": ...},
     "hidden_size is required in a model of type llama, but is 'missing'"),
    ("llama2-7b", {"hidden_size": None},
     "hidden_size is required in a model of type llama, but is None"),
    ("llama2-7b", {"hidden_size": -4096}, "hidden_size must be at least 1, but is -4096"),
    ("llama2-7b", {"hidden_size": 0}, "hidden_size must be at least 1, but is 0"),
    ("llama2-7b", {"hidden_size": "4096"}, "hidden_size must be a whole number, but is '4096'"),
    ("llama2-7b", {"hidden_size": 4096.0}, "hidden_size must be a whole number, but is 4096.0"),
    ("llama2-7b", {"hidden_size": True}, "hidden_size must be a whole number, but is True"),
    ("llama2-7b", {"hidden_size": [4096]}, "hidden_size must be a whole number, but is [4096]"),
    ("llama2-7b", {"hidden_size": 10**8}, "hidden_size must be at most 10,000,000"),
    ("llama2-7b", {"num_hidden_layers": 1999}, "num_hidden_layers must be at most 1,998"),
    ("llama2-7b", {"hidden_size": 4100},
     "hidden_size must be divisible by num_attention_heads = 32, but is 4100: correct one, "
     "or give head_dim."),
    ("llama2-7b", {"num_key_value_heads": 5},
     "num_key_value_heads must divide num_attention_heads = 32, but is 5"),
    ("llama2-7b", {"tie_word_embeddings": "no"},
     "tie_word_embeddings must be true or false, but is 'no'"),
    ("llama2-7b", {"attention_bias": True},
     "attention_bias must be false in a model of type llama"),
    ("llama2-7b", {"hidden_act": "gelu"},
     "hidden_act must be \"silu\" in a model of type llama, but is 'gelu'"),
    ("llama2-7b", {"model_type": "falcon"},
     "but is 'falcon': trace its module with nest-studio trace"),
    ("llama2-7b", {"model_type": ...}, "but is 'missing': trace its module with nest-studio trace"),
    ("llama2-7b", {"model_type": ["llama"]}, "model_type must be one of bert, bloom, cohere2,"),
    ("mistral-7b", {"num_key_value_heads": ...},
     "num_key_value_heads is required in a model of type mistral"),
    ("mistral-7b", {"sliding_window": -1}, "sliding_window must be at least 1, but is -1"),
    ("qwen2-7b", {"use_sliding_window": True},
     "use_sliding_window must be false in a model of type qwen2"),
    ("mixtral-8x7b", {"num_experts_per_tok": 9},
     "num_experts_per_tok must not exceed num_local_experts = 8"),
    ("mixtral-8x7b", {"num_local_experts": 1}, "num_local_experts must be at least 2, but is 1"),
    ("qwen3-30b-a3b", {"mlp_only_layers": [0]},
     "mlp_only_layers must be [] in a model of type qwen3_moe, but is [0]"),
    ("qwen3-30b-a3b", {"decoder_sparse_step": 2},
     "decoder_sparse_step must be 1 in a model of type qwen3_moe"),
    ("deepseek-v3", {"first_k_dense_replace": 61},
     "first_k_dense_replace must be fewer than num_hidden_layers = 61"),
    ("deepseek-v3", {"q_lora_rank": ...},
     "q_lora_rank is required in a model of type deepseek_v3, but is 'missing'"),
    ("deepseek-v3", {"num_key_value_heads": 64},
     "num_key_value_heads must equal num_attention_heads = 128"),
    ("gpt2-xl", {"n_head": 24}, "n_embd must be divisible by n_head = 24, but is 1600"),
    ("gpt2-xl", {"hidden_size": 1},
     "hidden_size must equal n_embd, which means the same, but is 1"),
    ("gpt2-xl", {"n_embd": 10_000_000, "n_head": 1},
     "n_inner must be at most 10,000,000, but is 40000000"),
    ("bert-large", {"is_decoder": True}, "is_decoder must be false in a model of type bert"),
    ("mpt-7b", {"attn_config__alibi": False},
     "attn_config.alibi must be true in a model of type mpt"),
    ("mpt-7b", {"attn_config": 5}, "attn_config must be an object, but is 5"),
    ("gpt-oss-120b", {"head_dim": ...}, "head_dim is required in a model of type gpt_oss"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "keys", "message"), BAD, ids=[message for *_, message in BAD])
def test_a_bad_configuration_is_one_sentence_with_the_key(name, keys, message):
    found = refusal(changed(name, **keys))
    assert message in found
    assert "model." not in found, "a person wrote the file's keys, not the product's"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "config.json must be valid JSON"),
        ("{", "config.json must be valid JSON"),
        ("[]", "config.json must be a JSON object, but is 'list'"),
        ("5", "config.json must be a JSON object, but is 'int'"),
        ("\ufeff{}", "config.json must be valid JSON"),
        (b"\xff{}", "config.json must be UTF-8 text"),
        ('{"model_type": "llama", "model_type": "gpt2"}', "must name every key once, but is 'mo"),
        ('{"a": {"b": 1, "b": 1}}', "config.json must name every key once, but is 'b'"),
        ('{"a": ' + "[" * 40 + "]" * 40 + "}", "config.json must nest at most 32 tables"),
        ('{"a": ' * 100_000, "config.json must not nest deeply"),
        ('{"a": 1' + "0" * 5000 + "}", "config.json must be valid JSON"),
        ('{"a": 1' + "0" * 400 + "}", "config.json must hold whole numbers of at most 64 bits"),
        (" " * (MAX_FILE_BYTES + 1), "config.json must hold at most 5,000,000 bytes"),
    ],
    ids=["empty", "open", "list", "number", "mark", "latin-1", "twice", "twice-within", "deep",
         "bomb", "long-number", "wide-number", "large"],
)  # fmt: skip
def test_what_is_no_configuration_is_refused(text, message):
    assert message in refusal(text)


def is_sentence(message: str) -> bool:
    return message.endswith(".") and "\n" not in message and len(message) < 1200


def model_or_sentence(text: str | bytes) -> None:
    try:
        model = read_config(text, "m")
    except InputError as error:
        message = str(error)
    else:
        model.check_family()
        assert model.parameters > 0
        return
    assert is_sentence(message)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def mutants(draw: st.DrawFn) -> str:
    """A published configuration with up to three keys broken, moved or lost."""
    config = copy.deepcopy(CONFIGS[draw(st.sampled_from(sorted(CONFIGS)))])
    for _ in range(draw(st.integers(1, 3))):
        key = draw(st.sampled_from(sorted(config)))
        if draw(st.booleans()):
            config[key] = draw(
                anything | st.integers(-2, 10) | st.sampled_from([2**63, 10**7, 10**30, 1e400])
            )
        elif len(config) > 1:
            del config[key]
    return json.dumps(config)


@quick
@given(mutants())
def test_a_changed_configuration_is_a_model_or_a_sentence(text):
    """KeyError, ZeroDivisionError, OverflowError and their like are defects."""
    model_or_sentence(text)


@quick
@given(mutants(), st.data())
def test_a_torn_configuration_is_a_model_or_a_sentence(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    model_or_sentence(text[:start] + data.draw(st.text(max_size=3)) + text[end:])


@quick
@given(st.text(max_size=40) | st.binary(max_size=40) | anything.map(json.dumps))
def test_any_text_is_a_model_or_a_sentence(text):
    model_or_sentence(text)


def test_a_scenario_names_a_file_beside_it(tmp_path):
    """The same from a path, from ``--set``, from a preset and from a table."""
    config = json.dumps(CONFIGS["llama2-7b"])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text(config, encoding="utf-8")
    document, _ = scenario_document("llama2-7b-64-h100")
    document["workload"] = {**document["workload"], "model": "mine/config.json"}
    by_path = Scenario(document, {}, tmp_path).values.model
    absolute = f'workload.model="{tmp_path}/mine/config.json"'
    by_set = load_scenario("llama2-7b-64-h100", [absolute]).model
    assert anonymous(by_path) == anonymous(by_set) == anonymous(load_model("llama2-7b"))


def test_single_sizes_of_a_named_model_can_be_set():
    scenario = load_scenario("llama2-7b-64-h100", ["workload.model.blocks=8"])
    assert scenario.model == replace(load_model("llama2-7b"), blocks=8)
    both = ["workload.model.blocks=8", 'workload.model="llama3-8b"']
    assert load_scenario("llama2-7b-64-h100", both).model == replace(
        load_model("llama3-8b"), blocks=8
    )
    with pytest.raises(InputError, match=re.escape("workload.model.heads must be at least 1")):
        load_scenario("llama2-7b-64-h100", ["workload.model.heads=0"])
