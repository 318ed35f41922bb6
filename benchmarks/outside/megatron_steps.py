"""One optimizer step of a tiny model of Megatron Core with our launch script, on processors."""

from benchmarks.outside import megatron
from benchmarks.outside.maxtext_steps import QUANTITIES, compared
from benchmarks.outside.tool import Row

TOOL = megatron.TOOL
SEQUENCE = 64
PLANS = (
    ("llama", "dp=2,zero=0"), ("llama", "dp=2,zero=1"), ("llama", "dp=4,zero=1,zero_group=2"),
    ("llama", "dp=1,tp=2,sp=false,zero=0"), ("llama", "dp=1,tp=2,sp=true,zero=0"),
    ("llama", "dp=2,tp=2,sp=true,zero=1"), ("llama", "dp=1,tp=2,sp=true,zero=0,recompute=full"),
    ("llama", "dp=2,pp=2,zero=1"), ("llama", "dp=1,pp=2,zero=0,schedule=interleaved,interleave=2"),
    ("mixtral", "dp=4,ep=2,zero=0"), ("mixtral", "dp=4,ep=2,zero=1"),
    ("mixtral", "dp=2,tp=2,sp=true,ep=4,etp=1,zero=1"),
)  # fmt: skip


def rows() -> list[Row]:
    """Return a row for every plan: how many quantities are as planned, and all in words."""
    return compared(TOOL, "megatron", PLANS, ("bytes of weights", *QUANTITIES), SEQUENCE)[0]
