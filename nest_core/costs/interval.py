"""Between which times a priced plan will lie in four runs of five.

`nest_core.studies.uncertainty` finds one; here is what it says.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nest_core.hardware.posterior import SHARE, WIDTH

__all__ = ["Interval", "Span", "span_in_words"]

Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Interval:
    """Where a plan's time will lie.

    Parameters
    ----------
    centre_s : float
        The price.
    spread : float
        Standard deviation of the time's logarithm.
    """

    centre_s: float
    spread: float

    @property
    def low_s(self) -> float:
        """Its lower end, s."""
        return self.around(self.centre_s)[0]

    @property
    def high_s(self) -> float:
        """Its upper end, s."""
        return self.around(self.centre_s)[1]

    def around(self, value: float) -> Span:
        """Return the same about another time, or about a rate: both ends are ratios.

        Examples
        --------
        >>> Interval(1.0, 0.0).around(7.0)
        (7.0, 7.0)
        """
        width = float(np.exp(WIDTH * self.spread))
        return value / width, value * width

    def to_json(self) -> dict[str, float]:
        """Return the fields of the command line's ``interval``."""
        return {
            "centre_s": self.centre_s,
            "low_s": self.low_s,
            "high_s": self.high_s,
            "share": SHARE,
        }


def span_in_words(span: Span, words: Callable[[float], str]) -> str:
    """Return a range; what both ends share of their unit stands once.

    Examples
    --------
    >>> from nest_core.documents.units import humanise_seconds
    >>> span_in_words((11.6, 13.1), humanise_seconds)
    '11.6 to 13.1 s'
    >>> span_in_words((0.9, 1.1), humanise_seconds)
    '900 ms to 1.10 s'
    """
    low, high = (words(end).split() for end in span)
    shared = 0
    while shared < min(len(low), len(high)) - 1 and low[-1 - shared] == high[-1 - shared]:
        shared += 1
    return " ".join((*low[: len(low) - shared], "to", *high))
