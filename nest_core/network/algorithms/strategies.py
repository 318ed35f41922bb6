"""Algorithms that look at the fabric: levels, rails, dimensions of a torus, switches that reduce.

Each takes a network and groups and returns stages (see `schedules`). Of an all-reduce or all-gather
they return the reduce-scatter that it is made of or mirrors.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from nest_core.documents.errors import InputError, require
from nest_core.network.algorithms.schedules import (
    MemberColumns,
    Schedule,
    ScheduleStep,
    Stage,
    chain,
    columns,
    direct,
    double_tree,
    flat,
    latency_only,
    level_by_level,
    on_columns,
    pairwise,
    ring,
    shift,
    together,
)
from nest_core.network.levels import Network
from nest_core.network.link_map import IntArray
from nest_core.network.phases import Phase, merged
from nest_core.network.traffic import multi_ring_reduce_scatter
from nest_core.network.tree import TreeLinkMap

__all__ = [
    "Strategy",
    "at_once",
    "double_binary_tree",
    "everyone",
    "hierarchical",
    "hierarchical_at_once",
    "in_network",
    "multi_rail_broadcast",
    "multi_rail_reduce_scatter",
    "multi_ring",
    "nvls_tree",
    "one_by_one",
    "reduces_in_node",
]

Strategy = Callable[[Network, IntArray], list[Stage]]


def everyone(schedule: Schedule) -> Strategy:
    """Return a schedule among all members in the order given, wherever they sit."""
    return lambda network, groups: [flat(groups, schedule)]


def hierarchical(schedule: Schedule, *, scattered: bool = True) -> Strategy:
    """Level by level: each on the shard that those inside have left, or on what blocks hold."""
    return lambda network, groups: level_by_level(
        groups, network.nesting, schedule, scattered=scattered
    )


def at_once(network: Network, groups: IntArray) -> list[Stage]:
    """Everybody sends to everybody at once.

    Links do not idle while the first bytes travel to far peers, so the latency is that to the
    nearest peer; `collective` adds that no message arrives before its own latency.
    """
    return [[_nearest_first(network, phase) for phase in flat(groups, direct)]]


def one_by_one(network: Network, groups: IntArray) -> list[Stage]:
    """All-to-all, everybody with one peer at a time, without waiting for others.

    A member pays the latency to each of its peers; members that are done early go on, so these
    are added up per member, level by level, and not per round.
    """
    rounds = [replace(phase, steps=0 * phase.steps) for phase in flat(groups, pairwise)]
    flows = merged(rounds)
    met = network.link_map.level(flows.source, flows.target)
    waits = []
    for level in np.unique(met):
        first, steps = [], []
        for owner in range(len(groups)):
            candidates = np.flatnonzero((met == level) & (flows.owner == owner))
            if len(candidates):
                first.append(candidates[0])
                steps.append(np.bincount(flows.source[candidates]).max())
        picks = np.array(first)
        example = Phase(
            flows.source[picks],
            flows.target[picks],
            flows.owner[picks],
            flows.volume[picks],
            flows.steps[picks],
        )
        waits.append(latency_only(example, np.array(steps)))
    return [[*rounds, *waits]]


def hierarchical_at_once(network: Network, groups: IntArray) -> list[Stage]:
    """Return an all-to-all level by level, at each with all peers at once."""
    stages = level_by_level(groups, network.nesting, direct, scattered=False)
    return [[_nearest_first(network, phase) for phase in stage] for stage in stages]


def multi_ring(network: Network, groups: IntArray) -> list[Stage]:
    """Rings both ways over all dimensions of a torus at once, on rotated parts of the buffer."""
    if network.torus is None:
        raise InputError(
            "algorithm",
            "multi_ring must run on a torus",
            "a fabric with switches",
            "use multi_rail or hierarchical_ring",
        )
    return [[phase] for phase in multi_ring_reduce_scatter(network.torus, network.place, groups)]


def multi_rail_reduce_scatter(network: Network, groups: IntArray) -> list[Stage]:
    """Reduce-scatter on one ring per device of a node, as NCCL's channels are laid.

    Every ring passes through all members and enters and leaves each node on its own rail, so all
    NICs of a node work at once; it differs from ``hierarchical_ring``, which first reduces inside
    nodes. Needs the same number of members in every node.
    """
    size = groups.shape[1]
    return _rails(network, groups, (size - 1) / size, closed=True)


def multi_rail_broadcast(network: Network, groups: IntArray) -> list[Stage]:
    """Broadcast in small chunks along one chain per device of a node."""
    return _rails(network, groups, 1.0, closed=False)


def double_binary_tree(network: Network, groups: IntArray) -> list[Stage]:
    """All-reduce up and down two trees that join nodes, with chains inside nodes (NCCL).

    There is a pair of trees for each member of a node, on its own part of the buffer. Within one
    node, or with one member in each, the trees join members.
    """
    inside, between = _node_columns(network, groups)
    if inside is None or between is None:
        return [flat(groups, double_tree)]
    return [
        _together(
            on_columns(between, double_tree, scattered=True),
            on_columns(inside, _up_and_down, scattered=True),
        )
    ]


def nvls_tree(network: Network, groups: IntArray) -> list[Stage]:
    """All-reduce with reduction in the switch of every node and two trees between nodes."""
    _need_switches(network, top=False)
    inside, between = _node_columns(network, groups)
    if inside is None:
        return [flat(groups, double_tree)]
    across = [] if between is None else on_columns(between, double_tree, scattered=True)
    return [_together(across, on_columns(inside, _through_the_switch, scattered=True))]


def _together(across: Sequence[Phase], inside: Sequence[Phase]) -> Stage:
    """Between and inside nodes at once; the steps inside are waited for apart."""
    waits = [latency_only(phase, phase.steps) for phase in inside]
    return [merged([*across, *(replace(phase, steps=0 * phase.steps) for phase in inside)]), *waits]


def in_network(network: Network, groups: IntArray) -> list[Stage]:
    """All-reduce in the switches (NVLS in a node, SHARP above): up once, down once.

    A device sends and receives the buffer once; above its node, an uplink of the tree carries the
    buffer once per group and direction, whatever the number of devices beneath. Neighbours in a
    ring load the uplinks in the same way, so flows between them stand for the messages to the
    switches: between blocks of level ``l`` every device sends the part of the buffer that is its
    own there, less what it sends further up through the same uplinks. The latency is up and down
    to the outermost level in use; messages are pipelined.
    """
    _need_switches(network, top=True)
    levels = list(columns(groups, network.nesting))
    phases: list[Phase] = []
    for index, level in enumerate(levels):
        further = 0.0
        if index + 1 < len(levels) and _climbs_through(network, level, levels[index + 1]):
            further = float(levels[index + 1][0].shard.min())
        for entry in level:
            sharded = replace(entry, shard=np.maximum(entry.shard - further, 0.0))
            phases += on_columns([sharded], _through_the_switch, scattered=True)
    return [[merged(phases)]] if phases else []


def reduces_in_node(network: Network) -> bool:
    """Whether nodes have a switch that could reduce."""
    return isinstance(network.link_map, TreeLinkMap) and network.link_map.scale_up is None


def _need_switches(network: Network, *, top: bool) -> None:
    if not reduces_in_node(network):
        where = "switches at every level" if top else "a switch in every node"
        raise InputError(
            "algorithm",
            f"reduction in the network must have {where}",
            "a fabric without",
            "use a ring or a tree",
        )


def _through_the_switch(n: int) -> list[ScheduleStep]:
    """As much up and down the port of every member as its buffer; there and back again."""
    return [shift(n, 1, 1.0, 2)]


def _up_and_down(n: int) -> list[ScheduleStep]:
    """Chains up and down through all members, one chain from each of them on its part."""
    steps = 2 * (n - 1)
    return [together([shift(n, 1, (n - 1) / n, steps), shift(n, -1, (n - 1) / n, steps)])]


def _climbs_through(
    network: Network, inner: list[MemberColumns], outer: list[MemberColumns]
) -> bool:
    """Whether flows between outer blocks cross the same tier of links as those between inner."""
    tiers = [
        network.link_map.tier[network.link_map.routes(pair[:1], pair[1:2]).link_group]
        for pair in (inner[0].members[0], outer[0].members[0])
    ]
    return bool(np.isin(tiers[0], tiers[1]).any())


def _nearest_first(network: Network, phase: Phase) -> Phase:
    """Only messages to the nearest peers pay their latency."""
    met = network.link_map.level(phase.source, phase.target)
    nearest = np.full(int(phase.owner.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(nearest, phase.owner, met)
    return replace(phase, steps=phase.steps * (met == nearest[phase.owner]))


def _node_columns(
    network: Network, groups: IntArray
) -> tuple[list[MemberColumns] | None, list[MemberColumns] | None]:
    """Columns inside nodes and between them; None where nodes, or groups, hold one only."""
    if network.torus is not None:
        return None, None
    node = network.node
    inside = next(columns(groups, (node,)), None)
    if (node[groups] == node[groups[:, :1]]).all():
        return inside, None
    *_, between = columns(groups, (node, np.zeros_like(node)))
    return inside, between


def _rails(network: Network, groups: IntArray, volume: float, *, closed: bool) -> list[Stage]:
    """One ring or chain per rail, in one direction on even nodes and in the other on odd ones.

    What enters a node on rail ``s`` visits all of its members and leaves on rail ``s - 1`` or
    ``s + 1``; over all rails each member passes on ``(g - 1) / g`` inside its node and 1/g outside.
    """
    count, size = groups.shape
    require(
        network.torus is None,
        "algorithm",
        "multi_rail must run on a fabric of nodes",
        "a torus",
        "use multi_ring",
    )
    member = np.take_along_axis(groups, np.lexsort((groups, network.node[groups]), axis=1), axis=1)
    node = network.node[member]
    nodes = len(np.unique(node[0]))
    rails = size // nodes
    require(
        size % nodes == 0
        and (not (node.reshape(count, -1, rails) != node[:, ::rails, None]).any()),
        "algorithm",
        "multi_rail must find as many members of a group in every node",
        "a group that is spread unevenly",
        "use hierarchical_ring",
    )
    if nodes == 1 or rails == 1:
        return [flat(groups, ring if closed else chain)]
    member = member.reshape(count, nodes, rails)
    way = np.where(np.arange(nodes) % 2 == 0, 1, -1)[:, None]
    neighbour = member[:, np.arange(nodes)[:, None], (np.arange(rails) + way) % rails]
    beyond = np.roll(member, -1, axis=1)
    if nodes % 2:  # the ring closes between two nodes of the same direction
        beyond[:, -1] = np.roll(beyond[:, -1], -1, axis=1)
    last = nodes if closed else nodes - 1
    inner = _spread(member, neighbour, volume * (rails - 1) / rails, size - nodes)
    outer = _spread(member[:, :last], beyond[:, :last], volume / rails, nodes - 1)
    return [
        [merged([outer, replace(inner, steps=0 * inner.steps)]), latency_only(inner, inner.steps)]
    ]


def _spread(source: IntArray, target: IntArray, volume: float, steps: float) -> Phase:
    """Return a phase of flows, shape (groups, ...), that are alike."""
    flows = source.size
    owner = np.repeat(np.arange(len(source)), flows // len(source))
    return Phase(
        source.reshape(-1),
        target.reshape(-1),
        owner,
        np.full(flows, volume),
        np.full(flows, float(steps)),
    )
