"""Parses and validates exported launch scripts with Megatron-LM's own argument parser.

The wheel of megatron-core holds it. Scripts run to where they start torchrun, whose place a shell
function takes that prints what the program would be given. An H100 is posed; `typing.override`,
which Python has from 3.12 on, stands in for itself.
"""

import os
import shlex
import subprocess
import sys
import typing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from reading import expect, read_all

if not hasattr(typing, "override"):
    typing.override = lambda method: method
torch.cuda.get_device_properties = lambda *_: SimpleNamespace(major=9, minor=0)

from megatron.training import arguments  # noqa: E402

SHELL = "exec() { shift; printf '%q ' \"$@\"; builtin exit 0; }; source launch.sh"


def words(folder: Path) -> list[str]:
    """Return what the training program would be given."""
    environment = os.environ | {"NODE_RANK": "0", "MASTER_ADDR": "node0"}
    done = subprocess.run(
        ["bash", "-c", SHELL], cwd=folder, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise ValueError(done.stderr)
    given = shlex.split(done.stdout)
    program = next(place for place, word in enumerate(given) if word.startswith("pretrain_"))
    return given[program + 1 :]


def read(folder: Path, case: dict[str, Any]) -> None:
    """Raise where Megatron-LM refuses the plan or reads another one."""
    plan = case["plan"]
    os.environ |= {"RANK": "0", "WORLD_SIZE": str(case["ranks"])}
    os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS", None)
    for line in (folder / "launch.sh").read_text().splitlines():
        if line.startswith("export CUDA_DEVICE_MAX_CONNECTIONS="):
            os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = line.partition("=")[2]
    sys.argv = ["pretrain_gpt.py", *words(folder)]
    args = arguments.parse_args()
    arguments.validate_args(args)
    args.apply_rope_fusion = False  # which wants Transformer Engine
    config = arguments.core_transformer_config_from_args(args)
    expect(
        tp=(args.tensor_model_parallel_size, plan["tp"]),
        pp=(args.pipeline_model_parallel_size, plan["pp"]),
        cp=(args.context_parallel_size, plan["cp"]),
        ep=(args.expert_model_parallel_size, plan["ep"]),
        dp=(args.data_parallel_size, plan["dp"]),
        blocks=(config.num_layers, case["blocks"]),
    )


if __name__ == "__main__":
    read_all(read)
