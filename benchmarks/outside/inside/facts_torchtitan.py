"""What torchtitan's command line and dimensions take, as JSON."""

import contextlib
import importlib.metadata
import io
import json
from typing import Any

import torchtitan_cpu  # noqa: F401
from torchtitan.config import ConfigManager
from torchtitan.distributed.parallel_dims import ParallelDims

SMALL = ["--module", "llama3", "--config", "llama3_debugmodel"]


def refusal(words: list[str]) -> str:
    """Return what the command line says against words, or nothing."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(printed):
            ConfigManager().parse_args(words)
    except SystemExit:
        return " ".join(printed.getvalue().split())
    except ValueError as error:
        return str(error)
    return ""


def dimensions(**degrees: int) -> str:
    """Return the kind of error that degrees on sixteen ranks raise, or nothing."""
    plain = {"dp_replicate": 1, "dp_shard": 16, "cp": 1, "tp": 1, "pp": 1, "ep": 1}
    try:
        ParallelDims(**{**plain, **degrees}, world_size=16)
    except AssertionError as error:
        return type(error).__name__
    return ""


def facts() -> dict[str, Any]:
    """Return them."""
    graphs = "CUDA graphs do not support pipeline parallelism"
    pipeline = [*SMALL, "--parallelism.pipeline_parallel_degree", "2"]
    return {
        "config_file": bool(refusal([*SMALL, "--job.config_file", "plan.toml"])),
        "small_model": bool(refusal(SMALL)),
        "pipeline_refused": graphs in refusal(pipeline),
        "pipeline_without_graphs_refused": bool(
            refusal([*pipeline, "--training.disable_cuda_graphs"])
        ),
        "triton_required": any(
            entry.startswith("triton") for entry in importlib.metadata.requires("torchtitan") or ()
        ),
        "wrong_product": dimensions(tp=2),
        "odd_experts": [dimensions(ep=ep) for ep in (3, 32)],
    }


if __name__ == "__main__":
    print(json.dumps(facts()))
