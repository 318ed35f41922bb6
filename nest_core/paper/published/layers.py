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
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import Any

from nest_core.documents.errors import InputError, require
from nest_core.paper.published.reading import (
    MAX_DEVICES,
    MAX_LAYERS,
    Check,
    entries,
    flag,
    mapping,
    number,
    table,
    whole,
)

__all__ = ["Layers", "parse_widths"]

_EMBEDDING = -1
_MAX_EDGES = MAX_LAYERS * (MAX_LAYERS - 1) // 2
# Below it the throughput of a batch would leave the range of floats.
_SHORTEST_MODEL = 1e-12
_WIDTH = re.compile(r"[1-9][0-9]{0,6}", re.ASCII)
_identifier: Check = partial(whole, lowest=-(10**9), largest=10**9)
_FIGURES = ("optimalLatencyFw", "optimalLatencyBw", "parameterSize", "activationSize")
_node: Check = partial(
    table,
    required={"id": _identifier, **dict.fromkeys(_FIGURES, number)},
    optional={"isTensorParallelized": flag, "energy": number},
)

_Edges = dict[tuple[int, int], float]


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
    node_lists, edge_lists = mapping(nodes, "nodes"), mapping(edges, "edges")
    require(node_lists, "nodes", "must hold at least one tensor width", "empty", "add one")
    for key in node_lists:
        require(
            _WIDTH.fullmatch(key) and int(key) <= MAX_DEVICES,
            "nodes",
            f"must have widths from 1 to {MAX_DEVICES:,} as keys",
            key,
            "correct it",
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
        ids = _topological_order(list(figures), linked, f'edges["{key}"]')
        if order and ids != order:
            pairs = itertools.zip_longest(ids, order, fillvalue="none")
            here, there = next(pair for pair in pairs if pair[0] != pair[1])
            raise InputError(
                f'nodes["{key}"]',
                "must have the layers of the other widths in the same order",
                f"layer {here} where the others have {there}",
                "give every width the same layers and edges",
            )
        order = ids
        widths.append(_layers(int(key), figures, linked, order))
    return tuple(widths), order


def _parse_nodes(value: object, field: str) -> dict[int, dict[str, Any]]:
    nodes = entries(value, field, MAX_LAYERS, _node)
    ids = [node["id"] for node in nodes]
    if place := _repeated(ids):
        raise InputError(f"{field}[{place}].id", "must be unique", ids[place], "renumber it")
    total = sum(node["optimalLatencyFw"] + node["optimalLatencyBw"] for node in nodes)
    require(
        total >= _SHORTEST_MODEL,
        field,
        f"must have latencies that add up to at least {_SHORTEST_MODEL:g}",
        total,
        "give the layers' latencies",
    )
    return dict(zip(ids, nodes, strict=True))


def _parse_edges(value: object, field: str, nodes: dict[int, dict[str, Any]]) -> _Edges:
    def layer(end: object, where: str) -> int:
        identifier: int = _identifier(end, where)
        require(identifier in nodes, where, "must be a layer's id", identifier, "correct the id")
        return identifier

    keys: dict[str, Check] = {"sourceId": layer, "destId": layer, "communicationCost": number}
    edges = entries(value, field, _MAX_EDGES, partial(table, required=keys, optional={}), 0)
    pairs = [(edge["sourceId"], edge["destId"]) for edge in edges]
    if place := _repeated(pairs):
        where, rule = f"{field}[{place}]", "must be the only edge of its pair"
        raise InputError(where, rule, pairs[place], "merge the two")
    return {pair: edge["communicationCost"] for pair, edge in zip(pairs, edges, strict=True)}


def _repeated(values: Sequence[object]) -> int:
    """Return the place of the first value that stands before as well; 0 where there is none."""
    first: dict[object, int] = {}
    places = enumerate(values)
    return next((place for place, value in places if first.setdefault(value, place) < place), 0)


def _topological_order(layers: Sequence[int], edges: _Edges, field: str) -> tuple[int, ...]:
    """Return the one order in which every layer feeds the next."""
    sorter: TopologicalSorter[int] = TopologicalSorter(dict.fromkeys(layers, ()))
    for source, target in edges:
        sorter.add(target, source)
    try:
        order = tuple(sorter.static_order())
    except CycleError as error:
        stuck = f"layer {error.args[1][0]} waits for itself"
        raise InputError(field, "must have no cycle", stuck, "remove an edge of it") from error
    for pair in itertools.pairwise(order):
        require(
            pair in edges,
            field,
            "must lead through all layers one after another",
            f"no edge {pair[0]} to {pair[1]}",
            "merge parallel branches into one layer or join them by edges",
        )
    require(
        _EMBEDDING not in layers or order[0] == _EMBEDDING,
        field,
        f"must start at the embedding (id {_EMBEDDING})",
        f"layer {order[0]} first",
        "turn the edges round or renumber the layers",
    )
    return order


def _layers(
    width: int, nodes: dict[int, dict[str, Any]], edges: _Edges, order: tuple[int, ...]
) -> Layers:
    position = {layer: index for index, layer in enumerate(order)}
    links = ((position[source], position[end], size) for (source, end), size in edges.items())
    forward, backward, parameters, activations = (
        tuple(nodes[layer][figure] for layer in order) for figure in _FIGURES
    )
    return Layers(width, forward, backward, parameters, activations, tuple(sorted(links)))
