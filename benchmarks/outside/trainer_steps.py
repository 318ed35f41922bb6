"""One optimizer step of transformers' Trainer with our DeepSpeed configuration."""

from benchmarks.outside import deepspeed
from benchmarks.outside.deepspeed_steps import NARROW
from benchmarks.outside.steps import LLAMA, TinyJob, stepped
from benchmarks.outside.tool import Row, Tool

TOOL = Tool(
    "transformers",
    "5.24.0 with accelerate 1.15.0",
    (f"deepspeed=={deepspeed.VERSION}", "transformers==5.24.0", "accelerate==1.15.0", "ninja"),
    torch=True,
)
PLANS = (
    "dp=2,zero=0", "dp=4,zero=1", "dp=4,zero=2", "dp=2,zero=3", "dp=2,zero=2,micro_batch=2",
    "dp=2,tp=2,zero=1",
)  # fmt: skip


def rows() -> list[Row]:
    """Return a row for every plan: how many quantities are as planned, and all in words."""
    jobs = [TinyJob(plan, LLAMA, 8, 256, NARROW if "zero=0" in plan else ()) for plan in PLANS]
    return stepped(TOOL, "deepspeed", jobs, program="trainer")[0]
