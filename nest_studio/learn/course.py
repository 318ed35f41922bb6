"""What a course needs of the lessons page: index, files that are no lessons, a lesson to keep."""

from __future__ import annotations

import html
from concurrent.futures import TimeoutError as Late

import streamlit as st

from nest_core.documents.errors import InputError
from nest_core.report.tables import Table
from nest_core.teaching.course.folder import offered, work_page
from nest_core.teaching.lessons import Lesson
from nest_studio.components.show import download, facts
from nest_studio.jobs.waiting import Stopped, WorkerCrash, submitted

__all__ = ["course_foot", "lessons"]

PATIENCE_S = 300.0


def lessons() -> tuple[Lesson, ...]:
    """All that are offered, in order."""
    return offered().lessons


def course_foot(shown: Lesson) -> None:
    """Below a lesson: a way to keep it, and the index of all."""
    index = offered()
    minutes = sum(lesson.minutes for lesson in index.lessons)
    with st.expander(f"All lessons: {len(index.lessons)}, {minutes} minutes", key="lesson-index"):
        rows = [
            {
                "lesson": lesson.title,
                "minutes": str(lesson.minutes),
                "aims: afterwards people can": "; ".join(lesson.aims) or "–",
            }
            for lesson in index.lessons
        ]
        st.html(Table("Lessons in their order", "", rows).to_html())
        if index.troubles:
            facts("Files that are no lessons yet", kind="learn-step")
            facts(*(f"{name}: {reason}" for name, reason in index.troubles), kind="learn-text")
    download(
        "↓ This lesson (HTML)",
        lambda: _page(shown),
        f"{shown.key}.html",
        "text/html",
        key=f"{shown.key}.html",
        help="One file with all states of the controls, which runs without a network.",
    )


def _page(lesson: Lesson) -> str:
    """Return the lesson's file, or one that says why there is none."""
    # Without a place: a file is asked for outside of the session, which would count as gone.
    job = submitted(work_page, lesson.key, lesson.text, urgent=False)
    try:
        page: str = job.result(PATIENCE_S).text
    except InputError as error:
        return _no_page(str(error))
    except (Late, Stopped, WorkerCrash):
        return _no_page("It was not computed in time: write it with nest-studio lesson.")
    return page


def _no_page(reason: str) -> str:
    return f'<!doctype html><meta charset="utf-8"><title>No lesson</title>{html.escape(reason)}'
