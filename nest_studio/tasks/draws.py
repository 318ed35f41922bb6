"""What worker processes do to say how sure a plan is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from nest_core.costs.price import Report
from nest_core.studies.recommended import Recommended, Searched, recommended, search_draws
from nest_studio.tasks.requests import Stop, Tell, announced, request_problem, request_scenario

__all__ = ["recommended_plan", "searched_draws"]


def searched_draws(
    text: str, best: Report, first: int, last: int, *, progress: Tell, stop: Stop
) -> Searched | None:
    """Draws from the first to before the last, searched anew; None once stopped without any."""
    scenario = request_scenario(text)
    found = search_draws(
        scenario,
        request_problem(text),
        best.plan,
        range(first, last),
        seed=scenario.seed,
        progress=progress,
        stop=stop,
    )
    return found if found.won else None


@announced("pricing what won under a thousand draws")
def recommended_plan(text: str, best: Report, parts: Sequence[Searched]) -> Recommended:
    """The plan of least expected time, and how sure that is."""
    scenario, found = request_scenario(text), reduce(or_, parts)
    return recommended(scenario, request_problem(text), best.plan, found, seed=scenario.seed)
