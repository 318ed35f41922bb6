"""What Megatron Core would do: blocks of every virtual stage, groups of ranks, sharding."""

from collections.abc import Iterator
from typing import Any

from megatron.core import parallel_state
from megatron.core.transformer.transformer_block import get_num_layers_to_build
from megatron.core.transformer.transformer_layer import get_transformer_layer_offset

MODEL_AXES = ("tensor_model", "context", "pipeline_model")


def pairs_of(
    config: Any, sharding: Any, replicas: int, pipeline_inside: bool, case: dict[str, Any]
) -> dict[str, tuple[object, object]]:
    """Return what Megatron Core reads of a plan beside what was meant, by name.

    Parameters
    ----------
    config, sharding
        The model's configuration, and what says how states are divided.
    pipeline_inside : bool
        Whether pipelines are numbered before replicas.
    """
    plan = case["plan"]
    return {
        "tp": (config.tensor_model_parallel_size, plan["tp"]),
        "pp": (config.pipeline_model_parallel_size, plan["pp"]),
        "cp": (config.context_parallel_size, plan["cp"]),
        "ep": (config.expert_model_parallel_size, plan["ep"]),
        "dp": (replicas, plan["dp"]),
        "blocks": (config.num_layers, case["blocks"]),
        "etp": (config.expert_tensor_parallel_size, plan["etp"]),
        "zero": (zero_of(sharding), plan["zero"]),
        "recompute": (recomputed(config), meant_recomputation(plan)),
        "groups": (groups_of(config, pipeline_inside, replicas, case), meant_groups(case)),
        "cuts": (cuts_of(config), planned_cuts(plan)),
        "experts": (local_experts(config), case["experts"] // plan["ep"]),
    }


def stages(config: Any) -> Iterator[tuple[int, int | None]]:
    """Give rank of the pipeline and chunk of every virtual stage in order, and pose as it."""
    pp = config.pipeline_model_parallel_size
    virtual = config.virtual_pipeline_model_parallel_size
    parallel_state.set_pipeline_model_parallel_world_size(pp)
    parallel_state.set_virtual_pipeline_model_parallel_world_size(virtual)
    for chunk in range(virtual or 1):
        for rank in range(pp):
            parallel_state.set_pipeline_model_parallel_rank(rank)
            yield rank, chunk if virtual else None


def cuts_of(config: Any) -> list[int]:
    """Return where virtual stages begin among the blocks, in order, as layers would be built.

    Raises
    ------
    AssertionError
        Where no layers can be built.
    """
    cuts = [0]
    for rank, chunk in stages(config):
        start = get_transformer_layer_offset(config, chunk, rank)
        if start != cuts[-1]:
            raise AssertionError(f"stage {rank} begins at block {start}, not {cuts[-1]}")
        cuts.append(start + get_num_layers_to_build(config, chunk, rank))
    return cuts


def planned_cuts(plan: dict[str, Any]) -> list[int]:
    """Return the same of a plan, whose first layer embeds and whose last has the loss."""
    last = plan["cuts"][-1] - 1
    return [min(max(cut - 1, 0), last - 1) for cut in plan["cuts"]]


def local_experts(config: Any) -> int | None:
    """Return experts of a rank; None where expert groups do not divide them, as Core asserts."""
    experts, ep = config.num_moe_experts or 1, config.expert_model_parallel_size
    return None if experts % ep else experts // ep


def groups_of(config: Any, is_mapped: bool, dp: int, case: dict[str, Any]) -> dict[str, Any]:
    """Return which ranks divide what, of the axes that the case names.

    ``is_mapped``: whether data parallelism is outermost, as both frameworks' initialization has it.
    """
    order = "tp-cp-ep-pp-dp" if is_mapped else "tp-cp-ep-dp-pp"
    tp, cp, pp = (getattr(config, f"{axis}_parallel_size") for axis in MODEL_AXES)
    etp, ep = config.expert_tensor_parallel_size, config.expert_model_parallel_size
    dense = parallel_state.RankGenerator(tp, 1, dp, pp, cp, order)
    experts = parallel_state.RankGenerator(etp, ep, tp * cp * dp // (etp * ep), pp, 1, order)
    rows = {
        "tp": dense.get_ranks("tp"),
        "cp": dense.get_ranks("cp"),
        "etp": experts.get_ranks("tp"),
        "ep": experts.get_ranks("ep"),
        "data": dense.get_ranks("dp-cp"),
        "expert_data": experts.get_ranks("dp"),
    }
    return {axis: sorted(map(sorted, rows[axis])) for axis in meant_groups(case)}


def meant_groups(case: dict[str, Any]) -> dict[str, Any]:
    """Return the same of a plan."""
    axes = {"tp", "cp", "etp", "ep"}
    axes |= {"data", "expert_data"} if case["plan"]["zero_group"] == "all" else set()
    return {axis: rows for axis, rows in case["groups"].items() if axis in axes}


def zero_of(settings: Any) -> int:
    """Return the ZeRO stage of what sets the data-parallel ranks."""
    if settings.use_megatron_fsdp:
        return {"optim_grads": 2, "optim_grads_params": 3}[settings.data_parallel_sharding_strategy]
    return int(settings.use_distributed_optimizer)


def recomputed(config: Any) -> str:
    """Return what is recomputed: none, modules, or how many layers at once."""
    if config.recompute_granularity == "full":
        return f"{config.recompute_method} {config.recompute_num_layers}"
    return "+".join(sorted(config.recompute_modules)) if config.recompute_granularity else "none"


def meant_recomputation(plan: dict[str, Any]) -> str:
    """Return the same of a plan."""
    names = {"full": "uniform 1", "selective": "core_attn"}
    method, _, layers = plan["recompute"].partition("=")
    modules = "+".join(sorted(method.split("+")))
    return f"{method} {layers}" if layers else names.get(method, modules)
