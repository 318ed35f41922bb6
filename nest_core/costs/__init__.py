"""Time and memory of stages and plans; `price` is the one judge of every plan."""

from nest_core.costs.interval import Interval, Span, span_in_words
from nest_core.costs.layout import device_order
from nest_core.costs.offload import NO_OFFLOAD, Offload, offloaded
from nest_core.costs.overlap import IDEAL_OVERLAP, NO_OVERLAP, Overlap
from nest_core.costs.plan import (
    REPLAYED,
    SCHEDULES,
    USUAL_SCHEDULES,
    V_SHAPED,
    Plan,
    Point,
    StageStrategy,
    acting_zero,
    micro_batches,
)
from nest_core.costs.plan_words import degrees_in_words, plan_words, schedule_words
from nest_core.costs.price import Memory, Report, Stage, check_plan, price
from nest_core.costs.problem import RECOMPUTE, Calls, LayerTable, Problem, StateBytes
from nest_core.costs.schedules import DELAYS, LATE, SPLIT, in_flight
from nest_core.costs.stages import StageCosts, links, stage_costs, traffic
from nest_core.costs.tables import state_bytes
from nest_core.costs.zero import state_shares

__all__ = [
    "DELAYS",
    "IDEAL_OVERLAP",
    "LATE",
    "NO_OFFLOAD",
    "NO_OVERLAP",
    "RECOMPUTE",
    "REPLAYED",
    "SCHEDULES",
    "SPLIT",
    "USUAL_SCHEDULES",
    "V_SHAPED",
    "Calls",
    "Interval",
    "LayerTable",
    "Memory",
    "Offload",
    "Overlap",
    "Plan",
    "Point",
    "Problem",
    "Report",
    "Span",
    "Stage",
    "StageCosts",
    "StageStrategy",
    "StateBytes",
    "acting_zero",
    "check_plan",
    "degrees_in_words",
    "device_order",
    "in_flight",
    "links",
    "micro_batches",
    "offloaded",
    "plan_words",
    "price",
    "schedule_words",
    "span_in_words",
    "stage_costs",
    "state_bytes",
    "state_shares",
    "traffic",
]
