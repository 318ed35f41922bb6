"""All-to-all: everybody sends an n-th of the buffer to everybody at once.

On trees whose uplinks are shared ideally nobody is special: what a member sends through an uplink
follows from how many members of its group lie beyond it, so counting members block by block takes
the place of listing ``n (n - 1)`` flows. Elsewhere (hashed routes, routes fixed by the target,
nodes without a switch, separate rails, tori, drawn graphs) every flow is listed.
"""

from typing import cast

import numpy as np

from nest_core.network.groups import exchange, in_parts
from nest_core.network.kernels import add_seconds, slowest
from nest_core.network.levels import Network
from nest_core.network.link_map import BoolArray, FloatArray, IntArray
from nest_core.network.phases import MessageTime, Protocol, columns_of, price_phases
from nest_core.network.tree import TreeLinkMap, TreeTier, leaving_Bps

__all__ = ["all_to_all", "counts_leaving", "least_all_to_all"]


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
