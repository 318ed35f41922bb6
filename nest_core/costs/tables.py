"""Layer tables from a model on an accelerator: operators become seconds and bytes."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from nest_core.costs.problem import (
    AXES_OF_CALLS,
    KEPT_BYTES,
    Calls,
    LayerTable,
    StateBytes,
    with_methods,
)
from nest_core.documents.presets import edition, kept_per_edition, kept_within
from nest_core.hardware import NARROW, Accelerator, backward_seconds, forward_seconds, least_seconds
from nest_core.hardware import seconds as kernel_seconds
from nest_core.hardware.memory_rules import PLAIN_MEMORY, MemoryRules
from nest_core.network import Dispatch, FloatArray, Kind
from nest_core.workload import (
    RECOMPUTE,
    SOFTMAX_MATRICES,
    STRATEGIES,
    Collective,
    Graph,
    Kernel,
    Layer,
    Model,
    Operator,
    Strategy,
    chain,
    issued,
    method_of,
    operators,
    sizes,
)

__all__ = [
    "call_kind",
    "dispatch_of",
    "element_bytes",
    "layer_table",
    "mfu_convention",
    "model_flops",
    "state_bytes",
]

_ROUTER = "router"
"""What an operator's name ends in that scores experts, in every trace."""


def element_bytes(precision: str) -> float:
    """Bytes of one activation or weight element."""
    return 4.0 if precision in ("fp32", "tf32") else 2.0


def keeps_transposed(family: str, recipe: str) -> bool:
    """Whether software holds fp8 weights as they are and transposed.

    Products of Hopper read both operands along the summed dimension, so that forward and backward
    pass need a copy each (Transformer Engine, "Handling transposes"). Those of Blackwell read
    either way, and Transformer Engine then makes no transposed copy
    (``nvte_is_non_tn_fp8_gemm_supported``); but scales of blocks lie along one dimension, so
    that block-scaled weights are held once for each.
    """
    return family != "blackwell" or recipe == "blockwise"


def state_bytes(
    precision: str,
    optimizer: str,
    gradient_bytes: float = 0.0,
    *,
    transposed: bool = True,
    memory: MemoryRules = PLAIN_MEMORY,
) -> StateBytes:
    """Bytes per parameter of weights, gradients and optimizer states.

    Mixed precision keeps an fp32 master copy beside the 16-bit weights. Gradients are added up
    and reduced in fp32, but in 16 bits in fp16 training, where the optimizer step makes an fp32
    copy of them: 18 and 20 bytes with Adam ([1]_, "Distributed Optimizer"; [2]_ counts 16,
    without that copy). Adam has two moments in fp32, bf16 (``adam_bf16``, which also drops the
    master copy and has 16-bit gradients) or 8 bits [3]_; ``sgd`` has none. fp8 training holds
    weights in 8 bits [4]_, and where ``transposed`` a second time (`keeps_transposed`). They are
    sent in two bytes. Software that keeps 16-bit weights beside those needs two bytes more.

    Parameters
    ----------
    precision, optimizer : str
    gradient_bytes : float
        Per gradient element, 2 or 4; 0: as above.
    transposed : bool
    memory : MemoryRules
        Of the software: shards of fp32 masters take no copies, and some keeps second gradients.

    References
    ----------
    .. [1] Megatron Core developer guide: fp16 parameters and gradients 20 bytes, or 4 + 16 / d
           over d ranks; bf16 parameters and fp32 gradients 18, or 6 + 12 / d.
    .. [2] Rajbhandari et al., "ZeRO", 2020, section 3.1.
    .. [3] Dettmers et al., "8-bit optimizers via block-wise quantization", 2022.
    .. [4] Megatron-LM's ``--fp8-param-gather``: fp8 weights without 16-bit ones (recalled).

    Examples
    --------
    >>> state = state_bytes("fp16", "adam")
    >>> state.weights, state.gradients, state.optimizer, state.temporary
    (2.0, 2.0, 12.0, 4.0)
    """
    weights = element_bytes(precision)
    mixed = weights == 2.0
    pure = optimizer == "adam_bf16"
    usual = 2.0 if mixed and (pure or precision == "fp16") else 4.0
    gradients = gradient_bytes or usual
    master = 4.0 if mixed and not pure else 0.0
    moments = {"adam": 8.0, "adam_bf16": 4.0, "adam_8bit": 2.0, "sgd": 0.0}[optimizer]
    return StateBytes(
        weights,
        gradients,
        master + moments,
        second_gradients=memory.second_gradient_bytes(precision, weights),
        second_stages=memory.second_gradient_stages,
        reduced=weights if memory.xla else 0.0,
        temporary=4.0 if master and gradients < 4.0 and not memory.sharded_masters else 0.0,
        unheld=1.0 if precision == "fp8" and not transposed else 0.0,
    )


def dispatch_of(name: str, model: Model) -> Dispatch | None:
    """Where tokens are sent once only; None where a copy goes to every expert, or there is one."""
    return (
        None
        if name == "all_to_all" or model.experts == 1
        else Dispatch(
            model.experts,
            model.top_k,
            model.expert_groups,
            model.top_groups,
            name == "once_per_node",
        )
    )


def layer_table(
    model: Model,
    strategy: Strategy,
    accelerator: Accelerator,
    precision: str,
    recomputations: tuple[str, ...] = RECOMPUTE,
    memory: MemoryRules = PLAIN_MEMORY,
    *,
    bound: bool = False,
) -> LayerTable:
    """Return per-layer figures of a model under a strategy on an accelerator.

    Parameters
    ----------
    recomputations : tuple of str
        What rows stand for.
    memory : MemoryRules
        Of the software: what inputs are kept in, and what the loss holds.
    bound : bool
        Seconds that no micro-batch undercuts per sequence, of one with a single sequence.
    """
    return _table(
        (edition(), *STRATEGIES.values()),
        model,
        strategy,
        accelerator,
        precision,
        memory,
        recomputations,
        bound=bound,
    )


@kept_within(4096, KEPT_BYTES, LayerTable.size_bytes)
def _table(
    _kept_for: tuple[object, ...],
    model: Model,
    strategy: Strategy,
    accelerator: Accelerator,
    precision: str,
    memory: MemoryRules,
    recomputations: tuple[str, ...],
    *,
    bound: bool,
) -> LayerTable:
    stored = element_bytes(precision)
    multiplied = NARROW[precision].element_bytes if precision in NARROW else stored
    operand_bytes = memory.input_bytes(multiplied, stored)
    # Four sequences are a multiple of what the kernel of stored scores takes at once: none fewer do
    # better, and a bound has its kernels.
    shared = SOFTMAX_MATRICES if bound and strategy.attention == "unfused" else 1
    strategy = replace(strategy, micro_batch=strategy.micro_batch * shared)
    requested, layers = recomputations, chain(model, strategy)
    recomputations = tuple(name for name in requested if not method_of(name)[1])
    distinct = list({layer.kind: layer for layer, _ in layers.runs}.values())
    numbers = {layer.kind: number for number, layer in enumerate(distinct)}
    order = [numbers[layer.kind] for layer, times in layers.runs for _ in range(times)]

    def column(values: Sequence[float]) -> FloatArray:
        return np.array(values, dtype=np.float64)[order]

    def rows(values: Sequence[Sequence[float]]) -> FloatArray:
        return np.array(values, dtype=np.float64)[order].T

    times = [
        _times(layer, accelerator, precision, recomputations, bound=bound) for layer in distinct
    ]
    kept_bytes = [
        [layer.kept_bytes(name, operand_bytes=operand_bytes) for name in recomputations]
        for layer in distinct
    ]
    plain = [layer.kept_bytes("none", operand_bytes=operand_bytes) for layer in distinct]
    working = rows(
        [
            [
                plain_bytes
                - (0.0 if memory.xla and layer.recomputable else size)
                + layer.gradient_bytes
                for size in row
            ]
            for plain_bytes, row, layer in zip(plain, kept_bytes, distinct, strict=True)
        ]
    )
    logits = strategy.micro_batch * strategy.sequence * model.vocabulary
    working[:, -1] += memory.loss_bytes_per_logit * logits / (strategy.tp * strategy.cp)
    boundary = np.zeros(layers.layers + 1)
    boundary[1:-1] = column([layer.output_bytes for layer in distinct])[:-1]
    calls = {
        axis: Calls(
            call_kind(axis, strategy),
            column([sum(number for number, _ in _calls(layer, axis)) for layer in distinct]),
            column([sum(size for _, size in _calls(layer, axis)) for layer in distinct]),
            rows([_replayed(layer, axis, recomputations, 0) for layer in distinct]),
            rows([_replayed(layer, axis, recomputations, 1) for layer in distinct]),
        )
        for axis in AXES_OF_CALLS
        if any(call.axis == axis for layer in distinct for call in layer.collectives)
    }
    result = LayerTable(
        compute_s=column([forward + backward for forward, backward, _, _, _ in times]),
        forward_s=column([forward for forward, _, _, _, _ in times]),
        weight_s=column([weight for _, _, weight, _, _ in times]),
        replay_s=rows([replay for _, _, _, replay, _ in times]),
        launch_s=rows([launch for _, _, _, _, launch in times]),
        calls=calls,
        parameters=column([layer.parameters for layer in distinct]),
        expert_parameters=column([layer.expert_parameters for layer in distinct]),
        tied_parameters=distinct[-1].tied_parameters,
        kept_bytes=rows(kept_bytes),
        working_bytes=working,
        boundary_bytes=boundary,
    )
    return with_methods(_shared(result, shared), requested)


def _shared(table: LayerTable, sequences: int) -> LayerTable:
    """Return a sequence's part of what a micro-batch takes, its calls and launches left whole."""
    if sequences == 1:
        return table
    parts = ("compute_s", "forward_s", "weight_s", "replay_s")
    parts_of_job = ("kept_bytes", "working_bytes", "boundary_bytes")
    calls = {
        axis: replace(
            call, bytes=call.bytes / sequences, replay_bytes=call.replay_bytes / sequences
        )
        for axis, call in table.calls.items()
    }
    figures = {name: getattr(table, name) / sequences for name in (*parts, *parts_of_job)}
    return replace(table, calls=calls, **figures)


def _times(
    layer: Layer,
    accelerator: Accelerator,
    precision: str,
    recomputations: tuple[str, ...],
    *,
    bound: bool,
) -> tuple[float, float, float, tuple[float, ...], tuple[float, ...]]:
    """Forward, backward, of it gradients of weights, replays, and what the host needs to issue
    them, seconds.
    """
    if bound:
        forward = [_bound(op.forward, accelerator, precision) for op in layer.operators]
        back = [_bound(op.backward, accelerator, precision) for op in layer.operators]
    else:
        forward = [forward_seconds(op, accelerator, precision) for op in layer.operators]
        back = [backward_seconds(op, accelerator, precision) for op in layer.operators]
    weight = sum(
        least_seconds(op.backward[-1], accelerator, precision)
        if bound
        else kernel_seconds(op.backward[-1], accelerator, precision, op.op, "backward")
        for op in layer.operators
        if op.backward and op.backward[-1].unit == "gemm"
    )
    seconds = dict(zip((op.name for op in layer.operators), forward, strict=True))
    replays = [layer.replayed(name) for name in recomputations]
    replay = tuple(float(sum(seconds[op.name] for op in operators)) for operators, _ in replays)
    issue = accelerator.family.host_s
    both = _issued(layer.operators, layer.collectives)
    both += sum(issued(op.backward) for op in layer.operators)
    both += sum(call.backward for call in layer.collectives)
    launch = tuple(issue * (both + _issued(*again)) for again in replays)
    weight = min(weight, sum(forward), sum(back) - weight)
    return sum(forward), sum(back), weight, replay, launch


def _issued(operators: Iterable[Operator], collectives: Iterable[Collective]) -> float:
    """Kernels and collectives of a forward pass."""
    return sum(issued(op.forward) for op in operators) + sum(call.forward for call in collectives)


def _bound(kernels: Iterable[Kernel], accelerator: Accelerator, precision: str) -> float:
    return sum(least_seconds(kernel, accelerator, precision) for kernel in kernels)


def call_kind(axis: str, strategy: Strategy) -> Kind:
    """Which kind of call the collectives of an axis are priced as; see `Calls`."""
    if axis == "ep":
        return "all_to_all"
    if axis == "cp":
        return "ring" if strategy.context == "ring" else "reduce_scatter"
    return "reduce_scatter" if strategy.sp or axis == "etp" else "all_reduce"


def _parts(call: Collective) -> int:
    """Return how many calls one makes: an all-reduce is a reduce-scatter and an all-gather."""
    return 2 if call.op == "all_reduce" else 1


def _calls(layer: Layer, axis: str) -> list[tuple[float, float]]:
    """Return number and bytes of an axis's calls, both passes."""
    return [
        (float(number), number * call.bytes)
        for call in layer.collectives
        if call.axis == axis
        for number in [_parts(call) * (call.forward + call.backward)]
    ]


def _replayed(
    layer: Layer, axis: str, recomputations: tuple[str, ...], which: int
) -> tuple[float, ...]:
    """Return number (0) or bytes (1) of the calls that each recomputation repeats."""
    return tuple(
        float(
            sum(
                _parts(call) * call.forward * (call.bytes if which else 1.0)
                for call in layer.replayed(name)[1]
                if call.axis == axis
            )
        )
        for name in recomputations
    )


@kept_per_edition(64)
def model_flops(model: Model, sequence: int, *, whole_scores: bool = False) -> float:
    """Forward and backward FLOP of one sequence, nothing recomputed, for MFU.

    Backward is twice the forward pass. Attention counts the scores that a query sees, of causal
    attention half of them, and what routes tokens to experts is left out: as Megatron-LM prints
    its throughput [1]_.

    Parameters
    ----------
    whole_scores : bool
        Count the whole score matrix (of sliding windows, the window), as [2]_ and Megatron-LM
        before that.

    References
    ----------
    .. [1] NVIDIA/Megatron-LM@001b00c, ``num_floating_point_operations`` in
           ``megatron/training/training.py``. It halves the scores of any attention: for models
           with windows, or without a causal mask, `mfu_convention` says so.
    .. [2] Narayanan et al. 2021 (SC), appendix.
    """
    at = sizes(model, 1, sequence)
    forward = 0.0
    for kind, times in model.kinds.items():
        graph = model.trace[kind]
        if whole_scores and model.window and not any(node.full for node in graph.nodes):
            at["keys"] = min(sequence, model.window)
        if whole_scores:
            graph = Graph(kind, tuple(replace(node, causal=False) for node in graph.nodes))
        forward += times * sum(
            op.flops for op in operators(graph, at, 2.0) if not op.name.endswith(_ROUTER)
        )
    return 3.0 * forward


def mfu_convention(model: Model) -> str:
    """How `model_flops` counts attention, in words."""
    masked = all(
        node.causal
        for kind in model.kinds
        for node in model.trace[kind].nodes
        if node.op == "attention"
    )
    return (
        "as Megatron-LM prints it: causal attention is half of all scores"
        if masked and not model.window
        else "attention is the scores that a query sees; Megatron-LM prints half of all"
    )
