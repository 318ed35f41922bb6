"""The models that people name: a preset, a table of sizes, or a path to a file.

Presets and tables have the fields of `Model`, checked key by key; a ``config.json`` is read by
`nest_core.workload.hugging_face`. Nothing is downloaded.

A trace of one's own is what ``nest-studio trace package.module:build --output`` wrote: the
operators of every kind of layer, as ``presets/traces`` do, and under ``model`` what they leave
open, the sizes that they name and the number of blocks. Reading it needs no torch and runs nobody's
code.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Literal, get_type_hints

from pydantic import Field, create_model

from nest_core.documents import InputError, load_toml, named_file, parsed_json, read_text, require
from nest_core.documents.schema import Name, SchemaTable, checked
from nest_core.workload.graph import KINDS, SYMBOLS, Graph, Node, graph_of
from nest_core.workload.hugging_face import read_config, renamed
from nest_core.workload.models import TRACED, Model, sizes
from nest_core.workload.operators import operators
from nest_core.workload.strategies import Strategy
from nest_core.workload.strategies.tensor import divided_symbols

__all__ = [
    "OF_THE_JOB",
    "ModelFile",
    "is_trace",
    "load_model",
    "model_of",
    "model_table",
    "traced_model",
]

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


_TYPES = get_type_hints(Model, include_extras=True)
_FIELDS: dict[str, Any] = {
    field.name: (_TYPES[field.name], ... if field.default is MISSING else field.default)
    for field in fields(Model)
    if field.name != "graphs"
}
# A file may leave the inner width of dense MLPs out, which `Model` asks for.
_FIELDS["ffn"] = (_TYPES["ffn"], 0)

ModelFile = create_model(
    "ModelFile",
    __base__=SchemaTable,
    __doc__="A model preset, or ``workload.model`` as a table, with the fields of `Model`.",
    **_FIELDS,
)


def load_model(choice: str | Mapping[str, Any], folder: Path | None = None) -> Model:
    """Return the model that somebody names.

    Parameters
    ----------
    choice : str or mapping
        A preset's name, a table with the fields of `Model`, or, given a folder, a path to a
        ``config.json`` or to a trace of one's own; then also a table with that path as ``trace``
        and the sizes to be changed.
    folder : Path, optional
        Where a relative path starts; without it a name must be a preset's.

    Raises
    ------
    InputError
        If there is no such model, or it cannot be one.
    """
    if isinstance(choice, Mapping):
        if "trace" not in choice:
            return model_of(choice, "workload.model")
        path = _file(str(choice["trace"]), folder, "workload.model.trace")
        sizes = {key: value for key, value in choice.items() if key != "trace"}
        return traced_model(read_text(path), path.stem, sizes)
    path = _file(choice, folder, "workload.model")
    if path.suffix == ".toml":
        return model_of(load_toml(path), "model")
    text = read_text(path)
    if is_trace(text):
        return traced_model(text, path.stem)
    place = path.resolve()
    return read_config(text, place.parent.name if place.stem == "config" else place.stem)


def _file(name: str, folder: Path | None, field: str) -> Path:
    return named_file(
        "models",
        name,
        folder,
        field=field,
        file="config.json or trace",
        table=True,
        is_path=lambda name, _: name.endswith(".json"),
    )


def model_of(table: Mapping[str, Any], where: str = "model") -> Model:
    """Return the model of a table.

    Parameters
    ----------
    where : str
        The table's name in messages.
    """
    entry = checked(ModelFile, dict(table), f"{where}.")
    try:
        model = Model(**entry.model_dump())
        model.check_family()
    except InputError as error:
        raise renamed(error, lambda field: f"{where}.{field}") from error
    return model


def model_table(model: Model) -> dict[str, Any]:
    """Return the table of a model: what differs from the defaults, in the order of `Model`."""
    return {
        field.name: value
        for field in fields(model)
        if (value := getattr(model, field.name)) != field.default or field.default is MISSING
    }
