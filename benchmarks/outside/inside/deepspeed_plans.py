"""Reads ``ds_config.json`` as ``deepspeed.initialize`` does, on as many ranks as the plan has.

Under a pipeline batches are resolved with the data-parallel ranks of its grid, otherwise with all.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import deepspeed.comm
from deepspeed.runtime.config import DeepSpeedConfig
from reading import expect, read_all


def read(folder: Path, case: dict[str, Any]) -> None:
    """Raise where DeepSpeed refuses the plan or reads another one."""
    plan, ranks = case["plan"], case["ranks"]
    deepspeed.comm.get_rank = lambda *_: 0
    deepspeed.comm.get_world_size = lambda *_: ranks
    grid = SimpleNamespace(get_data_parallel_world_size=lambda: plan["dp"])
    text = json.loads((folder / "ds_config.json").read_text())
    config = DeepSpeedConfig(text, grid if plan["pp"] > 1 else None)
    tp = config.tensor_parallel_config.autotp_size or 1
    replicas = plan["dp"] if plan["pp"] > 1 else ranks // tp
    expect(
        tp=(tp, plan["tp"]),
        zero=(config.zero_config.stage, plan["zero"]),
        micro_batch=(config.train_micro_batch_size_per_gpu, plan["micro_batch"]),
        micro_batches=(config.gradient_accumulation_steps, case["micro_batches"]),
        batch=(
            config.train_micro_batch_size_per_gpu * config.gradient_accumulation_steps * replicas,
            case["batch"],
        ),
    )


if __name__ == "__main__":
    read_all(read)
