"""Models of a person's own trace: what ``nest-studio trace package.module:build --output`` wrote.

The file holds the operators of every kind of layer, as ``presets/traces`` do, and under ``model``
what they leave open: the sizes that they name and the number of blocks. Reading it needs no torch
and runs nobody's code.
"""

import logging
import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from nest_core.documents import InputError, parsed_json, require
from nest_core.documents.schema import Name, SchemaTable, checked
from nest_core.workload.graph import KINDS, SYMBOLS, Graph, Node, graph_of
from nest_core.workload.models import TRACED, Model, sizes
from nest_core.workload.operators import operators
from nest_core.workload.strategies import Strategy
from nest_core.workload.strategies.tensor import divided_symbols

__all__ = ["OF_THE_JOB", "is_trace", "traced_model"]

OF_THE_JOB = frozenset({"micro_batch", "sequence", "keys", "slots"})
"""Symbols whose values follow from what is trained, and not from the model."""

_OF_TOKENS = {"micro_batch", "sequence"}
_WIDTHS = divided_symbols(Strategy())
_LOG = logging.getLogger(__name__)
_LENGTH = list[str | int]


class _TracedEntry(SchemaTable):
    name: Name
    op: Name
    function: str = ""
    inputs: list[Name] = Field(default=[])
    shape: list[_LENGTH] = Field(default=[])
    weights: list[list[_LENGTH]] = Field(default=[])
    causal: bool = False


class _TraceFile(SchemaTable):
    family: str
    torch: str = ""
    source: str = ""
    model: dict[str, int]
    layers: dict[Literal[KINDS], list[_TracedEntry]] = Field(min_length=1)  # type: ignore[valid-type]


def is_trace(text: str) -> bool:
    """Whether a JSON text is a trace, and no ``config.json``."""
    return bool(re.search(r'"layers"\s*:\s*\{', text))


def traced_model(text: str, name: str, changes: Mapping[str, Any] | None = None) -> Model:
    """Return the model of a trace file.

    Parameters
    ----------
    text : str
        The file.
    name : str
        What to call the model.
    changes : mapping, optional
        Sizes, by name, in place of the file's.

    Raises
    ------
    InputError
        If the file is no trace of a model, or cannot be planned.
    """
    where = f"trace {name}"
    document = parsed_json(text, where, "trace the module anew")
    require(
        isinstance(document, dict) and "model" in document,
        where,
        "must be a trace with the sizes of its model",
        "without model",
        "write it with nest-studio trace package.module:build --output FILE.json",
    )
    file = checked(_TraceFile, document, f"{where}: ")
    graphs = tuple(
        _graph(f"{where}: layers.{kind}", kind, file.layers[kind])
        for kind in KINDS
        if kind in file.layers
    )
    given = {**file.model, **(changes or {})}
    symbols = frozenset().union(*(node.symbols for graph in graphs for node in graph.nodes))
    allowed = {"blocks", "dense_blocks", "name", *symbols - OF_THE_JOB}
    allowed |= {"top_k"} if "experts" in symbols else set()
    for size in given:
        require(
            size in allowed,
            f"workload.model.{size}",
            "must be a size that the trace names",
            given[size],
            f"pick {', '.join(sorted(allowed))}",
        )
    lacking = sorted(symbols - OF_THE_JOB - given.keys() - {"kv_heads", "top_k"})
    if lacking:
        raise InputError(f"{where}: model", "must give every size", f"no {lacking[0]}", "add it")
    unnamed = dict.fromkeys(("hidden", "heads", "head_dim", "vocabulary"), 1) | {"ffn": 0}
    fields = {
        "name": name,
        "source": file.source,
        **unnamed,
        **{"kv_heads": given.get("heads", 1)},
        **given,
    }
    require(
        "blocks" in fields,
        f"{where}: model",
        "must say how many blocks there are",
        "no blocks",
        "add it",
    )
    model = Model(family=TRACED, graphs=graphs, **fields)
    _check_evaluates(where, model)
    if "heads" not in symbols:
        _LOG.warning("%s names no heads: tensor parallelism is 1", where)
    return model


def _graph(where: str, kind: str, entries: list[_TracedEntry]) -> Graph:
    """Return a layer's graph, whose symbols are known and whose nodes read earlier ones."""
    earlier: set[str] = set()
    for entry in entries:
        for name in entry.inputs:
            require(
                name in earlier,
                f"{where}.{entry.name}",
                "must read earlier operators",
                name,
                "correct it",
            )
        for part in (
            part for dims in (entry.shape, *entry.weights) for dim in dims for part in dim
        ):
            require(
                part in SYMBOLS if isinstance(part, str) else part >= 1,
                f"{where}.{entry.name}",
                f"must have lengths of whole numbers and {', '.join(SYMBOLS)}",
                part,
                "correct it",
            )
        earlier.add(entry.name)
    graph = graph_of(kind, [entry.model_dump() for entry in entries])
    require(
        graph.nodes and graph.nodes[0].written >= _OF_TOKENS,
        where,
        "must name micro_batch and sequence in what it reads, to be planned",
        "numbers",
        "let build() give both sizes, and trace it anew",
    )
    for node in graph.nodes:
        _check_meetings(where, graph, node)
    return graph


def _check_meetings(where: str, graph: Graph, node: Node) -> None:
    """Refuse what ranks cannot share as the strategies do it.

    Tokens meet in attention alone; and what views make of a width is that width, which it is not
    where a build's sizes could not be told apart, such as a hidden width of all heads together.
    """
    inputs = graph.inputs(node)
    mixed = [part for dim in node.shape for part in dim].count("sequence") > 1
    mixed |= bool(_OF_TOKENS & {part for dims in node.weights for dim in dims for part in dim})
    mixed |= node.op == "matmul" and "sequence" in inputs[0].shape[-1]
    mixed |= node.op == "attention" and any("sequence" not in key.shape[-2] for key in inputs)
    require(
        not mixed,
        f"{where}.{node.name}",
        "must not mix tokens outside attention of a sequence to itself",
        node.op,
        "use torch's scaled_dot_product_attention, and build it at sizes that are told apart",
    )
    if node.op == "reshape" and node.written & _WIDTHS != inputs[0].written & _WIDTHS:
        raise InputError(
            f"{where}.{node.name}",
            "must be a view of the widths that it reads",
            f"{_listed(node.written)} of {_listed(inputs[0].written)}",
            "build the module at sizes that are told apart, primes best of all, and put the true "
            "ones into the file",
        )


def _listed(symbols: frozenset[str]) -> str:
    return " x ".join(sorted(symbols))


def _check_evaluates(where: str, model: Model) -> None:
    at = sizes(model, 1, 8)
    for graph in model.graphs:
        try:
            operators(graph, at, 2.0)
        except (LookupError, ValueError, ZeroDivisionError) as error:
            raise InputError(
                f"{where}: layers.{graph.kind}",
                "must be operators as nest-studio trace writes them",
                f"{type(error).__name__}: {error}",
                "trace the module anew",
            ) from error
