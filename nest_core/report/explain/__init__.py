"""Why a plan is what it is: what binds its stages, what else there was, and what another costs.

Everything here asks `nest_core.costs.price` and `nest_core.planner.search` about problems and
spaces that differ in one respect; nothing here knows how they answer.
"""

from nest_core.costs.communication import CLASSES, Traffic, traffic_of
from nest_core.report.explain.axes import AXES, NextBest, next_best
from nest_core.report.explain.binding import Constraint, Gain, StageBinding, bindings, gains
from nest_core.report.explain.equations import Equation, equations
from nest_core.report.explain.headlines import fabric_headlines, levels_table
from nest_core.report.explain.mine import (
    DifferenceRow,
    Mine,
    OtherJob,
    PlanDifference,
    check_heads,
    checked_plan,
    difference,
    price_pasted,
    withheld,
)
from nest_core.report.explain.other_stacks import name_stack_for_plan, name_stack_for_search
from nest_core.report.explain.summary import (
    Headline,
    accelerator_in_words,
    axes_of,
    bottleneck,
    certificate_line,
    fullest,
    fullest_words,
    model_in_words,
    plan_in_words,
    proven_over,
    quantity,
    stage_rows,
)
from nest_core.report.explain.training import DAY_S, Training, training
from nest_core.report.explain.validity import (
    Validity,
    calibration_in_words,
    memory_in_words,
    overlap_in_words,
    rests_on,
    stack_in_words,
    validity_of,
)
from nest_core.report.explain.words import (
    axes_table,
    binding_table,
    busiest_table,
    busiest_text,
    equation_table,
    head_room_table,
    memory_table,
    shadow_table,
    stages_table,
    terms_table,
    training_headline,
    why_line,
)

__all__ = [
    "AXES",
    "CLASSES",
    "DAY_S",
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
    "Validity",
    "accelerator_in_words",
    "axes_of",
    "axes_table",
    "binding_table",
    "bindings",
    "bottleneck",
    "busiest_table",
    "busiest_text",
    "calibration_in_words",
    "certificate_line",
    "check_heads",
    "checked_plan",
    "difference",
    "equation_table",
    "equations",
    "fabric_headlines",
    "fullest",
    "fullest_words",
    "gains",
    "head_room_table",
    "levels_table",
    "memory_in_words",
    "memory_table",
    "model_in_words",
    "name_stack_for_plan",
    "name_stack_for_search",
    "next_best",
    "overlap_in_words",
    "plan_in_words",
    "price_pasted",
    "proven_over",
    "quantity",
    "rests_on",
    "shadow_table",
    "stack_in_words",
    "stage_rows",
    "stages_table",
    "terms_table",
    "traffic_of",
    "training",
    "training_headline",
    "validity_of",
    "why_line",
    "withheld",
]
