"""The layers of an instance: one chain per tensor-parallel width, in topological order.

The published model runs the layers of a stage one after another, so every layer must
feed the next one; further edges may skip layers (BERT's embedding feeds all of them).
Times are in the instance's unit, sizes in bytes.

Checks of values from a file: each returns the value or raises `InputError`.

No check prints more of a value than fits a line, and none walks into it: a file nested
a thousand levels deep is refused by its type alone. They are written by hand, for ``solve`` answers
within half a second and pydantic takes a good part of that to load.
"""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import Any

from nest_core.documents import InputError, require

__all__ = [
    "MAX_DEVICES",
    "MAX_LAYERS",
    "Check",
    "Layers",
    "choice",
    "count",
    "entries",
    "flag",
    "mapping",
    "number",
    "parse_widths",
    "refuse_repeated_keys",
    "table",
    "whole",
]

MAX_DEVICES = 1_048_576
MAX_LAYERS = 2_000
# Beyond it a figure is a slip of the pen, and sums could leave the range of floats.
LARGEST_FIGURE = 1e18

Check = Callable[[object, str], Any]
"""Takes a value and what messages call it."""


def _shown(value: object) -> object:
    """Return what an error may print of `value`: scalars as they are, the rest by its type."""
    if isinstance(value, int) and abs(value) > LARGEST_FIGURE:
        return f"an integer of {value.bit_length()} bits"
    return (
        value
        if value is None or isinstance(value, bool | int | float | str)
        else f"a {type(value).__name__}"
    )


def mapping(value: object, field: str) -> Mapping[str, object]:
    """Return a mapping with any text keys."""
    if not isinstance(value, Mapping):
        raise InputError(field, "must be an object with named keys", _shown(value), "give one")
    for key in value:
        require(isinstance(key, str), field, "must have text keys", _shown(key), "quote the key")
    return value


def table(
    value: object,
    field: str,
    required: Mapping[str, Check],
    optional: Mapping[str, Check],
    prefix: str | None = None,
) -> dict[str, Any]:
    """Return the checked values of a mapping that has all `required` keys and no unknown one.

    Messages call its values by `prefix` and their key; ``field.`` where none is given.
    """
    given, prefix = mapping(value, field), f"{field}." if prefix is None else prefix
    checks = {**required, **optional}
    for key in given:
        require(key in checks, field, "must have known keys only", key, "remove or rename the key")
    for key in required:
        require(key in given, field, f"must have the key {key}", "missing", f"add {key}")
    return {key: check(given[key], prefix + key) for key, check in checks.items() if key in given}


def entries(
    value: object, field: str, max_count: int, check: Check, min_count: int = 1
) -> tuple[Any, ...]:
    """Return the checked entries of a list."""
    if not isinstance(value, list | tuple):
        raise InputError(field, "must be a list", _shown(value), "give the entries as a list")
    require(
        min_count <= len(value) <= max_count,
        field,
        f"must have {min_count} to {max_count:,} entries",
        len(value),
        "change the list",
    )
    return tuple(check(entry, f"{field}[{index}]") for index, entry in enumerate(value))


def number(value: object, field: str, lowest: float = 0.0) -> float:
    """Return a finite number from `lowest`; a bool is none."""
    return float(
        _within(value, field, lowest, LARGEST_FIGURE, f"from {lowest:g} to {LARGEST_FIGURE:g}")
    )


def whole(value: object, field: str, lowest: int, largest: int) -> int:
    """Return a whole number from `lowest` to `largest`; 4096.0 is one, as the artifact writes."""
    figure = _within(value, field, lowest, largest, f"from {lowest:,} to {largest:,}")
    require(figure == int(figure), field, "must be a whole number", _shown(value), "round it")
    return int(figure)


count: Check = partial(whole, lowest=1, largest=MAX_DEVICES)
"""Checks a number of devices."""


def _within(value: object, field: str, lowest: float, largest: float, bounds: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(field, "must be a number", _shown(value), "give a plain number")
    if not lowest <= value <= largest:  # also refuses NaN, which compares with nothing
        raise InputError(field, f"must be {bounds}", _shown(value), "correct the figure")
    return value


def flag(value: object, field: str) -> bool:
    """Return a bool, and nothing that merely converts to one."""
    if not isinstance(value, bool):
        raise InputError(field, "must be true or false", _shown(value), "give true or false")
    return value


def choice(value: object, field: str, options: Sequence[str]) -> str:
    """Return one of the given texts."""
    if not isinstance(value, str) or value not in options:
        rule = f"must be one of {', '.join(options)}"
        raise InputError(field, rule, _shown(value), "choose one of them")
    return value


def refuse_repeated_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Build a JSON object, refusing a key that stands twice: one of the two would be lost."""
    built = dict(pairs)
    if len(built) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        rule = "must not repeat a key in an object"
        raise InputError("instance file", rule, counts.most_common(1)[0][0], "keep one of them")
    return built


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
    require(
        set(node_lists) == set(edge_lists),
        "edges",
        "must have the tensor widths of nodes",
        min(set(node_lists) ^ set(edge_lists), default=None),
        "give both for every width",
    )
    widths: list[Layers] = []
    order: tuple[int, ...] = ()
    for key in sorted(node_lists, key=int):
        figures = _parse_nodes(node_lists[key], f'nodes["{key}"]')
        linked = _parse_edges(edge_lists[key], f'edges["{key}"]', figures)
        ids = _topological_order(list(figures), linked, f'edges["{key}"]')
        if order and ids != order:
            here, there = next(
                pair
                for pair in itertools.zip_longest(ids, order, fillvalue="none")
                if pair[0] != pair[1]
            )
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
    return next(
        (place for place, value in enumerate(values) if first.setdefault(value, place) < place), 0
    )


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
