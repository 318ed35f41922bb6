"""Eight guided lessons: predict, reveal, explain.

Examples
--------
>>> bubble = lesson("bubble")
>>> bubble.brief().question.right
'c'
>>> bubble.reveal({"pp": 4, "m": 4}).formulas[1].numbers
'(4 - 1) / 4 = 75 %'
"""

from nest_core.errors import InputError
from nest_core.lessons.bubble import BUBBLE
from nest_core.lessons.collectives import COLLECTIVES
from nest_core.lessons.experts import EXPERTS
from nest_core.lessons.lesson import (
    Brief,
    Control,
    Formula,
    Lesson,
    Notes,
    Question,
    Reveal,
    Rows,
    Settings,
    Value,
)
from nest_core.lessons.levels import LEVELS
from nest_core.lessons.oversubscription import OVERSUBSCRIPTION
from nest_core.lessons.paper_table import PAPER_TABLE
from nest_core.lessons.stash import STASH
from nest_core.lessons.zero import ZERO

__all__ = [
    "LESSONS",
    "Brief",
    "Control",
    "Formula",
    "Lesson",
    "Notes",
    "Question",
    "Reveal",
    "Rows",
    "Settings",
    "Value",
    "lesson",
]

LESSONS = (
    BUBBLE, LEVELS, STASH, ZERO, COLLECTIVES, OVERSUBSCRIPTION, EXPERTS, PAPER_TABLE,
)  # fmt: skip
"""In the order in which they are taught."""


def lesson(key: str) -> Lesson:
    """One lesson by its key.

    Raises
    ------
    InputError
        For another key.
    """
    for one in LESSONS:
        if one.key == key:
            return one
    raise InputError(
        "lesson", "must be one of the lessons", key, "pick " + ", ".join(x.key for x in LESSONS)
    )
