"""What workers do for the lessons page, each too short to be stopped within."""

from __future__ import annotations

from collections.abc import Callable

from nest_core.teaching.course.page import Page, lesson_page
from nest_core.teaching.course.pinned import find_figure
from nest_core.teaching.lessons import Brief, Lesson, Reveal, Settings, lesson
from nest_core.teaching.lessons.files import read_lesson

__all__ = ["work_brief", "work_page", "work_reveal"]

Progress = Callable[[float, str], None]


def work_brief(key: str, text: str, *, progress: Progress, stop: Callable[[], bool]) -> Brief:
    """Question and notes of a lesson.

    Parameters
    ----------
    key, text : str
        Of the lesson; without a text one of the studio's own.
    progress : callable (share, words)
    stop : callable () -> bool
    """
    progress(0.0, "planning for the question")
    return _lesson(key, text).brief()


def work_reveal(
    key: str, text: str, settings: Settings, *, progress: Progress, stop: Callable[[], bool]
) -> Reveal:
    """What a lesson shows under settings.

    Parameters
    ----------
    key, text : str
    settings : mapping
    progress : callable (share, words)
    stop : callable () -> bool
    """
    progress(0.0, "planning for the figure")
    return _lesson(key, text).reveal(settings)


def work_page(key: str, text: str, *, progress: Progress, stop: Callable[[], bool]) -> Page:
    """A lesson as one HTML file.

    Parameters
    ----------
    key, text : str
    progress : callable (share, words)
    stop : callable () -> bool
    """
    progress(0.0, "computing all states")
    return lesson_page(_lesson(key, text))


def _lesson(key: str, text: str) -> Lesson:
    return read_lesson(text, key, find_figure) if text else lesson(key)
