"""torchtitan's own reading of our exports: configuration, dimensions, pipeline, CUDA graphs."""

from benchmarks.outside.plans import export_rows
from benchmarks.outside.tool import Row, Tool
from nest_core.interop.exporters.releases import PACKAGES

VERSION = PACKAGES["torchtitan"]
# PyTorch before 2.14 lays no model out under torchtitan's default and steps through no pipeline.
TOOL = Tool("torchtitan", VERSION, (f"torchtitan=={VERSION}", "torch==2.14.1"))
MODELS = ("llama3-8b", "qwen3-30b-a3b", "qwen3-8b", "deepseek-v3", "llama3-70b", "gpt-oss-120b")
PINS = (
    "search.zero=[0, 2, 3]",
    'search.recompute=["none", "full"]',
    'search.order=[["tp", "cp", "dp", "pp"]]',
    'workload.context="all_gather"',
)


def rows() -> list[Row]:
    """Return how many exports are read as the plan that was meant."""
    return export_rows(TOOL, "torchtitan", "torchtitan_plans.py", MODELS, PINS, PINS[-1:])
