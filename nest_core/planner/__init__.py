"""The planner: search space, bounds, the dynamic program, the plan and its certificate."""

from nest_core.planner.search import Audit, Certificate, Progress, SearchResult, audit, search
from nest_core.planner.shadow import HeadRoom, head_room_steps, shadow_prices
from nest_core.planner.space import ORDERS, SearchSpace

__all__ = [
    "ORDERS",
    "Audit",
    "Certificate",
    "HeadRoom",
    "Progress",
    "SearchResult",
    "SearchSpace",
    "audit",
    "head_room_steps",
    "search",
    "shadow_prices",
]
