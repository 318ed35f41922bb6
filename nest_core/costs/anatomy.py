"""The anatomy of a layer: what every operator of one rank takes, and what bounds it.

It is the content of a layer's row in a `LayerTable`, before it is summed up: the graph that
strategies made, the operators on it, the estimator's seconds for their kernels, and which of
the accelerator's limits each of them meets. Per micro-batch; forward, backward, and what
recomputation runs again.

An operator is bound by *arithmetic* or by *memory* bandwidth, whichever takes longer. Issuing
kernels goes on beside the device's work, so the *host* bounds operators only in a layer that
takes longer to issue than to run, and in it those that themselves do.
"""

from dataclasses import dataclass
from typing import Literal

from nest_core.costs.tables import element_bytes
from nest_core.documents import (
    humanise,
    humanise_bytes,
    humanise_seconds,
    kept_per_edition,
    require,
)
from nest_core.hardware import Accelerator, Direction, bound, seconds, time_in_words
from nest_core.workload import (
    WITHOUT_OUTPUT,
    Graph,
    Kernel,
    Model,
    Node,
    Operator,
    Sizes,
    Strategy,
    count,
    elementwise_flops,
    gradients_in_words,
    issued,
    kept_in_words,
    kernel_in_words,
    layer_graph,
    method_of,
    module_nodes,
    modules_of,
    operators,
    recomputation,
    shape_in_words,
    sizes,
)

__all__ = [
    "BOUNDS",
    "Anatomy",
    "Exchange",
    "OperatorBound",
    "OperatorPart",
    "OperatorPass",
    "anatomy",
    "calls_in_words",
]

OperatorBound = Literal["arithmetic", "memory", "host"]

BOUNDS: tuple[OperatorBound, ...] = ("arithmetic", "memory", "host")


@dataclass(frozen=True, slots=True)
class OperatorPass:
    """One pass of an operator.

    Parameters
    ----------
    kernels : tuple of Kernel
    seconds : float
        On the device.
    flops, bytes : float
        FLOP that the model counts; bytes moved.
    drawn_flops : float
        The same, or for element-wise work its rough arithmetic, for a roofline.
    words : tuple of str
        The formulas with the numbers filled in.
    """

    kernels: tuple[Kernel, ...]
    seconds: float
    flops: float
    bytes: float
    drawn_flops: float
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OperatorPart:
    """One operator of a layer.

    Parameters
    ----------
    node : Node
    operator : Operator
    forward, backward : OperatorPass
    bound : {"arithmetic", "memory", "host"}
        Of the larger part of its time.
    replayed : bool
        Whether recomputation runs its forward pass again.
    kept_bytes : float
        From forward to backward under the recomputation chosen; a tensor that several operators
        save counts with the first.
    where : tuple of str
        Its lengths in symbols and numbers.
    """

    node: Node
    operator: Operator
    forward: OperatorPass
    backward: OperatorPass
    bound: OperatorBound
    replayed: bool
    kept_bytes: float
    where: tuple[str, ...]

    @property
    def name(self) -> str:
        """Of its node."""
        return self.node.name

    @property
    def runs(self) -> bool:
        """Whether it has kernels of its own; projections that run together share the first's."""
        return bool(self.forward.kernels)

    @property
    def seconds(self) -> float:
        """On the device: forward, backward, and forward again where it is replayed."""
        return self.forward.seconds * (1 + self.replayed) + self.backward.seconds

    @property
    def words(self) -> tuple[str, ...]:
        """Everything about it, line by line."""
        replay = ", the forward pass twice" if self.replayed else ""
        if not self.runs:
            return (*self.where, kept_in_words(self.operator))
        return (
            *self.where,
            *self.forward.words,
            f"backward {humanise_seconds(self.backward.seconds)}"
            f" for {_amount(self.backward)}; in all {humanise_seconds(self.seconds)}{replay}",
            kept_in_words(self.operator),
        )


@dataclass(frozen=True, slots=True)
class Exchange:
    """One collective of a layer.

    Parameters
    ----------
    node : Node
    bytes : float
        The whole buffer; of an all-to-all what one rank sends.
    ranks : int
        Of its group.
    """

    node: Node
    bytes: float
    ranks: int

    @property
    def words(self) -> tuple[str, ...]:
        """What runs in which pass, and how much it moves."""
        return (
            f"forward: {calls_in_words(self.node.forward)}; "
            f"backward: {calls_in_words(self.node.backward)}",
            f"buffer: {humanise_bytes(self.bytes)} among {self.ranks} {self.node.axis} ranks",
        )


@dataclass(frozen=True, slots=True, eq=False)
class Anatomy:
    """A layer on one rank for one micro-batch.

    Parameters
    ----------
    model : Model
    kind : str
    strategy : Strategy
    accelerator : Accelerator
    precision, recompute : str
    graph : Graph
    parts : tuple of OperatorPart
        In execution order.
    exchanges : tuple of Exchange
    host_s : float
        What the host needs to issue all kernels and collectives, replays with them.
    kept_bytes : float
        From forward to backward.
    """

    model: Model
    kind: str
    strategy: Strategy
    accelerator: Accelerator
    precision: str
    recompute: str
    graph: Graph
    parts: tuple[OperatorPart, ...]
    exchanges: tuple[Exchange, ...]
    host_s: float
    kept_bytes: float

    @property
    def device_s(self) -> float:
        """Seconds of all operators, without communication."""
        return sum(part.seconds for part in self.parts)

    @property
    def forward_s(self) -> float:
        """Of them the forward pass."""
        return sum(part.forward.seconds for part in self.parts)

    @property
    def backward_s(self) -> float:
        """Of them the backward pass."""
        return sum(part.backward.seconds for part in self.parts)

    @property
    def replay_s(self) -> float:
        """Of them what recomputation runs again."""
        return sum(part.forward.seconds for part in self.parts if part.replayed)

    @property
    def flops(self) -> float:
        """Forward and backward, nothing replayed."""
        return sum(part.forward.flops + part.backward.flops for part in self.parts)

    @property
    def parameters(self) -> float:
        """On this rank."""
        return sum(part.operator.parameters for part in self.parts)


@kept_per_edition(256)
def anatomy(
    model: Model,
    kind: str,
    strategy: Strategy,
    accelerator: Accelerator,
    precision: str,
    recompute: str = "none",
) -> Anatomy:
    """Take a layer apart.

    Parameters
    ----------
    kind : str
        One of the model's kinds of layers.
    recompute : str
        Of `RECOMPUTE`, or modules joined by ``+``; applies to blocks. A method of full
        recomputation is full: what it does with a layer that it runs again.

    Raises
    ------
    InputError
        If the model has no such layer, or a degree does not divide what it must.
    """
    kinds = list(model.kinds)
    require(
        kind in kinds,
        "layer",
        f"must be one that {model.name} has",
        kind,
        f"pick {', '.join(kinds)}",
    )
    recompute = recomputation(recompute)
    recompute = "full" if method_of(recompute)[0] else recompute
    require(
        precision in accelerator.precisions,
        "precision",
        f"must be one that {accelerator.name} computes in",
        precision,
        "pick " + ", ".join(accelerator.precisions),
    )
    require(
        element_bytes(precision) == strategy.width,
        "strategy.width",
        f"must be the bytes of an element in {precision}",
        strategy.width,
        f"give {element_bytes(precision):g}",
    )
    graph = layer_graph(model, kind, strategy)
    at = sizes(model, strategy.micro_batch, strategy.sequence)
    entries = operators(
        graph,
        at,
        strategy.width,
        strategy.accumulation,
        strategy.launching,
        jax=strategy.checkpoint == "jax",
    )
    again = recompute if kind.endswith("block") else "none"
    running = [operator for operator in entries if operator.op != "collective"]
    replays = {name for module in modules_of(again) for name in module_nodes(graph, module)}
    if again == "full":
        replays = {op.name for op in entries}
    kept_of = _kept(graph, running, again, replays)
    entry = graph.nodes[0]
    checkpoint_bytes = strategy.width * count(entry.shape, at, entry.split)
    issue = accelerator.family.host_s
    host_s = issue * _launches(graph, running, replays)
    drawn = [_passes(graph, op, at, strategy.width, accelerator, precision) for op in running]
    device_s = sum(
        forward.seconds * (1 + (op.name in replays)) + backward.seconds
        for op, (forward, backward) in zip(running, drawn, strict=True)
    )
    parts = tuple(
        OperatorPart(
            node=graph[op.name],
            operator=op,
            forward=forward,
            backward=backward,
            bound=_bound(
                forward, backward, accelerator, precision, issue if host_s > device_s else 0.0
            ),
            replayed=op.name in replays,
            kept_bytes=kept_of[op.name],
            where=shape_in_words(graph, graph[op.name], at),
        )
        for op, (forward, backward) in zip(running, drawn, strict=True)
    )
    degrees = {"tp": strategy.tp, "cp": strategy.cp, "ep": strategy.ep, "etp": strategy.etp}
    exchanges = tuple(
        Exchange(graph[op.name], op.buffer_bytes, degrees[graph[op.name].axis])
        for op in entries
        if op.op == "collective"
    )
    return Anatomy(
        model,
        kind,
        strategy,
        accelerator,
        precision,
        again,
        graph,
        parts,
        exchanges,
        host_s,
        checkpoint_bytes if again == "full" else sum(kept_of.values()),
    )


def _passes(
    graph: Graph,
    operator: Operator,
    at: Sizes,
    width: float,
    accelerator: Accelerator,
    precision: str,
) -> tuple[OperatorPass, OperatorPass]:
    node = graph[operator.name]
    rough = elementwise_flops(node, at, graph.inputs(node))
    passes = []
    both: tuple[tuple[Direction, tuple[Kernel, ...]], ...] = (
        ("forward", operator.forward),
        ("backward", operator.backward),
    )
    for backward, (direction, kernels) in enumerate(both):
        titles = gradients_in_words(kernels, node) if backward else ("forward",) * len(kernels)
        words: list[str] = []
        for title, kernel in zip(titles, kernels, strict=True):
            words += [title] if backward else []
            words += kernel_in_words(
                kernel, node, graph.inputs(node), at, width, backward=bool(backward)
            )
            words += time_in_words(kernel, accelerator, precision, node.op, direction)
        flops = sum(kernel.flops for kernel in kernels)
        passes.append(
            OperatorPass(
                kernels=kernels,
                seconds=sum(
                    seconds(kernel, accelerator, precision, node.op, direction)
                    for kernel in kernels
                ),
                flops=flops,
                bytes=sum(kernel.bytes for kernel in kernels),
                drawn_flops=flops or (rough * (1 + backward) if kernels else 0.0),
                words=tuple(words),
            )
        )
    return passes[0], passes[1]


def _bound(
    forward: OperatorPass,
    backward: OperatorPass,
    accelerator: Accelerator,
    precision: str,
    issue: float,
) -> OperatorBound:
    """Return what takes most of an operator's time; ``issue`` seconds per kernel, 0 if hidden."""
    kernels = forward.kernels + backward.kernels
    if kernels and issue * len(kernels) > forward.seconds + backward.seconds:
        return "host"
    spent = dict.fromkeys(("arithmetic", "memory"), 0.0)
    for kernel in kernels:
        spent[bound(kernel, accelerator, precision)] += seconds(kernel, accelerator, precision)
    return "memory" if spent["memory"] > spent["arithmetic"] else "arithmetic"


def _launches(graph: Graph, running: list[Operator], replays: set[str]) -> float:
    """Return what the host issues: kernels and collectives of both passes and of replays."""
    return sum(
        issued(op.forward) * (1 + (op.name in replays)) + issued(op.backward) for op in running
    ) + sum(
        len(node.forward) * (1 + (node.name in replays)) + len(node.backward)
        for node in graph.nodes
        if node.op == "collective"
    )


def _kept(
    graph: Graph, running: list[Operator], recompute: str, replays: set[str]
) -> dict[str, float]:
    """Bytes that each operator is the first to keep; under full recomputation its input only."""
    sizes = {operator.name: 0.0 for operator in running}
    if recompute == "full":
        return sizes
    freed = {
        name
        for module in modules_of(recompute)
        if module in WITHOUT_OUTPUT
        for name in module_nodes(graph, module)
    }
    seen = set(freed)
    for operator in running:
        for tensor, size in operator.kept:
            again = operator.name in replays and tensor.split(":")[0] in replays
            if not again and tensor not in seen:
                seen.add(tensor)
                sizes[operator.name] += size
    return sizes


def _amount(done: OperatorPass) -> str:
    return (
        f"{humanise(done.flops, 'FLOP')} and {humanise(done.bytes, 'B')}"
        if done.flops
        else humanise(done.bytes, "B")
    )


def calls_in_words(names: tuple[str, ...]) -> str:
    """Return the collectives of a pass, in their order."""
    return " and ".join(name.replace("_", "-") for name in names) or "nothing"
