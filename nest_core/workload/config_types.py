"""Which keys of a Hugging Face ``config.json`` hold which sizes, by ``model_type``.

For each type that has a trace, `TYPES` says what a missing key means, and which keys must have
the value that the trace stands for: a Llama with biases is another architecture than the one
traced. A default is used only where the documentation of ``transformers`` derives it from other
keys or names the absence itself (full heads, no window, tied or not); a width that is missing is
an error. Keys that change neither sizes nor operators (rotary frequencies, token ids, …) are not
looked at.

References
----------
Configuration classes of Hugging Face transformers (`src/transformers/models`), 4.57 and later;
for Grok-1 those of hpcai-tech/grok-1 and keyfan/grok-1-hf.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from nest_core.documents.errors import require

__all__ = ["TYPES", "Found", "Key", "Reading"]

Found = Mapping[str, Any]
"""What was read so far, by field of `Model`."""


@dataclass(frozen=True, slots=True)
class Key:
    """Where a size stands.

    Parameters
    ----------
    names : tuple of str
        Spellings of the key; where several are there, they must agree.
    missing : callable or int or None
        The value where the key is missing, from what was read before; None: it is required.
    null : callable or int or None
        The value where it is null; None: as if it were missing.
    times : str
        Field that the value is multiplied with, or empty.
    least : int
    """

    names: tuple[str, ...]
    missing: Callable[[Found], int] | int | None = None
    null: Callable[[Found], int] | int | None = None
    times: str = ""
    least: int = 1


@dataclass(frozen=True, slots=True)
class Reading:
    """How configurations of one type are read.

    Parameters
    ----------
    family : str
        Its trace.
    keys : dict
        Keys of the integer fields of `Model`, in an order that defaults can follow.
    tied : bool or None
        What a missing ``tie_word_embeddings`` means; None: it is required.
    fixed : dict
        Dotted keys with the values that the trace stands for; a missing key has one of them.
    """

    family: str
    keys: Mapping[str, Key]
    tied: bool | None
    fixed: Mapping[str, tuple[Any, ...]]


def _all_heads(sizes: Found) -> int:
    return int(sizes["heads"])


def _width_by_heads(sizes: Found) -> int:
    require(
        sizes["hidden"] % sizes["heads"] == 0,
        "model.hidden",
        f"must be divisible by model.heads = {sizes['heads']}",
        sizes["hidden"],
        "correct one, or give model.head_dim",
    )
    return int(sizes["hidden"] // sizes["heads"])


def _four_widths(sizes: Found) -> int:
    return 4 * int(sizes["hidden"])


def _key(*names: str, **more: Any) -> Key:
    return Key(names, **more)


_BASE = {
    "blocks": _key("num_hidden_layers"),
    "hidden": _key("hidden_size"),
    "heads": _key("num_attention_heads"),
}
_VOCABULARY = {"vocabulary": _key("vocab_size")}
_DENSE = {"ffn": _key("intermediate_size")}
_KV_GIVEN = {"kv_heads": _key("num_key_value_heads", null=_all_heads)}
_KV_OR_HEADS = {"kv_heads": _key("num_key_value_heads", missing=_all_heads)}
_HEAD_DIM = {"head_dim": _key("head_dim", missing=_width_by_heads)}
_NO_KV = {"kv_heads": _key(missing=_all_heads), "head_dim": _key(missing=_width_by_heads)}
_MIXTRAL_EXPERTS = {
    "experts": _key("num_local_experts", "num_experts", least=2),
    "top_k": _key("num_experts_per_tok"),
    "expert_ffn": _key("intermediate_size"),
}
_SILU = {"hidden_act": ("silu", "swish")}
_NO_BIAS = {"attention_bias": (False, None), "mlp_bias": (False, None)}
_NO_WINDOW = {"use_sliding_window": (False, None)}
_GELU = ("gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "gelu_python")

_LLAMA = Reading(
    "llama",
    {**_BASE, **_KV_OR_HEADS, **_HEAD_DIM, **_DENSE, **_VOCABULARY},
    False,
    _SILU | _NO_BIAS,
)
_LATENT = {
    **_BASE,
    **_KV_OR_HEADS,
    "head_dim": _key("qk_nope_head_dim"),
    **_DENSE,
    **_VOCABULARY,
    "experts": _key("n_routed_experts", "num_local_experts", least=2),
    "top_k": _key("num_experts_per_tok"),
    "expert_ffn": _key("moe_intermediate_size"),
    "shared_ffn": _key("n_shared_experts", times="expert_ffn"),
    "dense_blocks": _key("first_k_dense_replace", least=0),
    "q_rank": _key("q_lora_rank"),
    "kv_rank": _key("kv_lora_rank"),
    "rope_dim": _key("qk_rope_head_dim"),
    "value_dim": _key("v_head_dim"),
    "expert_groups": _key("n_group", missing=1, null=1),
    "top_groups": _key("topk_group", missing=1, null=1),
}
_DEEPSEEK_V3 = Reading(
    "deepseek_v3", _LATENT, False, _SILU | _NO_BIAS | {"moe_layer_freq": (1, None)}
)
_GROK = Reading(
    "grok1",
    {**_BASE, **_KV_GIVEN, **_HEAD_DIM, **_VOCABULARY, **_MIXTRAL_EXPERTS},
    True,
    {"hidden_act": _GELU},
)

TYPES: dict[str, Reading] = {
    "gpt2": Reading(
        "gpt",
        {
            "blocks": _key("n_layer", "num_hidden_layers"),
            "hidden": _key("n_embd", "hidden_size"),
            "heads": _key("n_head", "num_attention_heads"),
            **_NO_KV,
            "ffn": _key("n_inner", missing=_four_widths),
            **_VOCABULARY,
            "positions": _key("n_positions", "max_position_embeddings"),
        },
        True,
        {"activation_function": _GELU, "add_cross_attention": (False, None)},
    ),
    "bert": Reading(
        "bert",
        {**_BASE, **_NO_KV, **_DENSE, **_VOCABULARY, "positions": _key("max_position_embeddings")},
        True,
        {
            "hidden_act": _GELU,
            "is_decoder": (False, None),
            "position_embedding_type": ("absolute", None),
        },
    ),
    "llama": _LLAMA,
    "mistral": Reading(
        "llama",
        {
            **_BASE,
            **_KV_GIVEN,
            **_HEAD_DIM,
            **_DENSE,
            **_VOCABULARY,
            "window": _key("sliding_window", missing=4096, null=0),
        },
        False,
        _SILU,
    ),
    "qwen2": Reading(
        "qwen2",
        {**_BASE, **_KV_GIVEN, **_HEAD_DIM, **_DENSE, **_VOCABULARY},
        False,
        _SILU | _NO_WINDOW,
    ),
    "qwen3": Reading(
        "qwen3",
        {**_BASE, **_KV_GIVEN, "head_dim": _key("head_dim", missing=128), **_DENSE, **_VOCABULARY},
        False,
        _SILU | _NO_BIAS | _NO_WINDOW,
    ),
    "nemotron": Reading(
        "nemotron",
        {**_BASE, **_KV_OR_HEADS, **_HEAD_DIM, **_DENSE, **_VOCABULARY},
        False,
        {"hidden_act": ("relu2",)} | _NO_BIAS,
    ),
    "mixtral": Reading(
        "mixtral",
        {
            **_BASE,
            **_KV_GIVEN,
            **_HEAD_DIM,
            **_VOCABULARY,
            **_MIXTRAL_EXPERTS,
            "window": _key("sliding_window", missing=0, null=0),
        },
        False,
        _SILU,
    ),
    "qwen3_moe": Reading(
        "qwen3_moe",
        {
            **_BASE,
            **_KV_GIVEN,
            **_HEAD_DIM,
            **_VOCABULARY,
            "experts": _key("num_experts", "num_local_experts", least=2),
            "top_k": _key("num_experts_per_tok"),
            "expert_ffn": _key("moe_intermediate_size"),
        },
        False,
        _SILU
        | _NO_BIAS
        | _NO_WINDOW
        | {"decoder_sparse_step": (1, None), "mlp_only_layers": ([], None)},
    ),
    "deepseek_v2": replace(_DEEPSEEK_V3, family="deepseek_v2"),
    "deepseek_v3": _DEEPSEEK_V3,
    "kimi_k2": _DEEPSEEK_V3,
    "gpt_oss": Reading(
        "gpt_oss",
        {**_BASE, **_KV_GIVEN, "head_dim": _key("head_dim"), **_VOCABULARY, **_MIXTRAL_EXPERTS},
        False,
        _SILU | {"attention_bias": (True, None)},
    ),
    "bloom": Reading(
        "bloom",
        {
            "blocks": _key("n_layer", "num_hidden_layers"),
            "hidden": _key("hidden_size", "n_embed"),
            "heads": _key("num_attention_heads", "n_head"),
            **_NO_KV,
            "ffn": _key("n_inner", missing=_four_widths),
            **_VOCABULARY,
        },
        True,
        {"apply_residual_connection_post_layernorm": (False, None)},
    ),
    "grok-1": _GROK,
    "grok": _GROK,
    "mpt": Reading(
        "mpt",
        {
            "blocks": _key("n_layers", "num_hidden_layers"),
            "hidden": _key("d_model", "hidden_size"),
            "heads": _key("n_heads", "num_attention_heads"),
            **_NO_KV,
            "ffn": _key("expansion_ratio", missing=_four_widths, times="hidden"),
            **_VOCABULARY,
        },
        True,
        {
            "no_bias": (True,),
            "attn_config.alibi": (True,),
            "attn_config.attn_type": ("multihead_attention",),
            "attn_config.qk_ln": (False, None),
        },
    ),
}
"""How to read each known ``model_type``."""
