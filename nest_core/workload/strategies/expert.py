"""Expert parallelism: every rank holds some experts and receives the tokens that chose them.

All ranks route their own tokens; two all-to-alls bring tokens to their experts and back. A rank
then holds ``1/ep`` of the experts with ``ep`` times the slots each, times the imbalance of the
busiest rank. With a capacity factor every expert works on as many slots as it has, filled or not.
"""

from __future__ import annotations

from dataclasses import replace

from nest_core.errors import InputError
from nest_core.workload.graph import Graph, Node, Sizes, Split
from nest_core.workload.strategies.edges import connected
from nest_core.workload.strategies.strategy import Strategy

__all__ = ["expert_parallel"]


def expert_parallel(graph: Graph, strategy: Strategy, sizes: Sizes) -> Graph:
    """Divide experts and gather their slots.

    Raises
    ------
    InputError
        If the degree does not divide the experts.
    """
    if graph.kind != "moe_block":
        return graph
    experts = int(sizes["experts"])
    if experts % strategy.ep:
        raise InputError(
            "ep", f"must divide the model's {experts} experts", strategy.ep, "choose a divisor"
        )
    slots = strategy.capacity or (strategy.imbalance if strategy.ep > 1 else 1.0)
    everywhere = (Split("slots", "load", 1.0 / slots),) if slots != 1.0 else ()
    padded = everywhere if strategy.capacity else ()  # a rank's own slots are padded too
    spread: tuple[Split, ...] = ()
    if strategy.ep > 1:
        ranks = float(strategy.ep)
        spread = (Split("experts", "ep", ranks), Split("slots", "ep", 1.0 / ranks))
    if not everywhere and not spread:
        return graph
    nodes = []
    for node in graph.nodes:
        if _on_experts(node):
            node = replace(node, split=node.split + everywhere + spread)
        elif node.op in ("dispatch", "combine"):
            node = replace(node, split=node.split + padded)
        nodes.append(node)
    graph = Graph(graph.kind, tuple(nodes))
    return connected(graph, strategy.context)


def _on_experts(node: Node) -> bool:
    """Whether a node works on tokens sorted by expert."""
    symbols = node.symbols
    return "experts" in symbols and "slots" in symbols and node.op != "dispatch"
