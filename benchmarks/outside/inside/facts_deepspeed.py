"""How DeepSpeed's configuration takes values that people write, as JSON."""

import json
from collections.abc import Callable
from typing import Any

import deepspeed.comm
from deepspeed.runtime.config import DeepSpeedConfig

BATCH = {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4}


def read(config: dict[str, Any], ranks: int = 1) -> Any:
    """Return the configuration as so many ranks read it."""
    deepspeed.comm.get_rank = lambda *_: 0
    deepspeed.comm.get_world_size = lambda *_: ranks
    return DeepSpeedConfig(config)


def outcome(config: dict[str, Any], value: Callable[[Any], Any], ranks: int = 1) -> Any:
    """Return a value of what is read, or the kind of error."""
    try:
        return value(read(config, ranks))
    except Exception as error:
        return type(error).__name__


def taken(section: str) -> bool:
    """Return whether a key that nobody knows passes in a section."""
    unknown = {"no_such_key": 1}
    return outcome(BATCH | ({section: unknown} if section else unknown), bool) is True


def facts() -> dict[str, Any]:
    """Return them."""
    auto, parallel = "auto", {"tensor_parallel": {"autotp_size": 2}}
    return {
        "batch_product": outcome(BATCH | {"train_batch_size": 5}, bool),
        "auto_stage": outcome(
            BATCH | {"zero_optimization": {"stage": auto}}, lambda c: c.zero_config.stage
        ),
        "auto_bf16": outcome(
            BATCH | {"bf16": {"enabled": auto}}, lambda c: c.bfloat16_config.enabled
        ),
        "auto_clipping": outcome(
            BATCH | {"gradient_clipping": auto}, lambda c: c.gradient_clipping
        ),
        "auto_batch": outcome(BATCH | {"train_batch_size": auto}, bool),
        "unknown_taken": [
            section or "top"
            for section in (
                "", "zero_optimization", "bf16", "tensor_parallel", "activation_checkpointing",
                "pipeline",
            )
            if taken(section)
        ],
        "autotp_own_batch": outcome(BATCH | parallel | {"train_batch_size": 4}, bool, 2),
        "autotp_said_batch": outcome(BATCH | parallel, lambda c: c.train_batch_size, 2),
        "mics": outcome(BATCH | {"zero_optimization": {"stage": 3, "mics_shard_size": 2}}, bool),
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(facts()))
