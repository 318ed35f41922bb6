"""What a cell with a study shows: its points, or the fabrics that no other beats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nest_core.errors import InputError
from nest_core.figures.designs import choice_rows, designs_picture, tornado_picture
from nest_core.figures.study import study_picture
from nest_core.notebook.shown import FABRIC_PX, Shown
from nest_core.picture import picture
from nest_core.report.tables import Table
from nest_core.studies.design_choice import weigh
from nest_core.studies.design_search import search_designs
from nest_core.studies.design_space import design_space
from nest_core.studies.engine import run
from nest_core.studies.rows import MemoryCache, rows_of
from nest_core.studies.sensitivity import sensitivity
from nest_core.studies.solving import Stop, Tell
from nest_core.studies.study import Study, study_of
from nest_core.units import NOTHING, humanise

__all__ = ["MOST_POINTS", "study_shown"]

MOST_POINTS = 400
"""Of a study in a cell, which is computed where it is drawn."""


def study_shown(inputs: Mapping[str, Any], tell: Tell, stop: Stop) -> Shown | None:
    """The result of ``inputs["study"]``, a study's document whose names are presets'."""
    study = study_of(inputs["study"])
    points = len(design_space(study)[0]) if study.design else len(study)
    if points > MOST_POINTS:
        rule = f"must have at most {MOST_POINTS} points in a notebook"
        raise InputError("study", rule, points, "run it on Explore or with nest-studio sweep")

    def follow(answered: int, asked: int) -> None:
        tell(answered / max(asked, 1), f"{answered:,} of {asked:,} points")

    shown = (_designs if study.design else _points)(study, follow, stop)
    return None if stop() else shown


def _points(study: Study, tell: Callable[[int, int], None], stop: Stop) -> Shown:
    cache = MemoryCache()
    run(study.points(), cache, tell=tell, stop=stop)
    rows = tuple(rows_of(study, cache))
    return Shown(
        rows,
        facts=tuple(line for line in (study.question,) if line),
        pictures=tuple(study_picture(study, rows, metric) for metric in study.metrics[:2]),
        table=_table(f"Points of {study.name}", rows),
    )


def _designs(study: Study, tell: Callable[[int, int], None], stop: Stop) -> Shown | None:
    found = search_designs(study, MemoryCache(), tell=tell, stop=stop)
    if stop():
        return None
    choice = weigh(study, found)
    rests_on = sensitivity(study, choice)
    first = choice.contenders[0]
    report = first.bills[0].report
    rows = tuple(choice_rows(choice))
    return Shown(
        rows,
        facts=(study.question, *rests_on.sentences) if study.question else rests_on.sentences,
        pictures=(designs_picture(found, choice), tornado_picture(rests_on)),
        table=_table(f"The set of {study.name}", rows),
        fabric=picture(
            first.planned.design.fabric, report.plan if report else None, width=FABRIC_PX
        ),
    )


def _table(title: str, rows: tuple[dict[str, Any], ...]) -> Table:
    shown = tuple({name: _text(value) for name, value in row.items()} for row in rows)
    return Table(title, "Each planned anew", shown)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return humanise(value)
    return NOTHING if value in (None, "") else str(value)
