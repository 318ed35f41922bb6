"""How surely a plan fits: the spread of memory that was measured about what was predicted.

``presets/validation/memory.toml`` holds, for every framework with enough measured runs, the root
mean square of ``log(measured / predicted)``, sources counting alike, so that what a prediction is
off on average counts as spread; ``benchmarks/validation`` writes it. Of a framework with fewer
runs the spread is that of all, which is flat: it says nothing of its software.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

from nest_core.documents import humanise_bytes, kept_per_edition, load_toml, percent, preset_path

__all__ = [
    "CERTAINTIES",
    "FEWEST",
    "POOLED",
    "SHARE",
    "SURE",
    "MemorySpread",
    "at_most",
    "certainty_words",
    "fits_chance",
    "spread_of",
    "spread_where",
    "sure_words",
]

SHARE = 0.8
"""Of runs inside the interval about a prediction."""

SURE = 0.95
"""How surely a plan must fit."""

CERTAINTIES = (0.8, SURE, 0.99)
"""Steps of head-room: how surely plans that are compared fit."""

FEWEST = 5
"""Measured runs below which a framework has no spread of its own."""

PATH = ("validation", "memory.toml")
POOLED = "all"


@dataclass(frozen=True, slots=True)
class MemorySpread:
    """What measured runs say of a framework's memory.

    Parameters
    ----------
    framework : str
        ``all``: no runs of its own, or too few.
    sd : float
        Of the logarithm of measured over predicted bytes.
    runs, sources : int
    """

    framework: str
    sd: float
    runs: int
    sources: int

    @property
    def flat(self) -> bool:
        """Whether it is the spread of all frameworks together."""
        return self.framework == POOLED

    def in_words(self, stack: str) -> str:
        """Return how far memory under a stack is from what is predicted, and how that is known."""
        if not self.sd:
            return f"Memory under {stack} has no error band (docs/validation.md, Memory)."
        among = (
            f"the {self.runs} measured of all frameworks, as of this one fewer than {FEWEST} were"
            if self.flat
            else f"{self.runs} measured of {self.framework}"
        )
        return (
            f"Memory under {stack}: four runs of five within {percent(self.factor - 1)} ({among})."
        )

    @property
    def factor(self) -> float:
        """By which `SHARE` of runs are at most over or under."""
        return math.exp(NormalDist().inv_cdf((1 + SHARE) / 2) * self.sd)

    def chance_in_words(self, needed_bytes: float, memory_bytes: float) -> str:
        """How likely a prediction fits."""
        return certainty_words(fits_chance(needed_bytes, memory_bytes, self.sd))

    def to_json(self, needed_bytes: float, memory_bytes: float, stack: str) -> dict[str, object]:
        """Return what it says of a prediction: centre, interval, and how likely it fits."""
        return {
            "centre_bytes": needed_bytes,
            "low_bytes": needed_bytes / self.factor,
            "high_bytes": needed_bytes * self.factor,
            "share": SHARE,
            "surely_bytes": needed_bytes * memory_bytes / at_most(memory_bytes, self.sd),
            "fits": fits_chance(needed_bytes, memory_bytes, self.sd),
            "stack": stack,
            "framework": self.framework,
            "runs": self.runs,
            "flat": self.flat,
            "words": f"{humanise_bytes(needed_bytes / self.factor)} to "
            f"{humanise_bytes(needed_bytes * self.factor)}, "
            f"{self.chance_in_words(needed_bytes, memory_bytes)}. {self.in_words(stack)}",
        }


def at_most(memory_bytes: float, sd: float, certainty: float = SURE) -> float:
    """Bytes that may be predicted, so that memory is enough with such a probability."""
    return memory_bytes * math.exp(-NormalDist().inv_cdf(certainty) * sd)


def fits_chance(needed_bytes: float, memory_bytes: float, sd: float) -> float:
    """How likely a plan fits that is predicted to need so much.

    Examples
    --------
    >>> fits_chance(80.0, 80.0, 0.06)
    0.5
    >>> round(fits_chance(at_most(80.0, 0.06), 80.0, 0.06), 3)
    0.95
    """
    return (
        float(needed_bytes <= memory_bytes)
        if not sd or not math.isfinite(memory_bytes)
        else NormalDist().cdf(math.log(memory_bytes / needed_bytes) / sd)
    )


def certainty_words(chance: float) -> str:
    """``fits with 97 % certainty``."""
    return f"fits with {'over 99 %' if chance > 0.99 else f'{100 * chance:.0f} %'} certainty"


def spread_where(sd: float, deviations: float) -> float:
    """Return the spread at which what fits with certainty `SURE` fits so many deviations over, too.

    Examples
    --------
    >>> spread_where(0.06, 1.0)
    0.06
    >>> round(at_most(80.0, spread_where(0.06, 2.0)) * math.exp(2.0 * 0.06), 6)
    80.0
    """
    return sd * max(1.0, deviations / NormalDist().inv_cdf(SURE))


def sure_words(memory_bytes: float, sd: float, certainty: float = SURE) -> str:
    """Return the bytes that a plan may need, in words."""
    if not sd:
        return f"the {humanise_bytes(memory_bytes)} there are"
    return (
        f"the {humanise_bytes(at_most(memory_bytes, sd, certainty))} that fit into "
        f"{humanise_bytes(memory_bytes)} with {percent(certainty)} certainty"
    )


def spread_of(framework: str) -> MemorySpread:
    """Return the spread of a framework, or the flat one."""
    spreads = _spreads()
    return spreads.get(framework) or spreads.get(POOLED) or MemorySpread(POOLED, 0.0, 0, 0)


@kept_per_edition(1)
def _spreads() -> Mapping[str, MemorySpread]:
    path = preset_path(*PATH)
    entries = load_toml(path).get("spread", ()) if path.is_file() else ()
    spreads = (
        MemorySpread(str(e["framework"]), float(e["sd"]), int(e["runs"]), int(e["sources"]))
        for e in entries
    )
    return {spread.framework: spread for spread in spreads}
