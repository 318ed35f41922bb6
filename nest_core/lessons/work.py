"""Lessons as work for another process: by key, with progress and a way out."""

from __future__ import annotations

from collections.abc import Callable

from nest_core.lessons import Brief, Reveal, Settings, lesson

__all__ = ["work_brief", "work_reveal"]

Progress = Callable[[float, str], None]


def work_brief(key: str, *, progress: Progress, stop: Callable[[], bool]) -> Brief:
    """Question and notes of a lesson; too short to be stopped within.

    Parameters
    ----------
    key : str
        Of the lesson.
    progress : callable (share, words)
    stop : callable () -> bool
    """
    progress(0.0, "planning for the question")
    return lesson(key).brief()


def work_reveal(
    key: str, settings: Settings, *, progress: Progress, stop: Callable[[], bool]
) -> Reveal:
    """What a lesson shows under settings; too short to be stopped within.

    Parameters
    ----------
    key : str
        Of the lesson.
    settings : mapping
    progress : callable (share, words)
    stop : callable () -> bool
    """
    progress(0.0, "planning for the figure")
    return lesson(key).reveal(settings)
