"""One optimizer step of Megatron Core on processors with the exported ``launch.sh``.

The model is its own GPT of its own layers, as Transformer Engine cannot be had; degrees, batch,
precision, sharding and recomputation are those of the script. Kernels for GPUs are left out.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import processor  # noqa: F401
import torch
import torch.distributed as dist
from megatron.core import parallel_state, tensor_parallel
from megatron.core.distributed import (
    DistributedDataParallel,
    DistributedDataParallelConfig,
    finalize_model_grads,
)
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.tensor_parallel import random as states
from megatron.core.transformer.moe import token_dispatcher
from megatron.core.transformer.torch_norm import WrappedTorchNorm
from megatron.training import arguments, global_vars, initialize
from megatron_plans import given_arguments
from processor import OnProcessor
from ranks_megatron import groups_made
from steps_ranks import Log, step_all

states._set_cuda_rng_state = lambda state, *_, **__: torch.set_rng_state(state)
states._get_cuda_rng_state = lambda *_, **__: torch.get_rng_state()
KERNELS = (
    "apply_rope_fusion", "gradient_accumulation_fusion", "bias_gelu_fusion", "bias_swiglu_fusion",
    "bias_dropout_fusion", "masked_softmax_fusion", "moe_grouped_gemm", "moe_permute_fusion",
    "moe_router_fusion", "use_gloo_process_groups",
)  # fmt: skip
"""Arguments of what only a GPU has, and of groups beside those that are counted."""


def norm(_: Any, config: Any, hidden_size: int, eps: float = 1e-5, **__: Any) -> torch.nn.Module:
    """Return a norm whose gradients are summed over ranks of sequence parallelism.

    Megatron Core's own of PyTorch refuses that, Transformer Engine's does so.
    """
    layer = torch.nn.RMSNorm(hidden_size, eps=eps)
    layer.weight.sequence_parallel = config.sequence_parallel
    return layer


def on_host(tensor: Any, as_numpy: bool = False, **_: Any) -> Any:
    """Return numbers of tokens as a copy on the host has them."""
    return tensor.numpy() if as_numpy and torch.is_tensor(tensor) else tensor


WrappedTorchNorm.__new__ = norm
token_dispatcher.maybe_move_tensor_to_cpu = on_host


def replicas_of(args: Any, config: Any) -> list[DistributedDataParallel]:
    """Return the chunks of this rank's model, whose gradients are summed as the script says."""
    sharding = DistributedDataParallelConfig(
        use_distributed_optimizer=args.use_distributed_optimizer,
        overlap_grad_reduce=args.overlap_grad_reduce,
        overlap_param_gather=args.overlap_param_gather,
        grad_reduce_in_fp32=args.accumulate_allreduce_grads_in_fp32,
        num_distributed_optimizer_instances=args.num_distributed_optimizer_instances,
    )
    virtual = args.virtual_pipeline_model_parallel_size
    chunks = []
    for chunk in range(virtual) if virtual else (None,):
        place = {} if chunk is None else {"ignore_virtual": False, "vp_stage": chunk}
        model = GPTModel(
            config,
            get_gpt_layer_local_spec(args.num_experts, normalization="RMSNorm"),
            args.vocab_size,
            args.max_position_embeddings,
            pre_process=parallel_state.is_pipeline_first_stage(**place),
            post_process=parallel_state.is_pipeline_last_stage(**place),
            share_embeddings_and_output_weights=not args.untie_embeddings_and_output_weights,
            position_embedding_type="rope",
            vp_stage=chunk,
        )
        chunks.append(DistributedDataParallel(config, sharding, model.to(torch.bfloat16)))
    return chunks


def stepped(args: Any, log: Log) -> dict[str, Any]:
    """Make the step, and return what this rank saw."""
    config = arguments.core_transformer_config_from_args(args)
    config.persist_layer_norm = False
    chunks = replicas_of(args, config)
    adam = OptimizerConfig(
        optimizer="adam",
        lr=1e-4,
        bf16=True,
        use_distributed_optimizer=args.use_distributed_optimizer,
        overlap_param_gather=args.overlap_param_gather,
    )
    optimizer = get_megatron_optimizer(adam, chunks, use_gloo_process_groups=False)
    config.finalize_model_grads_func = finalize_model_grads
    config.grad_scale_func = optimizer.scale_loss
    config.no_sync_func = [chunk.no_sync for chunk in chunks]
    if len(chunks) == 1:
        config.no_sync_func = chunks[0].no_sync
    passes = []

    def forward(_: Any, model: Any) -> Any:
        ids = torch.randint(0, args.vocab_size, (args.micro_batch_size, args.seq_length))
        places = torch.arange(args.seq_length)[None].expand_as(ids)
        passes.append(len(ids))
        loss = model(ids, places, None, labels=ids)
        return loss, lambda out: (out.float().mean(), {})

    with log:
        get_forward_backward_func()(
            forward_step_func=forward,
            data_iterator=[None] * len(chunks),
            model=chunks,
            num_microbatches=args.global_batch_size
            // (args.micro_batch_size * args.data_parallel_size),
            seq_length=args.seq_length,
            micro_batch_size=args.micro_batch_size,
        )
        optimizer.step()
    inner = [part.optimizer for part in getattr(optimizer, "chained_optimizers", [optimizer])]
    tensors = [
        tensor for part in inner for state in part.state.values() for tensor in state.values()
    ]
    tensors += [
        weight for part in inner for group in part.param_groups for weight in group["params"]
    ]
    return {
        "micro_batches": len(passes) // len(chunks),
        "sequences": sum(passes) // len(chunks) * args.data_parallel_size,
        "parameter_bytes": bytes_of(w for chunk in chunks for w in chunk.module.parameters()),
        "optimizer_bytes": bytes_of(t for t in tensors if torch.is_tensor(t) and t.numel() > 1),
    }


def bytes_of(tensors: Iterable[torch.Tensor]) -> int:
    """Return what tensors hold."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def make(folder: Path, case: dict[str, Any], log: Log) -> dict[str, Any]:
    """Make one step of a case."""
    args = given_arguments(folder, case)
    args.rank = dist.get_rank()
    os.environ["RANK"] = str(args.rank)
    for kernel in KERNELS:
        setattr(args, kernel, False)
    args.use_cpu_initialization = True
    global_vars.set_args(args)
    with OnProcessor():
        initialize._initialize_distributed(None, None, None)
        tensor_parallel.random.model_parallel_cuda_manual_seed(1, te_rng_tracker=False)
        groups = groups_made(args)
        ranks = {axis: sorted(dist.get_process_group_ranks(groups[axis])) for axis in case["axes"]}
        return stepped(args, log) | {"groups": ranks}


if __name__ == "__main__":
    step_all(make)
