"""What torchtitan prints: a line of rates for every logged step, on every rank.

``tps`` (``wps`` before 0.1.0) is tokens per second of one device, all kinds of parallelism divided
out; ``memory`` is the most that PyTorch's allocator reserved since the line before, in GiB. Mesh,
model, batch and recomputation stand in lines of the start, in words that change with releases;
what is not there comes from the launch command.

Source: ``torchtitan/components/metrics.py``, ``train.py``, ``trainer.py``,
``distributed/parallel_dims.py``, ``distributed/pipeline_parallel.py`` and
``distributed/activation_checkpoint.py`` of the releases 0.0.2 to 0.3.0.
"""

import re
from collections.abc import Mapping

from nest_core.calibration.logs.report import LogReader, number
from nest_core.documents import GIB

__all__ = ["TorchtitanReader"]

_STEP = (
    r"step:(?<!validate step:) +(\d{1,12}) +loss: +\S+ +(?:grad_norm: +\S+ +)?"
    r"memory: +([\d.]{1,12})GiB\([\d.]+%\) +[tw]ps: +([\d,]{1,20})"
)
_FACTS: Mapping[str, str] = {
    " capacity: ": r"capacity: (?P<device>.{1,80}) with [\d.]+GiB memory",
    "total parameters": r"\bModel (?P<model>\S{1,40} \S{1,40}) size: ",
    "mesh with parallelism": r"pp=(?P<pipeline_parallel_degree>\d+), "
    r"dp_replicate=(?P<data_parallel_replicate_degree>\d+), "
    r"dp_shard=(?P<data_parallel_shard_degree>\d+), cp=(?P<context_parallel_degree>\d+), "
    r"tp=(?P<tensor_parallel_degree>\d+), ep=(?P<expert_parallel_degree>\d+)",
    "activation checkpointing": r"Applied (?P<recompute_granularity>\w+?)(?:AC)? activation",
    "pipeline schedule": r"schedule (?P<pipeline_parallel_schedule>\w{1,40})"
    r"(?: with (?P<microbatches>\d+) microbatches and (?P<pipeline_stages>\d+) stages)?",
    "Float8 ": r"(?P<fp8>Float8) (?:training active with recipe )?(?P<fp8_recipe>[a-z]\w*)",
    "MX training": r"(?P<fp8>MX) training active with recipe (?P<fp8_recipe>\w+)",
    "to MXFP8Linear": r"(?P<fp8>(?P<fp8_recipe>MXFP8))Linear",
    "to NVFP4Linear": r"(?P<fp4>NVFP4)Linear",
    "local batch size": r"local batch size (?P<local_batch_size>\d+), global batch size "
    r"(?P<global_batch_size>\d+)(?:, gradient accumulation steps \d+)?, sequence length "
    r"(?P<seq_len>\d+)",
}
"""By a text of the line: its settings, by the names of torchtitan's configuration."""

_AXES = {
    "pp": "pipeline_parallel_degree",
    "tp": "tensor_parallel_degree",
    "cp": "context_parallel_degree",
    "dp_replicate": "data_parallel_replicate_degree",
    "dp_shard": "data_parallel_shard_degree",
}


class TorchtitanReader(LogReader):
    """Takes lines of torchtitan."""

    framework = "torchtitan"
    per = "token"
    step_text = "GiB("
    plan = (
        *_AXES.values(),
        "expert_parallel_degree",
        "local_batch_size",
        "global_batch_size",
        "seq_len",
        "model",
        "recompute_granularity",
        "pipeline_parallel_schedule",
        "microbatches",
    )

    def __init__(self) -> None:
        super().__init__()
        self.lines = {
            "GiB(": (_STEP, self._rate),
            "D device mesh": (r"device mesh with \[([^\]\n]*)\], \[([\d, ]*)\]", self._mesh),
            **{text: (pattern, self._fact) for text, pattern in _FACTS.items()},
            "Compiling each": ("Compiling each", lambda _: self.notes.append("compiled")),
            "Training starts at": (
                "Training starts at .*",
                lambda _: self._configured(self.settings),
            ),
        }

    def _rate(self, match: re.Match[str]) -> None:
        step = int(match[1])
        if step > self._last:  # ranks print one behind another
            tokens = number(match[3].replace(",", ""))
            self._step(step, tokens and 1.0 / tokens)
        self.add_memory("reserved", number(match[2]), GIB)

    def _fact(self, match: re.Match[str]) -> None:
        self.settings |= {name: value for name, value in match.groupdict().items() if value}

    def _mesh(self, match: re.Match[str]) -> None:
        """Take the mesh of releases before 0.2.1: axes above 1, with experts two for the shards."""
        axes, sizes = (re.findall(r"\w+", part) for part in match.groups())
        degrees = dict(zip(axes, map(int, sizes), strict=False))
        around, inside = degrees.pop("dp_shard_mod_ep", 0), degrees.pop("dp_shard_in_ep", 1)
        if len(axes) != len(sizes) or not degrees.keys() <= _AXES.keys():
            return
        experts = str(inside * degrees.get("cp", 1)) if around else "1"
        degrees |= {"dp_shard": around * inside} if around else {}
        # Whether experts take the tensor ranks too stands in no line.
        self.settings["expert_parallel_degree"] = "auto" if around and "tp" in axes else experts
        self.settings |= {name: str(degrees.get(axis, 1)) for axis, name in _AXES.items()}

    def end(self) -> None:
        """End the log; where its start is whole and names no recomputation, there is none."""
        if self.runs and "tensor_parallel_degree" in self.settings:
            self.settings.setdefault("recompute_granularity", "none")
