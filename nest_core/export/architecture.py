"""Models in the field names of Megatron Core's ``TransformerConfig`` and GPT model.

What the scenario does not hold (rotary base and scaling, norm epsilon, router losses) is left to
the framework's defaults. Families whose blocks Megatron Core has no options for are refused:
ALiBi is not among its position embeddings, and there is no norm behind attention and MLP.
"""

from __future__ import annotations

from collections.abc import Mapping

from nest_core.export.values import Refused
from nest_core.scenario import Scenario
from nest_core.workload import Model

__all__ = ["Value", "architecture"]

Value = bool | int | float | str | tuple[int, ...]

_LLAMA: dict[str, Value] = {
    "normalization": "RMSNorm", "activation": "swiglu", "add_bias_linear": False,
    "position_embedding_type": "rope", "attention_dropout": 0.0, "hidden_dropout": 0.0,
}  # fmt: skip
_GPT: dict[str, Value] = {
    "normalization": "LayerNorm", "activation": "gelu", "add_bias_linear": True,
    "position_embedding_type": "learned_absolute",
}  # fmt: skip
_FAMILIES: Mapping[str, Mapping[str, Value]] = {
    "gpt": _GPT,
    "bert": _GPT,
    "llama": _LLAMA,
    "mixtral": _LLAMA,
    "qwen2": _LLAMA | {"add_qkv_bias": True},
    "qwen3": _LLAMA | {"qk_layernorm": True},
    "qwen3_moe": _LLAMA | {"qk_layernorm": True},
    "nemotron": _LLAMA
    | {
        "normalization": "LayerNorm", "layernorm_zero_centered_gamma": True,
        "activation": "squared_relu", "rotary_percent": 0.5,
    },
    "deepseek_v2": _LLAMA | {"qk_layernorm": True},
    "deepseek_v3": _LLAMA
    | {
        "qk_layernorm": True, "moe_router_score_function": "sigmoid",
        "moe_router_enable_expert_bias": True,
    },
    "gpt_oss": _LLAMA
    | {
        "activation": "quick_geglu", "add_bias_linear": True, "softmax_type": "learnable",
        "window_size": (127, 0), "window_attn_skip_freq": 2, "glu_linear_offset": 1.0,
        "activation_func_clamp_value": 7.0,
    },
}  # fmt: skip
_MISSING = {
    "bloom": "ALiBi", "mpt": "ALiBi", "grok1": "norms behind attention and MLP",
}  # fmt: skip


def architecture(scenario: Scenario, framework: str) -> dict[str, Value]:
    """Field names and values of the scenario's model.

    ``activation`` stands for ``activation_func`` and ``gated_linear_unit``, ``tied`` for
    ``share_embeddings_and_output_weights``.

    Raises
    ------
    Refused
        For families with parts that Megatron Core has no option for.
    """
    model = scenario.model
    if model.family not in _FAMILIES:
        what = _MISSING.get(model.family, "parts it does not know")
        raise Refused(
            "workload.model", f"must not need {what} for {framework}", model.name,
            "export with --to slurm or astra-sim",
        )  # fmt: skip
    fields: dict[str, Value] = {
        "num_layers": model.blocks,
        "hidden_size": model.hidden,
        "num_attention_heads": model.heads,
        "ffn_hidden_size": model.ffn or model.expert_ffn,
        "seq_length": scenario.sequence,
        "max_position_embeddings": max(model.positions, scenario.sequence),
        "vocab_size": model.vocabulary,
        "tied": model.tied,
        **_FAMILIES[model.family],
        **_attention(model),
        **_experts(scenario),
    }
    if model.window:
        fields["window_size"] = (model.window - 1, 0)
    return fields


def _attention(model: Model) -> dict[str, Value]:
    if model.kv_rank:
        latent: dict[str, Value] = {
            "multi_latent_attention": True,
            "kv_lora_rank": model.kv_rank,
            "qk_head_dim": model.head_dim,
            "qk_pos_emb_head_dim": model.rope_dim,
            "v_head_dim": model.value_dim,
        }
        return latent | ({"q_lora_rank": model.q_rank} if model.q_rank else {})
    fields: dict[str, Value] = {"kv_channels": model.head_dim}
    if model.kv_heads != model.heads:
        fields["num_query_groups"] = model.kv_heads
    return fields


def _experts(scenario: Scenario) -> dict[str, Value]:
    model = scenario.model
    if model.experts == 1:
        return {}
    fields: dict[str, Value] = {
        "num_moe_experts": model.experts,
        "moe_router_topk": model.top_k,
        "moe_ffn_hidden_size": model.expert_ffn,
        "moe_token_dispatcher_type": "alltoall",
        "moe_grouped_gemm": scenario.precision in ("bf16", "fp8"),
    }
    if model.shared_ffn:
        fields["moe_shared_expert_intermediate_size"] = model.shared_ffn
    if model.dense_blocks:
        sparse = model.blocks - model.dense_blocks
        fields["moe_layer_freq"] = (0,) * model.dense_blocks + (1,) * sparse
    if scenario.capacity:
        fields["moe_expert_capacity_factor"] = scenario.capacity
        fields["moe_pad_expert_input_to_capacity"] = True
    return fields
