"""Collectives at the edges of what ranks share.

`connected` reads which symbols every node holds a part of and inserts what follows:

* a product over a divided dimension gives partial sums, which are reduced where it leaves;
* a whole tensor that enters a tensor-parallel region gets partial gradients, which are reduced
  on the way back; with sequence parallelism it is gathered, and its gradients are scattered;
* an indexer, which every rank has whole, gathers what sequence parallelism divides, and sends no
  gradients back: its inputs are detached;
* attention's keys and values travel between context-parallel ranks;
* tokens travel to their experts and back;
* a loss over a divided vocabulary needs the maximum, the sum and the target's logit of all.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from nest_core.workload.graph import Dim, Graph, Node, Split

__all__ = ["TOKENS", "connected", "inside"]

TOKENS = frozenset({"sequence", "slots"})
"""Symbols that count tokens: dividing them leaves every operator's arithmetic as it is."""

_RINGS = (("ring",), ("ring", "ring"))  # keys or values; then again, with their gradients
_GATHERS = (("all_gather",), ("all_gather", "reduce_scatter"))
_LOSS_EXCHANGES = ("maximum", "sum", "target")


def inside(node: Node, axis: str) -> bool:
    """Whether a node works on a part of the layer's width, or of its experts."""
    return any(entry.axis == axis and entry.symbol not in TOKENS for entry in node.split)


def _shares_tokens(node: Node, axis: str) -> bool:
    return any(entry.axis == axis and entry.symbol in TOKENS for entry in node.split)


def connected(graph: Graph, context: str = "ring") -> Graph:
    """Return the graph with the collectives that its splits need, and no others.

    Parameters
    ----------
    context : {"ring", "all_gather"}
        How context-parallel ranks exchange keys and values.
    """
    bare = _without_collectives(graph)
    sequence_parallel = any(_shares_tokens(node, "tp") for node in bare.nodes)
    done: dict[str, Node] = {}
    reads: dict[str, str] = {}  # what stands for a tensor once it has left its region

    def after(
        node: Node,
        suffix: str,
        axis: str,
        forward: tuple[str, ...],
        backward: tuple[str, ...],
        split: tuple[Split, ...] | None = None,
    ) -> str:
        name = f"{node.name}.{suffix}"
        if name not in done:
            if split is None:
                split = tuple(entry for entry in node.split if entry.axis != axis)
            done[name] = Node(
                name,
                "collective",
                inputs=(node.name,),
                shape=node.shape,
                split=split,
                axis=axis,
                forward=forward,
                backward=backward,
            )
        return name

    for node in bare.nodes:
        inputs = [
            _entered(
                bare, done, node, number, reads.get(name, name), after, sequence_parallel, context
            )
            for number, name in enumerate(node.inputs)
        ]
        done[node.name] = _reading(node, tuple(inputs))
        if _partial(bare, node, "etp"):
            reads[node.name] = after(
                node, "sum", "etp", ("reduce_scatter",), ("all_gather",), node.split
            )
        if _partial(bare, node, "tp"):
            back = ("all_gather",) if sequence_parallel else ()
            forth = ("reduce_scatter",) if sequence_parallel else ("all_reduce",)
            reads[node.name] = after(node, "sum", "tp", forth, back)
        if node.op == "loss" and inside(node, "tp"):
            tokens: tuple[Dim, ...] = (("micro_batch",), ("sequence",))
            split = tuple(entry for entry in node.split if entry.axis == "cp")
            for what in _LOSS_EXCHANGES:
                name = f"{node.name}.{what}"
                done[name] = Node(
                    name,
                    "collective",
                    inputs=(node.name,),
                    shape=tokens,
                    split=split,
                    axis="tp",
                    forward=("all_reduce",),
                )
    nodes = list(done.values())
    last = reads.get(bare.nodes[-1].name, bare.nodes[-1].name)
    nodes.sort(key=lambda node: node.name == last)  # stable: the output comes last
    return Graph(graph.kind, tuple(nodes))


def _without_collectives(graph: Graph) -> Graph:
    if not any(node.op == "collective" for node in graph.nodes):
        return graph

    origin = partial(graph.behind, op="collective")
    computing = [node for node in graph.nodes if node.op != "collective"]
    rewired = [_reading(node, tuple(map(origin, node.inputs))) for node in computing]
    last = origin(graph.output.name)
    rewired.sort(key=lambda node: node.name == last)
    return Graph(graph.kind, tuple(rewired))


def _reading(node: Node, inputs: tuple[str, ...]) -> Node:
    return node if inputs == node.inputs else replace(node, inputs=inputs)


def _entered(
    bare: Graph,
    done: dict[str, Node],
    node: Node,
    number: int,
    name: str,
    after: Callable[..., str],
    sequence_parallel: bool,
    context: str,
) -> str:
    """Return the name under which a node reads one of its inputs, collectives inserted."""
    tensor, origin = done[name], done[node.inputs[number]]
    if origin.is_tokens:
        return name
    if inside(node, "ep") != inside(origin, "ep"):
        # A rank sends the tokens it holds; the busiest receives more than its share.
        without, within = (origin, node) if inside(node, "ep") else (node, origin)
        load = tuple(entry for entry in within.split if entry.axis == "load")
        split = without.split + tuple(entry for entry in load if entry not in without.split)
        every = ("all_to_all",)
        tensor = done[after(tensor, "exchange", "ep", every, every, split)]
    if inside(node, "tp") and (name != node.inputs[number] or not inside(origin, "tp")):
        forth = ("all_gather",) if sequence_parallel else ()
        back = ("reduce_scatter",) if sequence_parallel else ("all_reduce",)
        tensor = done[after(tensor, "enter", "tp", forth, back)]
    elif sequence_parallel and _shares_tokens(tensor, "tp") and not _shares_tokens(node, "tp"):
        tensor = done[after(tensor, "enter", "tp", ("all_gather",), ())]
    if inside(node, "etp") and not inside(origin, "etp"):
        tensor = done[
            after(
                tensor,
                "enter",
                "etp",
                ("all_gather",),
                ("reduce_scatter",),
                (*tensor.split, *(e for e in node.split if e.axis == "etp" and e.symbol in TOKENS)),
            )
        ]
    if _travels(node, number):
        tensor = done[after(tensor, "exchange", "cp", *(_RINGS if context == "ring" else _GATHERS))]
    return tensor.name


def _travels(node: Node, number: int) -> bool:
    """Whether an input is attention's key or value, of which every rank needs all tokens."""
    if not _shares_tokens(node, "cp"):
        return False
    return (
        number >= (2 if len(node.inputs) == 5 else 1)
        if node.op == "attention"
        else node.op == "matmul" and node.core and number == 1
    )


def _partial(graph: Graph, node: Node, axis: str) -> bool:
    """Whether a node sums over a dimension that an axis' ranks divide."""
    if node.op in ("linear", "grouped_linear"):
        summed = node.weights[0][-1]
    elif node.op == "embedding":
        summed = node.weights[0][0]
    elif node.op == "matmul":
        summed = graph[node.inputs[0]].shape[-1]
    else:
        return False
    divided = {entry.symbol for entry in node.split if entry.axis == axis} - TOKENS
    return any(part in divided for part in summed)
