"""The chain of layers of a transformer under tensor and sequence parallelism.

An embedding, equal blocks, and a head (final norm, vocabulary projection, loss), each with its
operators, collectives, parameters and boundary. What backward keeps follows Korthikanti et al.
2022 (arXiv:2205.05198), section 4, operator by operator: for a GPT block without tensor
parallelism the sum is ``s b h (34 + 5 a s / h)`` bytes.

Tensor parallelism is Megatron-LM's (Shoeybi et al. 2019): column then row projections, two
all-reduces per block each way; with sequence parallelism each becomes an all-gather and a
reduce-scatter and everything between them is divided. Vocabulary-parallel embedding and head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nest_core.workload.models import Model
from nest_core.workload.operators import (
    Operator,
    elementwise,
    flash_attention,
    matmul,
    unfused_attention,
)

__all__ = ["Chain", "Collective", "Layer", "Strategy", "chain"]

# fp32 passes over the logits in the loss, forward and backward together about 60 bytes per
# element (docs/method.md, "Operators").
_LOSS_BYTES_EACH_WAY = 30.0


@dataclass(frozen=True, slots=True)
class Strategy:
    """The sub-graph strategy of a stage and the shapes it works on.

    Parameters
    ----------
    tp : int
        Tensor-parallel degree.
    sp : bool
        Sequence parallelism, of the same degree.
    micro_batch : int
        Sequences.
    sequence : int
        Tokens per sequence.
    width : float
        Bytes per activation element.
    attention : {"flash", "unfused"}
    """

    tp: int
    sp: bool
    micro_batch: int
    sequence: int
    width: float = 2.0
    attention: Literal["flash", "unfused"] = "flash"


@dataclass(frozen=True, slots=True)
class Collective:
    """Collectives of one kind within the tensor-parallel group, per layer and micro-batch.

    Parameters
    ----------
    op : {"all_reduce", "all_gather", "reduce_scatter"}
    bytes : float
        The whole buffer.
    forward, backward : int
        How many in each pass.
    """

    op: Literal["all_reduce", "all_gather", "reduce_scatter"]
    bytes: float
    forward: int
    backward: int


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer on one rank for one micro-batch.

    Parameters
    ----------
    kind : {"embedding", "block", "head"}
    operators, collectives : tuple
    parameters : float
        Elements that this rank holds.
    tied_parameters : float
        Those of them that are a second copy of the embedding's when the two layers lie in
        different stages, and the same tensor when they share one.
    input_bytes : float
        Checkpoint kept under full recomputation.
    output_bytes : float
        Sent to the next stage by this rank.
    recomputable : bool
        Whether recomputation applies.
    """

    kind: Literal["embedding", "block", "head"]
    operators: tuple[Operator, ...]
    collectives: tuple[Collective, ...]
    parameters: float
    tied_parameters: float
    input_bytes: float
    output_bytes: float
    recomputable: bool

    def kept_bytes(self, recompute: str) -> float:
        """Bytes kept from forward to backward under none, selective or full recomputation."""
        if recompute == "full" and self.recomputable:
            return self.input_bytes
        skip = recompute == "selective" and self.recomputable
        return sum(op.kept_bytes for op in self.operators if not (skip and op.core))


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
        return sum(count for _, count in self.runs)


def chain(model: Model, strategy: Strategy) -> Chain:
    """The layers of a model under a strategy.

    Examples
    --------
    >>> toy = Model("toy", blocks=3, hidden=64, heads=4, kv_heads=4, head_dim=16, ffn=256,
    ...             vocabulary=100)
    >>> chain(toy, Strategy(tp=1, sp=False, micro_batch=1, sequence=8)).layers
    5
    """
    return Chain(
        (
            (_embedding(model, strategy), 1),
            (_block(model, strategy), model.blocks),
            (_head(model, strategy), 1),
        )
    )


def _exchange(model: Model, strategy: Strategy, columns: int, rows: int) -> tuple[Collective, ...]:
    """Collectives of a layer that enters and leaves tensor-parallel regions so often.

    A column projection sums its input's gradients over the ranks, a row projection its output;
    with sequence parallelism each sum is a reduce-scatter, and a gather undoes it in the other
    pass.
    """
    if strategy.tp == 1:
        return ()
    size = strategy.micro_batch * strategy.sequence * model.hidden * strategy.width
    if strategy.sp:
        return (
            Collective("all_gather", size, columns, rows),
            Collective("reduce_scatter", size, rows, columns),
        )
    return (Collective("all_reduce", size, rows, columns),)


def _outside(model: Model, strategy: Strategy) -> float:
    """Elements of the residual stream on a rank outside the tensor-parallel regions."""
    whole = float(strategy.micro_batch * strategy.sequence * model.hidden)
    return whole / strategy.tp if strategy.sp else whole


def _embedding(model: Model, strategy: Strategy) -> Layer:
    outside = _outside(model, strategy)
    mask = outside if model.dropout else 0.0
    operators = (
        elementwise(
            "embedding", outside, strategy.width, reads=2, kept_bytes=mask, backward_reads=3
        ),
    )
    table = model.vocabulary * model.hidden / strategy.tp + model.positions * model.hidden
    return Layer(
        "embedding",
        operators,
        _exchange(model, strategy, columns=0, rows=1),
        table,
        0.0,
        0.0,
        outside * strategy.width,
        recomputable=False,
    )


def _head(model: Model, strategy: Strategy) -> Layer:
    width = strategy.width
    outside = _outside(model, strategy)
    tokens = strategy.micro_batch * strategy.sequence
    vocabulary = model.vocabulary / strategy.tp
    logits = tokens * vocabulary
    projection = model.vocabulary * model.hidden / strategy.tp
    operators = [elementwise("final norm", outside, width, reads=2, kept_bytes=outside * width)]
    parameters = float(model.norm_parameters) + projection
    if model.head_transform:
        operators.append(
            matmul(
                "transform", tokens, model.hidden, model.hidden, width, kept_bytes=outside * width
            )
        )
        parameters += model.hidden * (model.hidden + 1) + vocabulary
    operators.append(
        matmul("logits", tokens, model.hidden, vocabulary, width, kept_bytes=outside * width)
    )
    operators.append(
        Operator(
            "loss",
            "memory",
            0.0,
            _LOSS_BYTES_EACH_WAY * logits,
            0.0,
            _LOSS_BYTES_EACH_WAY * logits,
            4.0 * logits,
        )
    )
    return Layer(
        "head",
        tuple(operators),
        _exchange(model, strategy, columns=1, rows=0),
        parameters,
        projection if model.tied else 0.0,
        0.0,
        0.0,
        recomputable=False,
    )


def _block(model: Model, strategy: Strategy) -> Layer:
    width, tp = strategy.width, strategy.tp
    outside = _outside(model, strategy)
    operators = [
        elementwise("attention norm", outside, width, reads=2, kept_bytes=outside * width),
        *_attention(model, strategy, outside),
        elementwise("mlp norm", outside, width, reads=2, kept_bytes=outside * width),
        *_mlp(model, strategy, outside),
    ]
    for name in ("attention residual", "mlp residual"):
        mask = outside if model.dropout else 0.0
        operators.append(
            elementwise(name, outside, width, reads=3, kept_bytes=mask, backward_reads=2)
        )
    heads, kv_heads = model.heads / tp, max(model.kv_heads / tp, 1.0)
    gates = 2 if model.mlp == "swiglu" else 1
    attention = model.hidden * model.head_dim * (2 * heads + 2 * kv_heads)
    expert = (gates + 1) * model.hidden * model.ffn / tp
    if model.bias:  # those of the row projections are whole on every rank
        attention += (heads + 2 * kv_heads) * model.head_dim + model.hidden
        expert += gates * model.ffn / tp + model.hidden
    router = model.experts * model.hidden if model.experts > 1 else 0
    parameters = attention + model.experts * expert + router + 2 * model.norm_parameters
    return Layer(
        "block",
        tuple(operators),
        _exchange(model, strategy, columns=2, rows=2),
        parameters,
        0.0,
        outside * width,
        outside * width,
        recomputable=True,
    )


def _attention(model: Model, strategy: Strategy, outside: float) -> list[Operator]:
    width, tp = strategy.width, strategy.tp
    tokens = strategy.micro_batch * strategy.sequence
    heads = model.heads / tp
    kv_heads = max(model.kv_heads / tp, 1.0)
    columns = (heads + 2 * kv_heads) * model.head_dim
    shape = (strategy.micro_batch, strategy.sequence, heads, kv_heads, model.head_dim, width)
    core = (
        (flash_attention(*shape, causal=model.causal),)
        if strategy.attention == "flash"
        else unfused_attention(*shape, dropout=model.dropout)
    )
    inner = heads * model.head_dim
    return [
        matmul("qkv", tokens, model.hidden, columns, width, kept_bytes=outside * width),
        *core,
        matmul("output", tokens, inner, model.hidden, width, kept_bytes=tokens * inner * width),
    ]


def _mlp(model: Model, strategy: Strategy, outside: float) -> list[Operator]:
    width = strategy.width
    ffn = model.ffn / strategy.tp
    gates = 2 if model.mlp == "swiglu" else 1
    tokens = float(strategy.micro_batch * strategy.sequence)
    if model.experts == 1:
        return [
            matmul("mlp in", tokens, model.hidden, gates * ffn, width, kept_bytes=outside * width),
            elementwise(
                "activation",
                tokens * ffn,
                width,
                reads=gates + 1,
                kept_bytes=gates * tokens * ffn * width,
            ),
            matmul("mlp out", tokens, ffn, model.hidden, width, kept_bytes=tokens * ffn * width),
        ]
    routed = tokens * model.top_k
    copies = routed * model.hidden
    return [
        matmul("router", tokens, model.hidden, model.experts, width, kept_bytes=outside * width),
        elementwise(
            "dispatch", copies, width, reads=2, kept_bytes=copies * width, backward_reads=2
        ),
        matmul(
            "experts in",
            routed,
            model.hidden,
            gates * ffn,
            width,
            kept_bytes=0.0,
            weights=model.experts * model.hidden * gates * ffn,
        ),
        elementwise(
            "activation",
            routed * ffn,
            width,
            reads=gates + 1,
            kept_bytes=gates * routed * ffn * width,
        ),
        matmul(
            "experts out",
            routed,
            ffn,
            model.hidden,
            width,
            kept_bytes=routed * ffn * width,
            weights=model.experts * model.hidden * ffn,
        ),
        elementwise("combine", copies, width, reads=2, kept_bytes=copies * width, backward_reads=3),
    ]
