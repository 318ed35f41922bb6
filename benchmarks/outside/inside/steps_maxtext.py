"""The optimizer step that MaxText's trainer compiles of the exported ``nest_plan.yml``.

Processors pose as the devices; 16 bits stay 16 wherever they can send them.
"""

import contextlib
import io
import json
import math
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ |= {
    "DECOUPLE_GCLOUD": "TRUE",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_force_host_platform_device_count=16 "
    "--xla_disable_hlo_passes=float-normalization-bf16 --xla_dump_hlo_as_text "
    f"--xla_dump_to={sys.argv[1]}-printed --xla_dump_hlo_module_re=train_step",
}

import jax
import numpy as np
from hlo_program import Program
from jax.sharding import AxisType, Mesh
from maxtext.trainers.pre_train import train_compile
from maxtext.utils import maxtext_utils

GIVEN = {
    "run_name": "step", "hardware": "cpu", "enable_checkpointing": False,
    "attention": "dot_product", "skip_jax_distributed_system": True, "internal_compile": True,
    "compile_topology": "v5e-8", "compile_topology_num_slices": 1,
}  # fmt: skip
SHARDS = ("fsdp", "context", "expert")
"""Mesh axes that cut weights."""
PRINTED = Path(f"{sys.argv[1]}-printed")
COMPILE = train_compile.jit_and_compile


def _mesh(config: Any) -> Mesh:
    devices = jax.devices()[: config.internal_compile_num_devices]
    mesh = maxtext_utils.create_device_mesh(config, devices)
    return Mesh(mesh, config.mesh_axes, axis_types=(AxisType.Auto,) * len(config.mesh_axes))


def compiled(file: Path, devices: int) -> tuple[Any, Any, Any, str]:
    """Return state, batch and configuration of a file's step, and what XLA prints of it."""
    steps: list[Any] = []

    def keep(*given: Any, **named: Any) -> None:
        shutil.rmtree(PRINTED, ignore_errors=True)
        # Processors cannot run a ragged all-to-all, which is refused when all passes are done.
        with contextlib.suppress(jax.errors.JaxRuntimeError):
            COMPILE(*given, **named)
        text = next(PRINTED.glob("*after_optimizations.txt")).read_text()
        steps.append((*given[1], given[-2], text))

    train_compile.jit_and_compile = keep
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        fields = GIVEN | {
            "base_output_directory": folder, "internal_compile_num_devices": devices
        }  # fmt: skip
        train_compile.is_oom(["train", str(file), *(f"{k}={v}" for k, v in fields.items())])
    return steps[0]


def step(file: Path, devices: int) -> list[dict[str, Any]]:
    """Return what every device does."""
    state, batch, config, text = compiled(file, devices)
    program = Program(text)
    mesh = jax.tree.leaves(batch)[0].sharding.mesh
    collectives = program.collectives()
    seen = {
        "sequences": config.global_batch_size_to_train_on,
        "micro_batches": micro_batches(program, config),
        "parameter_bytes": bytes_of(state["model"]),
        "optimizer_bytes": bytes_of(state),
        "flops": program.flops(),
    }
    return [
        seen
        | {
            "groups": {
                axis: group_of(mesh, names, device) for axis, names in axes_of(mesh).items()
            },
            "collectives": [
                [kind, next(group for group in groups if device in group), size]
                for kind, groups, size in collectives
            ],
        }
        for device in range(devices)
    ]


def axes_of(mesh: Mesh) -> dict[str, tuple[str, ...]]:
    """Return the mesh's axes by axis of a plan; without shards all replicas share all weights."""
    shards = math.prod(mesh.shape[axis] for axis in SHARDS)
    return {
        "tp": ("tensor", "tensor_sequence"),
        "cp": ("context",),
        "pp": ("stage",),
        "ep": ("expert",),
        "data": SHARDS if shards > 1 else ("data",),
        "replicas": ("data",) if shards > 1 else (),
        "expert_data": ("fsdp", "context") if mesh.shape["expert"] > 1 else (),
    }


def micro_batches(program: Program, config: Any) -> int:
    """Return the trips of the loop that adds up gradients, or what a pipeline is given."""
    if config.using_pipeline_parallelism:
        return int(config.num_pipeline_microbatches)
    return math.prod(
        operation.trips
        for _, operation, _ in program.operations()
        if operation.kind == "while" and 'op_name="jit(train_step)/while"' in operation.rest
    )


def bytes_of(state: Any) -> int:
    """Return what a device holds of weights and moments, which are all numbers of 32 bits."""
    return sum(
        4 * math.prod(leaf.sharding.shard_shape(leaf.shape))
        for leaf in jax.tree.leaves(state)
        if leaf.dtype == np.float32
    )


def group_of(mesh: Any, names: tuple[str, ...], device: int) -> list[int]:
    """Return the devices that lie with one along axes of a mesh."""
    numbers = np.vectorize(lambda entry: entry.id)(mesh.devices)
    at = np.argwhere(numbers == device)[0]
    place = tuple(
        slice(None) if axis in names else at[dimension]
        for dimension, axis in enumerate(mesh.axis_names)
    )
    return sorted(numbers[place].ravel().tolist())


if __name__ == "__main__":
    train_compile.get_topology_mesh = _mesh
    folder = Path(sys.argv[1])
    answers = {}
    for case in json.loads((folder / "cases.json").read_text()):
        try:
            ranks = step(folder / case["name"] / "nest_plan.yml", case["ranks"])
            answers[case["name"]] = {"ranks": ranks}
        except Exception as error:  # MaxText refuses with many kinds
            answers[case["name"]] = {"error": " ".join(repr(error).split())[:300]}
    (folder / "answers.json").write_text(json.dumps(answers))
