"""What DeepSpeed prints: its configuration, and samples per second of all ranks together.

``CurrSamplesPerSec`` is of the last step; memory ("GB" is GiB) of rank 0. The configuration is
printed when the engine is made, one setting a line, padded with dots. Sizes of the model are not
DeepSpeed's to know.

Release 0.19.8 prints none of this unless its configuration has ``"log_level": "info"``.

Source: ``deepspeed/utils/timer.py``, ``deepspeed/runtime/config.py`` of deepspeedai/DeepSpeed
@edaa7221, release 0.19.8.
"""

import re

from nest_core.calibration.logs.report import LogReader, number
from nest_core.documents import GIB

__all__ = ["DeepspeedReader"]

_STEP = (
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

    def __init__(self) -> None:
        super().__init__()
        self._dump: dict[str, str] = {}
        self.lines = {
            self.step_text: (_STEP, self._rate),
            "config.py": (_SETTING, self._setting),
            "DeepSpeed info: version": (r"info: version=([\w.+]{1,30})", self._version),
        }

    def _rate(self, match: re.Match[str]) -> None:
        samples = number(match[3] or match[2])  # of this step, or the mean of all
        self._step(int(match[1]), samples and 1.0 / samples)
        self.add_memory("allocated", number(match[4]), GIB)

    def _setting(self, match: re.Match[str]) -> None:
        if match[1] in (*self.plan, *_SETTINGS):
            self._dump[match[1]] = match[2]
        if match[1] == "zero_optimization_stage":  # the last of those that matter
            self.end()

    def _version(self, match: re.Match[str]) -> None:
        self.framework = f"DeepSpeed {match[1]}"

    def end(self) -> None:
        """End a configuration, if one has begun."""
        if self._dump:
            self._configured(self._dump)
        self._dump = {}
