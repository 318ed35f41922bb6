"""One optimizer step of DeepSpeed with the exported ``ds_config.json`` and ``nest_plan.py``.

Every rank takes its sequences from the engine's own loader; the norm of the gradients that the
optimizer is given stands beside that of a plain model over the plan's whole batch.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ |= {"DS_ACCELERATOR": "cpu", "TORCH_EXTENSIONS_DIR": f"{sys.argv[1]}-extensions"}

import deepspeed  # noqa: F401
import torch
import torch.distributed as dist
from deepspeed.comm.torch import build_shm_op
from deepspeed.ops.op_builder.cpu import FusedAdamBuilder
from deepspeed.utils import groups
from steps_ranks import Log, step_all
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding


def model_of(case: dict[str, Any]) -> torch.nn.Module:
    """Return the model, the same on all ranks."""
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**case["config"]))


def reference(case: dict[str, Any], data: torch.Tensor) -> float:
    """Return the norm of the mean gradient over the plan's batch, in single precision."""
    model = model_of(case)
    for sequence in data:
        loss = model(input_ids=sequence[None], labels=sequence[None]).loss
        (loss / len(data)).backward()
    return float(torch.stack([p.grad.norm() for p in model.parameters()]).norm())


def plain(case: dict[str, Any], log: Log) -> dict[str, Any]:
    """Make the step without a pipeline."""
    import nest_plan

    tokens = torch.Generator().manual_seed(1)
    data = torch.randint(
        0, case["config"]["vocab_size"], (4 * case["batch"], case["sequence"]), generator=tokens
    )
    engine = nest_plan.engine(model_of(case))
    order = [[number, *row] for number, row in enumerate(data.tolist())]
    loader = iter(engine.deepspeed_io(torch.tensor(order)))
    sequences: list[int] = []
    passes = 0
    with log:
        while engine.global_steps == 0:
            rows = next(loader)
            sequences += rows[:, 0].tolist()
            ids = rows[:, 1:].contiguous()
            engine.backward(engine(input_ids=ids, labels=ids).loss)
            engine.step()
            passes += 1
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, sequences)
    used = sorted({number for part in everyone for number in part})
    ranks = dist.get_process_group_ranks
    tp = groups.get_tensor_model_parallel_group() if case["plan"]["tp"] > 1 else None
    return {
        "micro_batches": passes,
        "micro_batch": len(sequences) // passes,
        "sequences": len(used),
        "said": engine.train_batch_size(),
        "norm": float(engine.get_global_grad_norm()),
        "reference": reference(case, data[used]),
        "parameter_bytes": parameter_bytes(engine),
        "optimizer_bytes": optimizer_bytes(engine),
        "groups": {
            "data": sorted(ranks(engine.seq_data_parallel_group)),
            "tp": sorted(ranks(tp)) if tp else [dist.get_rank()],
        },
    }


def parameter_bytes(engine: Any) -> int:
    """Return bytes of weights that stay on the rank."""
    parts = (getattr(p, "ds_tensor", p) for p in engine.module.parameters())
    return sum(p.numel() * p.element_size() for p in parts)


def optimizer_bytes(engine: Any) -> int:
    """Return bytes of what the inner optimizer holds: moments, and weights in full precision."""
    inner = engine.optimizer.optimizer if hasattr(engine.optimizer, "optimizer") else None
    inner = inner or engine.optimizer
    states = [t for state in inner.state.values() for t in state.values() if torch.is_tensor(t)]
    masters = [p for group in inner.param_groups for p in group["params"]]
    masters += getattr(engine.optimizer, "fp32_partitioned_groups_flat", [])  # of ZeRO 3
    working = {p.data_ptr() for p in engine.module.parameters() if p.numel()}
    tensors = {t.data_ptr(): t for t in [*states, *masters] if t.numel() > 1}
    return sum(t.numel() * t.element_size() for at, t in tensors.items() if at not in working)


def piped(case: dict[str, Any], log: Log) -> dict[str, Any]:
    """Make the step with a pipeline of the model's blocks."""
    import nest_plan

    config = LlamaConfig(**case["config"], attn_implementation="sdpa")

    class Block(LlamaDecoderLayer):
        """One that makes its own positions."""

        def __init__(self) -> None:
            super().__init__(config, 0)
            self.rotary = LlamaRotaryEmbedding(config)

        def forward(self, hidden: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            """Return the next layer's input."""
            places = torch.arange(hidden.shape[1])[None]
            out = super().forward(
                hidden, position_embeddings=self.rotary(hidden, places), position_ids=places
            )
            return out[0] if isinstance(out, tuple) else out

    torch.manual_seed(0)
    blocks = [Block() for _ in range(config.num_hidden_layers)]
    width, words = config.hidden_size, config.vocab_size
    layers = [torch.nn.Embedding(words, width), *blocks, torch.nn.Linear(width, words, bias=False)]

    def loss(out: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(out.flatten(0, 1).float(), labels.flatten())

    engine = nest_plan.engine(layers, Block, loss)
    counts = {"passes": 0, "sequences": 0}
    size = case["plan"]["micro_batch"]

    def batches() -> Any:
        while True:
            ids = torch.randint(0, words, (size, case["sequence"]))
            counts["passes"] += 1
            counts["sequences"] += size
            yield ids, ids

    with log:
        engine.train_batch(batches())
    grid = engine.grid
    first = engine.is_first_stage()
    gathered: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, counts["sequences"] if first else 0)
    ranks = dist.get_process_group_ranks
    return {
        "micro_batches": engine.micro_batches,
        "micro_batch": engine.micro_batch_size,
        "sequences": sum(gathered),
        "said": engine.train_batch_size(),
        "parameter_bytes": parameter_bytes(engine),
        "optimizer_bytes": optimizer_bytes(engine),
        "layers": [engine.module._local_start, engine.module._local_stop],
        "groups": {
            "data": sorted(ranks(grid.get_data_parallel_group())),
            "pp": sorted(ranks(grid.pp_proc_group)),
        },
    }


def keep_nothing(case: dict[str, Any]) -> None:
    """Have ZeRO 3 gather weights as it does those of large models.

    The tiny model is smaller than what it keeps whole and fetches ahead by default.
    """
    if case["plan"]["zero"] == 3 and dist.get_rank() == 0:
        config = json.loads(Path("ds_config.json").read_text())
        sizes = ("stage3_param_persistence_threshold", "stage3_prefetch_bucket_size")
        config["zero_optimization"] |= dict.fromkeys(sizes, 0)
        Path("ds_config.json").write_text(json.dumps(config))
    dist.barrier()


def make(_: Path, case: dict[str, Any], log: Log) -> dict[str, Any]:
    """Make one step."""
    keep_nothing(case)
    return piped(case, log) if case["plan"]["pp"] > 1 else plain(case, log)


def build() -> None:
    """Compile what ranks load, so that none waits for another; a run that ended left its lock."""
    for lock in Path(os.environ["TORCH_EXTENSIONS_DIR"]).rglob("lock"):
        lock.unlink()
    FusedAdamBuilder().load()
    build_shm_op()


if __name__ == "__main__":
    build()
    step_all(make)
