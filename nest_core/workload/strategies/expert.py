"""Expert parallelism: every rank holds some experts and receives the tokens that chose them.

All ranks route their own tokens; two all-to-alls bring tokens to their experts and back. A rank
then holds ``1/ep`` of the experts with ``ep`` times the slots each, times the imbalance of the
busiest rank. With a capacity factor every expert works on as many slots as it has, filled or not.
What an all-to-all brings is sorted by rank, so a rank with several experts copies it into their
order, and what they made back into the ranks' (Megatron-LM's ``MoEAlltoAllTokenDispatcher``);
DeepEP's and HybridEP's kernels place tokens themselves.

Experts may be divided among other ranks than attention is (Liu et al. 2025, "MoE Parallel Folding",
arXiv:2504.14960; Megatron-LM's ``--expert-tensor-parallel-size``): ``etp`` neighbours that share
an expert's width gather the slots that each of them received and scatter the sums.
"""

from dataclasses import replace

from nest_core.documents.errors import require
from nest_core.workload.graph import SORTED, Graph, Node, Sizes, Split
from nest_core.workload.strategies.edges import connected
from nest_core.workload.strategies.strategy import Strategy

__all__ = ["expert_parallel", "expert_tensor_parallel"]


def expert_parallel(graph: Graph, strategy: Strategy, sizes: Sizes) -> Graph:
    """Divide experts and gather their slots.

    Raises
    ------
    InputError
        If the degree does not divide the experts.
    """
    if not graph.kind.endswith("moe_block"):
        return graph
    experts = int(sizes["experts"])
    require(
        experts % strategy.ep == 0,
        "ep",
        f"must divide the model's {experts} experts",
        strategy.ep,
        "choose a divisor",
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
    sorts = _ends(graph) if strategy.dispatch == "all_to_all" and 1 < strategy.ep < experts else ()
    nodes = []
    for node in graph.nodes:
        if _on_experts(node):
            function = SORTED if node.name in sorts else node.function
            node = replace(node, split=node.split + everywhere + spread, function=function)
        elif node.op in ("dispatch", "combine"):
            node = replace(node, split=node.split + padded)
        nodes.append(node)
    return connected(Graph(graph.kind, tuple(nodes)), strategy.context)


def expert_tensor_parallel(graph: Graph, strategy: Strategy, sizes: Sizes) -> Graph:
    """Divide the width of experts where that is not tensor parallelism's own division.

    Raises
    ------
    InputError
        If the degree does not divide the experts' inner width.
    """
    ranks = float(strategy.etp)
    if not graph.kind.endswith("moe_block") or strategy.etp in (1, strategy.tp):
        return graph
    require(
        int(sizes["expert_ffn"]) % strategy.etp == 0,
        "etp",
        f"must divide the model's expert_ffn of {int(sizes['expert_ffn'])}",
        strategy.etp,
        "choose a divisor",
    )
    split = (Split("expert_ffn", "etp", ranks), Split("slots", "etp", 1.0 / ranks))
    nodes = tuple(
        replace(node, split=node.split + split) if _divided(graph, node) else node
        for node in graph.nodes
    )
    return connected(Graph(graph.kind, nodes), strategy.context)


def _ends(graph: Graph) -> tuple[str, ...]:
    """Return the first projection of experts that reads tokens, and that which makes them again."""
    products = [node for node in graph.nodes if node.op == "grouped_linear"]
    first = next(node for node in products if "hidden" in node.weights[0][-1])
    return first.name, next(node for node in products if "hidden" in node.weights[0][-2]).name


def _divided(graph: Graph, node: Node) -> bool:
    """Whether a node touches the inner width of experts; what collectives do follows."""
    near = node.symbols.union(*(graph[name].written for name in node.inputs))
    return node.op != "collective" and "expert_ffn" in near


def _on_experts(node: Node) -> bool:
    """Whether a node works on tokens sorted by expert."""
    symbols = node.symbols
    return "experts" in symbols and "slots" in symbols and node.op != "dispatch"
