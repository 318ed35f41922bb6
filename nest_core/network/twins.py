"""Parts of a link graph that are alike: of every kind three stand for all.

Take some switches away, and the rest falls into parts: pods below the spines, nodes below the
leaves, single devices. Parts that are linked alike inside, and to the same switches by the same
links, may trade places: nothing else notices (their elements have one colour, as colour refinement
would give them). A flow then takes the same way between any two of a kind, so that shortest paths
are those of a graph with three of every kind: the sender's, the receiver's, and one to see whether
anything passes through a third. Where something does, nothing is taken together.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nest_core.documents.compiled import compiled
from nest_core.network.link_graph import DEVICE, SWITCH, TABLE, Links, NextHops, next_hops, parts
from nest_core.network.link_map import BoolArray, FloatArray, IntArray, rank_within

__all__ = ["Twins", "inside_parts", "reduced", "whole"]

COPIES = 3


@dataclass(frozen=True, slots=True, eq=False)
class _Members:
    """Elements, or arcs, by the part that they are in; those of like parts in the same order.

    Parameters
    ----------
    module : int array (members,)
        −1 for what is between the parts.
    member, begin : int array
        Those of every part, and where they begin.
    place : int array (members,)
        Of each in its part.
    """

    module: IntArray
    member: IntArray
    begin: IntArray
    place: IntArray

    @classmethod
    def ordered(cls, module: IntArray, order: IntArray, count: int) -> _Members:
        """List what an order, by part, has in so many parts; one without links has no arcs."""
        member = order[int((module < 0).sum()) :]
        begin = np.searchsorted(module[member], np.arange(count + 1))
        place = np.zeros(len(module), np.int64)
        place[member] = np.arange(len(member)) - begin[module[member]]
        return cls(module, member, begin, place)

    def at(self, which: IntArray, module: IntArray) -> IntArray:
        """Return what is at the same places of other parts; what is between them itself."""
        inside = self.module[which] >= 0
        place = np.where(inside, self.begin[module] + self.place[which], 0)
        return np.where(inside, self.member[place], which)


@dataclass(frozen=True, slots=True, eq=False)
class Twins:
    """A link graph and the smaller one that stands for it.

    Parameters
    ----------
    links : Links
        The smaller one.
    elements, arcs : _Members
        Of the larger one.
    kind : int array (modules,)
    copies : int array (kinds, 3)
        Parts that stay, of every kind.
    stays, kept_arc : int array
        Elements and arcs of the larger graph that the smaller one has.
    """

    links: Links
    elements: _Members
    arcs: _Members
    kind: IntArray
    copies: IntArray
    stays: IntArray
    kept_arc: IntArray

    def stand_ins(self, source: IntArray, target: IntArray) -> tuple[IntArray, IntArray]:
        """Return the ends of the same flows between devices in the smaller graph."""
        a, b = self.elements.module[source], self.elements.module[target]
        second = np.where((a != b) & (self.kind[a] == self.kind[b]), 1, 0)
        near = self.elements.at(source, self.copies[self.kind[a], 0])
        far = self.elements.at(target, self.copies[self.kind[b], second])
        return np.searchsorted(self.stays, near), np.searchsorted(self.stays, far)

    def crossed(
        self, arc: IntArray, flow: IntArray, source: IntArray, target: IntArray
    ) -> IntArray:
        """Return what arcs of the smaller graph are on the ways of flows between devices."""
        a, b = self.elements.module[source], self.elements.module[target]
        arcs, near = self.arcs, self.copies[self.kind[a], 0]
        return _moved(
            self.kept_arc[arc], flow, near, a, b, arcs.module, arcs.member, arcs.begin, arcs.place
        )

    def first(self, members: _Members) -> IntArray:
        """Return what stands for all members of one sort, in the larger graph."""
        return members.at(np.arange(len(members.module)), self.copies[self.kind, 0][members.module])


@compiled
def _moved(
    arc: IntArray,
    flow: IntArray,
    near: IntArray,
    source: IntArray,
    target: IntArray,
    module: IntArray,
    member: IntArray,
    begin: IntArray,
    place: IntArray,
) -> IntArray:
    """Return arcs of what stands for senders, ``near``, and receivers in their own parts."""
    moved = arc.copy()
    for k in range(len(arc)):
        at, which = module[arc[k]], flow[k]
        if at >= 0:
            to = source[which] if at == near[which] else target[which]
            moved[k] = member[begin[to] + place[arc[k]]]
    return moved


def inside_parts(group: IntArray, module: IntArray) -> tuple[IntArray, BoolArray]:
    """Return the first device of every group, and whether all of it is in one part, (groups,)."""
    first = np.zeros(int(group.max()) + 1, np.int64)
    first[group[::-1]] = np.arange(len(group))[::-1]
    alone = np.ones(len(first), np.bool_)
    np.logical_and.at(alone, group, module[: len(group)] == module[first[group]])
    return first, alone


def reduced(
    links: Links, nesting: tuple[IntArray, ...] = (), level: IntArray | None = None
) -> tuple[list[Twins], NextHops | None]:
    """Return smaller and smaller graphs, and the table of the last; None where it has no room.

    Parameters
    ----------
    nesting : tuple of int array (devices,)
        Groups of devices that twins have alike as well.
    level : int array (arcs,), optional
        A figure of every arc that they have alike.
    """
    steps: list[Twins] = []
    small, labels = links, np.zeros(len(links.tail), np.int64) if level is None else level
    for number in range(len(_between(links))):
        step = _twins(small, _between(small)[number], nesting, labels)
        if step is not None:
            steps.append(step)
            small, labels = step.links, labels[step.kept_arc]
            nesting = tuple(group[step.stays[: small.devices]] for group in nesting)
    if steps and (table := whole(small)) is not None and not _pass_through(steps, table):
        return steps, table
    return [], whole(links)


def whole(links: Links) -> NextHops | None:
    """Return the next hops between all devices, where they fit."""
    fits = links.devices <= max(1, TABLE // len(links.elements))
    return next_hops(links, np.arange(links.devices)) if fits else None


def _pass_through(steps: list[Twins], table: NextHops) -> bool:
    """Whether any shortest path of the smallest graph enters a part that is not the target's."""
    links, size = table.links, len(table.links.elements)
    target = np.repeat(np.arange(len(table.start) - 1), np.diff(table.start)) // size
    stays = np.arange(size)
    for step in reversed(steps):
        stays = step.stays[stays]
        module = step.elements.module[stays]
        tail, head = module[links.tail[table.arc]], module[links.head[table.arc]]
        if ((tail != head) & (head >= 0) & (head != module[target])).any():
            return True
    return False


def _between(links: Links) -> list[BoolArray]:
    """Return which switches outside nodes are farthest from devices, next to those, and so on."""
    from scipy.sparse import csgraph, csr_array

    size, every = len(links.elements), np.arange(len(links.elements))
    arcs = csr_array((np.ones(len(links.tail)), (links.tail, links.head)), shape=(size, size))
    away = csgraph.dijkstra(arcs, indices=every[: links.devices], unweighted=True, min_only=True)
    part, devices = links.node(), links.node()[: links.devices]
    nodes = np.isin(part, devices) & bool(np.ptp(devices))
    beyond = np.isin(every, links.tail[links.role[links.head] != DEVICE])  # not devices alone
    outer = (links.role == SWITCH) & ~nodes & beyond
    return [outer & (away >= distance) for distance in np.unique(away[outer])[::-1]]


def _twins(
    links: Links, hub: BoolArray, nesting: tuple[IntArray, ...], labels: IntArray
) -> Twins | None:
    """Find the kinds of parts between some switches; None where none has more than three."""
    size, tail, head = len(links.elements), links.tail, links.head
    inner = ~hub[tail] & ~hub[head]
    part = np.where(hub, -1, parts(tail[inner], head[inner], size))
    module = np.unique(part, return_inverse=True)[1] - 1
    elements = _Members.ordered(module, np.argsort(module, kind="stable"), module.max() + 1)
    codes = np.where(hub, size + np.arange(size), elements.place)
    of_arc = np.maximum(module[tail], module[head])
    arcs = _Members.ordered(
        of_arc, np.lexsort((codes[head], codes[tail], of_arc)), module.max() + 1
    )
    facts = np.zeros((1 + len(nesting), size), np.int64)
    facts[0] = links.role
    for row, group in zip(facts[1:], nesting, strict=True):
        first, alone = inside_parts(group, module)
        label = np.where(alone, elements.place[first], size + np.arange(len(first)))
        row[: links.devices] = label[group]
    figures = links.bandwidth_Bps, links.count, links.latency_s, codes[tail], codes[head], labels
    seen: dict[tuple[bytes, ...], int] = {}
    lists = [_bytes(elements, facts), _bytes(arcs, np.stack(figures))]
    kind = np.array([seen.setdefault(key, len(seen)) for key in zip(*lists, strict=True)])
    rank = rank_within(kind)
    if (rank < COPIES).all():
        return None
    copies = np.zeros((len(seen), COPIES), np.int64)
    copies[kind[rank < COPIES], rank[rank < COPIES]] = np.flatnonzero(rank < COPIES)
    stay = hub | (rank < COPIES)[module]
    number, small_arcs = np.cumsum(stay) - 1, np.flatnonzero(stay[tail] & stay[head])
    small = Links(
        tuple(np.flatnonzero(stay).tolist()),
        int(stay[: links.devices].sum()),
        links.role[stay],
        number[tail[small_arcs]],
        number[head[small_arcs]],
        links.bandwidth_Bps[small_arcs],
        links.count[small_arcs],
        links.latency_s[small_arcs],
    )
    return Twins(small, elements, arcs, kind, copies, np.flatnonzero(stay), small_arcs)


def _bytes(members: _Members, rows: IntArray | FloatArray) -> list[bytes]:
    """Return the columns of the members of every part."""
    columns = rows[:, members.member].T.copy()
    return [columns[a:b].tobytes() for a, b in pairwise(members.begin)]
