"""What a baseline found, and what is shown of it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from nest_core.costs import Plan, Report

__all__ = ["NAMES", "Baseline", "Found", "Waterfall", "fastest"]

NAMES = {
    "nest": "NEST, level-wise program (paper)",
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
    promised_s : float or None
        Seconds of an iteration that the method expected, where it has costs of its own.
    """

    plan: Plan | None
    origin: str
    reason: str = ""
    promised_s: float | None = None


@dataclass(frozen=True, slots=True)
class Waterfall:
    """Seconds by which the level-wise program's plan is slower than the exact search's, by cause.

    The terms add up to the difference; one is negative where the program gains by it.

    Parameters
    ----------
    schedule : float
        1F1B alone, under the exact search.
    memory_rule : float
        ZeRO raised only where a stage does not fit, under the program.
    objective : float
        The paper's objective, and what the program may do besides that the exact search may not:
        ZeRO and strategies stage by stage, gaps.
    levels : float
        Levels in place of links, under the exact search with 1F1B.
    widths : float
        Unequal widths: its plan against the best of its plans whose stages are equally wide.
    """

    schedule: float
    memory_rule: float
    objective: float
    levels: float
    widths: float

    @property
    def total(self) -> float:
        """The difference."""
        return self.schedule + self.memory_rule + self.objective + self.levels + self.widths


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
    promised_s : float or None
        Seconds of an iteration that the method expected, where it has costs of its own.
    waterfall : Waterfall or None
        Of ``nest``, where both it and the exact search have a plan.
    """

    name: str
    label: str
    origin: str
    report: Report | None
    reason: str
    search_seconds: float
    promised_s: float | None = None
    waterfall: Waterfall | None = None

    @property
    def feasible(self) -> bool:
        """Whether it can be run."""
        return self.report is not None and not self.reason


def fastest(baselines: Iterable[Baseline]) -> Baseline | None:
    """The feasible one with the shortest iteration, the first of equals; None where none is.

    NEST's program is no rival: it is a planner of this product, beside the exact search.
    """
    feasible = [entry for entry in baselines if entry.feasible and entry.name != "nest"]
    return min(feasible, key=_seconds, default=None)


def _seconds(entry: Baseline) -> float:
    return entry.report.iteration_s if entry.report else math.inf
