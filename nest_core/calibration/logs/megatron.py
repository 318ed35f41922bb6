"""What Megatron-LM prints, and its forks that kept the words.

Arguments (rank 0, one a line, padded with dots), iteration lines of the last rank (milliseconds,
the mean since the last line; evaluation and checkpoints are outside its timer), and memory lines
of every model-parallel place ("MB" is MiB; what PyTorch's allocator held).

Source: ``megatron/training/arguments.py``, ``training.py`` and ``utils/common_utils.py`` of
NVIDIA/Megatron-LM @d98e8a64.
"""

from __future__ import annotations

import re

from nest_core.calibration.logs.report import LogReader, LogReport
from nest_core.documents.units import GIB

__all__ = ["MegatronReader", "number"]

_BEGIN = re.compile(r"-{10,} arguments -{10,}")
_END = re.compile(r"-{10,} end of arguments -{10,}")
_ARGUMENT = re.compile(r"^ {1,3}([A-Za-z_]\w*) (\.+|) ?(\S.*?)\s*$")
_LONG = 48
"""Characters from which a key has no dots behind it."""
_ITERATION = re.compile(r"\biteration\s+(\d{1,12})/\s*(\d{1,12}) \|(.*)$")
_TIME = re.compile(r"elapsed time per iteration \((\w+)\): ([\d.]{1,20})")
_BATCH = re.compile(r"global batch size:\s*(\d{1,9})\b")
_MEMORY = re.compile(
    r"memory \(MB\) \| allocated: [\d.]+ \| max allocated: ([\d.]{1,20}) \| reserved: [\d.]+"
    r" \| max reserved: ([\d.]{1,20})(?: \| total device memory used: ([\d.]{1,20}))?"
)
_VOCABULARY = re.compile(r"> padded vocab \(size: \d+\) with \d+ dummy tokens \(new size: (\d+)\)")
_UNITS = {"ms": 1e-3, "s": 1.0}

PLAN = (
    "world_size",
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "virtual_pipeline_model_parallel_size",
    "context_parallel_size",
    "expert_model_parallel_size",
    "sequence_parallel",
    "micro_batch_size",
    "global_batch_size",
    "seq_length",
    "num_layers",
    "hidden_size",
    "recompute_granularity",
    "use_distributed_optimizer",
    "bf16",
    "fp8",
)
"""Arguments in which runs of one file must agree."""


class MegatronReader(LogReader):
    """Takes a log of Megatron-LM line by line."""

    framework = "Megatron-LM"

    def __init__(self) -> None:
        super().__init__()
        self._dump: dict[str, str] | None = None

    def line(self, text: str) -> None:
        """Take what a line says, if it is one of this printer's."""
        if "iteration" in text and (match := _ITERATION.search(text)):
            self._iteration(int(match[1]), match[3])
        elif self._dump is not None:
            self._argument(self._dump, text)
        elif "arguments" in text and _BEGIN.search(text):
            self._dump = {}
        elif "memory (MB)" in text and (match := _MEMORY.search(text)):
            for kind, amount in zip(
                ("allocated", "reserved", "device"), match.groups(), strict=True
            ):
                mebibytes = number(amount or "")
                self._report.add_memory(kind, mebibytes and mebibytes * GIB / 1024)
        elif "padded vocab" in text and (match := _VOCABULARY.search(text)):
            self._report.settings["padded_vocab_size"] = match[1]

    def report(self) -> LogReport:
        """Return all that the lines say."""
        self._close()
        return self._report

    def _iteration(self, at: int, rest: str) -> None:
        self._close()
        time, batch = _TIME.search(rest), _BATCH.search(rest)
        figure = number(time[2]) if time else None
        if time is None or not figure:
            return
        if time[1] in _UNITS:
            self._step(at, figure * _UNITS[time[1]], int(batch[1]) if batch else 0)
        else:
            self._report.unit = time[1]

    def _argument(self, dump: dict[str, str], text: str) -> None:
        if "end of arguments" in text and _END.search(text):
            self._close()
        elif (match := _ARGUMENT.match(text)) and (match[2] or len(match[1]) >= _LONG):
            dump[match[1].lower()] = match[3]

    def _close(self) -> None:
        """End a configuration; what follows belongs to a new start."""
        if self._dump:
            padded = self._report.settings.get("padded_vocab_size", "None")
            self._report.settings |= self._dump
            if self._report.settings.get("padded_vocab_size", "None") == "None" != padded:
                self._report.settings["padded_vocab_size"] = padded
            self._report.runs.append({name: self._dump.get(name, "") for name in PLAN})
            self._restart()
        self._dump = None


def number(text: str) -> float | None:
    """Return a positive number; None for what two lines made of one another."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < 1e15 else None
