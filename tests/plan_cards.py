"""The large figures of the plan page's cards: as the core has them, and as a page shows them."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from functools import partial

from nest_core.api.answer import Answer
from nest_core.report.explain.training import training
from nest_studio.plan.view import cards_of
from nest_studio.session.training_run import TrainingRun

__all__ = ["big_figures", "shown_figures"]

_BIG = re.compile(r'class="nest-big[^"]*">([^<]*)')


def shown_figures(answer: Answer) -> list[str]:
    """Those of an answer, as the page opens."""
    others = {}
    if answer.best and answer.interval:  # workers tell the page of runs
        run = partial(training, answer.scenario, tokens=None, interval=answer.interval)
        others = {of.name: run(of.report) for of in answer.baselines if of.feasible and of.report}
        answer = replace(answer, training=run(answer.best))
    form = TrainingRun(None, None, None, "manual")
    return big_figures("".join(cards_of(answer, form, None, others)))


def big_figures(text: str) -> list[str]:
    """Those of cards in HTML."""
    return [html.unescape(one).strip() for one in _BIG.findall(text)]
