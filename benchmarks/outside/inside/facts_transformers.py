"""What the configurations of transformers hold, and what its tensor plan cuts, as JSON."""

import json
from fnmatch import fnmatch
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

SMALL = {"hidden_size": 512, "num_hidden_layers": 2, "vocab_size": 128}
HEADS = {"num_attention_heads": 8, "num_key_value_heads": 8}


def attention_share(kind: str, ranks: int = 2) -> float:
    """Return the share of attention weights that a rank holds under the model's own plan."""
    config = AutoConfig.for_model(kind, num_hidden_layers=4)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    plan = model.tp_plan or {}
    cut = total = 0
    for name, weight in model.named_parameters():
        module = name.removesuffix(".weight")
        if ".self_attn." not in name or weight.ndim < 2:
            continue
        digits = ".".join("*" if part.isdigit() else part for part in module.split("."))
        styles = [style for pattern, style in plan.items() if fnmatch(digits, pattern)]
        total += weight.numel()
        divided = any(style.startswith(("colwise", "rowwise")) for style in styles)
        cut += weight.numel() // ranks if divided else weight.numel()
    return round(cut / total, 2)


def facts() -> dict[str, Any]:
    """Return them."""
    llama = AutoConfig.for_model("llama").to_dict()
    kinds = ("llama", "mistral", "qwen3", "gpt_oss", "gemma2", "mixtral")
    mixtures = ("mixtral", "qwen3_moe", "deepseek_v2", "deepseek_v3")
    return {
        "rope_place": [name for name in ("rope_theta", "rope_parameters") if name in llama],
        "head_dim": {
            kind: AutoConfig.for_model(kind, **SMALL, **HEADS).head_dim or "none" for kind in kinds
        },
        "num_experts": [k for k in mixtures if hasattr(AutoConfig.for_model(k), "num_experts")],
        "num_local_experts": [
            k for k in mixtures if hasattr(AutoConfig.for_model(k), "num_local_experts")
        ],
        "attention_share": {
            kind: attention_share(kind)
            for kind in ("llama", "deepseek_v2", "deepseek_v3", "gpt_oss")
        },
    }


if __name__ == "__main__":
    print(json.dumps(facts()))
