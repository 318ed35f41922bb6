"""The steady step of a log: the median after warm-up, without what is no step alone.

A log comes in blocks: from the start, from every restart, and where a printer times what lies
between its lines, from every evaluation. The first steps of a block compile, allocate and fill
caches. What takes `FAR` times as long as the median, or as little, is an evaluation, a checkpoint
or a line that is broken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import median, median_low

__all__ = ["PrintedStep", "Steady", "steady_of"]

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
