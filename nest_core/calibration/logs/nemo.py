"""What NeMo 2 prints: one line of averages per logged step, with four significant digits.

Steps are counted from 0, validation is outside of them, and memory, which only a callback prints,
is in bytes. Nothing of the plan is printed.

Source: ``nemo/lightning/pytorch/callbacks/progress_printer.py`` of NVIDIA/NeMo @8cfedd72.
"""

from __future__ import annotations

import re

from nest_core.calibration.logs.megatron import number
from nest_core.calibration.logs.report import LogReader

__all__ = ["NemoReader"]

_LINE = re.compile(r"Training epoch (\d{1,9}), iteration (\d{1,12})/\d+((?: \| [^|:]+: \S+)+)")
_PIECE = re.compile(r" \| ([^|:]+): (\S+)")
_MEMORY = {"max_memory_allocated": "allocated", "max_memory_reserved": "reserved"}


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
        for name, kind in _MEMORY.items():
            self._report.add_memory(kind, number(pieces.get(name, "")))
