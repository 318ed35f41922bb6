"""Accelerators and the analytical estimator."""

from nest_core.hardware.accelerators import (
    UNCALIBRATED,
    Accelerator,
    accelerator_of,
    load_accelerator,
)
from nest_core.hardware.estimator import (
    backward_seconds,
    forward_seconds,
    least_seconds,
    measured_share,
    seconds,
)
from nest_core.hardware.families import NARROW, Family, load_family
from nest_core.hardware.posterior import SHARE, WIDTH, load_posterior
from nest_core.hardware.profiles import Profile, load_profile
from nest_core.hardware.stacks import (
    Stack,
    default_stack,
    load_stack,
    stack_of_table,
    stacks_of,
    under,
    validated,
)

__all__ = [
    "NARROW",
    "SHARE",
    "UNCALIBRATED",
    "WIDTH",
    "Accelerator",
    "Family",
    "Profile",
    "Stack",
    "accelerator_of",
    "backward_seconds",
    "default_stack",
    "forward_seconds",
    "least_seconds",
    "load_accelerator",
    "load_family",
    "load_posterior",
    "load_profile",
    "load_stack",
    "measured_share",
    "seconds",
    "stack_of_table",
    "stacks_of",
    "under",
    "validated",
]
