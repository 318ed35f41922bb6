"""One optimizer step of a tiny model as MaxText compiles our files: planned beside compiled."""

from typing import Any

from benchmarks.outside import maxtext
from benchmarks.outside.steps import LLAMA, MIXTRAL, TinyJob, stepped
from benchmarks.outside.tool import Row

TOOL = maxtext.TOOL
PLANS = (
    (LLAMA, "dp=4,zero=0"), (LLAMA, "dp=4,zero=1"), (LLAMA, "dp=4,zero=3"),
    (LLAMA, "dp=4,zero=3,recompute=selective"), (LLAMA, "dp=4,zero=3,recompute=full"),
    (LLAMA, "dp=1,tp=2,sp=false,zero=0"), (LLAMA, "dp=1,tp=2,sp=true,zero=0"),
    (LLAMA, "dp=2,tp=2,sp=true,zero=3"), (LLAMA, "dp=2,cp=2,zero=3"),
    (LLAMA, "dp=4,zero=3,zero_group=2"),
    (LLAMA, "dp=2,pp=2,zero=3,schedule=gpipe"), (LLAMA, "dp=2,pp=2,zero=0,schedule=gpipe"),
    (MIXTRAL, "dp=4,zero=3"), (MIXTRAL, "dp=4,ep=2,zero=3"), (MIXTRAL, "dp=4,ep=4,zero=3"),
)  # fmt: skip
CHIP = ('accelerator="tpu-v4"', 'workload.context="all_gather"')
QUANTITIES = (
    "sequences", "micro-batches", "bytes of the optimizer", "groups", "bytes of collectives"
)  # fmt: skip
"""Weights of 16 bits are copies of the optimizer's that a step makes."""


def rows() -> list[Row]:
    """Return a row for every plan: how many quantities are as planned, and all in words."""
    # More tokens than a layer is wide, as real models have.
    jobs = [TinyJob(plan, model, 16, 256, CHIP) for model, plan in PLANS]
    result, answers = stepped(TOOL, "maxtext", jobs, QUANTITIES)
    return [*result, recomputed(answers)]


def recomputed(answers: dict[str, Any]) -> Row:
    """Return the row of what recomputation does to the products of the same plan."""
    plain = f"{LLAMA['model_type']} dp=4,zero=3"
    flops = {
        how: answers[plain + (f",recompute={how}" if how != "none" else "")]["ranks"][0]["flops"]
        for how in ("none", "selective", "full")
    }
    words = ", ".join(f"{how} {flops[how] / flops['none']:.3f}" for how in flops)
    return TOOL.row("FLOPs of a step by recomputation, over those of none", None, None, words)
