"""One optimizer step of a tiny Llama on DeepSpeed with our configuration and module."""

from benchmarks.outside import deepspeed
from benchmarks.outside.steps import LLAMA, TinyJob, stepped
from benchmarks.outside.tool import Row

TOOL = deepspeed.TOOL
PLANS = (
    "dp=2,zero=0", "dp=4,zero=1", "dp=4,zero=2", "dp=2,zero=3", "dp=4,zero=3",
    "dp=2,zero=1,micro_batch=2", "dp=1,tp=2,zero=0", "dp=2,tp=2,zero=0", "dp=2,tp=2,zero=1",
    "dp=2,tp=2,zero=2", "dp=2,tp=2,zero=3", "dp=2,pp=2,zero=0", "dp=2,pp=2,zero=1",
    "dp=2,pp=2,zero=1,recompute=full",
)  # fmt: skip
NARROW = ("workload.gradient_bytes=2",)
"""What DeepSpeed adds up in without ZeRO."""


def rows() -> list[Row]:
    """Return a row for every plan: how many quantities are as planned, and all in words."""
    jobs = [TinyJob(plan, LLAMA, 8, 256, NARROW if "zero=0" in plan else ()) for plan in PLANS]
    return stepped(TOOL, "deepspeed", jobs)[0]
