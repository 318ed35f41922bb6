"""Rows of measured runs, read one at a time."""

from run_tables import one, why

__all__ = ["one", "why"]
