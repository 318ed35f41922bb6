"""What DeepSpeed prints: its configuration, and samples per second of all ranks together.

``CurrSamplesPerSec`` is of the last step; memory ("GB" is GiB) of rank 0. The configuration is
printed when the engine is made, one setting a line, padded with dots. Sizes of the model are not
DeepSpeed's to know.

Source: ``deepspeed/utils/timer.py``, ``deepspeed/runtime/config.py`` of deepspeedai/DeepSpeed
@edaa7221.
"""

from __future__ import annotations

import re

from nest_core.calibration.logs.megatron import number
from nest_core.calibration.logs.report import Report
from nest_core.calibration.logs.steps import Step
from nest_core.documents.units import GIB

__all__ = ["DeepspeedReader"]

_STEP = re.compile(
    r"(?:global_step=|\b\d{1,9}/)(\d{1,12}), (?:RunningAvg)?SamplesPerSec=[^,]{1,30}"
    r"(?:, CurrSamplesPerSec=([\d.e+-]{1,25}))?"
    r"(?:, MemAllocated=[\d.]+GB, MaxMemAllocated=([\d.]{1,20})GB)?"
)
_SETTING = re.compile(r"\[config\.py:\d+:print\] {1,3}([a-z]\w*) (?:\.+|) ?(\S+)\s*$")
_VERSION = re.compile(r"DeepSpeed info: version=([\w.+]{1,30})")
PLAN = (
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "world_size",
    "zero_optimization_stage",
)
_KEPT = (*PLAN, "gradient_accumulation_steps", "bfloat16_enabled", "fp16_enabled")


class DeepspeedReader:
    """Takes a log of DeepSpeed line by line."""

    def __init__(self) -> None:
        self._report = Report("DeepSpeed", per="sample")
        self._block = 0
        self._last = -1
        self._dump: dict[str, str] = {}

    def line(self, text: str) -> None:
        """Take what a line says, if it is one of this printer's."""
        if "SamplesPerSec=" in text and (found := _STEP.search(text)):
            self._step(int(found[1]), found[2] or "", found[3] or "")
        elif "config.py" in text and (found := _SETTING.search(text)):
            if found[1] in _KEPT:
                self._dump[found[1]] = found[2]
            if found[1] == "zero_optimization_stage":  # the last of those that matter
                self._close()
        elif "version=" in text and (found := _VERSION.search(text)):
            self._report.framework = f"DeepSpeed {found[1]}"

    def report(self) -> Report:
        """All that was said."""
        self._close()
        return self._report

    def _step(self, at: int, rate: str, memory: str) -> None:
        samples, held = number(rate), number(memory)
        if at < self._last:
            self._block += 1
        if samples and at != self._last:
            self._report.took(Step(self._block, at, 1.0 / samples))
        if held:
            self._report.held("allocated", held * GIB)
        self._last = at

    def _close(self) -> None:
        if self._dump:
            self._report.said |= self._dump
            plan = {name: self._dump.get(name, "") for name in PLAN}
            if plan not in self._report.runs:
                self._report.runs.append(plan)
            if self._report.steps:
                self._block, self._last = self._block + 1, -1
        self._dump = {}
