"""Megatron-LM's own reading of our exports, by the argument parser in megatron-core's wheel."""

from benchmarks.outside.plans import export_rows
from benchmarks.outside.tool import Row, Tool

TOOL = Tool(
    "megatron-core",
    "0.19.2",
    ("einops", "numpy", "packaging", "triton==3.7.0"),
    alone=("--ignore-requires-python", "megatron-core==0.19.2"),
    torch=True,
)
MODELS = ("llama3-8b", "mixtral-8x7b", "gpt3-13b", "qwen3-30b-a3b", "deepseek-v3", "llama3-70b")


def rows() -> list[Row]:
    """Return how many exports are read as the plan that was meant."""
    return export_rows(TOOL, "megatron", "megatron_plans.py", MODELS)
