"""What the plan page shows without its baselines."""

from __future__ import annotations

from nest_core.api.answer import Answer
from nest_core.planner import search
from nest_core.scenario import ScenarioValues
from nest_core.studies.uncertainty import interval_of

__all__ = ["our_plan"]


def our_plan(scenario: ScenarioValues) -> Answer:
    """Our plan alone."""
    problem = scenario.problem()
    result = search(problem, scenario.space, top=scenario.top)
    interval = interval_of(scenario, problem, result.best) if result.best else None
    return Answer(scenario, problem.network, result, (), interval)
