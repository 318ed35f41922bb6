"""What the plan page shows without its baselines."""

from __future__ import annotations

from nest_core.api.answer import Answer
from nest_core.planner import search
from nest_core.scenario import Scenario

__all__ = ["our_plan"]


def our_plan(scenario: Scenario) -> Answer:
    """Our plan alone."""
    problem = scenario.problem()
    return Answer(scenario, problem.network, search(problem, scenario.space, top=scenario.top), ())
