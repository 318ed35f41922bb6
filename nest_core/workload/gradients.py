"""Gradients of activations: what backward holds beside what forward kept. Bytes per micro-batch."""

from __future__ import annotations

from nest_core.workload.graph import Graph, Node, Sizes, count

__all__ = ["gradient_bytes"]


def gradient_bytes(graph: Graph, sizes: Sizes, width: float) -> float:
    """The most that gradients of activations hold at once while a layer's backward runs.

    An operator reads the gradient of its output and writes those of its inputs; what other
    operators made was read and freed. A sum hands its gradient on, views share their tensor, and
    the loss makes the logits' gradient in place of their probabilities and casts it back once.

    Parameters
    ----------
    graph : Graph
        Rewritten for one rank.
    sizes : mapping of symbol to size
    width : float
        Bytes per element.
    """
    return max(
        (
            width * _elements(graph, node, sizes)
            for node in graph.nodes
            if node.op not in ("input", "reshape")
        ),
        default=0.0,
    )


def _elements(graph: Graph, node: Node, sizes: Sizes) -> float:
    read = sum(
        count(entry.shape, sizes, entry.split)
        for entry in graph.inputs(node)
        if not entry.is_tokens
    )
    if node.op == "loss":
        return read
    written = count(node.shape, sizes, node.split)
    functions = (node.function or node.op).split("+")
    if "add" in functions:
        return written * (2 if len(functions) > 1 else 1)
    return read + written
