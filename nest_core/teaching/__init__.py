"""Lessons, their figures, and courses with exercises."""
