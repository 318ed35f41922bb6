"""What worker processes do to say how sure a plan is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from nest_core.costs.price import Report
from nest_core.studies.draw_search import Won, search_draws
from nest_core.studies.recommended import Recommended, recommended
from nest_studio.tasks.requests import Stop, Tell, announced, request_problem, request_scenario

__all__ = ["recommended_plan", "searched_draws"]


def searched_draws(
    text: str, best: Report, first: int, last: int, *, progress: Tell, stop: Stop
) -> tuple[Won, ...] | None:
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
    return found or None


@announced("pricing what won under a thousand draws")
def recommended_plan(text: str, best: Report, parts: Sequence[tuple[Won, ...]]) -> Recommended:
    """The plan of least expected time, and how sure that is."""
    scenario, won = request_scenario(text), tuple(chain(*parts))
    return recommended(scenario, request_problem(text), best.plan, won, seed=scenario.seed)
