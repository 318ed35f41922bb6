"""Which kernels run: stored scores or none, and what runs in one pass."""

from collections import Counter
from dataclasses import replace

from nest_core.workload.graph import SUMMED, Dim, Graph, Node, Sizes
from nest_core.workload.strategies.edges import connected
from nest_core.workload.strategies.strategy import Strategy
from nest_core.workload.strategies.tensor import divided_symbols

__all__ = ["fused_elementwise", "joined_projections", "scaled_activations", "unfused_attention"]

_POINTWISE = ("elementwise", "dropout")
_APART = "sigmoid_gate"  # of what it reads only its own inputs are saved, not the sum's behind it


def unfused_attention(graph: Graph, strategy: Strategy, sizes: Sizes) -> Graph:
    """Attention as products around a stored score matrix (Megatron-LM before FlashAttention)."""
    scored = [
        node.op == "attention" and node.function not in ("delta", "index") for node in graph.nodes
    ]
    if strategy.attention == "flash" or not any(scored):
        return graph
    nodes = tuple(
        step
        for node, is_scored in zip(graph.nodes, scored, strict=True)
        for step in (_unfused(node) if is_scored else [node])
    )
    return connected(Graph(graph.kind, nodes), strategy.context)


def _unfused(node: Node) -> list[Node]:
    *pairs, value = node.inputs
    queries, keys = (pairs[:2], pairs[2:]) if len(pairs) == 4 else (pairs[:1], pairs[1:])
    shape: tuple[Dim, ...] = (*node.shape[:-1], ("keys",))
    # The scores belong to query heads alone, the products to key and value heads too.
    scored = tuple(entry for entry in node.split if entry.symbol != "kv_heads")

    def step(name: str, op: str, *inputs: str, function: str = "") -> Node:
        split = node.split if op == "matmul" else scored
        return Node(f"{node.name}.{name}", op, function, inputs, shape, split=split, core=True)

    nodes = [
        step("scores" if number == 0 else "scores_rope", "matmul", query, key)
        for number, (query, key) in enumerate(zip(queries, keys, strict=True))
    ]
    if len(nodes) == 2:
        nodes.append(
            step("scores_sum", "elementwise", nodes[0].name, nodes[1].name, function="add")
        )
    nodes.append(step("softmax", "softmax", nodes[-1].name))
    if node.function == "dropout":
        nodes.append(step("dropout", "dropout", nodes[-1].name))
    values = replace(
        node, op="matmul", function="", inputs=(nodes[-1].name, value), core=True, causal=False
    )
    return [*nodes, values]


def fused_elementwise(graph: Graph, strategy: Strategy, sizes: Sizes) -> Graph:
    """Neighbouring element-wise operators as one kernel where nobody else reads between them."""
    if not strategy.fused:
        return graph
    readers = Counter(name for node in graph.nodes for name in node.inputs)
    merged: dict[str, Node] = {}
    for node in graph.nodes:
        before = [
            merged[name]
            for name in node.inputs
            if node.op in _POINTWISE
            and readers[name] == 1
            and name in merged
            and merged[name].op in _POINTWISE
            and merged[name].function != _APART
            and (merged[name].core, merged[name].split) == (node.core, node.split)
        ]
        for earlier in before:
            node = _joined(earlier, node)
            del merged[earlier.name]
        merged[node.name] = node
    return Graph(graph.kind, tuple(merged.values()))


def joined_projections(graph: Graph, strategy: Strategy, sizes: Sizes) -> Graph:
    """Projections of one module that read the same tensor run as one product.

    Query, key and value are one matrix in Megatron-LM and its descendants, as are the gate and
    the up projection of a gated MLP; torchtitan has a product for each. What tensor-parallel ranks
    divide is no matrix with what they do not.
    """
    if not strategy.joined:
        return graph
    first: dict[tuple[str, ...], str] = {}
    widths = divided_symbols(strategy)
    nodes = []
    for node in graph.nodes:
        if node.op in ("linear", "grouped_linear"):
            divided = "divided" if node.written & widths else "whole"
            head = first.setdefault(
                (node.name.rpartition(".")[0], node.op, divided, *node.inputs), node.name
            )
            node = replace(node, together="" if head == node.name else head)
        nodes.append(node)
    return Graph(graph.kind, tuple(nodes))


def scaled_activations(graph: Graph, strategy: Strategy, sizes: Sizes) -> Graph:
    """Probabilities of routing in the kernel of the experts' activation (Megatron Core 0.13)."""
    function = SUMMED if strategy.scaled_activations else ""
    nodes = (
        replace(node, function=function) if node.op == "combine" else node for node in graph.nodes
    )
    return Graph(graph.kind, tuple(nodes))


def _joined(earlier: Node, node: Node) -> Node:
    inputs = (*earlier.inputs, *(name for name in node.inputs if name != earlier.name))
    function = f"{earlier.function or earlier.op}+{node.function or node.op}"
    return replace(node, op="elementwise", function=function, inputs=tuple(dict.fromkeys(inputs)))
