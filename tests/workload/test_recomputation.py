"""Modules that backward runs again: what they free, what they repeat, and how they are named."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from nest_core.documents.errors import InputError
from nest_core.documents.presets import preset_names
from nest_core.workload import Layer, Strategy, chain, load_model
from nest_core.workload.layers import check_modules
from nest_core.workload.recomputation import MODULES, RECOMPUTE, ordered, recomputation, spelled

TOKENS = 2 * 4096
WIDTH = 2.0


def block(model: str = "deepseek-v3", kind: str = "moe_block", **strategy) -> Layer:
    made = chain(load_model(model), Strategy(sequence=4096, micro_batch=2, **strategy))
    (layer,) = (layer for layer, _ in made.runs if layer.kind == kind)
    return layer


def freed(layer: Layer, *modules: str, operand_bytes: float = 2.0) -> float:
    kept = [
        layer.kept_bytes(one, operand_bytes=operand_bytes) for one in ("none", spelled(modules))
    ]
    return kept[0] - kept[1]


def again(layer: Layer, *modules: str) -> set[str]:
    return {operator.name for operator in layer.replayed(spelled(modules))[0]}


def test_the_activation_of_experts_frees_its_output():
    model = load_model("deepseek-v3")
    assert freed(block(), "moe_act") == WIDTH * TOKENS * model.top_k * model.expert_ffn
    assert again(block(), "moe_act") == {"experts.activation"}
    assert block().replayed("moe_act")[1] == ()


def test_up_projections_free_what_attention_reads():
    model = load_model("deepseek-v3")
    query = model.heads * (model.head_dim + model.rope_dim)
    key, value = model.heads * model.head_dim + model.rope_dim, model.heads * model.value_dim
    assert freed(block(), "mla_up_proj") == WIDTH * TOKENS * (query + key + value)
    calls = block(tp=2, sp=True).replayed("mla_up_proj")[1]
    ops = [call.op for call in calls if call.forward]
    assert ops == ["all_gather", "all_gather"]  # what enters the two up projections


def test_fused_attention_frees_next_to_nothing_for_its_replay():
    layer = block()
    # Its output stays for the output projection: the statistics of softmax are made again.
    assert freed(layer, "core_attn") == 4.0 * TOKENS * load_model("deepseek-v3").heads
    assert layer.kept_bytes("selective") == layer.kept_bytes(spelled(["core_attn"]))


def test_layer_norms_free_their_output_but_not_its_copy_in_fp8():
    model = load_model("llama3-8b")
    layer = block("llama3-8b", "block")
    both = 2 * WIDTH * TOKENS * model.hidden
    assert freed(layer, "layernorm") == both
    assert freed(layer, "layernorm", operand_bytes=1.0) == 0.0


def test_an_mlp_keeps_its_input_and_repeats_its_collectives():
    model = load_model("llama3-8b")
    layer = block("llama3-8b", "block", tp=2, sp=True)
    inner = WIDTH * TOKENS * 3 * model.ffn / 2  # gate, up, and what the activation makes of them
    assert freed(layer, "mlp") == inner
    assert again(layer, "mlp") == {"mlp.gate", "mlp.up", "mlp.activation", "mlp.down"}
    calls = layer.replayed("mlp")[1]
    assert {call.op for call in calls} == {"all_gather", "reduce_scatter"}
    assert [call.forward for call in calls] == [1, 1]


def test_a_layer_of_experts_exchanges_its_tokens_again():
    calls = block(ep=8).replayed("moe")[1]
    assert sum(call.forward for call in calls if call.axis == "ep") == 2
    assert block(ep=8).replayed("shared_experts")[1] == ()
    assert freed(block(), "moe") > freed(block(), "moe_act", "shared_experts") > 0


def test_more_modules_free_more_and_repeat_more():
    for name in ("deepseek-v3", "llama3-8b", "gpt3-1.3b", "mixtral-8x7b"):
        for layer, _ in chain(load_model(name), Strategy(sequence=2048)).runs:
            for one, two in combinations(MODULES, 2):
                least = max(freed(layer, one), freed(layer, two))
                assert least <= freed(layer, one, two) <= layer.kept_bytes("none")
                assert again(layer, one) | again(layer, two) == again(layer, one, two) or "moe" in (
                    one,
                    two,
                )


@pytest.mark.parametrize("name", preset_names("models"))
def test_every_block_has_core_attention_and_layer_norms(name):
    """Of OLMo 2 norms follow attention and MLP: none stands before them, as Megatron's would."""
    norms = set() if load_model(name).family == "olmo2" else {"layernorm"}
    for layer, _ in chain(load_model(name), Strategy(sequence=256)).runs:
        names = [module.name for module in layer.modules]
        assert names == [] or {"core_attn"} | norms < set(names)
        assert names == [] or {"mlp", "moe"} & set(names)
        assert layer.replayed("none") == ((), ())
        assert ("moe_act" in names) == layer.kind.endswith("moe_block")


def test_the_embedding_and_the_head_are_never_run_again():
    first, *_, last = (layer for layer, _ in block_chain())
    for layer in (first, last):
        assert all(layer.replayed(one) == ((), ()) for one in ("full", "selective", "mlp"))


def block_chain():
    return chain(load_model("llama3-8b"), Strategy(sequence=256)).runs


def test_spellings_are_one_per_set():
    assert spelled(["mlp", "core_attn"]) == spelled(["core_attn", "mlp"]) == "core_attn+mlp"
    assert recomputation({"modules": ["mlp", "core_attn"]}) == recomputation("mlp+core_attn")
    assert recomputation("core_attn") == "selective"
    assert recomputation("moe+shared_experts") == "moe"
    assert [recomputation(one) for one in RECOMPUTE] == list(RECOMPUTE)
    assert ordered(["full", "mlp", "none", "mlp"]) == ("none", "selective", "mlp", "full")


def test_modules_that_a_model_lacks_are_refused_by_name():
    model = load_model("llama3-8b")
    check_modules(model, ["none", "full", "core_attn+mlp", "layernorm"], "search.recompute")
    with pytest.raises(
        InputError, match=r"Llama 3 8B has, but is 'moe_act': pick core_attn, layernorm, mlp"
    ):
        check_modules(model, ["moe_act"], "search.recompute")
    plain = replace(load_model("mixtral-8x7b"), name="mine")
    with pytest.raises(InputError, match="mine has, but is 'mla_up_proj'"):
        check_modules(plain, ["mla_up_proj"], "search.recompute")
