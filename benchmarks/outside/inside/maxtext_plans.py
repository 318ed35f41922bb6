"""Has MaxText read ``nest_plan.yml`` for as many devices as the plan has, none of them there."""

import math
import os
import re
from pathlib import Path
from typing import Any

os.environ["DECOUPLE_GCLOUD"] = "TRUE"

from maxtext.configs import pyconfig
from reading import expect, read_all


def read(folder: Path, case: dict[str, Any]) -> None:
    """Raise where MaxText refuses the plan or reads another one."""
    file = folder / "nest_plan.yml"
    between = re.findall(r"^dcn_\w+: (\d+)$", file.read_text(), re.M)
    hardware = re.findall(r"^hardware: (\w+?)(?:_multiprocess)?$", file.read_text(), re.M)
    config = pyconfig.initialize(
        [
            "train",
            str(file),
            "run_name=plan",
            f"base_output_directory={folder}",
            f"hardware={hardware[0]}",
            "skip_jax_distributed_system=true",
            "internal_compile=true",
            f"internal_compile_num_devices={case['ranks']}",
            f"compile_topology_num_slices={math.prod(map(int, between))}",
        ]
    )
    pairs = zip(config.mesh_axes, config.ici_parallelism, config.dcn_parallelism, strict=True)
    degrees = {axis: inside * outside for axis, inside, outside in pairs}
    plan, passes = case["plan"], config.gradient_accumulation_steps
    piped = plan["pp"] > 1
    expect(
        ranks=(math.prod(degrees.values()), case["ranks"]),
        tp=(degrees["tensor"] * degrees["tensor_sequence"], plan["tp"]),
        cp=(degrees["context"], plan["cp"]),
        pp=(degrees["stage"], plan["pp"]),
        dp=(degrees["data"] * degrees["fsdp"] * degrees["expert"], plan["dp"]),
        ep=(degrees["expert"], plan["ep"]),
        batch=(config.global_batch_size_to_train_on, case["batch"]),
        micro_batches=(
            config.num_pipeline_microbatches if piped else passes,
            case["micro_batches"],
        ),
        blocks=(config.num_decoder_layers, case["blocks"]),
        sequence=(config.max_target_length, case["sequence"]),
    )


if __name__ == "__main__":
    read_all(read)
