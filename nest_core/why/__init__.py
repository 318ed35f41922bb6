"""Why a plan is what it is: what binds its stages, what else there was, and what another costs.

Everything here asks `nest_core.costs.price` and `nest_core.planner.search` about problems and
spaces that differ in one respect; nothing here knows how they answer.
"""

from nest_core.why.axes import AXES, NextBest, next_best
from nest_core.why.binding import Constraint, StageBinding, bindings
from nest_core.why.difference import Difference, Row, difference
from nest_core.why.equations import Equation, equations
from nest_core.why.gains import Gain, gains
from nest_core.why.mine import (
    Mine,
    OtherJob,
    check_heads,
    check_job,
    price_pasted,
    withheld,
)
from nest_core.why.traffic import CLASSES, Traffic, traffic_of
from nest_core.why.training import Training, training

__all__ = [
    "AXES",
    "CLASSES",
    "Constraint",
    "Difference",
    "Equation",
    "Gain",
    "Mine",
    "NextBest",
    "OtherJob",
    "Row",
    "StageBinding",
    "Traffic",
    "Training",
    "bindings",
    "check_heads",
    "check_job",
    "difference",
    "equations",
    "gains",
    "next_best",
    "price_pasted",
    "traffic_of",
    "training",
    "withheld",
]
