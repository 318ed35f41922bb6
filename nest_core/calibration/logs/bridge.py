"""What Megatron-Bridge prints: Megatron-LM's iteration lines beside lines of its own.

``Step Time`` comes from rank 0 and iteration lines from the last, so which is first in a merged
file is not certain; iteration lines have more digits and are taken where there are any. Memory is
in 10^9 bytes. Its configuration is no dump of arguments: keys of YAML are taken where printed,
the rest comes from the launch command.

Source: ``src/megatron/bridge/training/utils/train_utils.py`` of NVIDIA-NeMo/Megatron-Bridge
@067f987d.
"""

from __future__ import annotations

import re

from nest_core.calibration.logs.megatron import MegatronReader, number
from nest_core.calibration.logs.report import MAX_STEPS, LogReport
from nest_core.calibration.logs.settings import NAMES
from nest_core.calibration.logs.steps import PrintedStep
from nest_core.documents.units import GB

__all__ = ["BridgeReader"]

_STEP = re.compile(r"Step Time : ([\d.]{1,20})s GPU utilization: ")
_MEMORY = re.compile(r"\[Rank \d+\] \(after \d+ iterations\) memory \(GB\)(.*)$")
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
        self._seen = False
        self._counted = 0

    def line(self, text: str) -> None:
        """Take what a line says, if it is one of this printer's."""
        if "Step Time" in text and (match := _STEP.search(text)):
            self._seen, self._counted = True, self._counted + 1
            if (seconds := number(match[1])) and self._counted <= MAX_STEPS:
                self._own.append(PrintedStep(0, self._counted, seconds))
        elif "memory (GB)" in text and (match := _MEMORY.search(text)):
            self._seen = True
            for kind, amount in _HELD.findall(match[1]):
                gigabytes = number(amount)
                self._report.add_memory(kind, gigabytes and gigabytes * GB)
        elif not self._seen and ": " in text and (match := _SETTING.match(text)):
            if match[1] in _KNOWN:
                self._report.settings[match[1]] = match[2]
        else:
            super().line(text)

    def report(self) -> LogReport:
        """Return all that the lines say; no step where no line is of this printer alone."""
        report = super().report()
        if not self._seen:
            return LogReport(self.framework)
        report.steps = report.steps or self._own
        return report
