"""Megatron-LM's own reading of our exports, by the argument parser in megatron-core's wheel."""

from benchmarks.outside.plans import export_rows
from benchmarks.outside.tool import Row, Tool
from nest_core.interop.exporters.releases import PACKAGES

VERSION = PACKAGES["megatron-core"]
TOOL = Tool(
    "megatron-core",
    VERSION,
    ("einops", "numpy", "packaging", "triton==3.7.0"),
    alone=("--ignore-requires-python", f"megatron-core=={VERSION}"),
    torch=True,
)
MODELS = (
    "llama3-8b", "mixtral-8x7b", "gpt3-13b", "qwen3-30b-a3b", "deepseek-v3", "llama3-70b",
    "gpt-oss-120b", "nemotron4-15b", "qwen2.5-7b", "qwen3-8b", "deepseek-v2",
)  # fmt: skip
PINS = ('search.seating="consecutive"', 'search.order=[["tp", "cp", "dp", "pp"]]')
JOBS = (
    'workload.precision="fp8"', 'workload.precision="fp16"', 'workload.precision="fp32"',
    'workload.optimizer="adam_8bit"', 'workload.optimizer="sgd"', "workload.gradient_bytes=2",
    "workload.gradient_bytes=4", 'workload.attention="unfused"', 'workload.overlap="none"',
    'workload.context="all_gather"', "workload.capacity=1.25", 'workload.dispatch="hybrid"',
    'workload.dispatch="once_per_node"', "workload.expert_overlap=true",
)  # fmt: skip


def rows() -> list[Row]:
    """Return how many exports are read as the plan that was meant."""
    return export_rows(TOOL, "megatron", "megatron_plans.py", MODELS, PINS, JOBS)
