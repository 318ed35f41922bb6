"""Networks: levels, who shares which link, and the times that follow. Never sees a plan."""

from nest_core.network.collapse import collapse
from nest_core.network.levels import Level, Network
from nest_core.network.phases import IDEAL, MessageTime, Phase, Protocol, price_phases
from nest_core.network.torus import TorusShape
from nest_core.network.traffic import collectives, transfers
from nest_core.network.wires import Wires

__all__ = [
    "IDEAL",
    "Level",
    "MessageTime",
    "Network",
    "Phase",
    "Protocol",
    "TorusShape",
    "Wires",
    "collapse",
    "collectives",
    "price_phases",
    "transfers",
]
