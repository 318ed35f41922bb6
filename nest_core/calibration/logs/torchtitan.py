"""What torchtitan prints: a line of rates for every logged step, on every rank.

``tps`` is tokens per second of one device, all kinds of parallelism divided out; ``memory`` is the
most that PyTorch's allocator reserved since the line before, in GiB. Mesh, model, batch and
recomputation stand in lines of the start, as releases print them; what is not there comes from the
launch command.

Source: ``torchtitan/components/metrics.py``, ``train.py``, ``distributed/parallel_dims.py`` of
pytorch/torchtitan @b5bcd76c and v0.1.0 to v0.2.2.
"""

import re

from nest_core.calibration.logs.report import LogReader, number
from nest_core.documents import GIB

__all__ = ["TorchtitanReader"]

_STEP = re.compile(
    r"(?<!validate )\bstep:\s+(\d{1,12})\s+loss:\s+\S+\s+(?:grad_norm:\s+\S+\s+)?"
    r"memory:\s+([\d.]{1,12})GiB\([\d.]+%\)\s+tps:\s+([\d,]{1,20})"
)
_CAPACITY = re.compile(r"CUDA capacity: (.{1,80}) with [\d.]+GiB memory")
_MESH = re.compile(r"device mesh with \[([^\]]*)\], \[([\d, ]*)\]")
_MODEL = re.compile(
    r"\b(?:Building|Model) ([\w.-]{1,40}) (\d+B(?:-A\d+B)?|\w{0,12}\d+[Bb]\w{0,12}) "
)
_START = re.compile(
    r"Training starts at step \d+(?:, with local batch size (\d+), global batch size (\d+)"
    r"(?:, gradient accumulation steps \d+)?, sequence length (\d+))?"
)
_RECOMPUTE = re.compile(r"Applied (full|selective) activation checkpointing")
_SCHEDULE = re.compile(r"Using pipeline schedule (\w{1,40})")
_AT_START = re.compile(
    r"mesh with|CUDA cap|Training st|Building|Model |Applied|schedule|Compiling|Float8"
)
"""Of the lines that a start prints, so that others cost one look."""

_AXES = {
    "pp": "pipeline_parallel_degree",
    "tp": "tensor_parallel_degree",
    "cp": "context_parallel_degree",
    "ep": "expert_parallel_degree",
    "dp_replicate": "data_parallel_replicate_degree",
    "dp_shard": "data_parallel_shard_degree",
}


class TorchtitanReader(LogReader):
    """Takes a log of torchtitan line by line."""

    framework = "torchtitan"
    per = "token"

    def line(self, text: str) -> None:
        """Take what a line says, if it is one of this printer's."""
        settings, notes = self.settings, self.notes
        if "step:" in text:
            if match := _STEP.search(text):
                self._rate(int(match[1]), match[2], match[3].replace(",", ""))
        elif not _AT_START.search(text):
            return
        elif match := _MESH.search(text):
            self._mesh(match[1], match[2])
        elif match := _CAPACITY.search(text):
            self.device = match[1]
        elif match := _START.search(text):
            names = ("local_batch_size", "global_batch_size", "seq_len")
            settings |= {
                name: text for name, text in zip(names, match.groups(), strict=True) if text
            }
            self._restart()
        elif match := _MODEL.search(text):
            settings["model"] = f"{match[1]} {match[2]}"
        elif match := _RECOMPUTE.search(text):
            settings["recompute_granularity"] = match[1]
        elif match := _SCHEDULE.search(text):
            settings["pipeline_parallel_schedule"] = match[1]
        elif "Compiling each" in text and "compiled" not in notes:
            notes.append("compiled")
        elif "Float8" in text and ("active" in text or "Swapped to" in text):
            settings["fp8"] = "hybrid"
            settings["fp8_recipe"] = "rowwise" if "rowwise" in text else "tensorwise"

    def _rate(self, number_of_step: int, memory: str, rate: str) -> None:
        tokens = number(rate)
        if number_of_step > self._last:  # ranks print one behind another
            self._step(number_of_step, tokens and 1.0 / tokens)
        self.add_memory("reserved", number(memory), GIB)

    def _mesh(self, names: str, sizes: str) -> None:
        axes = re.findall(r"\w+", names)
        degrees = re.findall(r"\d+", sizes)
        if len(axes) != len(degrees) or not set(axes) <= _AXES.keys():
            return
        plan = dict.fromkeys(_AXES.values(), "1")
        plan |= {_AXES[axis]: degree for axis, degree in zip(axes, degrees, strict=True)}
        del plan["expert_parallel_degree"]  # meshes name it otherwise
        self.settings |= plan
        if plan not in self.runs:
            self.runs.append(plan)
