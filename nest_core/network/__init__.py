"""Networks: levels, who shares which link, and the times that follow. Never sees a plan."""

from nest_core.network.collapse import collapse
from nest_core.network.levels import Level, Network, Outline
from nest_core.network.link_map import LinkMap
from nest_core.network.phases import IDEAL, MessageTime, Phase, Protocol, price_phases
from nest_core.network.torus import TorusShape
from nest_core.network.traffic import collectives, transfers

__all__ = [
    "IDEAL",
    "Level",
    "LinkMap",
    "MessageTime",
    "Network",
    "Outline",
    "Phase",
    "Protocol",
    "TorusShape",
    "collapse",
    "collectives",
    "price_phases",
    "transfers",
]
