"""Accelerators and the analytical estimator."""

from nest_core.hardware.accelerators import PRECISIONS, Accelerator
from nest_core.hardware.roofline import backward_seconds, forward_seconds

__all__ = ["PRECISIONS", "Accelerator", "backward_seconds", "forward_seconds"]
