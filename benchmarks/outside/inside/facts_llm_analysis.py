"""What llm-analysis makes of a slower network, as JSON."""

import dataclasses
import json

from llm_analysis.analysis import train
from llm_analysis.config import get_gpu_config_by_name, gpu_configs

PLAN = {
    "model_name": "facebook_opt-13b",
    "dp_size": 8,
    "tp_size": 8,
    "pp_size": 4,
    "batch_size_per_gpu": 1,
    "gradient_accumulation_steps": 8,
    "seq_len": 2048,
    "total_num_tokens": 1e12,
    "flops_efficiency": 0.5,
    "log_level": "ERROR",
}


def changed() -> list[str]:
    """Return the fields that a network a thousand times slower changes, but those that state it."""
    gpu = get_gpu_config_by_name("a100-sxm-80gb")
    fields = [field.name for field in dataclasses.fields(gpu) if "node_bandwidth" in field.name]
    slower = {name: getattr(gpu, name) / 1000 for name in fields}
    gpu_configs["slow"] = dataclasses.replace(gpu, name="slow", **slower)
    fast, slow = (train(gpu_name=name, **PLAN) for name in ("a100-sxm-80gb", "slow"))
    return [name for name in fast if fast[name] != slow[name] and "gpu" not in name]


if __name__ == "__main__":
    print(json.dumps({"slower_network": changed()}))
