"""What the plan page shows without its baselines."""

from __future__ import annotations

import html
import re

from nest_core.api.answer import Answer
from nest_core.planner import search
from nest_core.scenario import Scenario
from nest_core.studies.interval import interval_of
from nest_studio.plan_view import cards_of
from nest_studio.training_run import Run

__all__ = ["big_figures", "our_plan", "shown_figures"]


def our_plan(scenario: Scenario) -> Answer:
    """Our plan alone."""
    problem = scenario.problem()
    result = search(problem, scenario.space, top=scenario.top)
    interval = interval_of(scenario, problem, result.best) if result.best else None
    return Answer(scenario, problem.network, result, (), interval)


def shown_figures(answer: Answer) -> list[str]:
    """The large figures of the cards of an answer, as the page opens."""
    return big_figures("".join(cards_of(answer, Run(None, None, "manual"), None, answer.baselines)))


def big_figures(text: str) -> list[str]:
    """The large figures of cards in HTML."""
    return [html.unescape(one).strip() for one in re.findall(r'class="nest-big[^"]*">([^<]*)', text)]
