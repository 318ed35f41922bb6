"""What programs share that make one optimizer step on several ranks of gloo.

Collectives are taken down where PyTorch is asked for them, before the tool is imported.
"""

import contextlib
import faulthandler
import inspect
import json
import os
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as processes

LIMIT_S = 90
KINDS = {
    "all_reduce": ("all-reduce", "tensor"),
    "reduce": ("reduce", "tensor"),
    "reduce_scatter_tensor": ("reduce-scatter", "input"),
    "all_gather_into_tensor": ("all-gather", "output_tensor"),
    "all_gather": ("all-gather", "tensor_list"),
    "all_to_all_single": ("all-to-all", "input"),
}
"""Functions of torch.distributed: what they are called here, and the argument that holds all."""
LEAST = 1_024
"""Bytes; what is smaller counts, checks or measures and moves no tensor of the model."""


class Log:
    """Bytes of collectives by kind and ranks of the group; each once per call of this rank."""

    def __init__(self) -> None:
        self.bytes: Counter[tuple[str, tuple[int, ...]]] = Counter()
        self.open = False

    @contextlib.contextmanager
    def counting(self) -> Iterator[None]:
        """Count while the step runs."""
        self.open = True
        yield
        self.open = False

    def watch(self) -> None:
        """Stand before PyTorch's functions."""
        for name, (kind, whole) in KINDS.items():
            setattr(dist, name, self._watched(getattr(dist, name), kind, whole))

    def _watched(self, function: Callable[..., Any], kind: str, whole: str) -> Callable[..., Any]:
        names = list(inspect.signature(function).parameters)

        @wraps(function)
        def call(*args: Any, **fields: Any) -> Any:
            given = dict(zip(names, args, strict=False)) | fields
            tensors = given[whole]
            tensors = tensors if isinstance(tensors, list) else [tensors]
            size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
            if self.open and size >= LEAST:
                ranks = dist.get_process_group_ranks(given.get("group") or dist.group.WORLD)
                if len(ranks) > 1:
                    self.bytes[kind, tuple(sorted(ranks))] += size
            return function(*args, **fields)

        return call

    def rows(self) -> list[Any]:
        """Return kind, ranks and bytes."""
        return [[kind, list(ranks), size] for (kind, ranks), size in self.bytes.items()]


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
    log.watch()
    dist.init_process_group("gloo")
    os.chdir(folder / case["name"])
    sys.path.insert(0, str(folder / case["name"]))
    seen = make(folder / case["name"], case, log)
    (home / f"{rank}.json").write_text(json.dumps({"collectives": log.rows()} | seen))
    dist.barrier()
    dist.destroy_process_group()
