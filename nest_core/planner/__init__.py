"""The planner: search space, bounds, the dynamic program, the plan and its certificate."""

from nest_core.planner.search import Audit, Certificate, Progress, Result, audit, search
from nest_core.planner.shadow import shadow_prices
from nest_core.planner.space import ORDERS, SearchSpace

__all__ = [
    "ORDERS",
    "Audit",
    "Certificate",
    "Progress",
    "Result",
    "SearchSpace",
    "audit",
    "search",
    "shadow_prices",
]
