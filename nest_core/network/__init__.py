"""Networks: levels, who shares which link, and the times that follow. Never sees a plan."""

from nest_core.network.algorithms import ALGORITHMS, IN_NETWORK, algorithm_stages, check_op
from nest_core.network.bisection import bisection_Bps, full_bisection_Bps, knows_nodes
from nest_core.network.busiest import (
    AS_BUSY,
    BusyLink,
    busiest_links,
    busy_link,
    link_group_name,
    load_of,
)
from nest_core.network.collapse import clos_network, collapse, is_counted
from nest_core.network.collective import KINDS, Concurrent, bus_factor, collective, member_groups
from nest_core.network.dragonfly import DragonflyLinkMap, without_detours
from nest_core.network.exchanges import (
    Dispatch,
    counts_leaving,
    dispatch_phases,
    dispatched,
    least_all_to_all,
)
from nest_core.network.graph import GraphLinkMap
from nest_core.network.groups import MAX_BLOCKS, LevelBlocks, exchange, level_blocks, ring
from nest_core.network.levels import Level, Network, Outline
from nest_core.network.link_graph import DEVICE, Path, parts, shortest_paths
from nest_core.network.link_map import (
    BoolArray,
    FloatArray,
    IntArray,
    LinkMap,
    Routes,
    rank_within,
    runs,
    scrambled,
)
from nest_core.network.patterns import REMOTE_HOPS, block_levels, collapse_error
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
    "ALGORITHMS",
    "AS_BUSY",
    "DEVICE",
    "IDEAL",
    "IN_NETWORK",
    "KINDS",
    "MAX_BLOCKS",
    "REMOTE_HOPS",
    "BoolArray",
    "BusyLink",
    "CollectiveStep",
    "Concurrent",
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
    "algorithm_stages",
    "bisection_Bps",
    "block_levels",
    "bus_factor",
    "busiest_links",
    "busy_link",
    "by_algorithm",
    "check_op",
    "clos_network",
    "collapse",
    "collapse_error",
    "collective",
    "collectives",
    "collectives_by",
    "counts_leaving",
    "dispatch_phases",
    "dispatched",
    "exchange",
    "full_bisection_Bps",
    "is_counted",
    "knows_nodes",
    "least_all_to_all",
    "level_blocks",
    "link_group_name",
    "load_of",
    "member_groups",
    "message_time",
    "parts",
    "price_phases",
    "rank_within",
    "reduce_scatters",
    "ring",
    "runs",
    "scrambled",
    "shortest_paths",
    "transfers",
    "tree_all_reduce",
    "trees",
    "without_detours",
]
