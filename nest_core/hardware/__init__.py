"""Accelerators and the analytical estimator."""

from nest_core.hardware.accelerators import (
    UNCALIBRATED,
    Accelerator,
    accelerator_of,
    load_accelerator,
)
from nest_core.hardware.collectives import OPS, Curve, load_curve
from nest_core.hardware.collectives.library import KIND, OWN, REDUCING, curve_document
from nest_core.hardware.estimator import (
    backward_seconds,
    bound,
    forward_seconds,
    least_seconds,
    measured_share,
    seconds,
    time_in_words,
)
from nest_core.hardware.families import NARROW, Family, load_family
from nest_core.hardware.network_spread import NetworkParameters, load_spread
from nest_core.hardware.posterior import (
    BOUNDED,
    PARAMETERS,
    RUN_FACTOR,
    SHARE,
    WIDTH,
    Knowledge,
    Posterior,
    adjusted,
    load_posterior,
)
from nest_core.hardware.profiles import Direction, Profile, load_profile
from nest_core.hardware.stacks import (
    Stack,
    default_stack,
    hidden_shares,
    hiding,
    known_of,
    load_stack,
    stack_of_table,
    stacks_of,
    under,
    validated,
)

__all__ = [
    "BOUNDED",
    "KIND",
    "NARROW",
    "OPS",
    "OWN",
    "PARAMETERS",
    "REDUCING",
    "RUN_FACTOR",
    "SHARE",
    "UNCALIBRATED",
    "WIDTH",
    "Accelerator",
    "Curve",
    "Direction",
    "Family",
    "Knowledge",
    "NetworkParameters",
    "Posterior",
    "Profile",
    "Stack",
    "accelerator_of",
    "adjusted",
    "backward_seconds",
    "bound",
    "curve_document",
    "default_stack",
    "forward_seconds",
    "hidden_shares",
    "hiding",
    "known_of",
    "least_seconds",
    "load_accelerator",
    "load_curve",
    "load_family",
    "load_posterior",
    "load_profile",
    "load_spread",
    "load_stack",
    "measured_share",
    "seconds",
    "stack_of_table",
    "stacks_of",
    "time_in_words",
    "under",
    "validated",
]
