"""Pictures and explanations of plans, made by worker processes and kept for who asks again.

The key is the request's canonical text, as in `nest_studio.plan_state`, and the plan, which is not
always the best: a search may have been cancelled. Explanations are not made before their part of
the page is opened.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from nest_core.costs.placement import RankMapping
from nest_core.costs.price import Report
from nest_core.text import plain
from nest_studio.jobs import Job, submitted
from nest_studio.tasks.plans import (
    plan_bindings,
    plan_equations,
    plan_pictures,
    plan_rank_mapping,
    priced_mine,
)
from nest_studio.tasks.requests import next_best_choices, worth_of_more

__all__ = [
    "PATIENCE_S",
    "bindings_job",
    "equations_job",
    "mine_job",
    "next_best_job",
    "pictures_job",
    "rank_mapping_of",
    "worth_of_more_job",
]

PATIENCE_S = 30.0
"""What all searches for one part of the page may take together."""


def pictures_job(text: str, best: Report | None, paint: str) -> Job:
    """The timeline and the painted fabric: `PlanPictures`."""
    return _beside("pictures", plan_pictures, text, best, paint)


def bindings_job(text: str, best: Report) -> Job:
    """What binds every stage: a tuple of `StageBinding`."""
    return _beside("bindings", plan_bindings, text, best)


def equations_job(text: str, best: Report) -> Job:
    """The equations behind a plan: a tuple of `Equation`."""
    return _beside("equations", plan_equations, text, best)


def next_best_job(text: str, best: Report) -> Job:
    """The next best on every axis: a tuple of `NextBest`."""
    return _beside("next best", next_best_choices, text, best, PATIENCE_S, urgent=False)


def worth_of_more_job(text: str, best: Report) -> Job:
    """Shadow prices, and what the plan as it is would gain; see `worth_of_more`."""
    return _beside("shadow prices", worth_of_more, text, best, PATIENCE_S, urgent=False)


def mine_job(text: str, pasted: str, placement: str = "") -> Job:
    """A pasted plan priced on a request: `Mine`; its result is an InputError where it is none."""
    key = f"mine {json.dumps([pasted, placement])} {text}"
    return submitted(key, priced_mine, text, pasted, placement, place="mine")


def rank_mapping_of(text: str, best: Report) -> RankMapping:
    """Who sits where, for downloads, which nobody can cancel."""
    key = f"rank mapping {_named(best)} {text}"
    found: RankMapping = submitted(key, plan_rank_mapping, text, best).result()
    return found


def _beside(
    what: str,
    task: Callable[..., Any],
    text: str,
    best: Report | None,
    *more: str | float,
    urgent: bool = True,
) -> Job:
    """A job beside a plan."""
    key = f"{what} {more} {_named(best)} {text}"
    return submitted(key, task, text, best, *more, urgent=urgent, place=what)


def _named(best: Report | None) -> str:
    return json.dumps(best and plain(best.plan.to_json()))
