"""Operators in words: the formulas of their work and traffic with the numbers filled in.

Everything is said of the kernels that `nest_core.workload.operators` found, so a formula shown
and a figure used cannot differ; what the kernels take is said by `nest_core.hardware.estimator`.

Symbols: ``m``, ``n``, ``k`` rows, columns and summed length of a product and ``g`` how many
there are; of attention ``g`` sequences times heads, ``q`` queries, ``s`` keys that a query sees
on average, ``d`` the mean width of a head's keys and values.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from nest_core.documents.units import humanise, humanise_bytes
from nest_core.workload.graph import SORTED, Dim, Graph, Node, Sizes, Split, count, extent
from nest_core.workload.operators import Kernel, Operator, masks_fused

__all__ = [
    "ELEMENTWISE_FLOPS",
    "dims_in_words",
    "elementwise_flops",
    "gradients_in_words",
    "kept_in_words",
    "kernel_in_words",
    "number",
    "shape_in_words",
]

ELEMENTWISE_FLOPS = {
    "add": 1.0, "sub": 1.0, "neg": 1.0, "mul": 1.0, "scale": 1.0, "dropout": 2.0, "rope": 3.0,
    "relu": 1.0, "relu2": 2.0, "sigmoid": 4.0, "silu": 5.0, "swiglu": 6.0, "gelu": 8.0,
    "geglu": 9.0, "tanh": 6.0, "exp": 2.0, "softplus": 6.0, "softmax": 5.0, "rmsnorm": 4.0,
    "layernorm": 7.0, "cross_entropy": 5.0, "position": 1.0, "combine": 2.0,
}  # fmt: skip
"""Arithmetic per element written, roughly: an exponential or a root counts 2. It places
element-wise operators in a roofline; their time is that of their bytes, and the FLOP of a model
do not contain it."""

_FACTORS = {False: 4.0, True: 10.0}

_ADDED = "added to those of other micro-batches"

_GRADIENTS = {
    "gemm": ("gradient of the input", "gradient of the weights"),
    "batched": ("gradient of the left factor", "gradient of the right factor"),
}


def number(value: float) -> str:
    """Return a count in full; with six digits where it is not whole.

    Examples
    --------
    >>> number(12288.0), number(1228.8)
    ('12,288', '1,228.8')
    """
    return f"{value:,.0f}" if value == round(value) else f"{value:,.6g}"


def elementwise_flops(node: Node, sizes: Sizes, inputs: Iterable[Node] = ()) -> float:
    """Rough arithmetic of an operator that is bound by its bytes; see `ELEMENTWISE_FLOPS`."""
    names = (node.function or node.op).split("+")
    elements = count(node.shape, sizes, node.split)
    if node.op == "loss":
        elements = sum(count(entry.shape, sizes, node.split) for entry in inputs)
    if node.op in ("position", "combine"):
        names = [node.op]
    return elements * sum(ELEMENTWISE_FLOPS.get(name, 0.0) for name in names)


def dims_in_words(dims: Iterable[Dim], split: Iterable[Split]) -> str:
    """Return a product of dimensions in symbols, with what a rank holds of each.

    Examples
    --------
    >>> dims_in_words([("ffn",)], [Split("ffn", "tp", 8.0)])
    'ffn / 8 (tp)'
    """
    split = tuple(split)
    return " · ".join(_part(part, split) for part in [part for dim in dims for part in dim]) or "1"


def shape_in_words(graph: Graph, node: Node, sizes: Sizes) -> tuple[str, ...]:
    """Where the lengths in a product's formula come from; nothing for other operators."""
    if node.together:
        return (f"runs in one product with {node.together}",)
    if node.op in ("linear", "grouped_linear"):
        *groups, columns, inner = node.weights[0]
        dimensions = [
            ("g", groups),
            ("m", [dim for dim in node.shape[:-1] if dim not in groups]),
            ("k", [inner]),
        ]
        with_it = [other for other in graph.nodes if other.together == node.name]
        wide = [(columns, node), *((other.weights[0][-2], other) for other in with_it)]
        joined = " + ".join(dims_in_words([dim], other.split) for dim, other in wide)
        total = sum(extent(dim, sizes, other.split) for dim, other in wide)
        names = f" ({', '.join(other.name for _, other in wide)})" if with_it else ""
        lines = [*_lengths(dimensions[:2], node, sizes), f"n = {joined} = {number(total)}{names}"]
        return (*lines, *_lengths(dimensions[2:], node, sizes))
    if node.op == "matmul":
        *groups, rows_dim, columns = node.shape
        inner = graph[node.inputs[0]].shape[-1]
        dimensions = [("g", groups), ("m", [rows_dim]), ("n", [columns]), ("k", [inner])]
        return _lengths(dimensions, node, sizes)
    if node.op == "attention":
        query = graph[node.inputs[0]]
        return _lengths([("g", list(query.shape[:-2])), ("q", [query.shape[-2]])], node, sizes)
    return ()


def _lengths(
    dimensions: Iterable[tuple[str, list[Dim]]], node: Node, sizes: Sizes
) -> tuple[str, ...]:
    return tuple(
        f"{symbol} = {dims_in_words(dims, node.split)} = {number(count(dims, sizes, node.split))}"
        for symbol, dims in dimensions
        if dims
    )


def kernel_in_words(
    kernel: Kernel,
    node: Node,
    inputs: Sequence[Node],
    sizes: Sizes,
    width: float,
    *,
    backward: bool = False,
) -> tuple[str, ...]:
    """FLOP, bytes and intensity of a kernel as formulas with numbers.

    Parameters
    ----------
    inputs : sequence of Node
        What the node reads.
    width : float
        Bytes per element.
    backward : bool
        Whether it belongs to the backward pass.
    """
    if kernel.added_bytes:
        alone = replace(kernel, added_bytes=0.0)
        words = kernel_in_words(alone, node, inputs, sizes, width, backward=backward)
        added = f"and {humanise(kernel.added_bytes, 'B')} for gradients of weights, {_ADDED}"
        return (*(words if kernel.bytes else ()), added)
    if kernel.unit in ("gemm", "batched"):
        return _product(kernel, width)
    if "attention" in kernel.unit:
        return _attention(kernel, node, width, _FACTORS[backward])
    return (
        (_loss(kernel, count(inputs[0].shape, sizes, node.split)),)
        if node.op == "loss"
        else (_passes(kernel, node, sizes, width, backward),)
    )


def gradients_in_words(kernels: tuple[Kernel, ...], node: Node) -> tuple[str, ...]:
    """Return what each kernel of a backward pass makes."""
    if node.function == SORTED:
        return (
            "the same copy of gradients",
            *gradients_in_words(kernels[1:], replace(node, function="")),
        )
    if kernels and not kernels[0].bytes and kernels[0].added_bytes:
        return (f"gradients of weights, {_ADDED}", *gradients_in_words(kernels[1:], node))
    phrases = _GRADIENTS.get(kernels[0].unit) if kernels else None
    if phrases and len(kernels) == len(phrases):
        return phrases
    return (
        ("scores again and four products",)
        if kernels and "attention" in kernels[0].unit
        else ("gradients read and written, and what forward kept",) * len(kernels)
    )


def kept_in_words(operator: Operator) -> str:
    """Return the tensors that backward reads again."""
    if not operator.kept:
        return "keeps nothing for backward"
    tensors = ", ".join(
        f"{name.replace(':', ' ')} {humanise_bytes(size)}" for name, size in operator.kept
    )
    return f"keeps for backward: {tensors}"


def _part(part: str | int, split: tuple[Split, ...]) -> str:
    if not isinstance(part, str):
        return str(part)
    words = part.replace("_", " ")
    for entry in split:
        if entry.symbol == part and entry.ranks != 1.0:
            ranks, sign = (entry.ranks, "/") if entry.ranks > 1.0 else (1.0 / entry.ranks, "·")
            words += f" {sign} {number(round(ranks, 9))} ({entry.axis})"
    return words


def _product(kernel: Kernel, width: float) -> tuple[str, ...]:
    groups, m, n, k = kernel.shape
    many, numbers = ("g · ", f"{number(groups)} · ") if groups != 1.0 else ("", "")
    rows, columns, inner = number(m), number(n), number(k)
    return (
        f"FLOP: 2 · {many}m · n · k = 2 · {numbers}{rows} · {columns} · {inner}"
        f" = {humanise(kernel.flops, 'FLOP')}",
        f"bytes: {width:g} B · {many}(m · k + k · n + m · n) = {width:g} · {numbers}"
        f"({rows} · {inner} + {inner} · {columns} + {rows} · {columns})"
        f" = {humanise(kernel.bytes, 'B')}",
        _intensity(kernel),
    )


def _attention(kernel: Kernel, node: Node, width: float, factor: float) -> tuple[str, ...]:
    groups, queries, keys, wide = kernel.shape
    seen = kernel.flops / (factor * groups * queries * wide)
    which = f"of {number(keys)}, causal" if node.causal else "all"
    return (
        f"FLOP: {factor:g} · g · q · s · d = {factor:g} · {number(groups)} · {number(queries)} · "
        f"{number(seen)} · {number(wide)} = {humanise(kernel.flops, 'FLOP')}",
        f"s = {number(seen)} keys that a query sees on average ({which}); d = {number(wide)}",
        f"bytes: {width:g} B · {number(kernel.bytes / width)} elements of queries, keys, values "
        f"and outputs = {humanise(kernel.bytes, 'B')}",
        _intensity(kernel),
    )


def _loss(kernel: Kernel, logits: float) -> str:
    size = kernel.bytes / logits
    moved = humanise(kernel.bytes, "B")
    return f"bytes: {size:g} B · {number(logits)} logits, read and written several times = {moved}"


def _passes(kernel: Kernel, node: Node, sizes: Sizes, width: float, backward: bool) -> str:
    moved = humanise(kernel.bytes, "B")
    if node.function == SORTED:
        copied = number(kernel.bytes / width / 2)
        return f"bytes: {width:g} B · 2 · {copied} elements, copied into another order = {moved}"
    written = count(node.shape, sizes, node.split)
    if node.op == "softmax" and not masks_fused(node, sizes):
        per_score = kernel.bytes / written
        return f"bytes: {per_score:g} B · {number(written)} scores, a kernel per step = {moved}"
    # A mask has a byte per element, everything else the width of an activation.
    masked = "dropout" in (node.function or node.op) and (kernel.bytes / width) % written > 0.0
    elements = (kernel.bytes - masked * written) / width
    mask = f" + 1 B · {number(written)} of the mask" if masked else ""
    what = (
        f"{number(elements)} elements of gradients and of what is read again"
        if backward
        else f"({number(elements - written)} read + {number(written)} written)"
    )
    return f"bytes: {width:g} B · {what}{mask} = {moved}"


def _intensity(kernel: Kernel) -> str:
    flops, moved = humanise(kernel.flops, "FLOP"), humanise(kernel.bytes, "B")
    return f"intensity: {flops} / {moved} = {(kernel.flops / kernel.bytes):,.4g} FLOP/B"
