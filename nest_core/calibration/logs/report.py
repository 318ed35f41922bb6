"""What a reader hands back: settings in the framework's own words, steps and memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from nest_core.calibration.logs.steps import PrintedStep

__all__ = ["MAX_STEPS", "LogReader", "LogReport"]


Per = Literal["step", "sample", "token"]

MAX_STEPS = 200_000
"""More would fill the memory and move no median."""


@dataclass(slots=True)
class LogReport:
    """What a log says.

    Parameters
    ----------
    framework : str
    settings : dict
        Settings, by the names that the framework prints, as text.
    steps : list of PrintedStep
    memory_bytes : dict
        Peak of the fullest device that printed, by how it was counted (``allocated``,
        ``reserved``, ``device``).
    notes : list of str
        Facts that no setting holds, in the words of column ``notes``.
    runs : list of mapping
        The plan of every configuration that was printed.
    device : str
        The accelerator, where it is printed.
    unit : str
        Of a time that is in none that the printer has; empty where all are read.
    per : {"step", "sample", "token"}
        What the steps' seconds are for: a step, one sequence of its batch, or one token of a
        device, for printers that give rates.
    """

    framework: str
    settings: dict[str, str] = field(default_factory=dict)
    steps: list[PrintedStep] = field(default_factory=list)
    memory_bytes: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    runs: list[Mapping[str, str]] = field(default_factory=list)
    device: str = ""
    unit: str = ""
    per: Per = "step"

    def add_memory(self, kind: str, amount: float | None) -> None:
        """Note that a device held so many bytes, if it is a number."""
        if amount:
            self.memory_bytes[kind] = max(amount, self.memory_bytes.get(kind, 0.0))


class LogReader:
    """Takes a log line by line; each printer has a reader of its own."""

    framework = ""
    per: Per = "step"

    def __init__(self) -> None:
        self._report = LogReport(self.framework, per=self.per)
        self._block = 0
        self._last = -1

    def line(self, text: str) -> None:
        """Take what a line says, if it is one of this printer's."""
        raise NotImplementedError

    def report(self) -> LogReport:
        """Return all that the lines say."""
        return self._report

    def _step(self, number: int, seconds: float | None, batch: int = 0) -> None:
        """Take a step, whose number falls after a restart; some print a line on several ranks.

        The first `MAX_STEPS` are taken.
        """
        self._block += number < self._last
        if seconds and number != self._last and len(self._report.steps) < MAX_STEPS:
            self._report.steps.append(PrintedStep(self._block, number, seconds, batch))
        self._last = number

    def _restart(self) -> None:
        """Begin another block, as a new start does once steps were printed."""
        if self._report.steps:
            self._block, self._last = self._block + 1, -1
