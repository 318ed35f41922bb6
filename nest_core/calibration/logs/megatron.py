"""What Megatron-LM prints, and its forks that kept the words.

Arguments (rank 0, one a line, padded with dots), iteration lines of the last rank (milliseconds,
the mean since the last line; evaluation and checkpoints are outside its timer), and memory lines
of every model-parallel place ("MB" is MiB; what PyTorch's allocator held).

Source: ``megatron/training/arguments.py``, ``training.py`` and ``utils/common_utils.py`` of
NVIDIA/Megatron-LM @d98e8a64.

What Megatron-Bridge prints: Megatron-LM's iteration lines beside lines of its own.

``Step Time`` comes from rank 0 and iteration lines from the last, so which is first in a merged
file is not certain; iteration lines have more digits and are taken where there are any. Memory is
in 10^9 bytes. Its configuration is no dump of arguments: keys of YAML are taken where printed,
the rest comes from the launch command.

Source: ``src/megatron/bridge/training/utils/train_utils.py`` of NVIDIA-NeMo/Megatron-Bridge
@067f987d.

What NeMo 2 prints: one line of averages per logged step, with four significant digits.

Steps are counted from 0, validation is outside of them, and memory, which only a callback prints,
is in bytes. Nothing of the plan is printed.

Source: ``nemo/lightning/pytorch/callbacks/progress_printer.py`` of NVIDIA/NeMo @8cfedd72.
"""

import re

from nest_core.calibration.logs.report import MAX_STEPS, LogReader, PrintedStep, number
from nest_core.calibration.logs.settings import NAMES
from nest_core.documents import GB, GIB

__all__ = ["BridgeReader", "MegatronReader", "NemoReader"]

_BEGIN = re.compile(r"-{10,} arguments -{10,}")
_END = re.compile(r"-{10,} end of arguments -{10,}")
_ARGUMENT = re.compile(r"^ {1,3}([A-Za-z_]\w*) (\.+|) ?(\S.*?)\s*$")
_LONG = 48
"""Characters from which a key has no dots behind it."""
_ITERATION = re.compile(r"\biteration\s+(\d{1,12})/\s*(\d{1,12}) \|(.*)$")
_TIME = re.compile(r"elapsed time per iteration \((\w+)\): ([\d.]{1,20})")
_BATCH = re.compile(r"global batch size:\s*(\d{1,9})\b")
_MEBIBYTES = re.compile(
    r"memory \(MB\) \| allocated: [\d.]+ \| max allocated: ([\d.]{1,20}) \| reserved: [\d.]+"
    r" \| max reserved: ([\d.]{1,20})(?: \| total device memory used: ([\d.]{1,20}))?"
)
_VOCABULARY = re.compile(r"> padded vocab \(size: \d+\) with \d+ dummy tokens \(new size: (\d+)\)")
_UNITS = {"ms": 1e-3, "s": 1.0}


class MegatronReader(LogReader):
    """Takes a log of Megatron-LM line by line."""

    framework = "Megatron-LM"
    plan = (
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
        elif "memory (MB)" in text and (match := _MEBIBYTES.search(text)):
            kinds = ("allocated", "reserved", "device")
            for kind, amount in zip(kinds, match.groups(), strict=True):
                self.add_memory(kind, number(amount), GIB / 1024)
        elif "padded vocab" in text and (match := _VOCABULARY.search(text)):
            self.settings["padded_vocab_size"] = match[1]

    def end(self) -> None:
        """End a configuration that the log breaks off in."""
        self._close()

    def _iteration(self, at: int, rest: str) -> None:
        self._close()
        time, batch = _TIME.search(rest), _BATCH.search(rest)
        figure = number(time[2]) if time else None
        if time is None or not figure:
            return
        if time[1] in _UNITS:
            self._step(at, figure * _UNITS[time[1]], int(batch[1]) if batch else 0)
        else:
            self.unit = time[1]

    def _argument(self, dump: dict[str, str], text: str) -> None:
        if "end of arguments" in text and _END.search(text):
            self._close()
        elif (match := _ARGUMENT.match(text)) and (match[2] or len(match[1]) >= _LONG):
            dump[match[1].lower()] = match[3]

    def _close(self) -> None:
        """End a configuration; what follows belongs to a new start."""
        if self._dump:
            padded = self.settings.get("padded_vocab_size", "None")
            self._configured(self._dump)
            if self.settings.get("padded_vocab_size", "None") == "None" != padded:
                self.settings["padded_vocab_size"] = padded
        self._dump = None


_STEP = re.compile(r"Step Time : ([\d.]{1,20})s GPU utilization: ")
_GIGABYTES = re.compile(r"\[Rank \d+\] \(after \d+ iterations\) memory \(GB\)(.*)$")
_HELD = re.compile(r"mem-max-(allocated|reserved)-gigabytes: ([\d.e+-]{1,20})")
_SETTING = re.compile(r"^\s+([a-z]\w*): ([\w.]+)\s*$")
_KNOWN = frozenset(name for names in NAMES.values() for name in names) | {
    "bf16",
    "ffn_hidden_size",
    "fp8",
    "fp8_recipe",
    "moe_ffn_hidden_size",
    "num_query_groups",
    "recompute_granularity",
    "recompute_method",
    "recompute_num_layers",
    "sequence_parallel",
    "use_distributed_optimizer",
}


class BridgeReader(MegatronReader):
    """Takes a log of Megatron-Bridge line by line."""

    framework = "Megatron-Bridge"

    def __init__(self) -> None:
        super().__init__()
        self._own: list[PrintedStep] = []
        self._seen, self._counted = False, 0

    def line(self, text: str) -> None:
        """Take what a line says, if it is one of this printer's."""
        if "Step Time" in text and (match := _STEP.search(text)):
            self._seen, self._counted = True, self._counted + 1
            if (seconds := number(match[1])) and self._counted <= MAX_STEPS:
                self._own.append(PrintedStep(0, self._counted, seconds))
        elif "memory (GB)" in text and (match := _GIGABYTES.search(text)):
            self._seen = True
            for kind, amount in _HELD.findall(match[1]):
                self.add_memory(kind, number(amount), GB)
        elif not self._seen and ": " in text and (match := _SETTING.match(text)):
            if match[1] in _KNOWN:
                self.settings[match[1]] = match[2]
        else:
            super().line(text)

    def end(self) -> None:
        """End the log; no step is left where no line is of this printer alone."""
        super().end()
        self.steps = self.steps or self._own
        if not self._seen:
            self.settings, self.steps, self.memory_bytes, self.runs = {}, [], {}, []


_LINE = re.compile(r"Training epoch (\d{1,9}), iteration (\d{1,12})/\d+((?: \| [^|:]+: \S+)+)")
_PIECE = re.compile(r" \| ([^|:]+): (\S+)")
_KINDS = {"max_memory_allocated": "allocated", "max_memory_reserved": "reserved"}


class NemoReader(LogReader):
    """Takes a log of NeMo line by line."""

    framework = "NeMo"

    def __init__(self) -> None:
        super().__init__()
        self._epoch = 0

    def line(self, text: str) -> None:
        """Take what a line says, if it is one of this printer's."""
        if "Training epoch" not in text or not (match := _LINE.search(text)):
            return
        pieces = dict(_PIECE.findall(match[3]))
        batch = number(pieces.get("global_batch_size", ""))
        seconds = number(pieces.get("train_step_timing in s", ""))
        epoch = int(match[1])
        if epoch != self._epoch:  # each counts its steps from 0 again, without a restart
            self._block += epoch < self._epoch
            self._epoch, self._last = epoch, -1
        if seconds:
            self._step(int(match[2]), seconds, int(batch or 0))
        for name, kind in _KINDS.items():
            self.add_memory(kind, number(pieces.get(name, "")))
