"""Operators of one layer on one rank: work, traffic and what backward must keep.

`operators` evaluates a graph at sizes: for every node the *kernels* of its forward and backward
pass, the tensors that backward reads again, its parameters, and for a collective its buffer.
Counts are per micro-batch. Units: FLOP (a multiply-add is two) and bytes.

What is kept follows what PyTorch's autograd saves: a projection its input, a product of
activations both, a norm and an activation their input, softmax its output, dropout its mask,
fused attention its operands, output and a statistic per row (Dao 2023). A tensor that several
operators save counts once; for a GPT block the sum is Korthikanti et al. 2022's
``s b h (34 + 5 a s / h)``, which tests assert.

Under JAX it is the residuals of `jax.vjp` (jax 0.10.2), which XLA keeps as they are wherever layers
are scanned: a norm computed in fp32 keeps its fp32 argument and the 16-bit result before scaling,
an activation what each step of its derivative multiplies by, attention its output once as its
kernel wrote it and once as the next product reads it.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from nest_core.documents import grouped
from nest_core.workload.graph import SORTED, SUMMED, Graph, Node, Sizes, count, extent, weight_count

__all__ = [
    "PLAIN_LAUNCHES",
    "SOFTMAX_MATRICES",
    "WRITTEN_ONCE",
    "Accumulation",
    "Kernel",
    "Launching",
    "Operator",
    "held_elements",
    "issued",
    "kept_bytes",
    "masks_fused",
    "operators",
]

Unit = Literal["gemm", "batched", "attention", "biased_attention", "memory"]

# Bytes that an unfused cross-entropy moves per logit. Forward: cast to fp32 (2 + 4), maximum (4),
# difference, exponential and quotient in place (8 each), sum (4). Backward: scale the
# probabilities (8), cast back (4 + 2).
_LOSS_FORWARD_BYTES = 38.0
_LOSS_BACKWARD_BYTES = 14.0

# Bytes per score of a softmax whose scale and mask are not fused with it, in kernels of their own
# and in fp32: cast, scale, mask, softmax, cast back; backward the same in reverse.
_SOFTMAX_FORWARD_BYTES = (6.0, 8.0, 8.0, 8.0, 6.0)
_SOFTMAX_BACKWARD_BYTES = (6.0, 12.0, 8.0, 8.0, 6.0)
SOFTMAX_MATRICES = 4
"""Matrices of scores, one per sequence and head, that the kernel which masks and normalises them
takes at once: it runs where they are a multiple."""

_MASK_BYTES = 1.0
_STATISTIC_BYTES = 4.0

_CHUNK = 64.0  # tokens that kernels of linear attention take at once (recalled: fla-org's)

# Tensors as large as the output that an activation's derivative keeps in JAX beside its inputs: of
# x sigmoid(x) y the sigmoid, its derivative and x sigmoid(x); of a tanh GELU the tanh, its
# derivative and two products with x, and of its gated form the GELU.
_JAX_RESIDUALS = {"swiglu": 3.0, "gelu": 4.0, "geglu": 5.0, "relu2": 1.5}
_EXACT_BYTES = 4.0

# Functions whose backward pass needs nothing of the forward one, and those that read the output.
_SAVES_NOTHING = frozenset({"add", "rope", "scale", "dropout", "sub", "neg"})
_SAVES_OUTPUT = frozenset({"sigmoid", "tanh", "exp", "relu"})


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel launch.

    Parameters
    ----------
    unit : {"gemm", "batched", "attention", "biased_attention", "memory"}
        A product with weights, a product of activations, fused attention (with a bias added to
        its scores: another kernel), or a pass over memory.
    flops, bytes : float
    shape : tuple of float
        Products: how many of them, and rows, columns and summed length of each. Attention:
        batch times heads, queries, keys, head dimension.
    cast : float
        Elements that are converted first where the product runs in fp8.
    added_bytes : float
        Moved beside ``bytes`` to add a gradient of weights to those of other micro-batches:
        as many however few tokens there are, and as wide whatever the product runs in.
    launches : float
        In units of what the host needs to issue a kernel.
    at_once : float
        How many products of a group share the device's units at a time.
    """

    unit: Unit
    flops: float
    bytes: float
    shape: tuple[float, ...] = ()
    cast: float = 0.0
    added_bytes: float = 0.0
    launches: float = 1.0
    at_once: float = math.inf


@dataclass(frozen=True, slots=True)
class Accumulation:
    """Where a micro-batch's gradients of weights are added up.

    Parameters
    ----------
    bytes : float
        Of an element of the sum; 0: they are written once and nothing is added up.
    fused : bool
        Whether the product reads and writes the sum (Megatron-LM's
        ``gradient_accumulation_fusion``), or a pass over memory adds what it wrote.
    """

    bytes: float = 0.0
    fused: bool = True


WRITTEN_ONCE = Accumulation()

LOOPED = 0.2
"""Of what issuing a kernel takes, what one more takes in a loop of the library: about a call of
cuBLASLt, 13 of the 63 microseconds in which PyTorch and Megatron-LM issue one."""

CONVERTING = 3.0
"""Kernels of a conversion to less than 16 bits: scales are found, elements converted, and scales
laid out as the product reads them."""

STREAMS = 4.0
"""On which Transformer Engine runs the products of a group (``_NUM_STREAMS``, recalled)."""

ROUTING = {"router": (7.0, 5.0), "dispatch": (8.0, 3.0), "combine": (3.0, 2.0)}
"""Kernels of both passes beside the one that counts for traffic, as Megatron-LM routes in eager
mode: casts, top-k, normalisation, maps and auxiliary loss; counts of tokens per expert and rank,
their copies to the host, permutation; its inverse and the probabilities. Of what PyTorch launches
(by its code, some 70 in a layer) two fifths, as few as of a dense layer's."""


@dataclass(frozen=True, slots=True)
class Launching:
    """How the host issues a layer's kernels.

    Parameters
    ----------
    is_eager : bool
        Whether tokens are routed by kernels issued one by one, and every expert's products (and
        in less than 16 bits the conversions of their operands) are launched each for itself, as
        Transformer Engine's grouped products are. Else each operator issues what moves its bytes.
    casts : float
        Bytes moved to convert an operand over those that its precision needs; 0: in 16 bits.
    is_captured : bool
        Whether CUDA graphs replay attention, norms and the router of every layer.
    """

    is_eager: bool = False
    casts: float = 0.0
    is_captured: bool = False


PLAIN_LAUNCHES = Launching()


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator on one rank for one micro-batch.

    Parameters
    ----------
    name, op : str
        Of its node.
    forward, backward : tuple of Kernel
    kept : tuple of (str, float)
        Tensors saved for backward and their bytes.
    parameters : float
        Elements on this rank.
    core : bool
        Whether selective recomputation runs it again.
    buffer_bytes : float
        Of a collective: the whole buffer.
    """

    name: str
    op: str
    forward: tuple[Kernel, ...]
    backward: tuple[Kernel, ...]
    kept: tuple[tuple[str, float], ...]
    parameters: float
    core: bool
    buffer_bytes: float = 0.0

    @property
    def flops(self) -> float:
        """Of the forward pass."""
        return sum(kernel.flops for kernel in self.forward)

    @property
    def bytes(self) -> float:
        """Read and written in the forward pass."""
        return sum(kernel.bytes for kernel in self.forward)


def operators(
    graph: Graph,
    sizes: Sizes,
    width: float,
    accumulation: Accumulation = WRITTEN_ONCE,
    launching: Launching = PLAIN_LAUNCHES,
    *,
    jax: bool = False,
) -> tuple[Operator, ...]:
    """All operators of a graph at sizes, views left out.

    Projections that run together have their kernels at the first of them.

    Parameters
    ----------
    sizes : mapping of symbol to size
    width : float
        Bytes per activation or weight element.
    accumulation : Accumulation
    launching : Launching
    jax : bool
        Whether backward keeps what it does in JAX, else as in PyTorch.
    """
    wider = grouped((node.together, node) for node in graph.nodes if node.together)
    return tuple(
        _operator(graph, node, wider.get(node.name, []), sizes, width, accumulation, launching, jax)
        for node in graph.nodes
        if node.op not in ("input", "reshape")
    )


def issued(kernels: Iterable[Kernel]) -> float:
    """Return what the host does to issue kernels, in units of one kernel's."""
    return sum(kernel.launches for kernel in kernels)


def kept_bytes(
    evaluated: Sequence[Operator],
    again: Collection[str] = (),
    freed: Collection[str] = (),
) -> float:
    """Bytes kept from forward to backward by a layer's operators, shared tensors once.

    Parameters
    ----------
    again : collection of str
        Operators that run again in backward: what they make for each other is left out.
    freed : collection of str
        Those of them whose output is left out whoever reads it, copies in fp8 excepted.
    """
    tensors = {
        name: size
        for operator in evaluated
        for name, size in operator.kept
        if name not in freed and not (operator.name in again and name.split(":")[0] in again)
    }
    return sum(tensors.values())


def _operator(
    graph: Graph,
    node: Node,
    wider: list[Node],
    sizes: Sizes,
    width: float,
    accumulation: Accumulation,
    launching: Launching,
    jax: bool,
) -> Operator:
    inputs = graph.inputs(node)
    if node.op == "collective":
        size = count(node.shape, sizes, node.split) * width
        return Operator(node.name, node.op, (), (), (), 0.0, node.core, size)
    forward, backward = ((), ()) if node.together else _kernels(node, inputs, wider, sizes, width)
    weights = weight_count(node, sizes)
    if accumulation.bytes and backward and node.op in ("linear", "grouped_linear", "embedding"):
        elements = weights + sum(weight_count(entry, sizes) for entry in wider)
        backward = _added_up(node, backward, elements, width, accumulation)
    tensors = tuple(_kept(graph, node, sizes, width, jax))
    return Operator(
        node.name,
        node.op,
        _launched(node, forward, 0, launching),
        _launched(node, backward, 1, launching),
        tensors,
        weights,
        node.core,
    )


def _launched(
    node: Node, kernels: tuple[Kernel, ...], which: int, launching: Launching
) -> tuple[Kernel, ...]:
    """Return kernels of a direction (0: forward) with what the host does to issue them."""
    last = node.name.rpartition(".")[2]
    is_captured = launching.is_captured and (
        last in ("router", "scores") or not node.name.startswith(("experts", "mlp"))
    )
    casts = launching.casts or 1.0
    more = ROUTING.get(last, (0.0, 0.0))[which] if launching.is_eager else 0.0
    is_looped = launching.is_eager and node.op == "grouped_linear"
    if not (is_captured or more or is_looped) and casts == 1.0:
        return kernels
    issued = []
    for kernel in kernels:
        number = 1.0 + more
        if is_looped and kernel.unit == "gemm":
            conversions = CONVERTING * (launching.casts > 0.0 and kernel.cast > 0.0)
            number += LOOPED * ((1.0 + conversions) * kernel.shape[0] - 1.0)
            kernel = replace(kernel, at_once=STREAMS)
        issued.append(
            replace(kernel, cast=kernel.cast * casts, launches=0.0 if is_captured else number)
        )
        more = 0.0  # once an operator
    return tuple(issued)


def _added_up(
    node: Node,
    backward: tuple[Kernel, ...],
    elements: float,
    width: float,
    accumulation: Accumulation,
) -> tuple[Kernel, ...]:
    """Return the kernels of a backward pass that also adds the weights' gradients to their sum."""
    per_element = 2.0 * accumulation.bytes
    if accumulation.fused and node.op != "embedding":  # the sum is written in place of the gradient
        added_bytes = elements * (per_element - width)
        return (*backward[:-1], replace(backward[-1], added_bytes=added_bytes))
    # An embedding's gradient is a tensor of all rows, cleared before tokens' are written.
    per_element += 2.0 * width if node.op == "embedding" else width
    return (Kernel("memory", 0.0, 0.0, added_bytes=elements * per_element), *backward)


def _kernels(
    node: Node, inputs: list[Node], wider: list[Node], sizes: Sizes, width: float
) -> tuple[tuple[Kernel, ...], tuple[Kernel, ...]]:
    if node.op in ("linear", "grouped_linear"):
        return _projection(node, wider, sizes, width)
    if node.op == "matmul":
        return _product(node, inputs, sizes, width)
    if node.op == "attention":
        return _attention(node, inputs, sizes, width)
    if node.op == "softmax" and not masks_fused(node, sizes):
        scores = count(node.shape, sizes, node.split)
        return (
            tuple(
                Kernel("memory", 0.0, score_bytes * scores)
                for score_bytes in _SOFTMAX_FORWARD_BYTES
            ),
            tuple(
                Kernel("memory", 0.0, score_bytes * scores)
                for score_bytes in _SOFTMAX_BACKWARD_BYTES
            ),
        )
    if node.op == "loss":
        logits = count(inputs[0].shape, sizes, node.split)
        return (
            (Kernel("memory", 0.0, _LOSS_FORWARD_BYTES * logits),),
            (Kernel("memory", 0.0, _LOSS_BACKWARD_BYTES * logits),),
        )
    written = count(node.shape, sizes, node.split)
    read = sum(count(entry.shape, sizes, node.split) for entry in inputs if not entry.is_tokens)
    again = read  # what backward reads besides the gradient
    gradients = read  # gradients that it writes
    masks = 0.0
    if node.op in ("embedding", "position"):
        read, again, gradients = written, written, written
    elif node.op == "softmax":
        again = written
    elif node.op in ("dispatch", "combine"):
        again = 0.0
    elif node.op in ("elementwise", "dropout") and _SAVES_NOTHING.issuperset(_functions(node)):
        again = 0.0
        masks = _MASK_BYTES * written if "dropout" in _functions(node) else 0.0
        if "add" in _functions(node):  # the gradient of a sum is handed on, and summed up once
            gradients = written
    forward = Kernel("memory", 0.0, width * (read + written) + masks)
    return (forward,), (Kernel("memory", 0.0, width * (written + again + gradients) + masks),)


def _projection(
    node: Node, wider: list[Node], sizes: Sizes, width: float
) -> tuple[tuple[Kernel, ...], tuple[Kernel, ...]]:
    weight = node.weights[0]
    inner = extent(weight[-1], sizes, node.split)
    columns = sum(
        extent(projection.weights[0][-2], sizes, projection.split) for projection in (node, *wider)
    )
    groups = count(weight[:-2], sizes, node.split)
    rows = count(node.shape[:-1], sizes, node.split) / groups

    def product(m: float, n: float, k: float, cast: float) -> Kernel:
        traffic = width * groups * (m * k + k * n + m * n)
        return Kernel("gemm", 2.0 * groups * m * n * k, traffic, (groups, m, n, k), groups * cast)

    # Inputs and gradients of outputs are cast once, for both products that read them; weights
    # are cast once for many micro-batches.
    gradients = product(rows, inner, columns, rows * columns), product(columns, inner, rows, 0.0)
    forward = (product(rows, columns, inner, rows * inner),)
    if node.function == SORTED:  # once per direction, tokens and their gradients alike
        tokens = inner if "hidden" in weight[-1] else columns
        copy = Kernel("memory", 0.0, 2.0 * width * groups * rows * tokens)
        return (copy, *forward), (copy, *gradients)
    return forward, gradients


def _product(
    node: Node, inputs: list[Node], sizes: Sizes, width: float
) -> tuple[tuple[Kernel, ...], tuple[Kernel, ...]]:
    operand = inputs[0].shape
    *batch, rows_dim, columns_dim = node.shape
    groups = count(batch, sizes, node.split)
    rows = extent(rows_dim, sizes, node.split)
    columns = extent(columns_dim, sizes, node.split)
    inner = extent(operand[-1], sizes, node.split)

    def product(m: float, n: float, k: float) -> Kernel:
        traffic = width * groups * (m * k + k * n + m * n)
        return Kernel("batched", 2.0 * groups * m * n * k, traffic, (groups, m, n, k))

    return (
        (product(rows, columns, inner),),
        (product(rows, inner, columns), product(inner, columns, rows)),
    )


def _attention(
    node: Node, inputs: list[Node], sizes: Sizes, width: float
) -> tuple[tuple[Kernel, ...], tuple[Kernel, ...]]:
    query, value = inputs[0], inputs[-1]
    lengths = [extent(entry.shape[-1], sizes) for entry in inputs]
    scored = lengths[0] + (lengths[1] if len(inputs) == 5 else 0.0)
    groups = count(query.shape[:-2], sizes, node.split)
    rows = extent(query.shape[-2], sizes, node.split)
    keys = sizes["keys"]
    window = 0.0 if node.full or node.function == "index" else sizes.get("window", 0.0)
    seen = _keys_seen(keys, window, causal=node.causal)
    if node.function == "delta":
        keys = seen = _keys_of_state(scored, lengths[-1])
    flops = 2.0 * groups * rows * seen * (scored + lengths[-1])
    without_cp = tuple(entry for entry in node.split if entry.axis != "cp")
    queries = inputs[: len(inputs) // 2]  # with their part of the position, where they have one
    operands = sum(count(entry.shape, sizes, without_cp) for entry in inputs[len(queries) :])
    queries_moved = sum(count(entry.shape, sizes, node.split) for entry in queries)
    queries_moved += groups * rows * lengths[-1]
    traffic = width * (queries_moved + operands)
    shape = (groups, rows, keys, (scored + extent(value.shape[-1], sizes)) / 2)
    # Backward computes the scores again and four products of their size.
    unit: Unit = "biased_attention" if node.function == "alibi" else "attention"
    return (
        (Kernel(unit, flops, traffic, shape),),
        (Kernel(unit, 2.5 * flops, 2.0 * traffic, shape),),
    )


def _keys_seen(keys: float, window: float, *, causal: bool) -> float:
    """Keys that a query sees on average.

    Examples
    --------
    >>> _keys_seen(8.0, 0.0, causal=True), _keys_seen(8.0, 4.0, causal=True)
    (4.0, 3.0)
    """
    if not causal:
        return keys
    return keys / 2.0 if not window or window >= keys else window - window * window / (2.0 * keys)


def _keys_of_state(key: float, value: float) -> float:
    """Keys that cost as much as a token's work on the state of the gated delta rule.

    In chunks of c tokens: the state is read twice and updated once, 6 k v; inside a chunk keys meet
    keys and queries, and three products follow, 2 c (3 k + 2 v) (Yang et al. 2024,
    arXiv:2412.06464, section 3.3).

    Examples
    --------
    >>> _keys_of_state(128.0, 128.0)
    352.0
    """
    chunked = 2.0 * _CHUNK * (3.0 * key + 2.0 * value)
    return (6.0 * key * value + chunked) / (2.0 * (key + value))


def _kept(
    graph: Graph, node: Node, sizes: Sizes, width: float, jax: bool
) -> list[tuple[str, float]]:
    """Return what backward reads again: tensors by the name of who made them."""
    tensors: list[tuple[str, float]] = []

    def save(entry: Node) -> None:
        source = graph.source(entry)
        if not source.is_tokens:  # a few bytes per token
            tensors.append((source.name, width * held_elements(graph, source, node, sizes)))

    inputs = graph.inputs(node)
    written = count(node.shape, sizes, node.split)
    if jax and node.op == "norm":
        tensors.append((f"{node.name}:exact", _EXACT_BYTES * written))
        tensors.append((f"{node.name}:unscaled", width * written))
    elif node.op in ("linear", "grouped_linear", "norm", "matmul"):
        for entry in inputs:
            save(entry)
    elif node.op == "attention":
        for entry in (*inputs, node):
            save(entry)
        if jax:
            tensors.append((f"{node.name}:transposed", width * written))
        tensors.append(
            (
                f"{node.name}:statistics",
                _STATISTIC_BYTES * count(inputs[0].shape[:-1], sizes, node.split),
            )
        )
    elif node.op == "softmax":
        save(node)
    elif node.op == "loss":
        tensors.append(
            (f"{node.name}:probabilities", 4.0 * count(inputs[0].shape, sizes, node.split))
        )
    elif node.op == "combine" and node.function != SUMMED:  # for the probabilities' gradients
        save(inputs[0])
    elif node.op in ("elementwise", "dropout"):
        functions = _functions(node)
        if "dropout" in functions:
            tensors.append((f"{node.name}:mask", _MASK_BYTES * written))
        if any(name in _SAVES_OUTPUT for name in functions):
            save(node)
        if not all(name in _SAVES_NOTHING or name in _SAVES_OUTPUT for name in functions):
            for entry in inputs:
                save(entry)
            extra = sum(_JAX_RESIDUALS.get(name, 0.0) for name in functions) if jax else 0.0
            tensors.append((f"{node.name}:derivatives", width * extra * written))
    return tensors


def held_elements(graph: Graph, source: Node, reader: Node, sizes: Sizes) -> float:
    """Elements that a rank keeps of a tensor."""
    if source.op != "collective":
        return count(source.shape, sizes, source.split)
    if source.forward == ("all_to_all",):  # a rank keeps what arrives: for it, or for its experts
        load = tuple(entry for entry in reader.split if entry.axis == "load")
        rest = tuple(entry for entry in source.split if entry.axis != "load")
        return count(source.shape, sizes, rest + load)
    elements = count(source.shape, sizes, source.split)
    if source.forward != ("reduce_scatter",):
        return elements
    return elements / max(
        entry.ranks for entry in graph[source.inputs[0]].split if entry.axis == source.axis
    )


def masks_fused(node: Node, sizes: Sizes) -> bool:
    """Whether a softmax scales and masks the scores on its way."""
    return count(node.shape[:-2], sizes, node.split) % SOFTMAX_MATRICES == 0


def _functions(node: Node) -> list[str]:
    return (node.function or node.op).split("+")
