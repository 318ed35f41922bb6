"""What MaxText's trainer compiles to on processors that pose as eight devices, as JSON."""

import contextlib
import io
import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any

os.environ |= {
    "DECOUPLE_GCLOUD": "TRUE",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
}

import jax
import maxtext
from jax.sharding import AxisType, Mesh
from maxtext.configs import pyconfig
from maxtext.trainers.pre_train import train_compile
from maxtext.utils import maxtext_utils

BASE = Path(next(iter(maxtext.__path__))) / "configs" / "base.yml"
SMALL = {
    "run_name": "facts", "hardware": "cpu", "enable_checkpointing": False,
    "dataset_type": "synthetic", "base_emb_dim": 64, "base_mlp_dim": 128, "head_dim": 8,
    "base_num_query_heads": 8, "base_num_kv_heads": 8, "base_num_decoder_layers": 4,
    "max_target_length": 64, "vocab_size": 128, "per_device_batch_size": 1,
    "attention": "dot_product", "compile_topology": "v5e-8", "compile_topology_num_slices": 1,
    "skip_jax_distributed_system": True,
}  # fmt: skip


def _mesh(config: Any) -> Mesh:
    devices = maxtext_utils.create_device_mesh(config, jax.devices())
    return Mesh(devices, config.mesh_axes, axis_types=(AxisType.Auto,) * len(config.mesh_axes))


train_compile.get_topology_mesh = _mesh
COMPILE = train_compile.jit_and_compile


def words(folder: str, fields: dict[str, Any]) -> list[str]:
    """Return the command line of a small model."""
    given = SMALL | {"base_output_directory": folder} | fields
    return ["train", str(BASE), *(f"{key}={value}" for key, value in given.items())]


def compiled(**fields: Any) -> dict[str, Any]:
    """Return FLOPs, temporary bytes and a device's share of a weight of what is compiled."""
    kept: list[Any] = []

    def keep(*given: Any, **named: Any) -> Any:
        kept.append((COMPILE(*given, **named), given[1]))
        return kept[-1][0]

    train_compile.jit_and_compile = keep
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        train_compile.is_oom(words(folder, fields))
    program, (state, _) = kept[0]
    weight = max(jax.tree.leaves(state), key=lambda leaf: leaf.size)
    return {
        "flops": program.cost_analysis()["flops"],
        "temporary": program.memory_analysis().temp_size_in_bytes,
        "cut": weight.size // math.prod(weight.sharding.shard_shape(weight.shape)),
    }


def read(**fields: Any) -> Any:
    """Return the configuration that fields give, or None where they are refused."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        try:
            return pyconfig.initialize(words(folder, fields))
        except ValueError:
            return None


def compiles(**fields: Any) -> bool:
    """Return whether fields compile; MaxText refuses with `ValueError`."""
    try:
        compiled(**fields)
    except ValueError:
        return False
    return True


def facts() -> dict[str, Any]:
    """Return them."""
    policies = {policy: compiled(remat_policy=policy) for policy in ("none", "full", "minimal")}
    cuts = {
        "data 2, context 4": {"ici_data_parallelism": 2, "ici_context_parallelism": 4},
        "expert 8": {"ici_fsdp_parallelism": 1, "ici_expert_parallelism": 8},
        "data 8": {"ici_data_parallelism": 8, "ici_fsdp_parallelism": 1},
    }
    tensor = read(ici_tensor_parallelism=8, ici_fsdp_parallelism=1, gradient_accumulation_steps=2)
    return {
        "none_is_full": policies["none"] == policies["full"],
        "minimal_is_full": policies["minimal"] == policies["full"],
        "default_policy": read().remat_policy,
        "cuts": {name: compiled(**fields)["cut"] for name, fields in cuts.items()},
        "batch": tensor.global_batch_size_to_train_on,
        "pipeline_without_degree": read(ici_pipeline_parallelism=-1, ici_fsdp_parallelism=1)
        .using_pipeline_parallelism,
        "refused": [
            name
            for name, fields in {
                "unknown key": {"no_such_key": 1},
                "dcn 2 on one slice": {"dcn_data_parallelism": 2},
                "ZeRO 1 with fsdp 8": {"shard_optimizer_over_data": True},
                "sequence axis": {"ici_sequence_parallelism": 2},
                "batch of 0": {"per_device_batch_size": 0},
            }.items()
            if read(**fields) is None
        ],
        "key_value_heads": compiles(
            ici_tensor_parallelism=8, ici_fsdp_parallelism=1, base_num_kv_heads=4
        ),
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(facts()))
