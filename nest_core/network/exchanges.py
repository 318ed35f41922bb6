"""All-to-all: everybody sends an n-th of the buffer to everybody at once.

On trees whose uplinks are shared ideally nobody is special: what a member sends through an uplink
follows from how many members of its group lie beyond it, so counting members block by block takes
the place of listing ``n (n - 1)`` flows. Elsewhere (hashed routes, routes fixed by the target,
nodes without a switch, separate rails, tori, drawn graphs) every flow is listed.
"""

from __future__ import annotations

import numpy as np

from nest_core.errors import InputError
from nest_core.network.groups import MOST_FLOWS, exchange
from nest_core.network.levels import Network
from nest_core.network.link_map import IntArray
from nest_core.network.phases import MessageTime, Protocol, price_phases, sent, started
from nest_core.network.tree import TreeLinkMap, TreeTier

__all__ = ["all_to_all"]


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
        Where flows must be listed and are too many.
    """
    link_map, (count, size) = network.link_map, groups.shape
    if isinstance(link_map, TreeLinkMap) and link_map.ideal:
        return _counted(link_map, groups, protocols, team)
    if count * size * (size - 1) > MOST_FLOWS:
        raise InputError(
            "all_to_all",
            f"must not need more than {MOST_FLOWS:,} flows at once",
            count * size * (size - 1),
            "use smaller or fewer groups",
        )
    every = exchange(groups, volume=1.0 / size, steps=1.0)
    return price_phases(link_map, [every], count, protocols, team)


def _counted(
    link_map: TreeLinkMap,
    groups: IntArray,
    protocols: tuple[Protocol, ...],
    team: IntArray | None,
) -> MessageTime:
    from nest_core.network.kernels import slowest  # see there

    count, size = groups.shape
    tiers, leaves_by = link_map.tiers, link_map.leaves_by
    met = _met(tiers, groups)
    worst, latency, steps = (np.zeros((2, count)) for _ in range(3))
    for number, tier in enumerate(tiers):
        side = int(number > 0)
        here = (met[number + 1] > met[number]).any(axis=1)
        latency[side] = np.maximum(latency[side], np.where(here, tier.latency_s, 0.0))
        steps[side] = np.maximum(steps[side], here)
        last = int(np.flatnonzero(leaves_by <= number).max(initial=-1))
        if last < number:
            continue
        out = (met[last + 1] - met[number]) / size
        child = tier.child[groups]
        load = np.bincount(child.reshape(-1), out.reshape(-1), len(tier.capacity_Bps))[child]
        alone = 1.0 / size / tier.link_Bps[child]
        taken = np.where(out > 0, np.maximum(load / tier.capacity_Bps[child], alone), 0.0)
        worst[side] = np.maximum(worst[side], taken.max(axis=1))
    base = np.array([[entry.base_s] for entry in protocols])
    alpha = base + started(protocols, steps, latency, latency)
    beta = sent(protocols, worst)
    if team is not None:
        teams = int(team.max(initial=-1)) + 1
        alpha, beta = slowest(alpha, team, teams), slowest(beta, team, teams)
    return MessageTime(alpha, beta)


def _met(tiers: tuple[TreeTier, ...], groups: IntArray) -> list[IntArray]:
    """How many of its own group every member has met, itself included, inside each tier.

    The groups of tiers may cut across the nodes (rails): what both hold counts once.
    """
    node = tiers[0].group
    inside = _peers(node, groups)
    found = [np.ones_like(groups), inside]
    for tier in tiers[1:]:
        both = node * (int(tier.group.max()) + 1) + tier.group
        found.append(_peers(tier.group, groups) + inside - _peers(both, groups))
    return found


def _peers(block: IntArray, groups: IntArray) -> IntArray:
    """How many of its own group every member shares a block with, itself included."""
    count, size = groups.shape
    key = block[groups] + np.arange(count)[:, None] * (int(block.max()) + 1)
    _, which, number = np.unique(key, return_inverse=True, return_counts=True)
    return np.asarray(number[which].reshape(count, size), dtype=np.int64)
