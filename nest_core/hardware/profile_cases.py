"""Which kernels a profile of a model holds: those that the estimator would price.

Every distinct kernel of the layers under the strategies asked for, with the lengths of its
operator's tensors on one rank; `nest_core.hardware.profiling` runs them.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from nest_core.documents.errors import require
from nest_core.hardware.profiles import Direction, Signature, signature
from nest_core.workload import (
    Dim,
    Graph,
    Kernel,
    Model,
    Node,
    Sizes,
    Strategy,
    extent,
    layer_graph,
    operators,
    sizes,
)

__all__ = ["CPU_BYTES", "CPU_FLOPS", "ProfileCase", "cases", "check_affordable"]

Shape = tuple[int, ...]

CPU_FLOPS = 2e11
CPU_BYTES = 4e9
"""A kernel with more takes seconds on a CPU, and is refused there."""


@dataclass(frozen=True, slots=True)
class ProfileCase:
    """One kernel to measure.

    Parameters
    ----------
    signature : Signature
    function : str
    operators : tuple of str
        Where it was met.
    kernel : Kernel
    index : int
        Which of its operator's kernels in this pass.
    inputs : tuple of tuple of int
        Shapes of what the operator reads on this rank.
    output, weight : tuple of int
        Shapes of what it writes and of its first parameter.
    keys, window : int
        Of attention; ``window`` 0: all keys.
    causal : bool
    transposed : bool
        Whether the right operand of a forward product is stored with its summed length last.
    """

    signature: Signature
    function: str
    operators: tuple[str, ...]
    kernel: Kernel
    index: int
    inputs: tuple[Shape, ...]
    output: Shape
    weight: Shape
    keys: int
    window: int
    causal: bool
    transposed: bool


def cases(model: Model, strategies: Iterable[Strategy]) -> tuple[ProfileCase, ...]:
    """Return the distinct kernels of a model's layers under strategies."""
    result: dict[tuple[Signature, str], ProfileCase] = {}
    for strategy in strategies:
        at = sizes(model, strategy.micro_batch, strategy.sequence)
        for kind, _ in model.runs:
            graph = layer_graph(model, kind, strategy)
            for case in _cases(graph, at, strategy.width, f"{model.name}, {kind}"):
                key = (case.signature, case.function)
                if key in result:
                    met = dict.fromkeys((*result[key].operators, *case.operators))
                    result[key] = replace(result[key], operators=tuple(met))
                else:
                    result[key] = case
    return tuple(result.values())


def _cases(graph: Graph, at: Sizes, width: float, place: str) -> Iterator[ProfileCase]:
    for operator in operators(graph, at, width):
        node = graph[operator.name]
        inputs = tuple(_lengths(entry.shape, node, at) for entry in graph.inputs(node))
        output = _lengths(node.shape, node, at)
        weight = _lengths(node.weights[0], node, at) if node.weights else ()
        passes: tuple[tuple[Direction, tuple[Kernel, ...]], ...] = (
            ("forward", operator.forward),
            ("backward", operator.backward),
        )
        for direction, kernels in passes:
            for index, kernel in enumerate(kernels):
                if not kernel.bytes:
                    continue
                yield ProfileCase(
                    signature=signature(operator.op, direction, kernel),
                    function=node.function,
                    operators=(f"{place}, {operator.name}",),
                    kernel=kernel,
                    index=index,
                    inputs=inputs,
                    output=output,
                    weight=weight,
                    keys=int(at["keys"]),
                    window=int(at.get("window", 0)),
                    causal=node.causal,
                    transposed=node.op != "matmul" or inputs[1][-1] == inputs[0][-1],
                )


def check_affordable(profiled: Sequence[ProfileCase], device: str) -> None:
    """Refuse kernels that would take a CPU many seconds each."""
    if device != "cpu":
        return
    for case in profiled:
        require(
            case.kernel.flops <= CPU_FLOPS and case.kernel.bytes <= CPU_BYTES,
            case.operators[0],
            f"must have at most {CPU_FLOPS / 1e9:,.0f} GFLOP and {CPU_BYTES / 1e9:.0f} GB to "
            "be measured on a CPU",
            f"{case.kernel.flops / 1e9:,.3g} GFLOP and {case.kernel.bytes / 1e9:.3g} GB",
            "shorten --sequence, lower --micro-batch or raise --tp",
        )


def _lengths(shape: Iterable[Dim], node: Node, at: Sizes) -> Shape:
    """Return a tensor's lengths on this rank, shares of an element rounded up."""
    return tuple(math.ceil(extent(dim, at, node.split)) for dim in shape)
