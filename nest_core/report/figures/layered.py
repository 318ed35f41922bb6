"""Layered drawings of directed graphs: rows by longest path, few crossings, straight chains.

The steps of Sugiyama, Tagawa and Toda (1981): a node stands one row below the lowest that it
reads; an edge over several rows gets a place of its own in each, so that it passes beside boxes;
rows are ordered by the mean place of their neighbours; then places along a row are the linear
program of Gansner et al. (1993), which pulls long edges straight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import networkx as nx
import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

__all__ = ["Drawing", "layered"]

_SWEEPS = 12
_ROOM_OF_AN_EDGE = 0.16
_REAL, _MIXED, _LONG = 1.0, 2.0, 8.0

Key = tuple[str, str, int] | str


@dataclass(frozen=True, slots=True, eq=False)
class Drawing:
    """Where nodes and edges stand.

    Parameters
    ----------
    places : mapping of str to (float, int)
        Along the row, in widths of a box, and the row.
    ways : tuple of tuple of (str, str, tuple of (float, float))
        Every edge with all places that it passes, its ends among them.
    left, right : float
        Ends of the widest rows.
    rows : int
    """

    places: Mapping[str, tuple[float, int]]
    ways: tuple[tuple[str, str, tuple[tuple[float, float], ...]], ...]
    left: float
    right: float
    rows: int


def layered(
    parents: Mapping[str, Sequence[str]], extents: Mapping[str, tuple[float, float]]
) -> Drawing:
    """Draw a directed graph without cycles from the top down.

    Parameters
    ----------
    parents : mapping of str to sequence of str
        What every node reads.
    extents : mapping of str to (float, float)
        What a node takes to the left and right of its place.

    Returns
    -------
    Drawing
        The same for the same graph.
    """
    graph = nx.DiGraph([(entry, name) for name, read in parents.items() for entry in read])
    graph.add_nodes_from(parents)
    row: dict[str, int] = {}
    for name in nx.topological_sort(graph):
        read = parents[name]
        row[name] = 1 + max((row[entry] for entry in read), default=-1)
    chains = [_chain(entry, name, row) for name, read in parents.items() for entry in read]
    edges = [pair for chain in chains for pair in pairwise(chain)]
    rows = _rows(parents, row, chains)
    order = _ordered(rows, edges)
    place = _placed(order, edges, extents)
    row_of = {key: number for number, keys in enumerate(order) for key in keys}
    room = {key: extents[key] if isinstance(key, str) else _EDGE for key in place}
    return Drawing(
        {name: (place[name], row[name]) for name in parents},
        tuple(
            (
                str(chain[0]),
                str(chain[-1]),
                tuple((place[key], float(row_of[key])) for key in chain),
            )
            for chain in chains
        ),
        min(place[key] - room[key][0] for key in place),
        max(place[key] + room[key][1] for key in place),
        len(rows),
    )


_EDGE = (_ROOM_OF_AN_EDGE, _ROOM_OF_AN_EDGE)


def _chain(start: str, end: str, row: Mapping[str, int]) -> list[Key]:
    between: list[Key] = [(start, end, number) for number in range(row[start] + 1, row[end])]
    return [start, *between, end]


def _rows(
    parents: Mapping[str, Sequence[str]], row: Mapping[str, int], chains: Sequence[Sequence[Key]]
) -> list[list[Key]]:
    rows: list[list[Key]] = [[] for _ in range(1 + max(row.values()))]
    for name in parents:
        rows[row[name]].append(name)
    for chain in chains:
        for key in chain[1:-1]:
            if not isinstance(key, str):
                rows[key[2]].insert(0, key)
    return rows


def _ordered(rows: list[list[Key]], edges: Sequence[tuple[Key, Key]]) -> list[list[Key]]:
    """Rows reordered by the mean place of their neighbours above, then below; the best kept."""
    above: dict[Key, list[Key]] = {}
    below: dict[Key, list[Key]] = {}
    for upper, lower in edges:
        above.setdefault(lower, []).append(upper)
        below.setdefault(upper, []).append(lower)
    best, fewest = rows, _crossings(rows, edges)
    current = rows
    for sweep in range(_SWEEPS):
        neighbours = above if sweep % 2 == 0 else below
        current = [list(keys) for keys in current]
        numbers = range(len(current)) if sweep % 2 == 0 else range(len(current) - 1, -1, -1)
        for number in numbers:
            at = {key: place for keys in current for place, key in enumerate(keys)}

            def mean(key: Key, at: dict[Key, int] = at) -> float:
                near = neighbours.get(key)  # noqa: B023 - used before the loop goes on
                return sum(at[other] for other in near) / len(near) if near else float(at[key])

            current[number].sort(key=mean)
        crossings = _crossings(current, edges)
        if crossings < fewest:
            best, fewest = current, crossings
    return best


def _crossings(rows: list[list[Key]], edges: Sequence[tuple[Key, Key]]) -> int:
    where = {
        key: (number, place) for number, keys in enumerate(rows) for place, key in enumerate(keys)
    }
    by_row: dict[int, list[tuple[int, int]]] = {}
    for upper, lower in edges:
        by_row.setdefault(where[upper][0], []).append((where[upper][1], where[lower][1]))
    return sum(
        (a[0] - b[0]) * (a[1] - b[1]) < 0
        for pairs in by_row.values()
        for index, a in enumerate(pairs)
        for b in pairs[:index]
    )


def _placed(
    order: list[list[Key]],
    edges: Sequence[tuple[Key, Key]],
    extents: Mapping[str, tuple[float, float]],
) -> dict[Key, float]:
    """Places with the least weighted length of edges, nothing closer than its extents."""
    number = {key: index for index, key in enumerate(key for keys in order for key in keys)}
    count = len(number)
    entries: list[tuple[int, int, float]] = []
    limits: list[float] = []

    def at_most(limit: float, *terms: tuple[int, float]) -> None:
        entries.extend((len(limits), column, factor) for column, factor in terms)
        limits.append(limit)

    for keys in order:
        for one, other in pairwise(keys):
            gap = _room(one, extents)[1] + _room(other, extents)[0]
            at_most(-gap, (number[one], 1.0), (number[other], -1.0))
    weights = []
    for index, (upper, lower) in enumerate(edges):
        length = count + index
        start, end = number[upper], number[lower]
        at_most(0.0, (start, 1.0), (end, -1.0), (length, -1.0))
        at_most(0.0, (end, 1.0), (start, -1.0), (length, -1.0))
        reals = isinstance(upper, str) + isinstance(lower, str)
        weights.append((_LONG, _MIXED, _REAL)[reals])
    if not limits:
        return dict.fromkeys(number, 0.0)
    lines, columns, factors = zip(*entries, strict=True)
    matrix = coo_array((factors, (lines, columns)), shape=(len(limits), count + len(edges)))
    cost = np.concatenate([np.zeros(count), weights])
    bounds = [(0.0, None)] * (count + len(edges))
    solved = linprog(cost, A_ub=matrix.tocsr(), b_ub=limits, bounds=bounds, method="highs-ds")
    return {key: float(solved.x[index]) for key, index in number.items()}


def _room(key: Key, extents: Mapping[str, tuple[float, float]]) -> tuple[float, float]:
    return extents[key] if isinstance(key, str) else _EDGE
