"""Megatron-Bridge's own reading of our exports: its configuration, checked and by stages.

It asks for Python 3.12 and packages that only a GPU's compiler makes; its configuration also runs
on 3.11, with two of them stood in for (``inside/bridge_plans.py``).
"""

from benchmarks.outside.megatron import JOBS, MODELS, PINS
from benchmarks.outside.plans import export_rows
from benchmarks.outside.tool import Row, Tool
from nest_core.interop.exporters.releases import PACKAGES

VERSION, CORE = PACKAGES["megatron-bridge"], PACKAGES["megatron-core"]
TOOL = Tool(
    "megatron-bridge",
    f"{VERSION} on Python 3.11, Transformer Engine stood in for",
    (
        "accelerate", "datasets", "einops", "hydra-core", "omegaconf", "peft", "pillow",
        "tensorboard", "transformers==5.12.1", "triton==3.7.0",
    ),
    alone=("--ignore-requires-python", f"megatron-bridge=={VERSION}", f"megatron-core=={CORE}"),
    torch=True,
)  # fmt: skip


def rows() -> list[Row]:
    """Return how many exports are read as the plan that was meant."""
    return export_rows(TOOL, "nemo", "bridge_plans.py", MODELS, PINS, JOBS)
