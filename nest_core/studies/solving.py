"""The best plan of a scenario as studies ask for it: that there is none is an answer."""

from collections.abc import Callable

from nest_core.costs import Problem
from nest_core.documents import InputError
from nest_core.planner import Certificate, SearchResult, search
from nest_core.scenario import ScenarioValues

__all__ = ["Stop", "Tell", "never", "silent", "solve"]

Tell = Callable[[float, str], None]
Stop = Callable[[], bool]


def solve(
    scenario: ScenarioValues,
    problem: Problem,
    *,
    within_s: float = float("inf"),
    stop: Stop | None = None,
) -> SearchResult:
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
        return search(
            problem,
            scenario.space,
            time_limit_s=scenario.time_limit_s,
            within_s=within_s,
            stop=stop,
        )
    except InputError as error:
        nothing = Certificate(float("inf"), 0.0, True, 0, 0, 0, 0, scenario.space)
        return SearchResult(None, str(error), 0.0, (), nothing, (), 0.0)


def silent(share: float, words: str) -> None:
    """Ignore progress."""


def never() -> bool:
    """Return that nothing is to stop."""
    return False
