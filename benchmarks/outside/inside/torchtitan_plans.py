"""Has torchtitan read ``nest_plan.py`` and lay its model out, as its trainer does on rank 0.

``torchtitan.train --module nest_plan --config plan`` up to where weights would be allocated: the
configuration, the dimensions, the model on PyTorch's meta device, its parallel form on a process
group that moves nothing, and the schedule of the pipeline. PyTorch's processor poses as an H100.
"""

import os
import sys
from pathlib import Path
from typing import Any

import torch
import torchtitan_cpu  # noqa: F401
from reading import expect, read_all
from torchtitan.config import ConfigManager
from torchtitan.trainer import Trainer


class Laid(Exception):
    """The model is laid out; weights would come next."""


def _laid(*_: object, **__: object) -> None:
    raise Laid


torch.nn.Module.to_empty = _laid


def read(folder: Path, case: dict[str, Any]) -> None:
    """Raise where torchtitan refuses the plan or reads another one."""
    sys.path.insert(0, str(folder))
    sys.modules.pop("nest_plan", None)
    os.environ |= {"RANK": "0", "LOCAL_RANK": "0", "NGPU": str(case["ranks"])}
    try:
        config = ConfigManager().parse_args(
            ["--module", "nest_plan", "--config", "plan", "--comm.mode", "fake_backend"]
        )
    finally:
        sys.path.remove(str(folder))
    plan, parallel, training = case["plan"], config.parallelism, config.training
    expect(
        tp=(parallel.tensor_parallel_degree, plan["tp"]),
        pp=(parallel.pipeline_parallel_degree, plan["pp"]),
        cp=(parallel.context_parallel_degree, plan["cp"]),
        ep=(parallel.expert_parallel_degree, plan["ep"]),
        batch=(training.global_batch_size, case["batch"]),
        blocks=(len(config.model_spec.model.layers), case["blocks"]),
    )
    trainer = Trainer.__new__(Trainer)
    try:
        Trainer.__init__(trainer, config)
    except Laid:
        pass
    finally:
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
    dims = trainer.parallel_dims
    passes = trainer.num_pipeline_parallel_microbatches * trainer.gradient_accumulation_steps
    expect(
        dp=(dims.dp_replicate * dims.dp_shard, plan["dp"]),
        micro_batches=(passes, case["micro_batches"]),
    )


if __name__ == "__main__":
    read_all(read, apart=True)  # meshes of equal shape outlive their process groups
