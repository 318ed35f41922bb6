"""When a server collects garbage: seldom, and never what is there to stay."""

import gc
import time
from collections.abc import Callable

__all__ = ["Collector", "collector"]

EVERY_S = 20.0


class Collector:
    """Collects at most once in a while, in place of Streamlit after every run.

    Pictures are full of cycles that only a collection frees, and one takes 0.1 to 0.4 s in which
    no session moves. After every run it took half of the time of a server with twenty people;
    left to Python's own counting, memory grew by a quarter in five hundred runs.

    Parameters
    ----------
    clock : callable () -> float
        Seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = -float("inf")

    def after_run(self) -> None:
        """Collect, if the last time is long past; the first time what is imported is frozen."""
        now = self._clock()
        if now < self._last + EVERY_S:
            return
        first, self._last = self._last == -float("inf"), now
        gc.collect()
        if first:
            gc.freeze()


collector = Collector()
"""The one of this server: a second would freeze what was only there for a moment."""
