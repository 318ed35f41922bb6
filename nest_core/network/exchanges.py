"""All-to-all: everybody sends an n-th of the buffer to everybody at once.

On trees whose uplinks are shared ideally nobody is special: what a member sends through an uplink
follows from how many members of its group lie beyond it, so counting members block by block takes
the place of listing ``n (n - 1)`` flows. Elsewhere (hashed routes, routes fixed by the target,
nodes without a switch, separate rails, tori, drawn graphs) every flow is listed.

Dispatch of tokens to experts that sends no token twice where once is enough.

A plain all-to-all sends a token once per expert that it chose. Libraries for experts send it once
to every node that holds any of them, to the device with the sender's place in its own node, which
hands it on inside: once to every device. Coming back, copies are added up on the way. DeepEP counts
hosts, HybridEP what devices reach without a NIC ([1]_, [2]_).

How many copies that leaves follows from how tokens choose. Of ``E`` experts a token takes ``k``,
all alike, so that it passes by a block of ``b`` of them with probability
``C(E - b, k) / C(E, k)``. Node-limited routing first picks ``M`` of ``G`` equal groups of experts
[3]_, and then ``k`` of theirs; blocks of neighbouring experts begin where a group does.

References
----------
.. [1] DeepEP, "Normal kernels": tokens cross RDMA once per node and NVLink once per rank.
.. [2] Megatron Core, ``--moe-flex-dispatcher-backend hybridep``: by NVLink domain.
.. [3] DeepSeek-AI 2024 (arXiv:2412.19437), section 2.1.2, "Node-Limited Routing".
"""

from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import cast

import numpy as np

from nest_core.network.groups import exchange, in_parts
from nest_core.network.kernels import add_seconds, slowest
from nest_core.network.levels import Network
from nest_core.network.link_map import BoolArray, FloatArray, IntArray
from nest_core.network.phases import (
    MessageTime,
    Phase,
    Protocol,
    columns_of,
    pipelined,
    price_phases,
)
from nest_core.network.tree import TreeLinkMap, TreeTier, leaving_Bps

__all__ = [
    "Dispatch",
    "all_to_all",
    "counts_leaving",
    "dispatch_phases",
    "dispatched",
    "least_all_to_all",
]


def all_to_all(
    network: Network,
    groups: IntArray,
    protocols: tuple[Protocol, ...],
    team: IntArray | None = None,
) -> MessageTime:
    """All-to-alls of all groups at once; ``bytes`` is what each member holds.

    Raises
    ------
    InputError
        Where flows must be listed and one group has too many.
    """
    link_map, (count, size) = network.link_map, groups.shape
    if isinstance(link_map, TreeLinkMap) and link_map.ideal:
        return _counted(link_map, groups, protocols, team)
    every = in_parts(
        groups, size * (size - 1), lambda some: [exchange(some, volume=1.0 / size, steps=1.0)]
    )
    return price_phases(link_map, every, count, protocols, team)


def counts_leaving(network: Network) -> bool:
    """Whether `least_all_to_all` knows more than nothing, without a list of flows."""
    return isinstance(network.link_map, TreeLinkMap)


def least_all_to_all(
    network: Network, groups: IntArray, protocols: tuple[Protocol, ...], team: IntArray
) -> MessageTime:
    """Return what `all_to_all` takes at least, team by team, without a list of flows, on trees.

    Where uplinks are shared ideally that is what it takes. Elsewhere, whatever links a team's flows
    take, among all that leave a block one is as busy as they are on average, and flows of other
    teams only add to that.
    """
    link_map = cast(TreeLinkMap, network.link_map)
    if link_map.ideal:
        return _counted(link_map, groups, protocols, team)
    teams, worst = int(team.max(initial=-1)) + 1, _leaving(link_map, groups, team)
    _, latency, steps = _latencies(link_map, groups, groups)
    if link_map.egress is not None:  # on other rails, flows meet further in
        latency[1] = steps[1] * min(tier.latency_s for tier in link_map.tiers[1:])
    alpha, _ = _seconds(protocols, steps, latency, np.zeros_like(steps))
    none = np.zeros((2, teams))
    _, beta = _seconds(protocols, none, none, np.stack([none[0], worst]))
    return MessageTime(slowest(alpha, team, teams), beta)


def _seconds(
    protocols: tuple[Protocol, ...], steps: FloatArray, latency: FloatArray, worst: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return latency and seconds per byte, (protocols, groups) each, of figures (2, groups)."""
    columns = columns_of(protocols)
    alpha = np.zeros((1, len(protocols), steps.shape[1])) + columns[0][:, None]
    beta = np.zeros_like(alpha)
    add_seconds(columns, (steps[None], latency[None], latency[None]), worst[None], alpha, beta)
    return alpha[0], beta[0]


def _leaving(tree: TreeLinkMap, groups: IntArray, team: IntArray) -> FloatArray:
    """Seconds per byte in which each team alone leaves the groups of tiers, (teams,)."""
    size, teams = groups.shape[1], int(team.max(initial=-1)) + 1
    longest = np.zeros(teams)
    for tier in range(len(tree.tiers) - 1):
        if not tree.leaves_wholly(tier):
            continue
        rates = leaving_Bps(tree.tiers, tier)
        block = tree.tiers[tier].group[groups]
        sent_out = (size - _peers(block, np.ones_like(groups))) / size
        place = (team[:, None] * len(rates) + block).reshape(-1)
        load = np.bincount(place, sent_out.reshape(-1), teams * len(rates)).reshape(teams, -1)
        seconds = np.divide(load, rates, out=np.zeros_like(load), where=load > 0)
        longest = np.maximum(longest, seconds.max(axis=1))
    return longest


def _counted(
    link_map: TreeLinkMap,
    groups: IntArray,
    protocols: tuple[Protocol, ...],
    team: IntArray | None,
) -> MessageTime:
    count, size = groups.shape
    tiers, leaves_by = link_map.tiers, link_map.leaves_by
    egress = groups if link_map.egress is None else link_map.egress[groups]
    forwards = egress != groups
    met, latency, steps = _latencies(link_map, groups, egress)
    worst = np.zeros((2, count))
    for number, tier in enumerate(tiers):
        side = int(number > 0)
        last = int(np.flatnonzero(leaves_by <= number).max(initial=-1))
        if last < number:
            continue
        crossed = [(egress if number else groups, (met[last + 1] - met[number]) / size)]
        if not number and forwards.any():  # what comes and goes by another device of the node
            through = forwards * (met[-1] - met[1]) / size
            crossed = [(groups, crossed[0][1] + through), (egress, through)]
        load = np.zeros(len(tier.capacity_Bps))
        for member, out in crossed:
            load += np.bincount(tier.child[member].reshape(-1), out.reshape(-1), len(load))
        for member, out in crossed:
            child = tier.child[member]
            alone = 1.0 / size / tier.link_Bps[child]
            busy = np.maximum(load[child] / tier.capacity_Bps[child], alone)
            worst[side] = np.maximum(worst[side], np.where(out > 0, busy, 0.0).max(axis=1))
    alpha, beta = _seconds(protocols, steps, latency, worst)
    if team is not None:
        teams = int(team.max(initial=-1)) + 1
        alpha, beta = slowest(alpha, team, teams), slowest(beta, team, teams)
    return MessageTime(alpha, beta)


def _latencies(
    link_map: TreeLinkMap, groups: IntArray, egress: IntArray
) -> tuple[list[IntArray], FloatArray, FloatArray]:
    """How many members each one `_met`; latencies and steps inside nodes and outside, (2, groups).

    Whoever leaves his node by another device waits for a step inside it, at either end.
    """
    tiers, forwards = link_map.tiers, egress != groups
    met = _met(tiers, groups, egress, np.ones_like(groups))
    through = _met(tiers, groups, egress, forwards) if forwards.any() else [0 * met[0]] * len(met)
    latency, steps = (np.zeros((2, len(groups))) for _ in range(2))
    for number, tier in enumerate(tiers):
        side = int(number > 0)
        here = met[number + 1] > met[number]
        ends = forwards.astype(np.int64) + (through[number + 1] > through[number])
        flow_s = tier.latency_s + side * tiers[0].latency_s * ends
        latency[side] = np.maximum(latency[side], np.where(here, flow_s, 0.0).max(axis=1))
        steps[side] = np.maximum(steps[side], here.any(axis=1))
    return met, latency, steps


def _met(
    tiers: tuple[TreeTier, ...], groups: IntArray, egress: IntArray, weight: IntArray | BoolArray
) -> list[IntArray]:
    """How many of its own group every member has met, itself included, inside each tier.

    ``egress`` are the devices through which they leave their nodes, and ``weight`` counts them. The
    groups of tiers may cut across the nodes (rails): what both hold counts once.
    """
    node = tiers[0].group[groups]
    inside = _peers(node, weight)
    counts = [weight.astype(np.int64), inside]
    for tier in tiers[1:]:
        block = tier.group[egress]
        both = node * (int(tier.group.max()) + 1) + block
        counts.append(_peers(block, weight) + inside - _peers(both, weight))
    return counts


def _peers(block: IntArray, weight: IntArray | BoolArray) -> IntArray:
    """How much of its own group every member shares a block with, itself included; all (groups,
    members).
    """
    key = block + np.arange(len(block))[:, None] * (int(block.max()) + 1)
    _, which = np.unique(key, return_inverse=True)
    return np.asarray(
        np.bincount(which.reshape(-1), weight.reshape(-1))[which].reshape(block.shape),
        dtype=np.int64,
    )


@dataclass(frozen=True, slots=True)
class Dispatch:
    """How tokens choose experts, and where each of them is sent once only.

    Parameters
    ----------
    experts, top_k : int
    groups, top_groups : int
        Groups of experts, and how many of them a token's experts lie in at most.
    by_host : bool
        Once per host; else once per node.
    """

    experts: int
    top_k: int
    groups: int = 1
    top_groups: int = 1
    by_host: bool = False

    def blocks(self, network: Network) -> IntArray:
        """Return what a token enters once, of every device; on a torus the device itself."""
        return network.host if self.by_host or network.torus is not None else network.node

    def copies(self, ranks: int, size: int) -> float:
        """Return expected copies of a token in a block of ``ranks`` of the ``size`` that share
        experts,
        per expert that it chose.

        Examples
        --------
        DeepSeek-V3 on eight nodes: so many of them hold one of a token's experts; at most four
        where each holds a group of which four are picked.

        >>> round(8 * 8 * Dispatch(256, 8).copies(8, 64), 2)
        5.29
        >>> round(8 * 8 * Dispatch(256, 8, 8, 4).copies(8, 64), 2)
        3.63
        """
        return _reached(self, ranks * self.experts / size) / self.top_k


@lru_cache(maxsize=4096)
def _reached(dispatch: Dispatch, block: float) -> float:
    """Return the probability that a token chose any of a block of neighbouring experts."""
    group_experts = dispatch.experts // dispatch.groups
    full_groups, rest = divmod(block, group_experts)
    parts, others = int(rest > 0), dispatch.groups - int(full_groups) - int(rest > 0)
    every, passes = comb(dispatch.groups, dispatch.top_groups), 0.0
    for full in range(min(int(full_groups), dispatch.top_groups) + 1):
        for part in range(parts + 1):
            other_groups = dispatch.top_groups - full - part
            if 0 <= other_groups <= others:
                ways = comb(int(full_groups), full) * comb(others, other_groups)
                passes += (ways / every) * _passed_by(
                    dispatch.top_groups * group_experts,
                    full * group_experts + part * rest,
                    dispatch.top_k,
                )
    return 1.0 - passes


def _passed_by(experts: int, block: float, chosen: int) -> float:
    """Return the probability that none of ``chosen`` of the experts is in a block."""
    free = experts - np.arange(chosen, dtype=np.float64)
    return float(np.prod(np.maximum(free - block, 0.0) / free))


def dispatched(
    network: Network,
    groups: IntArray,
    dispatch: Dispatch,
    protocols: tuple[Protocol, ...],
    team: IntArray | None = None,
) -> MessageTime:
    """All-to-alls of all groups at once; ``bytes`` is what each member holds, a copy per expert.

    Raises
    ------
    InputError
        Where one group has too many flows.
    """
    _, counts = np.unique(dispatch.blocks(network), return_counts=True)
    reach = min(size := groups.shape[1], len(counts)) + min(size, int(counts.max()))
    phases = in_parts(groups, size * reach, lambda some: dispatch_phases(network, some, dispatch))
    return price_phases(network.link_map, phases, len(groups), protocols, team)


def dispatch_phases(network: Network, groups: IntArray, dispatch: Dispatch) -> list[Phase]:
    """Flows between blocks and inside them; tokens pass through both at once.

    Members, in order, hold neighbouring experts. Of its own tokens a member sends one copy to
    every other block, to the one with its place there (or, in a smaller block, that of its place
    modulo the members), and those of its own block get theirs from it.
    """
    count, size = groups.shape
    block = dispatch.blocks(network)[groups]
    order = np.argsort(block, axis=1, kind="stable")
    member = np.take_along_axis(groups, order, axis=1).reshape(-1)
    block = np.take_along_axis(block, order, axis=1)
    opens = np.ones((count, size), dtype=bool)
    opens[:, 1:] = block[:, 1:] != block[:, :-1]
    start = np.flatnonzero(opens)
    block_of = np.cumsum(opens) - 1  # every place's block
    block_size = np.diff(np.append(start, count * size))
    row = np.repeat(np.arange(count), size)
    slot = np.arange(count * size) - start[block_of]
    number = opens.sum(axis=1)  # of a row's blocks
    reach = (int(number.max()), int(block_size.max()) - 1)
    copies = np.array([dispatch.copies(ranks, size) for ranks in range(reach[1] + 2)])
    target = (np.cumsum(number) - number)[row][:, None] + np.arange(reach[0])
    is_sent = (np.arange(reach[0]) < number[row][:, None]) & (target != block_of[:, None])
    place, turn = np.nonzero(is_sent)
    target = target[place, turn]
    relay = start[target] + slot[place] % block_size[target]
    between = _phase(member, row, place, relay, copies[block_size[target]])
    handed = copies[1] * (1.0 + np.bincount(relay, minlength=count * size))
    place, step = np.nonzero(np.arange(1, reach[1] + 1) < block_size[block_of][:, None])
    near = start[block_of[place]] + (slot[place] + step + 1) % block_size[block_of[place]]
    phases = [
        phase
        for phase in (between, _phase(member, row, place, near, handed[place]))
        if len(phase.source)
    ]
    return [pipelined(phases)] if len(phases) > 1 else phases


def _phase(
    member: IntArray, row: IntArray, source: IntArray, target: IntArray, volume: FloatArray
) -> Phase:
    return Phase(member[source], member[target], row[source], volume, np.ones(len(source)))
