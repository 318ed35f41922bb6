"""DeepSpeed's own reading of our exports: its configuration, and the cuts of its pipeline."""

from benchmarks.outside.plans import export_rows
from benchmarks.outside.tool import Row, Tool

TOOL = Tool("deepspeed", "0.19.8", ("deepspeed==0.19.8",), torch=True)
PINS = ("search.sp=false", "search.cp=1", 'search.recompute=["none", "full"]')
MODELS = ("llama3-8b", "mixtral-8x7b", "gpt3-13b", "qwen3-30b-a3b", "llama2-7b", "deepseek-v3")


def rows() -> list[Row]:
    """Return how many exports are read as the plan that was meant."""
    return export_rows(TOOL, "deepspeed", "deepspeed_plans.py", MODELS, PINS)
