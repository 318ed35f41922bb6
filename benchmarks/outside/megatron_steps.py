"""One optimizer step of a tiny model of Megatron Core with our launch script, on processors."""

from benchmarks.outside import megatron
from benchmarks.outside.steps import LLAMA, MIXTRAL, TinyJob, stepped
from benchmarks.outside.tool import Row

TOOL = megatron.TOOL
PLANS = (
    (LLAMA, "dp=2,zero=0"), (LLAMA, "dp=2,zero=1"), (LLAMA, "dp=4,zero=1,zero_group=2"),
    (LLAMA, "dp=1,tp=2,sp=false,zero=0"), (LLAMA, "dp=1,tp=2,sp=true,zero=0"),
    (LLAMA, "dp=2,tp=2,sp=true,zero=1"), (LLAMA, "dp=1,tp=2,sp=true,zero=0,recompute=full"),
    (LLAMA, "dp=2,pp=2,zero=1"), (LLAMA, "dp=1,pp=2,zero=0,schedule=interleaved,interleave=2"),
    (MIXTRAL, "dp=4,ep=2,zero=0"), (MIXTRAL, "dp=4,ep=2,zero=1"),
    (MIXTRAL, "dp=2,tp=2,sp=true,ep=4,etp=1,zero=1"),
)  # fmt: skip


def rows() -> list[Row]:
    """Return a row for every plan: how many quantities are as planned, and all in words."""
    jobs = [TinyJob(plan, model, 16, 64) for model, plan in PLANS]
    return stepped(TOOL, "megatron", jobs)[0]
