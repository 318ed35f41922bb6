"""Networks: levels, who shares which link, and the times that follow. Never sees a plan."""

from nest_core.network.bisection import bisection_Bps, full_bisection_Bps, knows_nodes
from nest_core.network.busiest import (
    AS_BUSY,
    BusyLink,
    busiest_links,
    busy_link,
    link_group_name,
    load_of,
)
from nest_core.network.collapse import collapse, is_counted
from nest_core.network.dragonfly import DragonflyLinkMap, without_detours
from nest_core.network.error import REMOTE_HOPS, block_levels, collapse_error
from nest_core.network.exchanges import Dispatch, dispatch_phases, dispatched
from nest_core.network.graph import GraphLinkMap
from nest_core.network.groups import MAX_BLOCKS, LevelBlocks, exchange, level_blocks, ring
from nest_core.network.levels import Level, Network, Outline
from nest_core.network.link_graph import DEVICE, Path, shortest_paths
from nest_core.network.link_map import BoolArray, FloatArray, IntArray, LinkMap, Routes
from nest_core.network.phases import IDEAL, MessageTime, Phase, Protocol, price_phases
from nest_core.network.steps import CollectiveStep, Steps
from nest_core.network.torus import TorusLinkMap, TorusShape
from nest_core.network.traffic import (
    Kind,
    by_algorithm,
    collectives,
    collectives_by,
    message_time,
    reduce_scatters,
    transfers,
    tree_all_reduce,
    trees,
)
from nest_core.network.tree import TreeLinkMap

__all__ = [
    "AS_BUSY",
    "DEVICE",
    "IDEAL",
    "MAX_BLOCKS",
    "REMOTE_HOPS",
    "BoolArray",
    "BusyLink",
    "CollectiveStep",
    "Dispatch",
    "DragonflyLinkMap",
    "FloatArray",
    "GraphLinkMap",
    "IntArray",
    "Kind",
    "Level",
    "LevelBlocks",
    "LinkMap",
    "MessageTime",
    "Network",
    "Outline",
    "Path",
    "Phase",
    "Protocol",
    "Routes",
    "Steps",
    "TorusLinkMap",
    "TorusShape",
    "TreeLinkMap",
    "bisection_Bps",
    "block_levels",
    "busiest_links",
    "busy_link",
    "by_algorithm",
    "collapse",
    "collapse_error",
    "collectives",
    "collectives_by",
    "dispatch_phases",
    "dispatched",
    "exchange",
    "full_bisection_Bps",
    "is_counted",
    "knows_nodes",
    "level_blocks",
    "link_group_name",
    "load_of",
    "message_time",
    "price_phases",
    "reduce_scatters",
    "ring",
    "shortest_paths",
    "transfers",
    "tree_all_reduce",
    "trees",
    "without_detours",
]
