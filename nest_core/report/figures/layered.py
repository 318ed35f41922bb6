"""Layered drawings of directed graphs: rows by longest path, few crossings, straight chains.

The steps of Sugiyama, Tagawa and Toda (1981): a node stands one row below the lowest that it
reads; an edge over several rows gets a place of its own in each, so that it passes beside boxes;
rows are ordered by the mean place of their neighbours; then places along a row are the linear
program of Gansner et al. (1993), which pulls long edges straight.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from statistics import fmean

import networkx as nx
import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

__all__ = ["LayeredGraph", "layered"]

_SWEEPS = 12
_EDGE = (0.16, 0.16)
"""Room of an edge in a row that it passes."""
_WEIGHTS = (8.0, 2.0, 1.0)
"""Of an edge's length, by how many of its ends are nodes: long edges are straight first."""

Key = tuple[str, str, int] | str
"""A node, or the place of an edge in a row that it passes."""
Edges = Sequence[tuple[Key, Key]]


@dataclass(frozen=True, slots=True, eq=False)
class LayeredGraph:
    """Where nodes and edges stand.

    Parameters
    ----------
    places : mapping of str to (float, int)
        Along the row, in widths of a box, and the row.
    ways : tuple of tuple of (str, str, tuple of (float, float))
        Every edge with all places that it passes, its ends among them.
    ends : (float, float)
        Of the widest rows.
    rows : int
    """

    places: Mapping[str, tuple[float, int]]
    ways: tuple[tuple[str, str, tuple[tuple[float, float], ...]], ...]
    ends: tuple[float, float]
    rows: int


def layered(
    parents: Mapping[str, Sequence[str]], extents: Mapping[str, tuple[float, float]]
) -> LayeredGraph:
    """Draw a directed graph without cycles from the top down.

    Parameters
    ----------
    parents : mapping of str to sequence of str
        What every node reads.
    extents : mapping of str to (float, float)
        What a node takes to the left and right of its place.

    Returns
    -------
    LayeredGraph
        The same for the same graph.
    """
    pairs = [(start, end) for end, starts in parents.items() for start in starts]
    graph = nx.DiGraph(pairs)
    graph.add_nodes_from(parents)
    row: dict[str, int] = {
        name: number
        for number, names in enumerate(nx.topological_generations(graph))
        for name in names
    }
    chains: list[list[Key]] = [
        [start, *((start, end, number) for number in range(row[start] + 1, row[end])), end]
        for start, end in pairs
    ]
    row_of: dict[Key, int] = {
        key: row[start] + step
        for (start, _), chain in zip(reversed(pairs), reversed(chains), strict=True)
        for step, key in enumerate(chain[1:-1], start=1)
    }
    row_of |= {name: row[name] for name in parents}
    rows = [
        [key for key, number in row_of.items() if number == at]
        for at in range(1 + max(row.values()))
    ]
    edges = [pair for chain in chains for pair in pairwise(chain)]
    room = {key: extents[key] if isinstance(key, str) else _EDGE for key in row_of}
    place = _placed(_ordered(rows, edges), edges, room)
    return LayeredGraph(
        {name: (place[name], row[name]) for name in parents},
        tuple(
            (start, end, tuple((place[key], float(row_of[key])) for key in chain))
            for (start, end), chain in zip(pairs, chains, strict=True)
        ),
        (
            min(place[key] - room[key][0] for key in place),
            max(place[key] + room[key][1] for key in place),
        ),
        len(rows),
    )


def _ordered(rows: list[list[Key]], edges: Edges) -> list[list[Key]]:
    """Reorder rows by the mean place of their neighbours above, then below; return the best."""
    graph = nx.DiGraph(edges)
    graph.add_nodes_from(key for keys in rows for key in keys)
    best, fewest = rows, _crossings(rows, edges)
    for sweep in range(_SWEEPS):
        rows = [list(keys) for keys in rows]
        neighbours = graph.succ if sweep % 2 else graph.pred
        for keys in reversed(rows) if sweep % 2 else rows:
            at = {key: place for row in rows for place, key in enumerate(row)}
            means = {key: fmean([at[n] for n in neighbours[key]] or [at[key]]) for key in keys}
            keys.sort(key=means.__getitem__)
        crossings = _crossings(rows, edges)
        if crossings < fewest:
            best, fewest = rows, crossings
    return best


def _crossings(rows: list[list[Key]], edges: Edges) -> int:
    at = {key: place for keys in rows for place, key in enumerate(keys)}
    below = ([(at[a], at[b]) for a, b in edges if a in upper] for upper in map(set, rows))
    return sum(
        (a[0] - b[0]) * (a[1] - b[1]) < 0 for ends in below for a, b in combinations(ends, 2)
    )


def _placed(
    rows: list[list[Key]], edges: Edges, room: Mapping[Key, tuple[float, float]]
) -> dict[Key, float]:
    """Return places with the least weighted length of edges, nothing closer than its room."""
    number = {key: index for index, key in enumerate(key for keys in rows for key in keys)}
    rules = [
        ({number[a]: 1.0, number[b]: -1.0}, -(room[a][1] + room[b][0]))
        for keys in rows
        for a, b in pairwise(keys)
    ]
    rules += [
        ({number[start]: sign, number[end]: -sign, length: -1.0}, 0.0)
        for length, (start, end) in enumerate(edges, start=len(number))
        for sign in (1.0, -1.0)
    ]
    if not rules:
        return dict.fromkeys(number, 0.0)
    terms = [(line, *term) for line, (row, _) in enumerate(rules) for term in row.items()]
    lines, columns, factors = zip(*terms, strict=True)
    count = len(number) + len(edges)
    weights = [_WEIGHTS[isinstance(a, str) + isinstance(b, str)] for a, b in edges]
    solved = linprog(
        np.concatenate([np.zeros(len(number)), weights]),
        A_ub=coo_array((factors, (lines, columns)), shape=(len(rules), count)).tocsr(),
        b_ub=[limit for _, limit in rules],
        bounds=[(0.0, None)] * count,
        method="highs-ds",
    )
    return {key: float(solved.x[index]) for key, index in number.items()}
