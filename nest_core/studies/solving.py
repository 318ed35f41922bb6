"""The best plan of a scenario as studies ask for it: that there is none is an answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nest_core.costs.price import Report
from nest_core.costs.problem import Problem
from nest_core.documents.errors import InputError
from nest_core.planner import search
from nest_core.scenario import ScenarioValues

__all__ = ["Solved", "Stop", "Tell", "never", "silent", "solve"]

Tell = Callable[[float, str], None]
Stop = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Solved:
    """What a search found.

    Parameters
    ----------
    report : Report or None
        The best plan.
    reason : str
        Why there is none; empty where there is one.
    gap : float
        How far the plan may be from the best, relative, as its certificate has it.
    points : int
        Plans that the certificate counts.
    """

    report: Report | None
    reason: str = ""
    gap: float = 0.0
    points: int = 0


def solve(
    scenario: ScenarioValues,
    problem: Problem,
    *,
    within_s: float = float("inf"),
    stop: Stop | None = None,
) -> Solved:
    """Search a scenario's space within its time limit.

    Parameters
    ----------
    scenario : ScenarioValues
    problem : Problem
        The scenario's.
    within_s, stop
        See `search`. A space without a plan on this fabric is a reason here, no error.
    """
    try:
        result = search(
            problem,
            scenario.space,
            time_limit_s=scenario.time_limit_s,
            within_s=within_s,
            stop=stop,
        )
    except InputError as error:
        return Solved(None, str(error))
    certificate = result.certificate
    return Solved(result.best, result.reason, certificate.gap, certificate.points)


def silent(share: float, words: str) -> None:
    """Ignore progress."""


def never() -> bool:
    """Return that nothing is to stop."""
    return False
