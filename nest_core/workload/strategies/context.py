"""Context parallelism: every rank holds a part of each sequence, of all operators.

Queries stay where they are; keys and values travel, in a ring (Liu et al. 2023) or gathered
(Llama 3). Causal work is equal, because every rank takes one chunk from each end.
"""

from __future__ import annotations

from dataclasses import replace

from nest_core.documents.errors import require
from nest_core.workload.graph import Graph, Sizes, Split
from nest_core.workload.strategies.edges import TOKENS, connected
from nest_core.workload.strategies.strategy import Strategy

__all__ = ["context_parallel"]


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
