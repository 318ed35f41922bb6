"""Time and memory of stages and plans; `price` is the one judge of every plan."""

from nest_core.costs.offload import NO_OFFLOAD, Offload, offloaded
from nest_core.costs.overlap import IDEAL_OVERLAP, NO_OVERLAP, Overlap
from nest_core.costs.plan import (
    SCHEDULES,
    USUAL_SCHEDULES,
    Plan,
    Point,
    StageStrategy,
    acting_zero,
    micro_batches,
)
from nest_core.costs.price import Memory, Report, Stage, check_plan, price
from nest_core.costs.problem import RECOMPUTE, Calls, LayerTable, Problem, StateBytes
from nest_core.costs.schedules import in_flight
from nest_core.costs.stages import StageCosts, links, stage_costs, traffic
from nest_core.costs.tables import state_bytes
from nest_core.costs.zero import state_shares

__all__ = [
    "IDEAL_OVERLAP",
    "NO_OFFLOAD",
    "NO_OVERLAP",
    "RECOMPUTE",
    "SCHEDULES",
    "USUAL_SCHEDULES",
    "Calls",
    "LayerTable",
    "Memory",
    "Offload",
    "Overlap",
    "Plan",
    "Point",
    "Problem",
    "Report",
    "Stage",
    "StageCosts",
    "StageStrategy",
    "StateBytes",
    "acting_zero",
    "check_plan",
    "in_flight",
    "links",
    "micro_batches",
    "offloaded",
    "price",
    "stage_costs",
    "state_bytes",
    "state_shares",
    "traffic",
]
