"""Accelerators and the analytical estimator."""

from nest_core.hardware.accelerators import UNCALIBRATED, Accelerator, load_accelerator
from nest_core.hardware.estimator import (
    backward_seconds,
    forward_seconds,
    least_seconds,
    measured_share,
    seconds,
)
from nest_core.hardware.families import NARROW, Family, load_family
from nest_core.hardware.profiles import Profile, load_profile

__all__ = [
    "NARROW",
    "UNCALIBRATED",
    "Accelerator",
    "Family",
    "Profile",
    "backward_seconds",
    "forward_seconds",
    "least_seconds",
    "load_accelerator",
    "load_family",
    "load_profile",
    "measured_share",
    "seconds",
]
