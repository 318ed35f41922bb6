"""Has Megatron-LM make its process groups for every rank of exported plans, none of them there.

Its own initialization runs once per rank on PyTorch's process group that sends nothing, as with
``--fake-process-group``; a device is posed, without which it makes no groups.
"""

from collections import defaultdict
from pathlib import Path
from typing import Any

import absent  # noqa: F401
import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.training import global_vars, initialize
from megatron_plans import given_arguments
from reading import expect, read_all


def groups_made(args: Any) -> dict[str, Any]:
    """Return which groups this rank is in, by the axis that a plan calls them."""
    data = {"with_context_parallel": True, "partial_data_parallel": True}
    groups = {
        "tp": parallel_state.get_tensor_model_parallel_group(),
        "cp": parallel_state.get_context_parallel_group(),
        "pp": parallel_state.get_pipeline_model_parallel_group(),
        "etp": parallel_state.get_expert_tensor_parallel_group(),
        "ep": parallel_state.get_expert_model_parallel_group(),
        "data": parallel_state.get_data_parallel_group(**data),
        "expert_data": parallel_state.get_expert_data_parallel_group(
            partial_expert_data_parallel=True
        ),
        "tied": parallel_state.get_embedding_group(check_initialized=False),
    }
    if args.num_distributed_optimizer_instances > 1:
        between = parallel_state.get_inter_distributed_optimizer_instance_group()
        groups |= {"replicas": between, "expert_replicas": between}
    return groups


def read(folder: Path, case: dict[str, Any]) -> None:
    """Raise where a group has other ranks than planned."""
    args = given_arguments(folder, case)
    args.fake_process_group, args.use_gloo_process_groups = True, False
    global_vars.set_args(args)
    rows: dict[str, set[tuple[int, ...]]] = defaultdict(set)
    for rank in range(case["ranks"]):
        args.rank = rank
        initialize._initialize_distributed(None, None, None)
        for axis, group in groups_made(args).items():
            if group is not None:
                rows[axis].add(tuple(sorted(dist.get_process_group_ranks(group))))
        parallel_state.destroy_model_parallel()
        dist.destroy_process_group()
    expect(
        **{
            axis: (sorted(map(list, rows[axis])), planned)
            for axis, planned in case["groups"].items()
        }
    )


if __name__ == "__main__":
    torch.cuda.device_count, torch.cuda.set_device = lambda: 1, lambda _: None
    read_all(read)
