"""Time and memory of stages and plans; `price` is the one judge of every plan."""

from nest_core.costs.overlap import IDEAL_OVERLAP, NO_OVERLAP, Overlap
from nest_core.costs.plan import SCHEDULES, Plan, Point, StageStrategy
from nest_core.costs.price import Memory, Report, Stage, check_plan, price
from nest_core.costs.problem import RECOMPUTE, Calls, LayerTable, Problem, StateBytes
from nest_core.costs.stages import StageCosts, links, stage_costs, traffic

__all__ = [
    "IDEAL_OVERLAP",
    "NO_OVERLAP",
    "RECOMPUTE",
    "SCHEDULES",
    "Calls",
    "LayerTable",
    "Memory",
    "Overlap",
    "Plan",
    "Point",
    "Problem",
    "Report",
    "Stage",
    "StageCosts",
    "StageStrategy",
    "StateBytes",
    "check_plan",
    "links",
    "price",
    "stage_costs",
    "traffic",
]
