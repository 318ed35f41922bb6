"""Lessons as work for another process: by key, with progress and a way out."""

from __future__ import annotations

from collections.abc import Callable

from nest_core.lessons import Reveal, Settings, lesson

__all__ = ["work_reveal"]

Progress = Callable[[float, str], None]


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
