"""One optimizer step of torchtitan's own trainer, its second, with the exported ``nest_plan.py``.

The plans are of its debug models. The loader gives every
rank its sequences as torchtitan's do; attention is plain, because flexible attention has no
backward pass on a processor. PyTorch's processor poses as an H100.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torchtitan_cpu  # noqa: F401
from steps_ranks import Log, step_all
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor
from torchtitan.components.dataloader import BaseDataLoader
from torchtitan.components.tokenizer import BaseTokenizer
from torchtitan.distributed import utils
from torchtitan.models.common.attention import FlexAttention
from torchtitan.trainer import Trainer


def attend(q: Any, k: Any, v: Any, *, block_mask: Any, enable_gqa: bool, **_: Any) -> Any:
    """Return plain attention under the same mask."""
    rows, columns = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    batch = torch.arange(q.shape[0])[:, None, None, None]
    mask = block_mask.mask_mod(batch, torch.tensor(0), rows, columns)
    out = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, enable_gqa=enable_gqa
    )
    return out, None


FlexAttention._compiled_flex_attn = staticmethod(attend)


def sequences(numbers: list[int], words: int, length: int) -> torch.Tensor:
    """Return sequences of one token more than ``length``, the same for a number everywhere."""
    rows = [
        torch.randint(0, words, (length + 1,), generator=torch.Generator().manual_seed(number))
        for number in numbers
    ]
    return torch.stack(rows)


class Loader(BaseDataLoader):
    """Sequences by number: a rank takes every so manieth, as torchtitan's loaders do."""

    @dataclass(kw_only=True, slots=True)
    class Config(BaseDataLoader.Config):
        """How many different tokens."""

        words: int = 0

    def __init__(
        self, config: Config, *, dp_world_size: int, dp_rank: int, local_batch_size: int,
        seq_len: int, **_: Any,
    ) -> None:  # fmt: skip
        self.words, self.ranks, self.rank = config.words, dp_world_size, dp_rank
        self.size, self.length = local_batch_size, seq_len
        self.used: list[int] = []
        self.batches = 0

    def __iter__(self) -> Iterator[tuple[dict[str, torch.Tensor], torch.Tensor]]:
        """Give batches without end."""
        while True:
            first = len(self.used)
            numbers = [(first + place) * self.ranks + self.rank for place in range(self.size)]
            self.used += numbers
            self.batches += 1
            rows = sequences(numbers, self.words, self.length)
            places = torch.arange(self.length).expand(self.size, -1)
            yield {"input": rows[:, :-1], "positions": places}, rows[:, 1:]

    def state_dict(self) -> dict[str, Any]:
        """Return nothing."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take nothing."""


class Tokenizer(BaseTokenizer):
    """None."""

    @dataclass(kw_only=True, slots=True)
    class Config(BaseTokenizer.Config):
        """None."""

    def __init__(self, config: Config, **_: Any) -> None:
        super().__init__()

    def encode(self, *_: Any) -> list[int]:
        """Return no tokens."""
        return []

    def decode(self, *_: Any) -> str:
        """Return no text."""
        return ""

    def get_vocab_size(self) -> int:
        """Return none."""
        return 0


def bytes_of(tensors: Any) -> int:
    """Return bytes of tensors that have storage, of distributed ones the local part."""
    local = [t.to_local() if isinstance(t, DTensor) else t for t in tensors if t is not None]
    return sum(t.numel() * t.element_size() for t in local if t.untyped_storage().size())


def fsdp_modules(parts: list[torch.nn.Module]) -> list[FSDPModule]:
    """Return the modules that gather and reduce their parameters together."""
    return [m for part in parts for m in part.modules() if isinstance(m, FSDPModule)]


def fsdp_groups(parts: list[torch.nn.Module]) -> list[Any]:
    """Return groups of parameters that are gathered together, in PyTorch's own class."""
    # Modules of one group share their state.
    states = dict.fromkeys(module._get_fsdp_state() for module in fsdp_modules(parts))
    return [group for state in states for group in state._fsdp_param_groups]


def group_ranks(group: Any) -> list[int]:
    """Return the ranks of a process group or one-dimensional mesh; of none this rank."""
    group = group.get_group() if hasattr(group, "get_group") else group
    return sorted(dist.get_process_group_ranks(group)) if group else [dist.get_rank()]


def sharers(groups: list[Any], experts: bool) -> list[list[int]]:
    """Return the ranks that shard dense or expert parameters, and those with the same shard.

    Where nothing is sharded the former are those with the same parameters.
    """
    meshes = [
        group.mesh_info
        for group in groups
        if ("experts" in group.fsdp_params[0]._param_fqn) == experts
    ]
    shard, replicate = (
        group_ranks(getattr(meshes[0], f"{name}_process_group", None) if meshes else None)
        for name in ("shard", "replicate")
    )
    return [shard, replicate] if len(shard) > 1 else [replicate, shard]


def gathered(value: Any) -> list[Any]:
    """Return what all ranks have."""
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, value)
    return everyone


def whole_weights(parts: list[torch.nn.Module], piped: bool) -> dict[str, torch.Tensor]:
    """Return the model's weights on rank 0; on others what it takes to have them there."""
    weights = {}
    for part in parts:
        for name, weight in part.state_dict().items():
            tensor = weight.full_tensor() if isinstance(weight, DTensor) else weight
            weights |= {name: tensor} if piped or dist.get_rank() == 0 else {}
    if piped:
        weights = {name: tensor for stage in gathered(weights) for name, tensor in stage.items()}
    return weights


def reference(model: torch.nn.Module, weights: dict[str, torch.Tensor], rows: Any) -> float:
    """Return the norm of the mean gradient of all tokens, in single precision."""
    model.load_state_dict(weights, strict=False)
    for row in rows:
        places = torch.arange(len(row) - 1)[None]
        masks = model.get_attention_masks(positions=places)
        out = model(row[None, :-1], positions=places, attention_masks=masks)
        loss = torch.nn.functional.cross_entropy(out.flatten(0, 1).float(), row[1:])
        (loss / len(rows)).backward()
    return float(torch.stack([p.grad.norm() for p in model.parameters()]).norm())


def make(_: Path, case: dict[str, Any], log: Log) -> dict[str, Any]:
    """Make one step."""
    import nest_plan

    config = nest_plan.plan()
    model = config.model_spec.model
    config.training.disable_cuda_graphs = True
    config.metrics.enable_tensorboard = False
    config.debug.moe_force_load_balance = True  # gloo exchanges as much with each
    config.tokenizer = Tokenizer.Config()
    config.dataloader = Loader.Config(words=model.vocab_size)
    plain = copy.deepcopy(model)
    trainer = Trainer(config)
    parts, loader = trainer.model_parts, trainer.dataloader
    for module in fsdp_modules(parts):
        module.set_force_sum_reduction_for_comms(True)  # gloo does not scale while it sums
    trainer.step = 1
    batches = trainer.batch_generator(loader)
    trainer.train_step(batches)  # measures shapes between stages too
    weights = whole_weights(parts, case["plan"]["pp"] > 1)

    norms, most = [], {"weights": 0, "gradients": 0}
    clip = utils.clip_grad_norm_

    def clipped(*args: Any, **fields: Any) -> torch.Tensor:
        norms.append(clip(*args, **fields))
        return norms[-1]

    def measure(*_: Any) -> None:
        sharded = [p for group in fsdp_groups(parts) for p in group.fsdp_params]
        copies = [p._unsharded_param for p in sharded if hasattr(p, "_unsharded_param")]
        gradients = [p.sharded_param.grad for p in sharded] + [t.grad for t in copies]
        gradients += [p.unsharded_accumulated_grad for p in sharded]
        most["weights"] = max(most["weights"], bytes_of(copies))
        most["gradients"] = max(most["gradients"], bytes_of(gradients))

    utils.clip_grad_norm_ = clipped
    for part in parts:
        part.register_forward_hook(measure)
    first, begun = len(loader.used), loader.batches
    with log:
        trainer.train_step(batches)
    measure()

    numbers, passes = loader.used[first:], loader.batches - begun
    used = sorted({number for part in gathered(numbers) for number in part})
    plain.update_from_config(config=config)
    rows = sequences(used, model.vocab_size, case["sequence"])
    states = [
        t
        for optimizer in trainer.optimizers.optimizers
        for state in optimizer.state.values()
        for t in state.values()
        if torch.is_tensor(t) and t.numel() > 1
    ]
    masters = [p for part in parts for p in part.parameters()]
    groups, dims = fsdp_groups(parts), trainer.parallel_dims
    data, replicas = sharers(groups, experts=False)
    expert_data, expert_replicas = sharers(groups, experts=True)
    meshes = {axis: dims.get_optional_mesh(axis) for axis in ("tp", "cp", "pp", "ep")}
    return {
        "micro_batches": passes,
        "micro_batch": len(numbers) // passes,
        "sequences": len(used),
        "norm": float(norms[-1]),
        "reference": 0.0 if dist.get_rank() else reference(plain.build(), weights, rows),
        "parameter_bytes": most["weights"],
        "gradient_bytes": most["gradients"],
        "optimizer_bytes": bytes_of([*states, *masters]),
        "groups": {axis: group_ranks(mesh) for axis, mesh in meshes.items()}
        | {"data": data, "replicas": replicas}
        | {"expert_data": expert_data, "expert_replicas": expert_replicas},
    }


if __name__ == "__main__":
    step_all(make)
