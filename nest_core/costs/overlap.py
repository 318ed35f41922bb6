"""Communication that runs while a device computes, and what it then costs.

Of communication that takes ``x`` seconds and has ``cover`` seconds of compute to hide behind, the
share ``f`` is hidden, and computing takes ``slowdown`` seconds more for every second hidden:

    exposed = x - f min(x, cover),  hidden = f min(x, cover),  cost = exposed + slowdown * hidden

Classes that hide behind the same compute share it: each has as cover what those before it left,
so that together they hide no more than there is, and nothing that gets faster makes a plan slower.
What the cover is, class by class, stands in ``docs/method.md``, "Overlap".
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from nest_core.documents.errors import require
from nest_core.network import FloatArray

__all__ = ["IDEAL_OVERLAP", "NO_OVERLAP", "Overlap"]


@dataclass(frozen=True, slots=True)
class Overlap:
    """How much of each class of traffic hides behind compute.

    Parameters
    ----------
    name : {"none", "ideal", "fitted"}
        Shown wherever times are.
    tp : float
        Share of what goes on inside a layer: tensor, context and expert collectives.
    pp : float
        Share of pipeline transfers.
    dp : float
        Share of gradient synchronisation and of ZeRO's traffic.
    slowdown : float
        Seconds of compute lost per second hidden, at most 1.
    experts : bool
        Whether forward passes of one micro-batch run beside backward passes of another, so that
        all-to-alls of experts hide as gradients do: behind work that does not wait for them
        (Megatron-LM's ``--overlap-moe-expert-parallel-comm``). See `schedules.paired`.
    """

    name: Literal["none", "ideal", "fitted"]
    tp: float = 0.0
    pp: float = 0.0
    dp: float = 0.0
    slowdown: float = 0.0
    experts: bool = False

    def __post_init__(self) -> None:
        for field in ("tp", "pp", "dp", "slowdown"):
            value = getattr(self, field)
            require(
                0.0 <= value <= 1.0,
                f"overlap.{field}",
                "must lie between 0 and 1",
                value,
                "correct it",
            )

    @property
    def within(self) -> float:
        """Seconds saved per second inside a layer that has cover."""
        return self.tp * (1.0 - self.slowdown)

    @property
    def transfer(self) -> float:
        """Seconds saved per second of pipeline transfers that has cover."""
        return self.pp * (1.0 - self.slowdown)

    @property
    def data(self) -> float:
        """Seconds saved per second of data-parallel traffic that has cover."""
        return self.dp * (1.0 - self.slowdown)

    def experts_saved(self, paired: FloatArray) -> FloatArray:
        """Seconds saved per second of experts' all-to-alls, a share of which has other passes
        beside it."""
        return np.asarray(self.within + paired * max(0.0, self.data - self.within))


NO_OVERLAP = Overlap("none")
"""Every transfer is exposed."""

IDEAL_OVERLAP = Overlap("ideal", 1.0, 1.0, 1.0)
"""Everything hides that finds compute to hide behind."""
