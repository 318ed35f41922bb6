"""What a reader hands back: settings in the framework's own words, steps and memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from nest_core.calibration.logs.steps import Step

__all__ = ["MOST_STEPS", "LogReader", "Report"]


MOST_STEPS = 200_000
"""More would fill the memory and move no median."""


@dataclass(slots=True)
class Report:
    """What a log says.

    Parameters
    ----------
    framework : str
    said : dict
        Settings, by the names that the framework prints, as text.
    steps : list of Step
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
    said: dict[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    memory_bytes: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    runs: list[Mapping[str, str]] = field(default_factory=list)
    device: str = ""
    unit: str = ""
    per: Literal["step", "sample", "token"] = "step"

    def took(self, step: Step) -> None:
        """A step took so long; the first `MOST_STEPS` are kept."""
        if len(self.steps) < MOST_STEPS:
            self.steps.append(step)

    def held(self, kind: str, amount: float) -> None:
        """A device held so many bytes."""
        self.memory_bytes[kind] = max(amount, self.memory_bytes.get(kind, 0.0))


class LogReader(Protocol):
    """Takes a log line by line."""

    def line(self, text: str) -> None:
        """Take what a line says, if it is one of this printer's."""

    def report(self) -> Report:
        """All that was said."""
