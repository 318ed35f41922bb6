"""What MLPerf's logger prints: events as JSON behind ``:::MLLOG``.

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

from nest_core.calibration.logs.report import MAX_STEPS, WARM_UP, LineTable, LogReader, PrintedStep
from nest_core.documents import GIB, figure_of

__all__ = ["MllogReader"]

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
