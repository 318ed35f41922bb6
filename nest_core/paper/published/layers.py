"""The layers of an instance: one chain per tensor-parallel width, in topological order.

The published model runs the layers of a stage one after another, so every layer must
feed the next one; further edges may skip layers (BERT's embedding feeds all of them).
Times are in the instance's unit, sizes in bytes.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from nest_core.documents.errors import InputError
from nest_core.paper.published.reading import (
    MAX_DEVICES,
    MAX_LAYERS,
    flag,
    non_empty_list,
    number,
    shown,
    table,
    whole,
)

__all__ = ["Layers", "parse_widths"]

_EMBEDDING = -1
_MAX_EDGES = MAX_LAYERS * (MAX_LAYERS - 1) // 2
_LARGEST_ID = 10**9
# Below it the throughput of a batch would leave the range of floats.
_SHORTEST_MODEL = 1e-12
_WIDTH = re.compile(r"[1-9][0-9]{0,6}", re.ASCII)
_NODE_KEYS = ("id", "optimalLatencyFw", "optimalLatencyBw", "parameterSize", "activationSize")
_EDGE_KEYS = ("sourceId", "destId", "communicationCost")

_Edges = dict[tuple[int, int], float]
_Figures = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Layers:
    """The layers at one tensor-parallel width, by position in topological order.

    Attributes
    ----------
    width : int
        Tensor-parallel width t.
    forward, backward : tuple of float
        Latency of each layer's passes for one micro-batch, in the instance's unit.
    parameters, activations : tuple of float
        Bytes of each layer.
    edges : tuple of (int, int, float)
        Source, destination (positions, source first) and bytes.
    """

    width: int
    forward: tuple[float, ...]
    backward: tuple[float, ...]
    parameters: tuple[float, ...]
    activations: tuple[float, ...]
    edges: tuple[tuple[int, int, float], ...]


def parse_widths(nodes: object, edges: object) -> tuple[tuple[Layers, ...], tuple[int, ...]]:
    """Validate ``nodes`` and ``edges`` of an instance.

    Returns
    -------
    tuple of Layers, tuple of int
        The widths, ascending, and the layers' ids in their common topological order.

    Raises
    ------
    InputError
        At the first broken rule.
    """
    node_lists = table(nodes, "nodes", (), None)
    edge_lists = table(edges, "edges", (), None)
    if not node_lists:
        raise InputError("nodes", "must hold at least one tensor width", "empty", "add one")
    for key in node_lists:
        if not _WIDTH.fullmatch(key) or int(key) > MAX_DEVICES:
            raise InputError(
                "nodes", f"must have widths from 1 to {MAX_DEVICES:,} as keys", key, "correct it"
            )
    if set(node_lists) != set(edge_lists):
        only = sorted(set(node_lists) ^ set(edge_lists))[0]
        raise InputError(
            "edges", "must have the tensor widths of nodes", only, "give both for every width"
        )
    widths: list[Layers] = []
    order: tuple[int, ...] = ()
    for key in sorted(node_lists, key=int):
        figures = _parse_nodes(node_lists[key], f'nodes["{key}"]')
        linked = _parse_edges(edge_lists[key], f'edges["{key}"]', figures)
        ids = _topological_order(figures, linked, f'edges["{key}"]')
        if order and ids != order:
            raise InputError(
                f'nodes["{key}"]',
                "must have the layers of the other widths in the same order",
                _first_difference(ids, order),
                "give every width the same layers and edges",
            )
        order = ids
        widths.append(_layers(int(key), figures, linked, order))
    return tuple(widths), order


def _parse_nodes(value: object, field: str) -> dict[int, _Figures]:
    figures: dict[int, _Figures] = {}
    for index, entry in enumerate(non_empty_list(value, field, MAX_LAYERS, "layers")):
        where = f"{field}[{index}]"
        node = table(entry, where, _NODE_KEYS, ("isTensorParallelized", "energy"))
        if "isTensorParallelized" in node:
            flag(node["isTensorParallelized"], f"{where}.isTensorParallelized")
        if "energy" in node:
            number(node["energy"], f"{where}.energy")
        identifier = whole(node["id"], f"{where}.id", -_LARGEST_ID, _LARGEST_ID)
        if identifier in figures:
            raise InputError(f"{where}.id", "must be unique", identifier, "renumber the layers")
        forward, backward, parameters, activations = (
            number(node[key], f"{where}.{key}") for key in _NODE_KEYS[1:]
        )
        figures[identifier] = (forward, backward, parameters, activations)
    total = sum(forward + backward for forward, backward, _, _ in figures.values())
    if total < _SHORTEST_MODEL:
        raise InputError(
            field,
            f"must have latencies that add up to at least {_SHORTEST_MODEL:g}",
            total,
            "give the layers' latencies",
        )
    return figures


def _parse_edges(value: object, field: str, figures: dict[int, _Figures]) -> _Edges:
    if not isinstance(value, list | tuple) or len(value) > _MAX_EDGES:
        raise InputError(field, "must be a list of edges", shown(value), "give them as a list")
    linked: _Edges = {}
    for index, entry in enumerate(value):
        where = f"{field}[{index}]"
        edge = table(entry, where, _EDGE_KEYS, ())
        ends = []
        for key in ("sourceId", "destId"):
            end = whole(edge[key], f"{where}.{key}", -_LARGEST_ID, _LARGEST_ID)
            if end not in figures:
                raise InputError(f"{where}.{key}", "must be a layer's id", end, "correct the id")
            ends.append(end)
        pair = (ends[0], ends[1])
        if pair in linked:
            raise InputError(where, "must be the only edge of its pair", pair, "merge the two")
        linked[pair] = number(edge["communicationCost"], f"{where}.communicationCost")
    return linked


def _topological_order(figures: dict[int, _Figures], edges: _Edges, field: str) -> tuple[int, ...]:
    """The one order in which every layer feeds the next."""
    targets: dict[int, list[int]] = {layer: [] for layer in figures}
    waiting = dict.fromkeys(figures, 0)
    for source, target in edges:
        targets[source].append(target)
        waiting[target] += 1
    _check_connected(targets, field)
    ready = [layer for layer, count in waiting.items() if count == 0]
    order: list[int] = []
    while ready:
        layer = ready.pop()
        order.append(layer)
        for target in targets[layer]:
            waiting[target] -= 1
            if waiting[target] == 0:
                ready.append(target)
    if len(order) < len(figures):
        stuck = next(layer for layer, count in waiting.items() if count > 0)
        raise InputError(
            field, "must have no cycle", f"layer {stuck} waits for itself", "remove an edge of it"
        )
    for pair in itertools.pairwise(order):
        if pair not in edges:
            raise InputError(
                field,
                "must lead through all layers one after another",
                f"no edge {pair[0]} to {pair[1]}",
                "merge parallel branches into one layer or join them by edges",
            )
    if _EMBEDDING in figures and order[0] != _EMBEDDING:
        raise InputError(
            field,
            f"must start at the embedding (id {_EMBEDDING})",
            f"layer {order[0]} first",
            "turn the edges round or renumber the layers",
        )
    return tuple(order)


def _check_connected(targets: dict[int, list[int]], field: str) -> None:
    neighbours: dict[int, list[int]] = {layer: list(ends) for layer, ends in targets.items()}
    for layer, ends in targets.items():
        for end in ends:
            neighbours[end].append(layer)
    start = next(iter(neighbours))
    reached = {start}
    frontier = [start]
    while frontier:
        for neighbour in neighbours[frontier.pop()]:
            if neighbour not in reached:
                reached.add(neighbour)
                frontier.append(neighbour)
    if len(reached) < len(neighbours):
        lost = next(layer for layer in neighbours if layer not in reached)
        raise InputError(
            field,
            "must connect all layers",
            f"layer {lost} apart from layer {start}",
            "add the missing edges",
        )


def _first_difference(found: Sequence[int], expected: Sequence[int]) -> str:
    if len(found) != len(expected):
        return f"{len(found)} layers against {len(expected)}"
    place = next(
        i for i, pair in enumerate(zip(found, expected, strict=True)) if pair[0] != pair[1]
    )
    return f"layer {found[place]} where the others have {expected[place]}"


def _layers(
    width: int, figures: dict[int, _Figures], edges: _Edges, order: tuple[int, ...]
) -> Layers:
    position = {layer: index for index, layer in enumerate(order)}
    forward, backward, parameters, activations = zip(
        *(figures[layer] for layer in order), strict=True
    )
    return Layers(
        width=width,
        forward=forward,
        backward=backward,
        parameters=parameters,
        activations=activations,
        edges=tuple(
            sorted((position[source], position[end], size) for (source, end), size in edges.items())
        ),
    )
