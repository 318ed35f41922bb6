"""The chain of layers of a model under a strategy: what one rank runs, holds and sends.

An embedding, equal blocks (in a mixture of experts dense ones first, where the model has any),
and a head: final norm, vocabulary projection, loss. Each is its family's traced graph
(`nest_core.workload.graph`), rewritten by the strategies and evaluated at the model's sizes.

Gradients of activations: what backward holds beside what forward kept. Bytes per micro-batch.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from nest_core.documents import kept_per_edition, require
from nest_core.workload.graph import Graph, Node, Sizes, count
from nest_core.workload.models import Model, sizes
from nest_core.workload.operators import (
    PLAIN_LAUNCHES,
    WRITTEN_ONCE,
    Operator,
    held_elements,
    kept_bytes,
    operators,
)
from nest_core.workload.recomputation import (
    MODULES,
    WITHOUT_OUTPUT,
    module_nodes,
    modules_of,
    run_again,
    saved_outputs,
)
from nest_core.workload.strategies import STRATEGIES, Rewrite, Strategy, without_experts

__all__ = [
    "Chain",
    "Collective",
    "Layer",
    "Module",
    "chain",
    "check_experts",
    "check_modules",
    "collectives_of",
    "gradient_bytes",
    "layer_graph",
]


def gradient_bytes(graph: Graph, sizes: Sizes, width: float) -> float:
    """Return the most that gradients of activations hold at once while a layer's backward runs.

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
    return written * (2 if len(functions) > 1 else 1) if "add" in functions else read + written


Axis = Literal["tp", "cp", "ep", "etp"]


@dataclass(frozen=True, slots=True)
class Collective:
    """Equal collectives of a layer in one axis's group, per micro-batch.

    Parameters
    ----------
    axis : {"tp", "cp", "ep", "etp"}
    op : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "ring"}
        A ring passes every rank's part once around.
    bytes : float
        The whole buffer; what one rank sends for an all-to-all.
    forward, backward : int
        How many in each pass.
    """

    axis: Axis
    op: Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "ring"]
    bytes: float
    forward: int
    backward: int


@dataclass(frozen=True, slots=True)
class Module:
    """What of a layer a module of `MODULES` runs again.

    Parameters
    ----------
    name : str
    operators : frozenset of str
    collectives : tuple of Collective
        Their forward passes run again.
    kept_bytes : float or None
        What of the whole layer stays; None: all that these do not make for each other.
    """

    name: str
    operators: frozenset[str]
    collectives: tuple[Collective, ...]
    kept_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer on one rank for one micro-batch.

    Parameters
    ----------
    kind : str
        A key of `Model.kinds`.
    operators : tuple of Operator
        Without collectives.
    collectives : tuple of Collective
    parameters : float
        Elements that this rank holds, experts left out.
    expert_parameters : float
        Elements of experts on this rank.
    tied_parameters : float
        Those of them that are a second copy of the embedding's when the two layers lie in
        different stages, and the same tensor when they share one.
    input_bytes : float
        Checkpoint kept under full recomputation.
    output_bytes : float
        Sent to the next stage by this rank.
    recomputable : bool
        Whether recomputation applies.
    gradient_bytes : float
        The most that gradients of activations hold at once in backward.
    modules : tuple of Module
        Those of `MODULES` that it has, where recomputation applies; and ``full`` where that is
        not all of the layer.
    """

    kind: str
    operators: tuple[Operator, ...]
    collectives: tuple[Collective, ...]
    parameters: float
    expert_parameters: float
    tied_parameters: float
    input_bytes: float
    output_bytes: float
    recomputable: bool
    gradient_bytes: float = 0.0
    modules: tuple[Module, ...] = ()

    def replayed(self, recompute: str) -> tuple[tuple[Operator, ...], tuple[Collective, ...]]:
        """Operators and collectives whose forward pass runs again in backward."""
        modules = self._named(recompute)
        if recompute == "full" and not modules:
            return (self.operators, self.collectives) if self.recomputable else ((), ())
        again = frozenset().union(*(module.operators for module in modules))
        operators = tuple(operator for operator in self.operators if operator.name in again)
        return operators, tuple(call for module in modules for call in module.collectives)

    def _named(self, recompute: str) -> tuple[Module, ...]:
        names = modules_of(recompute) or (recompute,)
        return tuple(module for module in self.modules if module.name in names)

    def kept_bytes(self, recompute: str, *, operand_bytes: float = 2.0) -> float:
        """Bytes kept from forward to backward under a recomputation.

        Parameters
        ----------
        operand_bytes : float
            Of an element of the inputs that projections of blocks keep: below 2 they keep them
            as they multiply them, in 8 or 4 bits (Transformer Engine); the head's never are.
        """
        if recompute == "full" and self.recomputable:
            return self.input_bytes
        evaluated = self.operators
        if operand_bytes < 2.0 and self.recomputable:
            evaluated = tuple(_narrow(operator, operand_bytes / 2.0) for operator in evaluated)
        modules = self._named(recompute)
        if len(modules) == 1 and modules[0].kept_bytes is not None:
            return modules[0].kept_bytes
        again = frozenset().union(*(module.operators for module in modules))
        freed = (module.operators for module in modules if module.name in WITHOUT_OUTPUT)
        return kept_bytes(evaluated, again, frozenset().union(*freed))


@dataclass(frozen=True, slots=True)
class Chain:
    """Distinct layers with how often each stands in a row.

    Parameters
    ----------
    runs : tuple of (Layer, int)
        In model order.
    """

    runs: tuple[tuple[Layer, int], ...]

    @property
    def layers(self) -> int:
        """Length of the chain."""
        return sum(times for _, times in self.runs)


def chain(model: Model, strategy: Strategy) -> Chain:
    """Return the layers of a model under a strategy.

    Raises
    ------
    InputError
        If a degree does not divide what it must, or the family has no trace.

    Examples
    --------
    >>> toy = Model("toy", "llama", blocks=3, hidden=64, heads=4, kv_heads=4, head_dim=16,
    ...             ffn=256, vocabulary=100)
    >>> chain(toy, Strategy(sequence=8)).layers
    5
    """
    return Chain(
        tuple(
            (_evaluated(model, kind, _read(kind, strategy), tuple(STRATEGIES.values())), times)
            for kind, times in model.runs
        )
    )


def check_experts(model: Model, strategy: Strategy) -> None:
    """Refuse expert parallelism of a model without experts; InputError."""
    require(
        strategy.ep <= 1 or model.experts != 1,
        "ep",
        "must be 1 for a dense model, which has no experts",
        strategy.ep,
        "leave it out",
    )


def check_modules(model: Model, recomputations: Iterable[str], field: str) -> None:
    """Refuse recomputation of modules that no block of the model has; InputError."""
    blocks = [model.trace[kind] for kind in model.kinds if kind.endswith("block")]
    here = [name for name in MODULES if any(module_nodes(block, name) for block in blocks)]
    for name in (name for recompute in recomputations for name in modules_of(recompute)):
        require(
            name in here,
            field,
            f"must name modules that {model.name} has",
            name,
            "pick " + ", ".join(here),
        )


def layer_graph(model: Model, kind: str, strategy: Strategy) -> Graph:
    """Return what one rank runs of a kind of layer, as a graph with its collectives."""
    # Rewrites do not depend on how many sequences a micro-batch holds.
    shape = replace(
        _read(kind, strategy),
        micro_batch=1,
        width=2.0,
        accumulation=WRITTEN_ONCE,
        launching=PLAIN_LAUNCHES,
    )
    return _rewritten(model, kind, shape, tuple(STRATEGIES.values()))


def _read(kind: str, strategy: Strategy) -> Strategy:
    """Return what a kind of layer reads of a strategy: without experts, not how those are
    divided.
    """
    return strategy if kind.endswith("moe_block") else replace(strategy, ep=1, etp=strategy.tp)


@kept_per_edition(8192)
def _rewritten(
    model: Model, kind: str, strategy: Strategy, registered: tuple[Rewrite, ...]
) -> Graph:
    """Return what `rewritten` makes of a layer; strategies that begin alike share the steps
    there.
    """
    if not registered:
        return model.trace[kind]
    *earlier, last = registered
    before = _rewritten(model, kind, without_experts(last, strategy), tuple(earlier))
    return last(before, strategy, sizes(model, 1, strategy.sequence))


@kept_per_edition(2048)  # 5 to 9 KiB each; a search asks for a thousand, and the next for the same
def _evaluated(
    model: Model, kind: str, strategy: Strategy, registered: tuple[Rewrite, ...]
) -> Layer:
    del registered  # `layer_graph` reads them
    at = sizes(model, strategy.micro_batch, strategy.sequence)
    graph = layer_graph(model, kind, strategy)
    evaluated = operators(
        graph,
        at,
        strategy.width,
        strategy.accumulation,
        strategy.launching,
        jax=strategy.checkpoint == "jax",
    )
    entry, last = graph.nodes[0], graph.output
    routed = sum(operator.parameters for operator in evaluated if operator.op == "grouped_linear")
    is_tied = kind == "head" and model.tied
    tied = count(graph["logits"].weights[0], at, graph["logits"].split) if is_tied else 0.0
    inner = kind.endswith("block")
    # A last collective says its whole buffer; what leaves is divided like what enters.
    return Layer(
        kind=kind,
        operators=tuple(operator for operator in evaluated if operator.op != "collective"),
        collectives=collectives_of(graph, evaluated),
        parameters=sum(operator.parameters for operator in evaluated) - routed,
        expert_parameters=routed,
        tied_parameters=tied,
        input_bytes=strategy.width * count(entry.shape, at, entry.split) if inner else 0.0,
        output_bytes=0.0 if kind == "head" else strategy.width * count(last.shape, at, entry.split),
        recomputable=inner,
        gradient_bytes=gradient_bytes(graph, at, strategy.width),
        modules=_modules(graph, evaluated, at, strategy) if inner else (),
    )


def _modules(
    graph: Graph, evaluated: tuple[Operator, ...], at: Sizes, strategy: Strategy
) -> tuple[Module, ...]:
    by_operator = strategy.checkpoint != "whole"
    modules = list(_by_operator(graph, evaluated, at, strategy)) if by_operator else []
    for name in MODULES[1:] if by_operator else MODULES:
        if again := module_nodes(graph, name):
            calls = collectives_of(graph, tuple(op for op in evaluated if op.name in again))
            modules.append(Module(name, again, calls))
    return tuple(modules)


def _by_operator(
    graph: Graph, evaluated: tuple[Operator, ...], at: Sizes, strategy: Strategy
) -> Iterator[Module]:
    """Full and selective recomputation as checkpoints of PyTorch or JAX run them."""
    drawn = (":mask",) if strategy.checkpoint == "jax" else ()  # by a key of its own
    saved = saved_outputs(graph, strategy.checkpoint, run_again(graph, evaluated, (), drawn))
    for name, stays in (("full", ()), ("core_attn", saved)):
        again = run_again(graph, evaluated, stays, drawn)
        calls = collectives_of(graph, tuple(op for op in evaluated if op.name in again))
        nodes = (graph[node] for node in (graph.nodes[0].name, *stays))
        boundary_bytes = sum(
            strategy.width * held_elements(graph, node, node, at) for node in nodes
        )
        yield Module(name, again, calls, min(boundary_bytes, kept_bytes(evaluated)))


def _narrow(operator: Operator, share: float) -> Operator:
    """Return a projection of 16-bit activations with its input kept narrow, a tensor of its own."""
    if operator.op not in ("linear", "grouped_linear"):
        return operator
    tensors = tuple((f"{name}:narrow", size * share) for name, size in operator.kept)
    return replace(operator, kept=tensors)


def collectives_of(graph: Graph, evaluated: tuple[Operator, ...]) -> tuple[Collective, ...]:
    """Return calls of a layer, equal ones together."""
    calls: dict[tuple[str, str, float], list[int]] = {}
    for operator in evaluated:
        if operator.op != "collective":
            continue
        node = graph[operator.name]
        for which, names in enumerate((node.forward, node.backward)):
            for name in names:
                calls.setdefault((node.axis, name, operator.buffer_bytes), [0, 0])[which] += 1
    return tuple(
        Collective(axis, op, size, *times)  # type: ignore[arg-type]  # names checked by tests
        for (axis, op, size), times in calls.items()
    )
