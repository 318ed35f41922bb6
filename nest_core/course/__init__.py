"""Lessons for a course: a teacher's own folder, pins as lessons, exercises, lessons as one file."""

from nest_core.course.folder import LESSONS_VARIABLE, Offered, offered

__all__ = ["LESSONS_VARIABLE", "Offered", "offered"]
