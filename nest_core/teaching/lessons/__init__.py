"""Guided lessons: predict, reveal, explain.

Their words are files of ``presets/lessons``; what they show is one of `FIGURES`.

Examples
--------
>>> bubble = lesson("bubble")
>>> bubble.brief().question.right
'c'
>>> bubble.reveal({"pp": 4, "m": 4}).formulas[1].numbers
'(4 - 1) / 4 = 75 %'
"""

from functools import partial

from nest_core.documents import preset_path, read_text
from nest_core.teaching.lessons.clusters import FAILURES, NEIGHBOURS
from nest_core.teaching.lessons.figure import LessonFigure
from nest_core.teaching.lessons.files import among, read_lesson
from nest_core.teaching.lessons.groups import COLLECTIVES, EXPERTS, OVERSUBSCRIPTION, TENSOR
from nest_core.teaching.lessons.lesson import (
    Brief,
    Control,
    Lesson,
    Question,
    Reveal,
    Settings,
    Value,
    check_offered,
)
from nest_core.teaching.lessons.levels import LEVELS
from nest_core.teaching.lessons.paper_table import PAPER_TABLE
from nest_core.teaching.lessons.pipelines import BUBBLE, STASH, ZERO
from nest_core.teaching.lessons.program import PROGRAM
from nest_core.teaching.lessons.walk import PASSES, STEPS

__all__ = [
    "FIGURES",
    "LESSONS",
    "Brief",
    "Control",
    "Lesson",
    "LessonFigure",
    "Question",
    "Reveal",
    "Settings",
    "Value",
    "lesson",
]

FIGURES: dict[str, LessonFigure] = {
    figure.key: figure
    for figure in (
        BUBBLE,
        PASSES,
        LEVELS,
        STASH,
        ZERO,
        STEPS,
        COLLECTIVES,
        TENSOR,
        OVERSUBSCRIPTION,
        NEIGHBOURS,
        FAILURES,
        EXPERTS,
        PAPER_TABLE,
        PROGRAM,
    )
}
"""What a lesson's file can name."""


LESSONS = tuple(
    read_lesson(
        read_text(preset_path("lessons", f"{key}.toml")), key, partial(among, FIGURES), own=False
    )
    for key in FIGURES
)
"""In the order in which they are taught."""


def lesson(key: str) -> Lesson:
    """One lesson by its key.

    Raises
    ------
    InputError
        For another key.
    """
    by_key = {lesson.key: lesson for lesson in LESSONS}
    check_offered("lesson", "must be one of the lessons", key, by_key)
    return by_key[key]
