"""Why a plan is what it is: what binds its stages, what else there was, and what another costs.

Everything here asks `nest_core.costs.price` and `nest_core.planner.search` about problems and
spaces that differ in one respect; nothing here knows how they answer.
"""

from nest_core.costs.communication import CLASSES, Traffic, traffic_of
from nest_core.report.explain.axes import AXES, NextBest, next_best
from nest_core.report.explain.binding import Constraint, Gain, StageBinding, bindings, gains
from nest_core.report.explain.equations import Equation, equations
from nest_core.report.explain.mine import (
    DifferenceRow,
    Mine,
    OtherJob,
    PlanDifference,
    check_heads,
    check_job,
    difference,
    price_pasted,
    withheld,
)
from nest_core.report.explain.summary import (
    Headline,
    bottleneck,
    fullest,
    plan_in_words,
    quantity,
)
from nest_core.report.explain.training import Training, training

__all__ = [
    "AXES",
    "CLASSES",
    "Constraint",
    "DifferenceRow",
    "Equation",
    "Gain",
    "Headline",
    "Mine",
    "NextBest",
    "OtherJob",
    "PlanDifference",
    "StageBinding",
    "Traffic",
    "Training",
    "bindings",
    "bottleneck",
    "check_heads",
    "check_job",
    "difference",
    "equations",
    "fullest",
    "gains",
    "next_best",
    "plan_in_words",
    "price_pasted",
    "quantity",
    "traffic_of",
    "training",
    "withheld",
]
