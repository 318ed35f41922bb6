"""What frameworks print, a reader for each; forks that kept the words are read as well.

What Megatron-LM prints: arguments (rank 0, one a line, padded with dots), iteration lines of the
last rank (milliseconds, the mean since the last line; evaluation and checkpoints are outside its
timer), and memory lines of every model-parallel place ("MB" is MiB; what PyTorch's allocator held).

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

What torchtitan prints: a line of rates for every logged step, on every rank.

``tps`` (``wps`` before 0.1.0) is tokens per second of one device, all kinds of parallelism divided
out; ``memory`` is the most that PyTorch's allocator reserved since the line before, in GiB. Mesh,
model, batch and recomputation stand in lines of the start, in words that change with releases;
what is not there comes from the launch command.

Source: ``torchtitan/components/metrics.py``, ``train.py``, ``trainer.py``,
``distributed/parallel_dims.py``, ``distributed/pipeline_parallel.py`` and
``distributed/activation_checkpoint.py`` of the releases 0.0.2 to 0.3.0.

What DeepSpeed prints: its configuration, and samples per second of all ranks together.

``CurrSamplesPerSec`` is of the last step; memory ("GB" is GiB) of rank 0. The configuration is
printed when the engine is made, one setting a line, padded with dots. Sizes of the model are not
DeepSpeed's to know.

Release 0.19.8 prints none of this unless its configuration has ``"log_level": "info"``.

Source: ``deepspeed/utils/timer.py``, ``deepspeed/runtime/config.py`` of deepspeedai/DeepSpeed
@edaa7221, release 0.19.8.

What MLPerf's logger prints: events as JSON behind ``:::MLLOG``.

A step is the time between the events of successive steps, so that what lies between steps counts;
evaluations and blocks part them (what spans one is the first of the next, hence warm-up). Where
events come only once a block, their ``train_step_time`` is its mean, and where they hold rates
alone, a step is batch / throughput. ``step`` in the metadata is a count of steps for some and of
samples for others.

Source: ``mlperf_logging/mllog`` of mlcommons/logging @7bbf7926; ``custom_callbacks.py`` of
NVIDIA/mlperf-common @85516e5a.
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from typing import Any, ClassVar

from nest_core.calibration.logs.report import (
    MAX_STEPS,
    WARM_UP,
    LineTable,
    LogReader,
    PrintedStep,
    number,
)
from nest_core.calibration.logs.settings import NAMES
from nest_core.documents import GB, GIB, figure_of

__all__ = ["DeepspeedReader", "MegatronReader", "MllogReader", "NemoReader", "TorchtitanReader"]

_TOKEN = ":::MLLOG"
_DECODER = json.JSONDecoder()
_PARTING = ("block_start", "run_start", "eval_start", "eval_stop")
_SAID = (
    "global_batch_size",
    "micro_batch_size",
    "gradient_accumulation_steps",
    "max_sequence_length",
    "tensor_parallelism",
    "pipeline_parallelism",
    "context_parallelism",
    "expert_parallelism",
)
_SEQUENCES = {"gpt3": "2048"}
"""Tokens of a sequence where the rules of the benchmark fix them and logs do not say."""
_PLATFORM = re.compile(r"(\d{1,6}) ?x ?(.+)")


@dataclass(eq=False)
class MllogReader(LogReader):
    """Takes lines with MLPerf events."""

    framework = "MLPerf"

    _previous: tuple[float, float] | None = None
    _between: list[PrintedStep] = field(default_factory=list)
    _averages: list[PrintedStep] = field(default_factory=list)
    _rates: list[float] = field(default_factory=list)

    def _line(self, match: re.Match[str]) -> None:
        for text in match[1].split(_TOKEN):  # ranks may join their lines
            with suppress(ValueError, RecursionError):
                event, _ = _DECODER.raw_decode(text.lstrip())
                if isinstance(event, dict) and isinstance(event.get("key"), str):
                    self._event(event["key"], event.get("value"), event)

    def end(self) -> None:
        """Take for steps what the printed events tell best."""
        batch = _figure(self.settings.get("global_batch_size"))
        self.steps = steps = (
            self._between if len(self._between) >= len(self._averages) // 2 else self._averages
        )
        if not steps and batch:
            self.steps = [
                PrintedStep(0, WARM_UP * number, batch / rate)
                for number, rate in enumerate(self._rates)
            ]
        elif batch and steps is self._between and _counts_samples(steps, self._averages, batch):
            self.steps = [
                PrintedStep(step.block, step.number // int(batch), step.seconds * batch)
                for step in steps
            ]

    def _event(self, key: str, value: Any, event: Mapping[str, Any]) -> None:
        metadata = event.get("metadata")
        details = metadata if isinstance(metadata, dict) else {}
        self._block += key in _PARTING
        if key == "run_start":
            self.runs.append({"run_start": str(event.get("time_ms"))})
        if key in _SAID and isinstance(value, int | float) and not isinstance(value, bool):
            self.settings[key] = f"{value:g}" if value < 1e6 else str(int(value))
        elif key == "submission_benchmark" and isinstance(value, str):
            self.settings["model"] = value
            if value in _SEQUENCES:
                self.settings.setdefault("seq_length", _SEQUENCES[value])
        elif key == "submission_platform" and isinstance(value, str):
            match = _PLATFORM.search(value)
            self.settings["device"] = match[2] if match else value
        elif key == "tracked_stats" and isinstance(value, dict):
            self._stats(value, details, _figure(event.get("time_ms")))

    def _stats(self, value: Mapping[str, Any], details: Mapping[str, Any], now: float) -> None:
        if len(self._averages) + len(self._between) + len(self._rates) > MAX_STEPS:
            return
        self.add_memory("allocated", _figure(value.get("max_memory_usage")) * GIB)
        step, step_time = (
            _figure(details.get("step"), zero=True),
            _figure(value.get("train_step_time")),
        )
        if "step" not in details:
            if step_time:
                self._averages.append(PrintedStep(0, WARM_UP * len(self._averages), step_time))
        elif step_time or "reduced_train_loss" in value or "train_loss" in value:
            if step_time:
                self._averages.append(PrintedStep(self._block, int(step), step_time))
            if self._previous and now > self._previous[0] and step > self._previous[1]:
                seconds = (now - self._previous[0]) / 1e3 / (step - self._previous[1])
                self._between.append(PrintedStep(self._block, int(step), seconds))
            self._previous = now, step
        if rate := _figure(value.get("throughput")):
            self._rates.append(rate)

    lines: ClassVar[LineTable] = {_TOKEN: (rf"{_TOKEN}\s*(\{{.*)", _line)}


def _counts_samples(steps: list[PrintedStep], averages: list[PrintedStep], batch: float) -> bool:
    """Return whether metadata counts samples.

    Then the time between steps is far below what the events tell; where they tell nothing, every
    number is a multiple of the batch.
    """
    if averages and steps:
        shortest = median(step.seconds for step in averages) / 2
        return median(step.seconds for step in steps) < shortest
    return batch > 1 and all(step.number % int(batch) == 0 for step in steps)


def _figure(value: Any, *, zero: bool = False) -> float:
    """Return a positive number; 0 for anything else."""
    figure = figure_of(value)
    return figure if abs(figure) < 2.0**60 and (figure > 0 or zero) else 0.0


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
_VOCABULARY = (
    r"> padded vocab \(size: \d+\) with \d+ dummy tokens \(new size: (?P<padded_vocab_size>\d+)\)"
)
_BRIDGE_STEP = r"Step Time : ([\d.]{1,20})s GPU utilization: "
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


@dataclass(eq=False)
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

    _summary: dict[str, str] = field(default_factory=dict)
    _rank_0: list[PrintedStep] = field(default_factory=list)

    def end(self) -> None:
        """End a configuration that the log breaks off in."""
        super().end()
        if self.framework == "Megatron-Bridge":
            self.settings = self._summary | self.settings
            self.steps = self.steps or self._rank_0

    def _edge(self, match: re.Match[str]) -> None:
        self._close()
        self._dump = None if match[1] else {}

    def _argument(self, match: re.Match[str]) -> None:
        stated = match[1].lower(), match[3]
        # What training pads to is printed beside it, and is not undone by another start.
        if self._dump is not None and stated != ("padded_vocab_size", "None"):
            self._dump |= [stated]

    def _iteration(self, match: re.Match[str]) -> None:
        self._close()
        self.unit = "" if match[2] in _UNITS else match[2]
        if (figure := number(match[3])) and not self.unit:
            self._step(int(match[1]), figure * _UNITS[match[2]], int(match[4] or 0))

    def _mebibytes(self, match: re.Match[str]) -> None:
        kinds = ("allocated", "reserved", "device")
        for kind, amount in zip(kinds, match.groups(), strict=True):
            self.add_memory(kind, number(amount), GIB / 1024)

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

    lines: ClassVar[LineTable] = {
        " arguments ---": (_EDGE, _edge),
        " ......": (_ARGUMENT, _argument),
        step_text: (_ITERATION, _iteration),
        "memory (MB)": (_MEBIBYTES, _mebibytes),
        "padded vocab": (_VOCABULARY, LogReader.take_settings),
        "Step Time :": (_BRIDGE_STEP, _step_time),
        "memory (GB)": (r"memory \(GB\)(.*)$", _gigabytes),
        "micro_batch_size: ": (_SUMMARY, _setting),
    }


_PIECE = re.compile(
    r"\b(iteration|global_step|global_batch_size|consumed_samples|train_step_timing in s"
    r"|max_memory_allocated|max_memory_reserved)[:=]? ?([\d.e+]{1,25})"
)


@dataclass(eq=False)
class NemoReader(LogReader):
    """Takes lines of NeMo."""

    framework = "NeMo"
    step_text = "train_step_timing in s"

    _consumed: float = 0.0
    _at: int = 0
    _batch: float = 0.0

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

    lines: ClassVar[LineTable] = {step_text: (f"^.*{step_text}.*$", _timing)}


_RATES = (
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

    def _rate(self, match: re.Match[str]) -> None:
        step = int(match[1])
        if step > self._last:  # ranks print one behind another
            tokens = number(match[3].replace(",", ""))
            self._step(step, tokens and 1.0 / tokens)
        self.add_memory("reserved", number(match[2]), GIB)

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

    lines: ClassVar[LineTable] = {
        step_text: (_RATES, _rate),
        "D device mesh": (r"device mesh with \[([^\]\n]*)\], \[([\d, ]*)\]", _mesh),
        **{text: (pattern, LogReader.take_settings) for text, pattern in _FACTS.items()},
        "Compiling each": ("Compiling each", lambda reader, _: reader.notes.append("compiled")),
        "Training starts at": (
            "Training starts at .*",
            lambda reader, _: reader.take_configuration(reader.settings),
        ),
    }


_SAMPLES = (
    r"(\d{1,12}), (?:RunningAvg)?SamplesPerSec=([^,\s]{1,30})"
    r"(?:, CurrSamplesPerSec=([\d.e+-]{1,25}))?"
    r"(?:, MemAllocated=[\d.]+GB, MaxMemAllocated=([\d.]{1,20})GB)?"
)
_SETTING = r"\[config\.py:\d+:print\] {1,3}([a-z]\w*) (?:\.+|) ?(?:enabled=)?(\S+)"
_SETTINGS = (
    "gradient_accumulation_steps",
    "bfloat16_enabled",
    "bfloat16_config",
    "fp16_enabled",
    "float16_config",
)


class DeepspeedReader(LogReader):
    """Takes lines of DeepSpeed."""

    framework = "DeepSpeed"
    per = "sample"
    step_text = "SamplesPerSec="
    plan = (
        "train_batch_size",
        "train_micro_batch_size_per_gpu",
        "world_size",
        "zero_optimization_stage",
    )

    def _rate(self, match: re.Match[str]) -> None:
        samples = number(match[3] or match[2])  # of this step, or the mean of all
        self._step(int(match[1]), samples and 1.0 / samples)
        self.add_memory("allocated", number(match[4]), GIB)

    def _setting(self, match: re.Match[str]) -> None:
        if match[1] in (*self.plan, *_SETTINGS):
            self._dump = {**(self._dump or {}), match[1]: match[2]}
        if match[1] == "zero_optimization_stage":  # the last of those that matter
            self._close()

    def _version(self, match: re.Match[str]) -> None:
        self.framework = f"DeepSpeed {match[1]}"

    lines: ClassVar[LineTable] = {
        step_text: (_SAMPLES, _rate),
        "config.py": (_SETTING, _setting),
        "DeepSpeed info: version": (r"info: version=([\w.+]{1,30})", _version),
    }
