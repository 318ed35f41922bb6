"""Linear axes of small charts: from values to pixels, and the round values that carry a tick."""

import math
from dataclasses import dataclass

__all__ = ["Scale", "round_ticks"]


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear axis.

    Parameters
    ----------
    low, high : float
        Values at its ends.
    start, end : float
        Pixels of its ends.
    """

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the pixel of a value; one beyond an end is drawn at that end."""
        return self.start + (self.end - self.start) * (
            min(max(value, self.low), self.high) - self.low
        ) / (self.high - self.low)

    def holds(self, value: float) -> bool:
        """Return whether a value lies on the axis."""
        return self.low <= value <= self.high

    def ticks(self, max_ticks: int) -> list[float]:
        """Return its round values."""
        return round_ticks(self.low, self.high, max_ticks)


def round_ticks(low: float, high: float, max_ticks: int = 5) -> list[float]:
    """Return round numbers from low to high, about ``max_ticks`` of them.

    Examples
    --------
    >>> round_ticks(0.88, 1.31), round_ticks(0.0, 31.0, 4)
    ([0.9, 1.0, 1.1, 1.2, 1.3], [0.0, 10.0, 20.0, 30.0])
    """
    if not high > low:
        return [low]
    rough = (high - low) / max_ticks
    scale = 10.0 ** math.floor(math.log10(rough))
    step = next(
        (times * scale for times in (1, 2, 2.5, 5, 10) if times * scale >= rough * 0.85), 10 * scale
    )
    first = math.ceil(low / step - 1e-9)
    return [round(n * step, 12) for n in range(first, math.floor(high / step + 1e-9) + 1)]
