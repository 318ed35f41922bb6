"""What a baseline found, and what is shown of it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from nest_core.costs import Plan, Report

__all__ = ["NAMES", "Baseline", "Found", "fastest"]

NAMES = {
    "manual": "Manual",
    "mcmc": "MCMC",
    "phaze": "Phaze",
    "alpa_e": "Alpa-E",
    "mist": "Mist",
}
"""Display names by key, in the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a method came to.

    Parameters
    ----------
    plan : Plan or None
        None where the method has none within the search limits; ``reason`` then says why. A
        plan that does not fit into memory is an answer too.
    origin : str
        How the method came to it, in a sentence.
    """

    plan: Plan | None
    origin: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Baseline:
    """One method's plan, priced like ours.

    Parameters
    ----------
    name, label : str
        Key and display name.
    origin : str
        How the method came to its plan.
    report : Report or None
        None where no placement exists; not feasible where it does not fit.
    reason : str
        Why there is no feasible plan; empty otherwise.
    search_seconds : float
        Time that the method took here.
    """

    name: str
    label: str
    origin: str
    report: Report | None
    reason: str
    search_seconds: float

    @property
    def feasible(self) -> bool:
        """Whether it can be run."""
        return self.report is not None and not self.reason


def fastest(baselines: Iterable[Baseline]) -> Baseline | None:
    """The feasible one with the shortest iteration, the first of equals; None where none is."""
    feasible = [entry for entry in baselines if entry.feasible]
    return min(feasible, key=_seconds, default=None)


def _seconds(entry: Baseline) -> float:
    return entry.report.iteration_s if entry.report else math.inf
