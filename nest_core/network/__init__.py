"""Networks: levels, who shares which link, and the times that follow. Never sees a plan."""

from nest_core.network.collapse import collapse, collapse_error
from nest_core.network.levels import Level, Network, TorusShape
from nest_core.network.traffic import Affine, collectives, transfers

__all__ = [
    "Affine",
    "Level",
    "Network",
    "TorusShape",
    "collapse",
    "collapse_error",
    "collectives",
    "transfers",
]
