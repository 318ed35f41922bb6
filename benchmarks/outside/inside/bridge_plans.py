"""Has Megatron-Bridge make the configuration of ``train.py`` and check it, as its trainer does.

``runtime_config_update`` is the first thing that its ``pretrain`` calls: it sets precisions, and
ends with the configuration's own ``validate``. Behind it stands what Megatron Core would build.
"""

import inspect
import os
import re
import runpy
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import absent  # noqa: F401
from core_stages import pairs_of, stages
from megatron.bridge.training.config import runtime_config_update
from megatron.bridge.training.setup import _validate_and_set_vocab_size
from megatron.core.tokenizers.text.libraries.null_tokenizer import NullTokenizer
from megatron.core.transformer.transformer_block import get_num_layers_to_build
from reading import expect, read_all


def layers_of(model: Any) -> Counter[tuple[str, str]]:
    """Return how many blocks have which attention and which MLP, as its provider builds them."""
    specify = model.transformer_layer_spec
    by_stage = "vp_stage" in inspect.signature(specify).parameters
    layers: Counter[tuple[str, str]] = Counter()
    for rank, chunk in stages(model):
        built = specify(model, vp_stage=chunk) if by_stage else specify(model)
        alike = [built] * get_num_layers_to_build(model, chunk, rank)
        for layer in getattr(built, "layer_specs", alike):
            parts = layer.submodules.self_attention, layer.submodules.mlp
            layers[tuple(_kind(part) for part in parts)] += 1
    return layers


def meant_layers(case: dict[str, Any]) -> Counter[tuple[str, str]]:
    """Return the same of the model that was meant."""
    attention = "MLASelfAttention" if case["latent"] else "SelfAttention"
    counts = {"MLP": case["dense"], "MoELayer": case["blocks"] - case["dense"]}
    return Counter({(attention, mlp): count for mlp, count in counts.items() if count})


def _kind(part: Any) -> str:
    """Return the name of a class, of a specification's, or of what a constructor makes."""
    part = getattr(part, "module", part)
    while isinstance(part, partial):
        part = part.func
    return str(part.__qualname__).partition(".")[0]


def read(folder: Path, case: dict[str, Any]) -> None:
    """Raise where Megatron-Bridge refuses the plan or reads another one."""
    os.environ |= {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": str(case["ranks"])}
    os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS", None)
    launch = (folder / "launch.sh").read_text()
    os.environ |= dict(re.findall(r"^export (CUDA_DEVICE_MAX_CONNECTIONS)=(\d+)$", launch, re.M))
    config = runpy.run_path(str(folder / "train.py"), run_name="train")["config"]()
    runtime_config_update(config)
    model = config.model
    tokenizer = NullTokenizer(config.tokenizer.vocab_size)
    vocabulary, is_padded = _validate_and_set_vocab_size(model.vocab_size, tokenizer.vocab_size)
    if vocabulary % model.tensor_model_parallel_size and not is_padded:
        raise ValueError(f"a vocabulary of {vocabulary:,} is not padded")
    replica = config.data_parallel_size * config.train.micro_batch_size
    inside = config.dist.use_tp_pp_dp_mapping
    expect(
        sp=(model.sequence_parallel, case["plan"]["sp"]),
        sequence=(model.seq_length, case["sequence"]),
        batch=(config.train.global_batch_size, case["batch"]),
        micro_batches=(config.train.global_batch_size / replica, case["micro_batches"]),
        layers=(layers_of(model), meant_layers(case)),
        vocabulary=(vocabulary, case["vocabulary"]),
        **pairs_of(model, config.ddp, config.data_parallel_size, inside, case),
    )


if __name__ == "__main__":
    read_all(read)
