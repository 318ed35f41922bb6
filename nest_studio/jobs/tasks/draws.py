"""What worker processes do to say how sure a plan is."""

from collections.abc import Sequence
from itertools import chain

from nest_core.costs.price import Report
from nest_core.scenario import Scenario
from nest_core.studies.recommended import DrawResult, Recommended, recommended, search_draws
from nest_studio.jobs.tasks.requests import Stop, Tell, announced, problem_of

__all__ = ["recommended_plan", "searched_draws"]


def searched_draws(
    scenario: Scenario, best: Report, first: int, last: int, *, progress: Tell, stop: Stop
) -> tuple[DrawResult, ...] | None:
    """Draws from the first to before the last, searched anew; None once stopped without any."""
    values = scenario.values
    return (
        search_draws(
            values,
            problem_of(scenario),
            best.plan,
            range(first, last),
            seed=values.seed,
            progress=progress,
            stop=stop,
        )
        or None
    )


@announced("pricing what won under a thousand draws")
def recommended_plan(
    scenario: Scenario, best: Report, parts: Sequence[tuple[DrawResult, ...]]
) -> Recommended:
    """Return the plan of least expected time, and how sure that is."""
    values, won = scenario.values, tuple(chain(*parts))
    return recommended(values, problem_of(scenario), best.plan, won, seed=values.seed)
