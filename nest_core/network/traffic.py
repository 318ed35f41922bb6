"""What a message takes: the one price that plans, pages and commands read; all groups at once.

Of the algorithms that communication libraries run the fastest is taken for every message size. An
all-reduce is a reduce-scatter and an all-gather:

* ``ring``: one ring over the members in the order given;
* ``multi_rail``: NCCL's rings, one per device of a node on its part of the buffer, chunks passing
  through NVLink and NICs at once;
* ``double_binary_tree``: an all-reduce over two nodes of libraries that run it there
  (`Protocol.tree`): chains inside nodes, half of the buffer up and half down between them;
* ``hierarchical_halving``: level by level over nested blocks, ``ceil(log2 n)`` steps at each, one
  level after the other (Thakur, Rabenseifner and Gropp 2005), short where messages are;
* ``multi_ring`` on tori: rings both ways over every dimension at once.

An all-to-all is ``direct``: everybody sends to everybody at once.

Sources: ``docs/method.md``, section "Network".
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Literal

import numpy as np

from nest_core.documents.errors import require
from nest_core.network.exchanges import all_to_all
from nest_core.network.groups import BlockRing, block_rings, exchange, ring
from nest_core.network.levels import Network
from nest_core.network.link_map import FloatArray, IntArray
from nest_core.network.phases import (
    IDEAL,
    MessageTime,
    Phase,
    Protocol,
    merged,
    pipelined,
    price_phases,
)
from nest_core.network.torus import TorusShape

__all__ = [
    "Kind",
    "algorithms",
    "by_algorithm",
    "collectives",
    "collectives_by",
    "hierarchical_reduce_scatter",
    "message_time",
    "multi_rail_reduce_scatter",
    "multi_ring_reduce_scatter",
    "reduce_scatters",
    "ring_reduce_scatter",
    "transfers",
    "tree_all_reduce",
    "trees",
]

Kind = Literal["all_reduce", "reduce_scatter", "all_to_all", "ring"]
"""``all_reduce``: one of the two halves, a reduce-scatter or an all-gather, that an all-reduce is
made of; ``reduce_scatter``: one that stands alone, or an all-gather; ``ring``: every rank's part
goes round the group in ``n - 1`` sends and receives."""


def transfers(
    network: Network,
    source: IntArray,
    target: IntArray,
    protocols: tuple[Protocol, ...] = IDEAL,
    team: IntArray | None = None,
    volume: FloatArray | None = None,
) -> MessageTime:
    """Point-to-point flows that run at once, one member per element, or per team of them.

    ``volume`` is what each sends of the message, shape (flows,); all of it where it is left out.
    """
    flows = len(source)
    sent = np.ones(flows) if volume is None else volume
    phase = Phase(source, target, np.arange(flows), sent, np.ones(flows))
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
    (times,) = collectives_by(network, groups, [protocols], team)
    return times


def collectives_by(
    network: Network,
    groups: IntArray,
    libraries: list[tuple[Protocol, ...]],
    team: IntArray | None = None,
) -> list[MessageTime]:
    """Return the same once per set of protocols, for one count of the links.

    Protocols with trees run them after all others.
    """
    count, size = groups.shape
    if size == 1:
        nothing = MessageTime.nothing(count if team is None else int(team.max()) + 1)
        return [nothing] * len(libraries)
    if count > 1 and network.link_map.apart(groups):
        members = count if team is None else int(team.max()) + 1
        alone = _of_one_group(network, tuple(groups[0].tolist()), tuple(libraries))
        return [time_of.repeated(members) for time_of in alone]
    ways = [way(network, groups) for way in reduce_scatters(network).values()]
    every = tuple(protocol for library in libraries for protocol in library)
    sizes = [len(library) for library in libraries]
    by_way: list[list[MessageTime]] = []
    for number, way in enumerate(ways):
        same = next((k for k, other in enumerate(ways[:number]) if _same(way, other)), number)
        if same == number:
            by_way.append(price_phases(network.link_map, way, count, every, team).split(sizes))
        else:  # as where nodes hold one member each, and rings on rails are one ring
            by_way.append(by_way[same])
    fastest_of = [first.fastest(*others) for first, *others in zip(*by_way, strict=True)]
    for number, library in enumerate(libraries):
        if along := trees(network, library):
            by_tree = price_phases(
                network.link_map, tree_all_reduce(network, groups), count, along, team
            )
            fastest_of[number] = fastest_of[number].fastest(by_tree)
    return fastest_of


def _same(way: list[Phase], other: list[Phase]) -> bool:
    """Whether two algorithms send the same in one phase each."""
    if len(way) != 1 or len(other) != 1:
        return False
    phase, another = way[0], other[0]
    return (phase.turn is None and another.turn is None) and all(
        np.array_equal(getattr(phase, name), getattr(another, name))
        for name in ("steps", "volume", "source", "target", "owner")
    )


@lru_cache(maxsize=64)
def _of_one_group(
    network: Network, members: tuple[int, ...], libraries: tuple[tuple[Protocol, ...], ...]
) -> tuple[MessageTime, ...]:
    """Return what `collectives_by` finds for one group."""
    return tuple(collectives_by(network, np.array([members]), list(libraries)))


def message_time(
    network: Network,
    kind: Kind,
    groups: IntArray,
    protocols: tuple[Protocol, ...] = IDEAL,
    team: IntArray | None = None,
) -> MessageTime:
    """One call of a kind in every group at once; see `Kind`.

    Regimes follow one another algorithm by algorithm, each with all protocols.
    """
    if groups.shape[1] == 1:
        return MessageTime.nothing(1 if team is None else int(team.max()) + 1)
    if kind == "ring":
        return _passed_round(network, groups, protocols, team)
    return (
        all_to_all(network, groups, protocols, team)
        if kind == "all_to_all"
        else collectives(network, groups, protocols, team)
    )


def by_algorithm(
    network: Network, kind: Kind, groups: IntArray, protocols: tuple[Protocol, ...] = IDEAL
) -> dict[str, MessageTime]:
    """Return what `message_time` chooses from, by the name of the algorithm."""
    names = algorithms(network, kind)
    sizes = [len(protocols)] * len(names)
    if along := trees(network, protocols):
        names, sizes = (*names, "double_binary_tree"), [*sizes, len(along)]
    return dict(
        zip(names, message_time(network, kind, groups, protocols).split(sizes), strict=True)
    )


def algorithms(network: Network, kind: Kind) -> tuple[str, ...]:
    """Names of what every library chooses from, in the order of the regimes."""
    if kind == "ring":
        return ("ring",)
    return ("direct",) if kind == "all_to_all" else tuple(reduce_scatters(network))


def _passed_round(
    network: Network, groups: IntArray, protocols: tuple[Protocol, ...], team: IntArray | None
) -> MessageTime:
    """Every rank's part goes round the group, one neighbour at a time."""
    size = groups.shape[1]
    time = price_phases(
        network.link_map, [ring(groups, volume=1.0 / size, steps=1.0)], len(groups), protocols, team
    )
    return MessageTime((size - 1) * time.alpha_s, (size - 1) * time.beta_s_per_byte)


def reduce_scatters(network: Network) -> dict[str, Callable[[Network, IntArray], list[Phase]]]:
    """Return the reduce-scatters that libraries choose from, by name.

    Raises
    ------
    InputError
        If the network's algorithm is none that runs on it.
    """
    algorithms: dict[str, Callable[[Network, IntArray], list[Phase]]] = {
        "ring": lambda _, groups: ring_reduce_scatter(groups)
    }
    if (torus := network.torus) is not None:
        algorithms |= {
            "multi_ring": lambda on, groups: multi_ring_reduce_scatter(torus, on.place, groups)
        }
    else:
        algorithms |= {
            "multi_rail": multi_rail_reduce_scatter,
            "hierarchical_halving": hierarchical_reduce_scatter,
        }
    if not network.algorithm:
        return algorithms
    require(
        network.algorithm in algorithms,
        "workload.collectives",
        "must be an algorithm that runs on this fabric",
        network.algorithm,
        f"pick library, {', '.join(algorithms)}",
    )
    return {network.algorithm: algorithms[network.algorithm]}


def trees(network: Network, protocols: tuple[Protocol, ...]) -> tuple[Protocol, ...]:
    """Those of a library's protocols that run all-reduces along trees, too."""
    return tuple(protocol for protocol in protocols if protocol.tree and not network.algorithm)


def multi_rail_reduce_scatter(network: Network, groups: IntArray) -> list[Phase]:
    """NCCL's rings: one per member that a node has, each on its part of the buffer.

    Every ring passes through all members and enters and leaves a node on its own rail; chunks are
    in NVLink and NICs at once. Where nodes hold unequally many members, or groups sit differently,
    there is one ring.
    """
    count, size = groups.shape
    node = network.node[groups]
    rails = int((node[0] == node[0].min()).sum())
    if size % rails or rails in (1, size):
        return ring_reduce_scatter(groups)
    order = np.lexsort((groups, node), axis=1)
    member, node = np.take_along_axis(groups, order, 1), np.take_along_axis(node, order, 1)
    changes = node[:, 1:] != node[:, :-1]
    opens, ends = np.flatnonzero(changes[0]) + 1, np.arange(rails, size, rails)
    if not np.array_equal(opens, ends) or not (changes == changes[0]).all():
        return ring_reduce_scatter(groups)
    nodes = member.reshape(-1, rails)
    owner = np.repeat(np.arange(count), size // rails)
    part = (size - 1) / size / rails
    if network.meshed_nodes:
        inside = exchange(nodes, volume=part, steps=1.0)
    else:
        inside = ring(nodes, volume=part * (rails - 1), steps=size - size / rails)
    rail = member.reshape(count, -1, rails).swapaxes(1, 2).reshape(count * rails, -1)
    between = ring(rail, volume=part, steps=size / rails - 1)
    return [
        pipelined(
            [
                replace(inside, owner=owner[inside.owner]),
                replace(between, owner=np.repeat(np.arange(count), rails)[between.owner]),
            ]
        )
    ]


def ring_reduce_scatter(groups: IntArray) -> list[Phase]:
    """``n - 1`` steps round one ring, each with an n-th of the buffer."""
    size = groups.shape[1]
    return [ring(groups, volume=(size - 1) / size, steps=size - 1)]


def tree_all_reduce(network: Network, groups: IntArray) -> list[Phase]:
    """Half of an all-reduce over two nodes on two trees, one rooted in each (NCCL).

    Chunks pass down chains inside a node and to the other at once. A node sends half of the buffer
    up one tree and half down the other, so half of all that a ring sends leaves it.
    """
    return [
        pipelined(
            hierarchical_reduce_scatter(
                network, groups, (network.node, np.zeros_like(network.node))
            )
        )
    ]


def hierarchical_reduce_scatter(
    network: Network, groups: IntArray, nesting: tuple[IntArray, ...] = ()
) -> list[Phase]:
    """Level by level, halving at each; a level exchanges what those inside have left.

    In nodes without a switch every device sends to all others at once over their own links.

    Parameters
    ----------
    nesting : tuple of int array (devices,), optional
        Blocks of the levels; by default the network's.
    """
    direct = 1 if network.meshed_nodes else 0
    return [
        entry.phase(volume=entry.shard / entry.fan, steps=1.0)
        if entry.level < direct
        else entry.phase(
            volume=(entry.fan - 1) / entry.fan * entry.shard, steps=np.ceil(np.log2(entry.fan))
        )
        for entry in block_rings(groups, nesting or network.nesting, direct)
    ]


def multi_ring_reduce_scatter(shape: TorusShape, place: IntArray, groups: IntArray) -> list[Phase]:
    """Rings over all dimensions of a torus at once, both ways round.

    The buffer is cut into one part per dimension in use; part ``p`` climbs the dimensions in
    an order rotated by ``p``, so that at every time each dimension carries one part, half of
    it either way.
    """
    used = [
        axis for axis, at in enumerate(shape.coordinates(place[groups])) if (at != at[:, :1]).any()
    ]
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
    one_way = merged(
        [
            part.phase(
                volume=(part.fan - 1) / part.fan * part.shard * cut / 2,
                steps=part.fan.astype(np.float64) - 1.0,
            )
            for part in parts
        ]
    )
    return merged([one_way, replace(one_way, source=one_way.target, target=one_way.source)])
