"""What the costs ask of a network: transfers, reduce-scatters and all-gathers, all groups at once.

An all-reduce is a reduce-scatter and an all-gather. The fastest algorithm is
taken for every message size:

* ``ring``: one ring over the members in the order given;
* ``hierarchical``: level by level over nested blocks, ``ceil(log2 n)`` steps at each
  (Thakur, Rabenseifner and Gropp 2005);
* ``multi_ring`` on tori: rings both ways over every dimension at once.

Sources: ``docs/method.md``, section "Network".
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from nest_core.network.groups import BlockRing, block_rings, ring
from nest_core.network.levels import Network
from nest_core.network.link_map import IntArray
from nest_core.network.phases import IDEAL, MessageTime, Phase, Protocol, price_phases
from nest_core.network.torus import TorusShape
from nest_core.network.tree import TreeLinkMap

__all__ = [
    "collectives",
    "collectives_by",
    "hierarchical_reduce_scatter",
    "multi_ring_reduce_scatter",
    "ring_reduce_scatter",
    "transfers",
]


def transfers(
    network: Network,
    source: IntArray,
    target: IntArray,
    protocols: tuple[Protocol, ...] = IDEAL,
    team: IntArray | None = None,
) -> MessageTime:
    """Point-to-point flows that run at once, one member per element, or per team of them."""
    flows = len(source)
    phase = Phase(source, target, np.arange(flows), np.ones(flows), np.ones(flows))
    return price_phases(network.link_map, [phase], flows, protocols, team)


def collectives(
    network: Network,
    groups: IntArray,
    protocols: tuple[Protocol, ...] = IDEAL,
    team: IntArray | None = None,
) -> MessageTime:
    """Reduce-scatter (or all-gather) of every group at once, by the fastest algorithm.

    Parameters
    ----------
    groups : int array (groups, members)
    team : int array (groups,), optional
        Groups that wait for one another.

    Returns
    -------
    MessageTime
        One member per group, or per team; ``bytes`` is the whole buffer that each device holds
        before the reduce-scatter or after the all-gather.
    """
    (found,) = collectives_by(network, groups, [protocols], team)
    return found


def collectives_by(
    network: Network,
    groups: IntArray,
    libraries: list[tuple[Protocol, ...]],
    team: IntArray | None = None,
) -> list[MessageTime]:
    """The same once per set of protocols, for one count of the links."""
    count, size = groups.shape
    if size == 1:
        nothing = MessageTime.nothing(count if team is None else int(team.max()) + 1)
        return [nothing] * len(libraries)
    if count > 1 and isinstance(network.link_map, TreeLinkMap) and network.link_map.apart(groups):
        members = count if team is None else int(team.max()) + 1
        alone = _of_one_group(network, tuple(groups[0].tolist()), tuple(libraries))
        return [one.repeated(members) for one in alone]
    ways = [ring_reduce_scatter(groups)]
    if network.torus is not None:
        ways.append(multi_ring_reduce_scatter(network.torus, network.place, groups))
    else:
        ways.append(hierarchical_reduce_scatter(network, groups))
    every = tuple(protocol for library in libraries for protocol in library)
    sizes = [len(library) for library in libraries]
    by_way = [price_phases(network.link_map, way, count, every, team).split(sizes) for way in ways]
    return [first.fastest(*others) for first, *others in zip(*by_way, strict=True)]


@lru_cache(maxsize=64)
def _of_one_group(
    network: Network, members: tuple[int, ...], libraries: tuple[tuple[Protocol, ...], ...]
) -> tuple[MessageTime, ...]:
    """What `collectives_by` finds for one group."""
    return tuple(collectives_by(network, np.array([members]), list(libraries)))


def ring_reduce_scatter(groups: IntArray) -> list[Phase]:
    """``n - 1`` steps round one ring, each with an n-th of the buffer."""
    size = groups.shape[1]
    return [ring(groups, volume=(size - 1) / size, steps=size - 1)]


def hierarchical_reduce_scatter(network: Network, groups: IntArray) -> list[Phase]:
    """Level by level, halving at each; a level exchanges what those inside have left.

    In nodes without a switch every device sends to all others at once over their own links.
    """
    direct = 1 if network.meshed_nodes else 0
    return [
        entry.phase(volume=entry.shard / entry.fan, steps=1.0)
        if entry.level < direct
        else entry.phase(
            volume=(entry.fan - 1) / entry.fan * entry.shard, steps=np.ceil(np.log2(entry.fan))
        )
        for entry in block_rings(groups, network.nesting, direct)
    ]


def multi_ring_reduce_scatter(shape: TorusShape, place: IntArray, groups: IntArray) -> list[Phase]:
    """Rings over all dimensions of a torus at once, both ways round.

    The buffer is cut into one part per dimension in use; part ``p`` climbs the dimensions in
    an order rotated by ``p``, so that at every time each dimension carries one part, half of
    it either way.
    """
    coordinates = shape.coordinates(place[groups])
    used = [axis for axis, at in enumerate(coordinates) if (at != at[:, :1]).any()]
    rings = [
        entry
        for p in range(len(used))
        for entry in block_rings(groups, shape.nesting(place, used[p:] + used[:p]))
    ]
    return [
        _both_ways(parts, 1.0 / len(used))
        for k in range(len(used))
        if (parts := [entry for entry in rings if entry.level == k])
    ]


def _both_ways(parts: list[BlockRing], cut: float) -> Phase:
    """Several rings at once, each with ``cut`` of the buffer, half of it either way."""
    source = np.concatenate([part.source for part in parts])
    target = np.concatenate([part.target for part in parts])
    owner = np.concatenate([part.owner for part in parts])
    volume = np.concatenate([(part.fan - 1) / part.fan * part.shard for part in parts]) * cut / 2
    steps = np.concatenate([part.fan - 1.0 for part in parts])
    return Phase(
        np.concatenate([source, target]),
        np.concatenate([target, source]),
        np.tile(owner, 2),
        np.tile(volume, 2),
        np.tile(steps, 2),
    )
