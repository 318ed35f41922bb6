"""Figures of the lessons: from what a lesson computed to pictures, on a desk or on a wall."""

from nest_core.figures.lessons.pictures import enlarged, lesson_pictures

__all__ = ["enlarged", "lesson_pictures"]
