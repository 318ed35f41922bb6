"""Collective times fitted to measurements: curves, their fit, their validation."""

from nest_core.hardware.collectives.curves import Curve, Regime, Term
from nest_core.hardware.collectives.library import Library, load_curve, load_library
from nest_core.hardware.collectives.measurements import OPS, Measurement

__all__ = [
    "OPS",
    "Curve",
    "Library",
    "Measurement",
    "Regime",
    "Term",
    "load_curve",
    "load_library",
]
