"""What the plan page shows without its baselines."""

from __future__ import annotations

from nest_core.answer import Answer
from nest_core.planner import search
from nest_core.scenario import Scenario

__all__ = ["our_plan"]


def our_plan(scenario: Scenario) -> Answer:
    """Our plan alone."""
    problem = scenario.problem()
    return Answer(scenario, problem, search(problem, scenario.space, top=scenario.top), ())
