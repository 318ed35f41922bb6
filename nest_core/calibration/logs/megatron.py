"""What Megatron-LM prints, and its forks that kept the words.

Arguments (rank 0, one a line, padded with dots), iteration lines of the last rank (milliseconds,
the mean since the last line; evaluation and checkpoints are outside its timer), and memory lines
of every model-parallel place ("MB" is MiB; what PyTorch's allocator held).

Source: ``megatron/training/arguments.py``, ``training.py`` and ``utils/common_utils.py`` of
NVIDIA/Megatron-LM @d98e8a64.

Megatron-Bridge prints Megatron-LM's iteration lines beside lines of its own. ``Step Time`` comes
from rank 0 and iteration lines from the last, so which is first in a merged file is not certain;
iteration lines have more digits and are taken where there are any. Memory is in 10^9 bytes. Its
configuration is no dump of arguments: keys of YAML, and of the summary that 0.6 prints, are taken.

Source: ``src/megatron/bridge/training/utils/train_utils.py`` and ``config.py`` of
NVIDIA-NeMo/Megatron-Bridge @067f987d, releases 0.3.1 and 0.6.2.

What NeMo 2 prints: one line of averages per logged step, with four significant digits, or a
progress bar, with three.

Steps of lines are counted from 0, validation is outside of them, and memory, which only a callback
prints, is in bytes. Nothing of the plan is printed, nor the batch beside a bar: consumed samples
tell it, as long as they are printed in full.

Source: ``nemo/lightning/pytorch/callbacks/progress_printer.py`` and ``progress_bar.py`` of
NVIDIA/NeMo @8cfedd72, releases 2.0.0 to 2.4.0.
"""

import re

from nest_core.calibration.logs.report import MAX_STEPS, LogReader, PrintedStep, number
from nest_core.calibration.logs.settings import NAMES
from nest_core.documents import GB, GIB

__all__ = ["MegatronReader", "NemoReader"]

_EDGE = r"-{10,} (end of )?arguments -{10,}"
_ARGUMENT = r"(?:^| ) ?([A-Za-z_]\w*) (\.{6,}) (\S.*?)[ \t]*$"
_ITERATION = (
    r"iteration +(\d{1,12})/ *\d{1,12} \|(?:[^|\n]*\|){0,3}? elapsed time per iteration "
    r"\((\w+)\): ([\d.]{1,20})(?:[^|\n]*\|(?:[^|\n]*\|){0,6}? global batch size: *(\d{1,9})\b)?"
)
"""With at most so many pieces between those that count."""
_MEBIBYTES = (
    r"memory \(MB\) \| allocated: [\d.]+ \| max allocated: ([\d.]{1,20}) \| reserved: [\d.]+"
    r" \| max reserved: ([\d.]{1,20})(?: \| total device memory used: ([\d.]{1,20}))?"
)
_VOCABULARY = r"> padded vocab \(size: \d+\) with \d+ dummy tokens \(new size: (\d+)\)"
_STEP = r"Step Time : ([\d.]{1,20})s GPU utilization: "
_SUMMARY = r"^.*?([a-z]\w*): (\S+)(?:  \(Mcore default: .*\))?[ \t]*$"
_UNITS = {"ms": 1e-3, "s": 1.0}
_HELD = re.compile(r"mem-max-(allocated|reserved)-gigabytes: ([\d.e+-]{1,20})")
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


class MegatronReader(LogReader):
    """Takes lines of Megatron-LM and Megatron-Bridge."""

    framework = "Megatron-LM"
    step_text = "elapsed time per iteration"
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
        self._summary: dict[str, str] = {}
        self._rank_0: list[PrintedStep] = []
        self.lines = {
            " arguments ---": (_EDGE, self._edge),
            " ......": (_ARGUMENT, self._argument),
            self.step_text: (_ITERATION, self._iteration),
            "memory (MB)": (_MEBIBYTES, self._mebibytes),
            "padded vocab": (_VOCABULARY, self._vocabulary),
            "Step Time :": (_STEP, self._step_time),
            "memory (GB)": (r"memory \(GB\)(.*)$", self._gigabytes),
            "micro_batch_size: ": (_SUMMARY, self._setting),
        }

    def end(self) -> None:
        """End a configuration that the log breaks off in."""
        self._close()
        if self.framework == "Megatron-Bridge":
            self.settings = self._summary | self.settings
            self.steps = self.steps or self._rank_0

    def _edge(self, match: re.Match[str]) -> None:
        self._close()
        self._dump = None if match[1] else {}

    def _argument(self, match: re.Match[str]) -> None:
        if self._dump is not None:
            self._dump[match[1].lower()] = match[3]

    def _iteration(self, match: re.Match[str]) -> None:
        self._close()
        self.unit = "" if match[2] in _UNITS else match[2]
        if (figure := number(match[3])) and not self.unit:
            self._step(int(match[1]), figure * _UNITS[match[2]], int(match[4] or 0))

    def _mebibytes(self, match: re.Match[str]) -> None:
        kinds = ("allocated", "reserved", "device")
        for kind, amount in zip(kinds, match.groups(), strict=True):
            self.add_memory(kind, number(amount), GIB / 1024)

    def _vocabulary(self, match: re.Match[str]) -> None:
        self.settings["padded_vocab_size"] = match[1]

    def _close(self) -> None:
        """End a configuration; what follows belongs to a new start."""
        if self._dump:
            padded = self.settings.get("padded_vocab_size", "None")
            self._configured(self._dump)
            if self.settings.get("padded_vocab_size", "None") == "None" != padded:
                self.settings["padded_vocab_size"] = padded
        self._dump = None

    def _step_time(self, match: re.Match[str]) -> None:
        self.framework = "Megatron-Bridge"
        if (seconds := number(match[1])) and len(self._rank_0) < MAX_STEPS:
            self._rank_0.append(PrintedStep(0, len(self._rank_0) + 1, seconds))

    def _gigabytes(self, match: re.Match[str]) -> None:
        self.framework = "Megatron-Bridge"
        for kind, amount in _HELD.findall(match[1]):
            self.add_memory(kind, number(amount), GB)

    def _setting(self, match: re.Match[str]) -> None:
        if match[1] in _KNOWN and not self.steps:
            self._summary[match[1]] = match[2].strip("'")


_PIECE = re.compile(
    r"\b(iteration|global_step|global_batch_size|consumed_samples|train_step_timing in s"
    r"|max_memory_allocated|max_memory_reserved)[:=]? ?([\d.e+]{1,25})"
)


class NemoReader(LogReader):
    """Takes lines of NeMo."""

    framework = "NeMo"
    step_text = "train_step_timing in s"

    def __init__(self) -> None:
        super().__init__()
        self.lines = {self.step_text: (f"^.*{self.step_text}.*$", self._timing)}
        self._consumed, self._at, self._batch = 0.0, 0, 0.0

    def _timing(self, match: re.Match[str]) -> None:
        words = dict(_PIECE.findall(match[0]))
        figures = {name: number(value) or 0.0 for name, value in words.items()}
        step = int(figures.get("global_step", figures.get("iteration", 0.0)))
        consumed = figures.get("consumed_samples", 0.0)
        if "global_batch_size" in figures:
            self._batch = figures["global_batch_size"]
        elif step > self._at and "e" not in words.get("consumed_samples", "e"):  # not rounded
            self._batch = (consumed - self._consumed) / (step - self._at)
            self._consumed, self._at = consumed, step
        self._step(step, figures.get("train_step_timing in s"), round(self._batch))
        for kind in ("allocated", "reserved"):
            self.add_memory(kind, figures.get(f"max_memory_{kind}"))
