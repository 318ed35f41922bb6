"""What NeMo 2 prints: one line of averages per logged step, with four significant digits.

Steps are counted from 0, validation is outside of them, and memory, which only a callback prints,
is in bytes. Nothing of the plan is printed.

Source: ``nemo/lightning/pytorch/callbacks/progress_printer.py`` of NVIDIA/NeMo @8cfedd72.
"""

from __future__ import annotations

import re

from nest_core.calibration.logs.megatron import number
from nest_core.calibration.logs.report import Report
from nest_core.calibration.logs.steps import Step

__all__ = ["NemoReader"]

_LINE = re.compile(r"Training epoch (\d{1,9}), iteration (\d{1,12})/\d+((?: \| [^|:]+: \S+)+)")
_PIECE = re.compile(r" \| ([^|:]+): (\S+)")
_MEMORY = {"max_memory_allocated": "allocated", "max_memory_reserved": "reserved"}


class NemoReader:
    """Takes a log of NeMo line by line."""

    def __init__(self) -> None:
        self._report = Report("NeMo")
        self._block = 0
        self._last = (-1, -1)

    def line(self, text: str) -> None:
        """Take what a line says, if it is one of this printer's."""
        if "Training epoch" not in text or not (found := _LINE.search(text)):
            return
        pieces = dict(_PIECE.findall(found[3]))
        batch = number(pieces.get("global_batch_size", ""))
        seconds = number(pieces.get("train_step_timing in s", ""))
        at = int(found[1]), int(found[2])
        if seconds and at != self._last:
            self._block += at < self._last
            self._report.took(Step(self._block, at[1], seconds, int(batch or 0)))
            self._last = at
        for name, kind in _MEMORY.items():
            if held := number(pieces.get(name, "")):
                self._report.held(kind, held)

    def report(self) -> Report:
        """All that was said."""
        return self._report
