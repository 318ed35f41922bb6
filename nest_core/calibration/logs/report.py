"""What a reader hands back, and the steady step of a log.

The steady step of a log: the median after warm-up, without what is no step alone.

A log comes in blocks: from the start, from every restart, and where a printer times what lies
between its lines, from every evaluation. The first steps of a block compile, allocate and fill
caches. What takes `FAR` times as long as the median, or as little, is an evaluation, a checkpoint
or a line that is broken.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from operator import itemgetter
from statistics import median, median_low
from typing import Any, ClassVar, Literal

from nest_core.documents import figure_of

__all__ = [
    "MAX_STEPS",
    "MIN_LINES",
    "LineTable",
    "LogReader",
    "PrintedStep",
    "Steady",
    "number",
    "steady_of",
]

WARM_UP = 3
"""Steps at the start of a block that are never counted, nor the first line of one."""

MIN_LINES = 2
"""Lines of steady steps: one alone tells nothing of the others."""

FAR = 1.5


@dataclass(frozen=True, slots=True)
class PrintedStep:
    """A line that tells how long a step takes.

    Parameters
    ----------
    block : int
    number : int
        The step, or the last of those whose mean this is.
    seconds : float
    batch : int
        Sequences; 0 where the line does not tell.
    """

    block: int
    number: int
    seconds: float
    batch: int = 0


@dataclass(frozen=True, slots=True)
class Steady:
    """A step of a run that is warm.

    Parameters
    ----------
    seconds : float
    used, warm_up, aside : int
        Lines: counted; of warm-up; left out because they are far from the others, or of another
        batch.
    batch : int
        That most of the lines have; 0 where they do not tell.
    """

    seconds: float
    used: int
    warm_up: int
    aside: int
    batch: int


def steady_of(steps: Sequence[PrintedStep], batch: int = 0) -> Steady | None:
    """Return the steady step; None where warm-up is all there is, or one line beside it.

    Parameters
    ----------
    steps : sequence of PrintedStep
    batch : int
        Sequences per step where something else tells; lines of others are of a ramp.

    Examples
    --------
    >>> times = [9.0, 2.0, 1.1, 1.0, 1.02, 1.0, 7.0, 1.0]
    >>> steady_of([PrintedStep(0, number, time) for number, time in enumerate(times)])
    Steady(seconds=1.0, used=4, warm_up=3, aside=1, batch=0)
    """
    warm = [
        step
        for _, block in groupby(steps, key=lambda step: step.block)
        for step in _after_warm_up(list(block))
    ]
    if len(warm) < MIN_LINES:
        return None
    counts = Counter(step.batch for step in warm)
    batch = batch if batch in counts else counts.most_common(1)[0][0]
    same = [step.seconds for step in warm if step.batch == batch]
    middle = median_low(same)  # one of them, so that some are near
    near = [seconds for seconds in same if middle / FAR <= seconds <= middle * FAR]
    return Steady(median(near), len(near), len(steps) - len(warm), len(warm) - len(near), batch)


def _after_warm_up(block: Sequence[PrintedStep]) -> list[PrintedStep]:
    """Leave out lines whose mean reaches into the first steps of their block."""
    gaps = sorted(b.number - a.number for a, b in pairwise(block))
    usual = gaps[len(gaps) // 2] if gaps else 1
    first = block[0].number
    return [step for step in block[1:] if step.number - first >= max(usual, WARM_UP)]


_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

MAX_STEPS = 50_000
"""More would fill the memory and move no median."""


LineTable = Mapping[str, tuple[str, Callable[[Any, re.Match[str]], None]]]


@dataclass(eq=False)
class LogReader:
    """Takes lines of a log and holds what they say; each printer has a reader of its own.

    Attributes
    ----------
    lines : dict
        By a text without which a block of lines has nothing of it: the pattern of what this printer
        prints, within a line, and what takes a match. What stands in front of it (a launcher's, a
        container's words) is no part of the pattern and may be anything.
    step_text : str
        The text of its steps: once there are `MAX_STEPS`, others are not looked for.
    framework : str
    per : {"step", "sample", "token"}
        What the steps' seconds are for: a step, one sequence of its batch, or one token of a
        device, for printers that give rates.
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
    unit : str
        Of a time that is in none that the printer has; empty where all are read.
    """

    framework = "launch"
    per: ClassVar[Literal["step", "sample", "token"]] = "step"
    unit = step_text = ""
    plan: ClassVar[tuple[str, ...]] = ()
    """Settings in which runs of one file must agree."""

    lines: ClassVar[LineTable] = {}
    settings: dict[str, str] = field(default_factory=dict)
    steps: list[PrintedStep] = field(default_factory=list)
    memory_bytes: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    runs: list[Mapping[str, str]] = field(default_factory=list)
    _dump: dict[str, str] | None = None
    _block: int = 0
    _last: int = -1

    def read(self, block: bytes) -> None:
        """Take what the lines of a block say, in their order; colours and broken characters are
        no part of them.
        """
        is_full = len(self.steps) >= MAX_STEPS
        wanted = [
            line
            for text, line in self.lines.items()
            if text.encode() in block and not (is_full and text == self.step_text)
        ]
        text = _COLOUR.sub("", block.decode("utf-8", "replace")) if wanted else ""
        matches = [
            (match.end(), take, match)
            for pattern, take in wanted
            for match in re.finditer(pattern, text, re.MULTILINE)
        ]
        for _, take, match in sorted(matches, key=itemgetter(0)):
            take(self, match)

    def end(self) -> None:
        """End the log, with what its last lines began."""
        self._close()

    def _close(self) -> None:
        """End a configuration that is printed line by line."""
        if self._dump:
            self.take_configuration(self._dump)
        self._dump = None

    def take_settings(self, match: re.Match[str]) -> None:
        """Take the settings that a pattern names."""
        self.settings |= {name: value for name, value in match.groupdict().items() if value}

    def add_memory(self, kind: str, amount: float | None, unit_bytes: float = 1.0) -> None:
        """Note that a device held so many bytes, if it is a number."""
        if amount:
            self.memory_bytes[kind] = max(amount * unit_bytes, self.memory_bytes.get(kind, 0.0))

    def take_configuration(self, settings: Mapping[str, str]) -> None:
        """Take a printed configuration; what follows belongs to a new start."""
        self.settings |= settings
        plan = {name: settings.get(name, "") for name in self.plan}
        if plan not in self.runs:
            self.runs.append(plan)
        if self.steps:
            self._block, self._last = self._block + 1, -1

    def _step(self, number: int, seconds: float | None, batch: int = 0) -> None:
        """Take a step, whose number falls after a restart; some print a line on several ranks.

        The first `MAX_STEPS` are taken.
        """
        self._block += number < self._last
        if seconds and number != self._last and len(self.steps) < MAX_STEPS:
            self.steps.append(PrintedStep(self._block, number, seconds, batch))
        self._last = number


def number(text: str | None) -> float | None:
    """Return a positive number; None for what two lines made of one another, and for nothing."""
    value = figure_of(text)
    return value if 0 < value < 1e15 else None
