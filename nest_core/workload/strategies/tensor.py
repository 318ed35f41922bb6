"""Tensor, sequence and context parallelism: what ranks hold parts of.

Tensor parallelism divides heads, the inner widths of MLPs and the vocabulary: a projection whose
outputs are divided is column parallel, one whose inputs are is row parallel, and everything
between them runs on a part. Where there are fewer key and value heads than ranks, ranks hold
copies of them (Shoeybi et al. 2019). Sequence parallelism divides the tokens of everything outside
these regions (Korthikanti et al. 2022). Under context parallelism every rank holds a part of each
sequence, of all operators: queries stay where they are; keys and values travel, in a ring (Liu et
al. 2023) or gathered (Llama 3). Causal work is equal, as every rank takes a chunk from each end.
"""

from dataclasses import replace

from nest_core.documents.errors import require
from nest_core.workload.graph import Graph, Node, Sizes, Split
from nest_core.workload.strategies.edges import TOKENS, connected
from nest_core.workload.strategies.strategy import Strategy

__all__ = ["context_parallel", "divided_symbols", "sequence_parallel", "tensor_parallel"]

_LINEAR = ("linear_key_heads", "linear_value_heads")
_WIDTHS = ("heads", "kv_heads", "ffn", "shared_ffn", "vocabulary", *_LINEAR)


def divided_symbols(strategy: Strategy) -> frozenset[str]:
    """Symbols that tensor-parallel ranks divide: inside experts only where they share them."""
    return frozenset((*_WIDTHS, "expert_ffn") if strategy.etp == strategy.tp else _WIDTHS)


def tensor_parallel(graph: Graph, strategy: Strategy, sizes: Sizes) -> Graph:
    """Divide heads, inner widths and the vocabulary.

    Raises
    ------
    InputError
        If the degree does not divide the heads or an inner width, or neither divides the key and
        value heads nor is a multiple of them.
    """
    if strategy.tp == 1:
        return graph
    ranks = {symbol: float(strategy.tp) for symbol in divided_symbols(strategy)}
    ranks["kv_heads"] = float(_shared_heads(strategy.tp, sizes))
    _check_widths(graph, strategy, sizes)
    nodes = tuple(
        replace(node, split=(*node.split, *(Split(name, "tp", ranks[name]) for name in symbols)))
        for node in graph.nodes
        for symbols in [sorted(_touched(graph, node) & ranks.keys())]
    )
    return connected(Graph(graph.kind, nodes), strategy.context)


def sequence_parallel(graph: Graph, strategy: Strategy, sizes: Sizes) -> Graph:
    """Divide the tokens of what tensor parallelism leaves whole, but for an indexer.

    It scores all earlier tokens: every rank gathers its inputs and computes the whole of it
    (Megatron-LM 00bebb45, megatron/core/transformer/experimental_attention_variant/dsa.py).
    """
    if strategy.tp == 1 or not strategy.sp:
        return graph
    width = divided_symbols(strategy) | {"index_heads", "index_dim"}
    split = tuple(Split(symbol, "tp", float(strategy.tp)) for symbol in sorted(TOKENS))
    nodes = [
        node if _touched(graph, node) & width else replace(node, split=node.split + split)
        for node in graph.nodes
    ]
    return connected(Graph(graph.kind, tuple(nodes)), strategy.context)


def context_parallel(graph: Graph, strategy: Strategy, sizes: Sizes) -> Graph:
    """Divide the tokens of every node, but not the keys that a query sees.

    Raises
    ------
    InputError
        If the degree does not divide the sequence.
    """
    if strategy.cp == 1:
        return graph
    require(
        int(sizes["sequence"]) % strategy.cp == 0,
        "cp",
        f"must divide the sequence of {int(sizes['sequence'])} tokens",
        strategy.cp,
        "choose a divisor",
    )
    split = tuple(Split(symbol, "cp", float(strategy.cp)) for symbol in sorted(TOKENS))
    nodes = tuple(replace(node, split=node.split + split) for node in graph.nodes)
    return connected(Graph(graph.kind, nodes), strategy.context)


def _touched(graph: Graph, node: Node) -> frozenset[str]:
    """Symbols of a node's output, weights and inputs; those of collectives follow from them."""
    return (
        frozenset()
        if node.op == "collective"
        else node.symbols.union(*(graph[name].written for name in node.inputs))
    )


def _check_widths(graph: Graph, strategy: Strategy, sizes: Sizes) -> None:
    """Inner widths must divide; vocabularies are padded by every framework."""
    present = frozenset[str]().union(*(node.symbols for node in graph.nodes))
    for symbol in sorted(
        divided_symbols(strategy) & present & {"ffn", "shared_ffn", "expert_ffn", *_LINEAR}
    ):
        require(
            int(sizes[symbol]) % strategy.tp == 0,
            "tp",
            f"must divide the model's {symbol} of {int(sizes[symbol])}",
            strategy.tp,
            "choose a divisor",
        )


def _shared_heads(tp: int, sizes: Sizes) -> int:
    heads, kv_heads = int(sizes["heads"]), int(sizes["kv_heads"])
    require(heads % tp == 0, "tp", f"must divide the model's {heads} heads", tp, "choose a divisor")
    require(
        kv_heads % tp == 0 or tp % kv_heads == 0,
        "tp",
        f"must divide the model's {kv_heads} key and value heads or be a multiple of them",
        tp,
        "choose another degree",
    )
    return min(tp, kv_heads)
