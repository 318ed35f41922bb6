"""Measured training runs beside their predictions: reading, predicting, judging, reporting."""

from nest_core.calibration.training.reading import is_training, read_runs
from nest_core.calibration.training.runs import MeasuredOutcome, MeasuredRow, Run, Unread

__all__ = ["MeasuredOutcome", "MeasuredRow", "Run", "Unread", "is_training", "read_runs"]
