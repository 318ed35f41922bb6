"""DeepSpeed's own reading of our exports: its configuration, and the cuts of its pipeline."""

from benchmarks.outside.plans import export_rows
from benchmarks.outside.tool import Row, Tool
from nest_core.interop.exporters.releases import PACKAGES

VERSION = PACKAGES["deepspeed"]
TOOL = Tool(
    "deepspeed", VERSION, (f"deepspeed=={VERSION}", "transformers==5.24.0", "ninja"), torch=True
)
PINS = (
    "search.sp=false",
    "search.cp=1",
    "search.pp=1",
    'search.recompute=["none", "full"]',
    'search.seating="consecutive"',
)
MODELS = ("llama3-8b", "mixtral-8x7b", "gpt3-13b", "qwen3-30b-a3b", "llama2-7b", "deepseek-v3")


def rows() -> list[Row]:
    """Return how many exports are read as the plan that was meant."""
    return export_rows(TOOL, "deepspeed", "deepspeed_plans.py", MODELS, PINS)
