"""Device <-> coordinates on every parallel axis; read by costs, planner and figures."""

from nest_core.costs.layout.layout import AXES, Layout
from nest_core.costs.layout.orders import (
    DEVICE_ORDERS,
    DeviceOrder,
    device_order,
    rank_mapping,
    seatings_among,
)
from nest_core.costs.layout.ragged import overlaps, ragged_ranks
from nest_core.costs.layout.seatings import SEATING, seated, seatings

__all__ = [
    "AXES",
    "DEVICE_ORDERS",
    "SEATING",
    "DeviceOrder",
    "Layout",
    "device_order",
    "overlaps",
    "ragged_ranks",
    "rank_mapping",
    "seated",
    "seatings",
    "seatings_among",
]
