"""How far levels alone are from the links beneath them.

The same traffic is priced twice: on the network's links, and on a tree that knows only its
levels: every child of a level has one uplink group of that level's capacity, from which one
device draws at most `Level.single_flow_Bps`. A torus has a level per hop; of those beyond
`REMOTE_HOPS` the tree knows one, as NEST (MLSys 2026, appendix B.2) does.
The worst relative difference over the placements that a planner makes is the *collapse error*:
0 for hierarchies and Clos fabrics of equal groups, and an honest figure for tori, rails,
dragonflies and drawn graphs. Plans are priced on the links and do not carry it.

Placements: groups of contiguous devices and of devices a stride apart that cover the fabric
(sizes and strides: powers of four and whole blocks of the nesting), reduced by a ring and level
by level; pipelines with stages of every such size, and the first of their senders alone. Latency
counts as part of a message of 1 GiB, so that bandwidth rules. Over 16,384 devices one size, the
middle one, stands for all, and rings for collectives; of a link graph over 1,024 devices so do
1,024 devices, evenly spread.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from nest_core.network.graph import GraphLinkMap
from nest_core.network.levels import Network
from nest_core.network.link_map import FloatArray, IntArray
from nest_core.network.phases import Phase, price_phases
from nest_core.network.traffic import hierarchical_reduce_scatter, ring_reduce_scatter
from nest_core.network.tree import TreeLinkMap, TreeTier

__all__ = ["REMOTE_HOPS", "block_levels", "collapse_error", "levels_only"]

MESSAGE = 2.0**30
FEW_DEVICES = 16_384
FEW_DRAWN = 1024
REMOTE_HOPS = 3
"""From so many hops on a torus has one level, the paper's "remote"; it prints no threshold."""


def levels_only(network: Network) -> Network:
    """Return the network as its levels say: a tree with one uplink group per child.

    A block of the nesting is priced by its level, on fabrics whose levels do not nest by the
    level at which its farthest devices meet; there an uplink is what its devices have of the
    level. One flow draws what one device may, or more where every link of the level lets it, but
    of a bundle no more than it has on its way there.
    """
    link_map, devices = network.link_map, np.arange(network.devices)
    nested = all(level.kind == "nested" for level in network.levels)
    tiers: list[TreeTier] = []
    child, within, port = devices, -1, np.inf
    for group, number in zip(network.nesting, block_levels(network), strict=True):
        level = network.levels[number]
        size = np.bincount(child)
        capacity = np.full(len(size), level.capacity_Bps)
        if not nested:
            capacity = level.bandwidth_Bps * np.maximum(size, 1.0)
        group_links = link_map.link_Bps[(link_map.tier > within) & (link_map.tier <= number)]
        most = max(level.single_flow_Bps, min(port, float(group_links.min(initial=np.inf))))
        if nested:  # into bundles further out it comes through what is inside of them
            port = min(port, most)
        one_link = np.minimum(most, capacity)
        owned = nested and level.links == level.child_size
        tiers.append(TreeTier(child, group, capacity, one_link, level.latency_s, owned))
        child, within = group, number
    return replace(network, link_map=TreeLinkMap(tuple(tiers)), torus=None)


def block_levels(network: Network) -> tuple[int, ...]:
    """Return the level of every block of the nesting: its own, or where its farthest devices meet.

    On a torus that is `REMOTE_HOPS` at most: who is far from somebody there is near to others, and
    rings, which most traffic is, go from neighbour to neighbour.
    """
    nested = all(level.kind == "nested" for level in network.levels)
    if nested and len(network.levels) == len(network.nesting):
        return tuple(range(len(network.nesting)))
    result = []
    for group in network.nesting:
        members = np.flatnonzero(group == group[0])
        far = int(network.link_map.level(np.full(len(members), members[0]), members).max())
        result.append(max(0, far if network.torus is None else min(far, REMOTE_HOPS - 1)))
    return tuple(result)


def collapse_error(network: Network) -> float:
    """Worst relative difference between pricing by levels alone and on the links.

    Examples
    --------
    >>> from nest_core.network import collapse
    >>> from nest_core.fabric import Hierarchical, Tier
    >>> tiers = (Tier("node", 8, 900e9, 1e-7), Tier("rack", 4, 50e9, 2e-7))
    >>> collapse_error(collapse(Hierarchical("two", tiers)))
    0.0
    """
    if network.devices == 1:
        return 0.0
    tree = levels_only(network)
    worst = 0.0
    for phases in _placements(network):
        link, level = (_seconds(entry, phases) for entry in (network, tree))
        worst = max(worst, abs(level / link - 1.0) if link else 0.0)
    return float(worst) if worst > 1e-9 else 0.0


def _seconds(network: Network, phases: list[Phase]) -> float:
    time: FloatArray = price_phases(network.link_map, phases, 1).seconds(MESSAGE)
    return float(time[0])


def _placements(network: Network) -> Iterator[list[Phase]]:
    """Phases of every sampled placement, one owner each."""
    every = np.arange(network.devices)
    if isinstance(network.link_map, GraphLinkMap) and len(every) > FEW_DRAWN:
        every = np.linspace(0, len(every) - 1, FEW_DRAWN).astype(np.int64)
    devices = len(every)
    sizes = _sizes(network, devices)
    many = network.devices > min(FEW_DEVICES, devices)
    for size in sizes:
        for stride in sizes if many else [1, *sizes]:
            count = devices // (size * stride)
            if count == 0:
                continue
            groups = every[: count * size * stride].reshape(count, size, stride).swapaxes(1, 2)
            rows: IntArray = groups.reshape(-1, size)
            algorithms = [ring_reduce_scatter(rows)]
            if not many:
                algorithms.append(hierarchical_reduce_scatter(network, rows))
            yield from ([replace(p, owner=0 * p.owner) for p in phases] for phases in algorithms)
        if size < devices:
            source, target, ones = every[:-size], every[size:], np.ones(devices - size)
            for flows in (slice(None), slice(1)):
                sent = ones[flows]
                yield [Phase(source[flows], target[flows], 0 * source[flows], sent, sent)]


def _sizes(network: Network, devices: int) -> list[int]:
    """Group sizes and strides: powers of four, and the blocks of the nesting."""
    powers = {4**k for k in range(1, 10)} | {2}
    blocks = {int(np.bincount(group).max()) for group in network.nesting}
    sizes = sorted(size for size in powers | blocks if 1 < size <= devices)
    return [sizes[len(sizes) // 2]] if network.devices > min(FEW_DEVICES, devices) else sizes
