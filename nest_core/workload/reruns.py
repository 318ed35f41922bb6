"""What backward runs again under PyTorch's checkpoints of a block.

A non-reentrant checkpoint stops as soon as it has made the last tensor that backward reads [1]_:
of a block, the down projection, its collective and the sum that takes it do not run again.
Selective recomputation is by operator [2]_: the outputs of attention, of reduce-scatters and of
the first, third, fifth... product of a block stay, and of the others those are made again that
backward reads or that lead there. Products in 8 bits are not among those that stay, so all of them
but the last run again.

References
----------
.. [1] pytorch/pytorch#96866 (PyTorch 2.1).
.. [2] pytorch/torchtitan@0596be3, ``_save_list`` in
       ``torchtitan/models/llama/parallelize_llama.py``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from nest_core.workload.graph import Graph
from nest_core.workload.operators import Operator

__all__ = ["run_again", "saved_outputs"]

_PRODUCTS = ("linear", "grouped_linear")


def saved_outputs(graph: Graph, *, narrow: bool) -> tuple[str, ...]:
    """Nodes whose output stays under recomputation by operator.

    Parameters
    ----------
    narrow : bool
        Whether products run in 8 bits.
    """
    products = [node.name for node in graph.nodes if node.op in _PRODUCTS]
    attention = [node.name for node in graph.nodes if node.op == "attention"]
    summed = [node.name for node in graph.nodes if node.forward == ("reduce_scatter",)]
    return (*(() if narrow else products[::2]), *attention, *summed)


def run_again(
    graph: Graph, replayed: Sequence[Operator], saved: Collection[str] = ()
) -> frozenset[str]:
    """Nodes of a block that run again until all that backward reads is there.

    Parameters
    ----------
    replayed : sequence of Operator
        Of the graph.
    saved : collection of str
        Those whose output is there already.
    """
    wanted = [name.split(":")[0] for operator in replayed for name, _ in operator.kept]
    again: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name not in again and name not in saved:
            again.add(name)
            wanted += graph[name].inputs
    return frozenset(again) - {graph.nodes[0].name}
