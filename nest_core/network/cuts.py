"""Minimum cuts between the children of a level: their uplinks, and which hold together.

Children are contracted to one vertex each. Elements with at most two neighbours vanish first
(a NIC between a node and a leaf is a link with the lesser of its two bandwidths), and children
with the same neighbours over the same bandwidths, linked to one another or not, are one class: a
cut is found per class. No cut is less than all links of a child where each of its neighbours passes
as much straight on to other children: these ways share nothing, and no flow has to be searched for.

Cuts are exact: the flow algorithm sees capacities as integers to 2^-30 of the largest uplink,
and the bandwidth is then added up over the links that its cut crosses.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, maximum_flow

from nest_core.network.link_graph import Links
from nest_core.network.link_map import BoolArray, FloatArray, IntArray

__all__ = ["Cuts", "separate"]

UNIT = 2**30


@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """The children of one level in a contracted graph.

    Parameters
    ----------
    parent : int array (children,)
        Group that a child belongs to.
    size : int array (children,)
        Devices in it.
    tail, head : int array (arcs,)
        Between vertices, both directions; children come first.
    capacity_Bps : float array (arcs,)
    vertices : int
    alike : int array (children,)
        Class of children of one group that see the same neighbours.
    leaving_Bps : float array (children,)
        Over all links of a child.
    """

    parent: IntArray
    size: IntArray
    tail: IntArray
    head: IntArray
    capacity_Bps: FloatArray
    vertices: int
    alike: IntArray
    leaving_Bps: FloatArray

    @classmethod
    def between(cls, links: Links, used: BoolArray, inside: IntArray, group: IntArray) -> Cuts:
        """Contract the children of every group.

        Parameters
        ----------
        used : bool array (arcs,)
        inside : int array (elements,)
            Child that an element belongs to, −1 for none.
        group : int array (devices,)
        """
        child = inside[: links.devices]
        children = int(child.max()) + 1
        vertex = inside.copy()
        loose = np.flatnonzero(inside < 0)
        vertex[loose] = children + np.arange(len(loose))
        vertices = children + len(loose)
        tail, head, capacity = _merged(
            vertex[links.tail[used]], vertex[links.head[used]], links.capacity_Bps[used], vertices
        )
        tail, head, capacity = _reduced(tail, head, capacity, vertices, children)
        parent = np.zeros(children, np.int64)
        parent[child] = group
        return cls(
            parent,
            np.bincount(child),
            tail,
            head,
            capacity,
            vertices,
            _alike(tail, head, capacity, parent),
            np.asarray(np.bincount(tail, capacity, vertices)[:children], np.float64),
        )

    def uplinks_Bps(self) -> FloatArray:
        """Minimum cut between every child and the rest of its group; infinite for an only one."""
        result = np.full(len(self.parent), np.inf)
        for members in _by_value(self.parent):
            if len(members) < 2:
                continue
            network = _Flows(self, members)
            for index in _by_value(self.alike[members]):
                result[members[index]] = network.uplink_Bps(int(members[index[0]]))
        return result

    def tree(self, members: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Edges of a tree whose least edge between two children is their minimum cut.

        Gusfield's: one flow per class of children but the first; those of one class hang
        together by all of their links.
        """
        classes = [members[index] for index in _by_value(self.alike[members])]
        first = np.array([entry[0] for entry in classes])
        towards = np.zeros(len(first), np.int64)
        cut = np.full(len(first), np.inf)
        network = _Flows(self, members[:0])
        for k in range(1, len(first)):
            cut[k], side = network.cut(int(first[k]), int(first[towards[k]]))
            towards[k + 1 :][side[first[k + 1 :]] & (towards[k + 1 :] == towards[k])] = k
        ends = [(int(a), int(first[b])) for a, b in zip(first[1:], towards[1:], strict=True)]
        value = list(cut[1:])
        for entry in classes:
            ends += [(int(entry[0]), int(other)) for other in entry[1:]]
            value += [float(self.leaving_Bps[entry[0]])] * (len(entry) - 1)
        pairs = np.array(ends, np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1], np.array(value)


class _Flows:
    """Maximum flows in the contracted graph, towards one vertex or all of ``members``."""

    def __init__(self, cuts: Cuts, members: IntArray) -> None:
        size = cuts.vertices
        self.sink = size
        most = float(cuts.leaving_Bps.max())
        sinks = np.full(len(members), size)
        tail = np.concatenate([cuts.tail, members, sinks])
        head = np.concatenate([cuts.head, sinks, members])
        capacity = np.concatenate([cuts.capacity_Bps, 0.0 * sinks + most, 0.0 * members])
        order = np.lexsort((head, tail))
        self.tail, self.head, self.capacity = tail[order], head[order], capacity[order]
        self.is_goal = np.isin(np.arange(size + 1), members)
        self.onward = np.bincount(self.tail, self.capacity * self.is_goal[self.head], size + 1)
        units = np.minimum(np.rint(self.capacity / most * UNIT), UNIT).astype(np.int32)
        start = np.searchsorted(self.tail, np.arange(size + 2))
        self.graph = csr_array(
            (units, self.head.astype(np.int32), start.astype(np.int32)), shape=(size + 1, size + 1)
        )

    def uplink_Bps(self, source: int) -> float:
        """Minimum cut between a member and all others: its links where each leads on as wide."""
        first, last = np.searchsorted(self.tail, [source, source + 1])
        near, wide = self.head[first : last - 1], self.capacity[first : last - 1]  # but the sink
        leads_on = self.is_goal[near] | (self.onward[near] - wide >= wide)
        return float(wide.sum()) if leads_on.all() else self.cut(source)[0]

    def cut(self, source: int, target: int | None = None) -> tuple[float, BoolArray]:
        """Minimum cut in bytes/s and the source's side of it, shape (vertices + 1,)."""
        to_sink = (self.tail == source) & (self.head == self.sink)
        graph = self.graph.copy()
        graph.data[to_sink] = 0
        flow = maximum_flow(graph, source, self.sink if target is None else target).flow
        rest = csr_array(graph - flow)
        rest.eliminate_zeros()
        side = np.zeros(self.sink + 1, np.bool_)
        side[breadth_first_order(rest, source, return_predecessors=False)] = True
        crossing = side[self.tail] & ~side[self.head] & ~to_sink
        return float(self.capacity[crossing].sum()), side


def separate(cuts: Cuts) -> IntArray | None:
    """Return groups of children that hold together better than with one another; None if there are
    none.

    Returns
    -------
    int array (children,)
        A number per part; children of groups that are not split stay alone.
    """
    parts = np.arange(len(cuts.parent))
    is_cut = False
    for members in _by_value(cuts.parent):
        if len(members) < 4 or len(np.unique(cuts.alike[members])) < 2:
            continue
        a, b, value = cuts.tree(members)
        value = np.round(value / value.max(), 9)
        for limit in np.unique(value)[:0:-1]:
            keep = value >= limit
            joined = csr_array(
                (np.ones(int(keep.sum())), (a[keep], b[keep])), shape=2 * (len(parts),)
            )
            label = connected_components(joined, directed=False)[1][members]
            if (np.bincount(label) > 1).sum() > 1:
                for part in _by_value(label):
                    parts[members[part]] = members[part[0]]
                is_cut = True
                break
    return parts if is_cut else None


def _by_value(values: IntArray) -> list[IntArray]:
    """Return indices with equal values, in order of the values."""
    order = np.argsort(values, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(values[order])) + 1)


def _merged(
    tail: IntArray, head: IntArray, capacity: FloatArray, vertices: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Parallel arcs added up, loops dropped, sorted by tail, then head."""
    real = tail != head
    key, place = np.unique(tail[real] * vertices + head[real], return_inverse=True)
    total = np.asarray(np.bincount(place, capacity[real], len(key)), np.float64)
    return key // vertices, key % vertices, total


def _reduced(
    tail: IntArray, head: IntArray, capacity: FloatArray, vertices: int, children: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Without elements that end nowhere or only pass on, which keep all cuts of children."""
    while True:
        degree = np.bincount(tail, minlength=vertices)
        thin = (degree <= 2) & (np.arange(vertices) >= children) & (degree > 0)
        # Of neighbours that are both thin, the lower one goes first.
        waits = np.zeros(vertices, np.bool_)
        waits[tail[thin[tail] & thin[head] & (head < tail)]] = True
        goes = thin & ~waits
        if not goes.any():
            return tail, head, capacity
        out = goes[tail]
        pairs = np.flatnonzero(out)
        through = pairs[degree[tail[pairs]] == 2].reshape(-1, 2)
        a, b = head[through].T
        least = capacity[through].min(axis=1)
        keep = ~out & ~goes[head]
        tail, head, capacity = _merged(
            np.concatenate([tail[keep], a, b]),
            np.concatenate([head[keep], b, a]),
            np.concatenate([capacity[keep], least, least]),
            vertices,
        )


def _alike(tail: IntArray, head: IntArray, capacity: FloatArray, parent: IntArray) -> IntArray:
    """Class of every child by its group, neighbours and bandwidths.

    Children may also be linked to one another, each by the widest of its links.
    """
    children, leaves = np.arange(len(parent)), tail < len(parent)
    widest = np.zeros(len(parent))
    np.maximum.at(widest, tail[leaves], capacity[leaves])
    # As if linked to itself.
    tails, heads = np.append(tail[leaves], children), np.append(head[leaves], children)
    order = np.lexsort((heads, tails))
    keys = _rows(parent, tail, head, capacity)
    linked = _rows(parent, tails[order], heads[order], np.append(capacity[leaves], widest)[order])
    times = Counter(linked)
    number: dict[object, int] = defaultdict(lambda: len(number))
    return np.array(
        [number[to if times[to] > 1 else of] for of, to in zip(keys, linked, strict=True)],
        np.int64,
    )


def _rows(
    parent: IntArray, tail: IntArray, near: IntArray, wide: FloatArray
) -> list[tuple[int, bytes, bytes]]:
    """Return what tells every child's group and links from another's."""
    start = np.searchsorted(tail, np.arange(len(parent) + 1)).tolist()
    return [
        (group, near[a:b].tobytes(), wide[a:b].tobytes())
        for group, (a, b) in zip(parent.tolist(), pairwise(start), strict=True)
    ]
