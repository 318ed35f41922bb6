"""What programs share that make one optimizer step on several ranks of gloo.

Collectives are taken down where PyTorch dispatches their operators.
"""

import faulthandler
import json
import os
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch.distributed.distributed_c10d import _resolve_process_group
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

LIMIT_S = 300
KINDS = {
    "allreduce_": ("all-reduce", "tensors"),
    "allreduce_coalesced_": ("all-reduce", "tensors"),
    "reduce_scatter_tensor_coalesced_": ("reduce-scatter", "inputs"),
    "allgather_into_tensor_coalesced_": ("all-gather", "outputs"),
    "reduce_": ("reduce", "tensors"),
    "_reduce_scatter_base_": ("reduce-scatter", "input_tensor"),
    "_allgather_base_": ("all-gather", "output_tensor"),
    "allgather_": ("all-gather", "output_tensors"),
    "alltoall_base_": ("all-to-all", "input"),
    "alltoall_": ("all-to-all", "input_tensors"),
    "all_reduce": ("all-reduce", "input"),
    "reduce_scatter_tensor": ("reduce-scatter", "input"),
    "all_gather_into_tensor": ("all-gather", "input"),
    "all_to_all_single": ("all-to-all", "input"),
    "flex_cp_allgather": ("all-gather", "k", "v"),
    "flex_cp_allgather_backward": ("reduce-scatter", "grad_full_k", "grad_full_v"),
}
"""PyTorch's operators, inside of which no other is dispatched: what they are called here, and
which arguments have the bytes."""
PARTS = ("all_gather_into_tensor", "flex_cp_allgather")
"""Those whose arguments have the bytes of one rank."""
LEAST = 1_024
"""Bytes; what is smaller counts, checks or measures and moves no tensor of the model."""


class Log(TorchDispatchMode):
    """Bytes of collectives by kind and ranks of the group, of this rank and while it is open."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes: Counter[tuple[str, tuple[int, ...]]] = Counter()

    def __torch_dispatch__(
        self, operator: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Take a collective down; distributed tensors come back as their local ones."""
        if DTensor in types:
            return NotImplemented
        name, fields = operator.name().split("::")[-1].split(".")[0], kwargs or {}
        if name in KINDS:
            kind, *whole = KINDS[name]
            names = [argument.name for argument in operator._schema.arguments]
            given = dict(zip(names, args, strict=False)) | fields
            ranks = dist.get_process_group_ranks(_group(given))
            tensors = tree_leaves([given[argument] for argument in whole])
            size = sum(t.numel() * t.element_size() for t in tensors)
            size *= len(ranks) if name in PARTS else 1
            if size >= LEAST and len(ranks) > 1:
                self.bytes[kind, tuple(sorted(ranks))] += size
        return operator(*args, **fields)

    def rows(self) -> list[Any]:
        """Return kind, ranks and bytes."""
        return [[kind, list(ranks), size] for (kind, ranks), size in self.bytes.items()]


def _group(given: dict[str, Any]) -> dist.ProcessGroup:
    """Return the group among the arguments of a collective."""
    if "process_group" in given:
        return dist.ProcessGroup.unbox(given["process_group"])
    return _resolve_process_group(given.get("group_name") or given["pg_name"])


def step_all(make: Callable[[Path, dict[str, Any], Log], dict[str, Any]]) -> None:
    """Write ``answers.json``: what every rank of every case of ``cases.json`` saw, or an error."""
    folder = Path(sys.argv[1])
    torch.set_num_threads(1)
    answers = {}
    for case in json.loads((folder / "cases.json").read_text()):
        with tempfile.TemporaryDirectory() as home:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            try:
                # Forked: every rank has what the parent imported.
                processes.start_processes(
                    _rank,
                    (case["ranks"], port, Path(home), folder, case, make),
                    case["ranks"],
                    start_method="fork",
                )
            except (processes.ProcessRaisedException, processes.ProcessExitedException) as error:
                lines = str(error).strip().splitlines()
                answers[case["name"]] = {"error": lines[-1][:300]}
                continue
            files = [Path(home) / f"{rank}.json" for rank in range(case["ranks"])]
            answers[case["name"]] = {"ranks": [json.loads(file.read_text()) for file in files]}
    (folder / "answers.json").write_text(json.dumps(answers))


def _rank(
    rank: int,
    ranks: int,
    port: int,
    home: Path,
    folder: Path,
    case: dict[str, Any],
    make: Callable[[Path, dict[str, Any], Log], dict[str, Any]],
) -> None:
    faulthandler.dump_traceback_later(LIMIT_S, exit=True)
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    log = Log()
    dist.init_process_group("gloo")
    os.chdir(folder / case["name"])
    sys.path.insert(0, str(folder / case["name"]))
    seen = make(folder / case["name"], case, log)
    (home / f"{rank}.json").write_text(json.dumps({"collectives": log.rows()} | seen))
    dist.barrier()
    dist.destroy_process_group()
