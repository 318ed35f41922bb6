"""Lessons for a course: a teacher's own folder, pins as lessons, exercises, lessons as one file."""

__all__ = ["LESSONS_VARIABLE"]

LESSONS_VARIABLE = "NEST_STUDIO_LESSONS"
"""Of the environment: the folder of a teacher's own lesson files."""
