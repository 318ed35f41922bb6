"""Measured training runs beside their predictions: reading, predicting, judging, reporting."""

from nest_core.calibration.training.reading import is_training, read_runs
from nest_core.calibration.training.runs import Outcome, Row, Run, Unread

__all__ = ["Outcome", "Row", "Run", "Unread", "is_training", "read_runs"]
