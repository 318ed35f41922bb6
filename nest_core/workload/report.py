"""What ``nest-studio trace`` tells about a model: its layers on one rank, operator by operator.

Counts are of one rank and one micro-batch; FLOP (a multiply-add is two) and bytes.
"""

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any

from nest_core.documents.errors import require
from nest_core.documents.schema import parameter
from nest_core.workload.graph import SYMBOLS, Graph, Node, Sizes, extent
from nest_core.workload.layers import check_experts, collectives_of
from nest_core.workload.models import Model, sizes
from nest_core.workload.operators import Operator, kept_bytes, operators
from nest_core.workload.strategies import Strategy, rewritten
from nest_core.workload.strategies.tensor import divided_symbols

__all__ = ["own_sizes", "read_strategy", "report_layers", "report_model"]

_FIELDS = {
    **{name: f"search.{name}" for name in ("tp", "sp", "cp", "ep", "etp")},
    "micro_batch": "search.micro_batch_sequences",
    "sequence": "workload.sequence_length_tokens",
    **{name: f"workload.{name}" for name in ("attention", "context", "imbalance", "capacity")},
}
"""Of `Strategy`, and the parameters whose bounds they have."""
_DTYPES = {1.0: "fp8", 2.0: "bf16", 4.0: "fp32"}


def read_strategy(text: str, **defaults: Any) -> Strategy:
    """Return the strategy of ``tp=8,sp=true,sequence=4096``.

    Parameters
    ----------
    text : str
        Fields of `Strategy`, each at most once; empty: all defaults.
    **defaults
        Values of fields that the text leaves out.

    Raises
    ------
    InputError
        If a field is unknown, repeated, or its value is none of its own.

    Examples
    --------
    >>> read_strategy("tp=8,sp=true", sequence=4096).tp
    8
    """
    names = [field.name for field in fields(Strategy)]
    values: dict[str, Any] = {}
    for part in text.split(",") if text.strip() else ():
        name, equals, value = (piece.strip() for piece in part.partition("="))
        require(
            equals and name in names and (name not in values),
            "--strategy",
            f"must set each of {', '.join(names)} at most once",
            part,
            "write tp=8,sp=true",
        )
        require(
            name != "attention" or value.strip("\"'") in ("flash", "unfused"),
            "--strategy attention",
            "must be 'flash' or 'unfused'",
            value,
            "change it",
        )
        if name in _FIELDS:
            values[name] = parameter(_FIELDS[name]).read(value.strip("\"'"), f"--strategy {name}")
            continue
        with contextlib.suppress(ValueError):
            values[name] = float(value)
        require(
            0.125 <= values.get(name, 0.0) <= 8.0,
            "--strategy width",
            "must lie between 0.125 and 8 bytes",
            value,
            "2 is bf16",
        )
    return Strategy(**{**defaults, **values})


def report_model(model: Model, strategy: Strategy) -> dict[str, Any]:
    """Parameters and layers of a model under a strategy.

    Parameters
    ----------
    model : Model
    strategy : Strategy
        With the sequences and tokens of a micro-batch.

    Returns
    -------
    dict
        The fields of ``trace`` in ``shared/cli.md``, and more.
    """
    check_experts(model, strategy)
    at = sizes(model, strategy.micro_batch, strategy.sequence)
    require(
        not model.positions or strategy.sequence <= model.positions,
        "--strategy sequence",
        f"must be at most the model's {model.positions} positions",
        strategy.sequence,
        "shorten the sequence",
    )
    layers = [(model.trace[kind], count, at) for kind, count in model.kinds.items()]
    return {
        "model": model.name,
        "family": model.family,
        "source": model.source,
        "parameters": model.parameters,
        "active_parameters": model.active_parameters,
        "micro_batch": strategy.micro_batch,
        "sequence": strategy.sequence,
        "layers": report_layers(layers, strategy),
    }


def own_sizes(graph: Graph, given: Mapping[str, int], strategy: Strategy) -> dict[str, float]:
    """Sizes of a person's graph: those given, and nothing that is not.

    Raises
    ------
    InputError
        If the strategy divides what no given size names.
    """
    wanted = {
        "tp": (strategy.tp, divided_symbols(strategy)),
        "cp": (strategy.cp, {"sequence"}),
        "ep": (strategy.ep, {"experts"}),
        "etp": (strategy.etp if strategy.etp != strategy.tp else 1, {"expert_ffn"}),
    }
    for name, (degree, symbols) in wanted.items():
        require(
            degree <= 1 or symbols & given.keys(),
            f"--strategy {name}",
            "must be 1 where build() gives no size that it divides",
            degree,
            f"let build() name one of {', '.join(sorted(symbols))}",
        )
    sizes: dict[str, float] = {**dict.fromkeys(SYMBOLS, 0.0), "window": 0.0, **given}
    sizes["kv_heads"] = float(given.get("kv_heads", given.get("heads", 0)))
    attended = [node for node in graph.nodes if node.op == "attention"]
    keys = [extent(graph[node.inputs[1]].shape[-2], sizes) for node in attended]
    sizes["keys"] = max(keys, default=float(given.get("sequence", 0)))
    return sizes


def report_layers(
    layers: Iterable[tuple[Graph, int, Sizes]], strategy: Strategy
) -> list[dict[str, Any]]:
    """One entry per distinct layer.

    Parameters
    ----------
    layers : iterable of (Graph, int, mapping)
        Graph before any strategy, how often it stands in a row, its sizes.
    """
    return [_layer(graph, count, at, strategy) for graph, count, at in layers]


def _layer(graph: Graph, count: int, at: Sizes, strategy: Strategy) -> dict[str, Any]:
    rank = rewritten(graph, strategy, at)
    evaluated = operators(
        rank, at, strategy.width, strategy.accumulation, jax=strategy.checkpoint == "jax"
    )
    work = [entry for entry in evaluated if entry.op != "collective"]
    return {
        "kind": graph.kind,
        "count": count,
        "flops": sum(entry.flops for entry in work),
        "backward_flops": sum(kernel.flops for entry in work for kernel in entry.backward),
        "bytes": sum(entry.bytes for entry in work),
        "parameters": round(sum(entry.parameters for entry in work)),
        "parameter_bytes": strategy.width * sum(entry.parameters for entry in work),
        "activation_bytes": kept_bytes(work),
        "collectives": [asdict(call) for call in collectives_of(rank, evaluated)],
        "operators": [_operator(rank[entry.name], entry, at, strategy.width) for entry in work],
    }


def _operator(node: Node, entry: Operator, at: Sizes, width: float) -> dict[str, Any]:
    return {
        "name": entry.name,
        "op": entry.op,
        "function": node.function,
        "inputs": list(node.inputs),
        "shape": [extent(dim, at, node.split) for dim in node.shape],
        "dtype": "fp32" if entry.op == "loss" else _DTYPES.get(width, f"{width:g} bytes"),
        "flops": entry.flops,
        "backward_flops": sum(kernel.flops for kernel in entry.backward),
        "bytes": entry.bytes,
        "backward_bytes": sum(kernel.bytes for kernel in entry.backward),
        "parameter_bytes": width * entry.parameters,
        "kept": [{"tensor": name, "bytes": size} for name, size in entry.kept],
    }
