"""One optimizer step of torchtitan's debug models with our configuration function."""

from typing import Any

from benchmarks.outside import torchtitan
from benchmarks.outside.steps import LLAMA, TinyJob, stepped
from benchmarks.outside.tool import Row

TOOL = torchtitan.TOOL
DEBUG = LLAMA | {
    "hidden_size": 256,
    "intermediate_size": 768,
    "num_hidden_layers": 6,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "vocab_size": 2048,
}
EXPERTS: dict[str, Any] = DEBUG | {
    "model_type": "qwen3_moe",
    "num_hidden_layers": 8,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "num_experts": 64,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 768,
    "norm_topk_prob": True,
}
"""Of 6 and 300 million parameters."""
PLANS = (
    "dp=2,zero=0", "dp=2,zero=2", "dp=2,zero=3", "dp=2,zero=3,micro_batch=4",
    "dp=2,zero=3,recompute=full", "dp=4,zero=2,zero_group=2", "dp=4,zero=3,zero_group=2",
    "dp=1,tp=2,sp=false", "dp=2,tp=2,sp=true,zero=3", "dp=2,cp=2,zero=3",
    "dp=2,cp=2,zero=3,recompute=full", "dp=2,pp=2,zero=0", "dp=2,pp=2,zero=2", "dp=2,pp=2,zero=3",
    "dp=2,pp=2,zero=2,schedule=interleaved,interleave=2",
    "dp=2,pp=2,zero=3,schedule=interleaved,interleave=2",
    "dp=2,pp=2,zero=2,schedule=interleaved_zb,interleave=2",
    "dp=2,pp=2,zero=2,schedule=zbv,interleave=2", "dp=2,pp=2,zero=3,schedule=zbv,interleave=2",
    "dp=2,pp=2,zero=0,schedule=dualpipev,interleave=2", "dp=4,pp=2,zero=3,zero_group=2",
    "dp=2,tp=2,pp=2,sp=true,zero=3",
)  # fmt: skip
GATHERED = ('workload.context="all_gather"',)


def rows() -> list[Row]:
    """Return a row for every plan: how many quantities are as planned, and all in words."""
    plans = [*((plan, DEBUG) for plan in PLANS), ("dp=2,ep=2,zero=3", EXPERTS)]
    jobs = [TinyJob(plan, model, 8, 256, GATHERED) for plan, model in plans]
    return stepped(TOOL, "torchtitan", jobs)[0]
