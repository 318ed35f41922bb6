"""What the charts of a comparison share: grids, percentages at their ticks, bars with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable

from nest_core.documents.units import signed_percent
from nest_core.report.picture.marks import Line, Mark, Words
from nest_core.report.scale import Scale

__all__ = ["SMALL", "Ends", "percent_ticks", "vertical_grid", "vertical_line"]

SMALL = 12.0
"""Size of type."""

Ends = tuple[float, float]


def vertical_line(look: str, x: float, ends: Ends, width: float = 1.0) -> Line:
    """Return a line down from the first end to the second."""
    return Line("", look, ((x, ends[0]), (x, ends[1])), width)


def vertical_grid(
    scale: Scale, ends: Ends, words: Callable[[float], str], most: int = 3
) -> list[Mark]:
    """Return a line down at every round value, its words below."""
    marks: list[Mark] = []
    for value in scale.ticks(most):
        x = scale(value)
        marks.append(vertical_line("grid", x, ends))
        marks.append(Words(words(value), "soft", x, ends[1] + 16, anchor="middle"))
    return marks


def percent_ticks(scale: Scale, most: int = 3) -> Callable[[float], str]:
    """Return how a scale of relative differences writes its ticks, in the fewest digits."""
    digits = 0 if all(math.isclose(100 * v, round(100 * v)) for v in scale.ticks(most)) else 1
    return lambda value: signed_percent(value, digits)
