"""What megatron-core's configuration takes, and how it numbers ranks, as JSON."""

import json
import typing
from typing import Any

if not hasattr(typing, "override"):  # which Python has from 3.12 on
    typing.override = lambda method: method

from megatron.core.parallel_state import RankGenerator
from megatron.core.transformer.pipeline_parallel_layer_layout import (
    PipelineParallelLayerLayout,
)
from megatron.core.transformer.transformer_block import get_num_layers_to_build
from megatron.core.transformer.transformer_config import TransformerConfig

MODULES = (
    "core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts",
    "gdn_norm_out", "attention",
)  # fmt: skip


def config(**fields: Any) -> Any:
    """Return a small configuration."""
    small = {"num_layers": 8, "hidden_size": 64, "num_attention_heads": 8}
    return TransformerConfig(**{**small, **fields})


def passes(**fields: Any) -> bool:
    """Return whether a configuration is taken."""
    try:
        config(**fields)
    except (AssertionError, ValueError):
        return False
    return True


def recomputes(module: str) -> bool:
    """Return whether a module can be recomputed, whatever else it then wants."""
    try:
        config(recompute_granularity="selective", recompute_modules=[module])
    except AssertionError as error:
        return "Invalid choices" not in str(error)
    except ValueError:
        return True
    return True


def builds(**fields: Any) -> bool:
    """Return whether the first stage knows its layers."""
    try:
        get_num_layers_to_build(config(**fields), pp_rank=0)
    except AssertionError:
        return False
    return True


def groups(token: str, **degrees: int) -> list[list[int]]:
    """Return the first two groups of ranks of an axis."""
    plain = {"tp": 1, "ep": 1, "dp": 1, "pp": 1, "cp": 1}
    ranks = RankGenerator(**{**plain, **degrees}, order="tp-cp-ep-dp-pp")
    return [list(group) for group in ranks.get_ranks(token)[:2]]


def virtual_stages(text: str, pp: int) -> int | str:
    """Return the virtual stages a rank that a layout gives, or that it is refused."""
    try:
        layout = PipelineParallelLayerLayout(text, pp)
    except AssertionError:
        return "refused"
    return int(layout.virtual_pipeline_model_parallel_size)


def facts() -> dict[str, Any]:
    """Return them."""
    uneven = {"num_layers": 7, "pipeline_model_parallel_size": 2, "pipeline_dtype": "bf16"}
    sixteen = {"tp": 2, "cp": 2, "dp": 2, "pp": 2}
    stages = "E|t|t|tL"
    return {
        "odd_layers": {"config": passes(**uneven), "built": builds(**uneven)},
        "recompute_modules": [name for name in MODULES if recomputes(name)],
        "odd_experts": passes(
            num_moe_experts=6, expert_model_parallel_size=4, add_bias_linear=False
        ),
        "cp_3": passes(context_parallel_size=3),
        "ranks": {axis: groups(axis, **sixteen)[0] for axis in ("tp", "cp", "dp", "pp")},
        "expert_ranks": groups("ep", ep=4, dp=2),
        "layout": {f"pp {pp}": virtual_stages(stages, pp) for pp in (4, 2, 3)},
    }


if __name__ == "__main__":
    print(json.dumps(facts()))
