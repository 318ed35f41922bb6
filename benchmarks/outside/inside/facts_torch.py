"""Collectives of PyTorch's tensor parallelism and FSDP2 on ranks that are not there, as JSON."""

import json
from collections import Counter
from typing import Any

import torch
from torch import nn
from torch.distributed import destroy_process_group, init_process_group
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor._collective_utils import MeshTopoInfo
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.testing._internal.distributed.fake_pg import FakeStore

WIDTH = 16


class Block(nn.Module):
    """A transformer block of plain products, without its softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.attention, self.mlp = Attention(), Mlp()

    def forward(self, x: Any) -> Any:
        x = x + self.attention(self.norms[0](x))
        return x + self.mlp(self.norms[1](x))


class Attention(nn.Module):
    """Queries, keys, values and the product that joins them."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x: Any) -> Any:
        return self.o(self.q(x) * self.k(x) * self.v(x))


class Mlp(nn.Module):
    """A gated pair of products."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up, self.down = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))

    def forward(self, x: Any) -> Any:
        return self.down(self.gate(x) * self.up(x))


def counts(mode: CommDebugMode) -> dict[str, int]:
    """Return collectives by their operator's name."""
    return {str(op).split(".")[-1]: n for op, n in sorted(mode.get_comm_counts().items(), key=str)}


def tensor_parallel(sequence: bool) -> dict[str, dict[str, int]]:
    """Return the collectives of a block's forward and backward pass on two ranks."""
    init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    block, plan = Block(), dict[str, Any]()
    columns = [f"attention.{n}" for n in "qkv"] + ["mlp.gate", "mlp.up"]
    plan = {name: ColwiseParallel() for name in columns}
    rows = {"output_layouts": Shard(1)} if sequence else {}
    plan |= {name: RowwiseParallel(**rows) for name in ("attention.o", "mlp.down")}
    if sequence:
        whole = PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),))
        plan |= {"norms.0": SequenceParallel(), "norms.1": SequenceParallel()}
        plan |= {"attention": whole, "mlp": whole}
    parallelize_module(block, mesh, plan)
    x = torch.ones(1, 4 if not sequence else 2, WIDTH, requires_grad=True)
    forward, backward = CommDebugMode(), CommDebugMode()
    with forward:
        y = block(x)
    with backward:
        y.sum().backward()
    destroy_process_group()
    return {"forward": counts(forward), "backward": counts(backward)}


def sharded_rows(rows: int, ranks: int) -> list[int]:
    """Return how many rows of a parameter lie on each rank."""
    answer = []
    for rank in range(ranks):
        init_process_group("fake", store=FakeStore(), rank=rank, world_size=ranks)
        layer = nn.Linear(4, rows, bias=False)
        fully_shard(layer, mesh=init_device_mesh("cpu", (ranks,)))
        answer.append(layer.weight.to_local().shape[0])
        destroy_process_group()
    return answer


def backward_gathers(reshard: bool | None) -> int:
    """Return the all-gathers of a backward pass of four blocks and their root on eight ranks."""
    init_process_group("fake", store=FakeStore(), rank=0, world_size=8)
    mesh = init_device_mesh("cpu", (8,))
    model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(4)), nn.LayerNorm(WIDTH))
    for layer in model[:4]:
        fully_shard(layer, mesh=mesh, reshard_after_forward=reshard)
    fully_shard(model, mesh=mesh, reshard_after_forward=reshard)
    out = model(torch.ones(2, WIDTH))
    mode = CommDebugMode()
    with mode:
        out.sum().backward()
    destroy_process_group()
    gathers = Counter(counts(mode))
    return sum(n for name, n in gathers.items() if "all_gather" in name or "allgather" in name)


def between_hosts() -> list[float]:
    """Return the GB/s that redistributing is priced with along a mesh of 2 nodes of 8 devices."""
    init_process_group("fake", store=FakeStore(), rank=0, world_size=16)
    topology = MeshTopoInfo.build_from_mesh(init_device_mesh("cpu", (2, 8)))
    destroy_process_group()
    return list(topology.mesh_dim_bandwidth)


def facts() -> dict[str, Any]:
    """Return them."""
    return {
        "tensor_parallel": tensor_parallel(sequence=False),
        "sequence_parallel": tensor_parallel(sequence=True),
        "rows": sharded_rows(10, 8),
        "backward_gathers": [backward_gathers(reshard) for reshard in (True, False, None)],
        "between_hosts": between_hosts(),
    }


if __name__ == "__main__":
    print(json.dumps(facts()))
