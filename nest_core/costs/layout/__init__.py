"""Device <-> coordinates on every parallel axis; read by costs, planner and figures."""

from nest_core.costs.layout.layout import (
    AXES,
    DEVICE_ORDERS,
    MEGATRON_ORDER,
    DeviceOrder,
    Layout,
    device_order,
    overlaps,
    places,
    ragged_ranks,
    rank_mapping,
    ranks_in_nodes,
    seatings_among,
)
from nest_core.costs.layout.seatings import SEATING, seated, seatings

__all__ = [
    "AXES",
    "DEVICE_ORDERS",
    "MEGATRON_ORDER",
    "SEATING",
    "DeviceOrder",
    "Layout",
    "device_order",
    "overlaps",
    "places",
    "ragged_ranks",
    "rank_mapping",
    "ranks_in_nodes",
    "seated",
    "seatings",
    "seatings_among",
]
