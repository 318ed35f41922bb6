"""Networks: levels, who shares which link, and the times that follow. Never sees a plan."""

from nest_core.network.collapse import collapse
from nest_core.network.dispatch import Dispatch, dispatch_phases, dispatched
from nest_core.network.graph import GraphLinkMap
from nest_core.network.levels import Level, Network, Outline
from nest_core.network.link_map import BoolArray, FloatArray, IntArray, LinkMap
from nest_core.network.phases import IDEAL, MessageTime, Phase, Protocol, price_phases
from nest_core.network.torus import TorusShape
from nest_core.network.traffic import Kind, collectives, message_time, transfers
from nest_core.network.tree import TreeLinkMap

__all__ = [
    "IDEAL",
    "BoolArray",
    "Dispatch",
    "FloatArray",
    "GraphLinkMap",
    "IntArray",
    "Kind",
    "Level",
    "LinkMap",
    "MessageTime",
    "Network",
    "Outline",
    "Phase",
    "Protocol",
    "TorusShape",
    "TreeLinkMap",
    "collapse",
    "collectives",
    "dispatch_phases",
    "dispatched",
    "message_time",
    "price_phases",
    "transfers",
]
