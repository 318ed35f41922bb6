"""Operators of one layer on one rank: work, traffic and what backward must keep.

Counts are closed forms per micro-batch. Units: FLOP (a multiply-add is two) and bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Operator", "elementwise", "flash_attention", "matmul", "unfused_attention"]

# Bytes that the unfused score matrix's element-wise chain (scale, mask, softmax, dropout)
# moves per score element, forward and backward, in 16-bit precision; docs/method.md,
# "Operators".
_SCORE_BYTES_FORWARD = 13.0
_SCORE_BYTES_BACKWARD = 17.0


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator on one rank for one micro-batch.

    Parameters
    ----------
    name : str
    unit : {"matmul", "attention", "memory"}
        Which efficiency of the accelerator applies.
    flops, bytes : float
        Forward.
    backward_flops, backward_bytes : float
    kept_bytes : float
        Saved from forward to backward when nothing is recomputed.
    core : bool
        Whether selective recomputation re-runs it instead of keeping its output
        (Korthikanti et al. 2022, section 5).
    """

    name: str
    unit: Literal["matmul", "attention", "memory"]
    flops: float
    bytes: float
    backward_flops: float
    backward_bytes: float
    kept_bytes: float
    core: bool = False


def matmul(
    name: str,
    rows: float,
    inner: float,
    columns: float,
    width: float,
    *,
    kept_bytes: float,
    weights: float | None = None,
) -> Operator:
    """A projection ``(rows, inner) x (inner, columns)``; backward has two such products.

    Parameters
    ----------
    width : float
        Bytes per element.
    weights : float, optional
        Weight elements read when they are not ``inner * columns`` (several experts).
    """
    weights = inner * columns if weights is None else weights
    traffic = width * (rows * inner + weights + rows * columns)
    flops = 2.0 * rows * inner * columns
    return Operator(name, "matmul", flops, traffic, 2 * flops, 2 * traffic, kept_bytes)


def elementwise(
    name: str,
    elements: float,
    width: float,
    *,
    reads: float,
    kept_bytes: float,
    backward_reads: float | None = None,
) -> Operator:
    """A memory-bound pass over ``elements`` with ``reads`` accesses each, writes included."""
    backward = (reads + 1 if backward_reads is None else backward_reads) * elements * width
    return Operator(name, "memory", 0.0, reads * elements * width, 0.0, backward, kept_bytes)


def flash_attention(
    batch: float,
    sequence: float,
    heads: float,
    kv_heads: float,
    head_dim: float,
    width: float,
    *,
    causal: bool,
) -> Operator:
    """Fused attention: scores never reach memory; backward does 2.5 times the work (Dao 2023)."""
    flops = 4.0 * batch * sequence * sequence * heads * head_dim * (0.5 if causal else 1.0)
    tokens = batch * sequence
    traffic = width * tokens * (2 * heads + 2 * kv_heads) * head_dim
    inputs = width * tokens * (heads + 2 * kv_heads) * head_dim
    statistics = 4.0 * tokens * heads
    return Operator(
        "attention", "attention", flops, traffic, 2.5 * flops, 2 * traffic, inputs + statistics
    )


def unfused_attention(
    batch: float,
    sequence: float,
    heads: float,
    kv_heads: float,
    head_dim: float,
    width: float,
    *,
    dropout: bool,
) -> tuple[Operator, Operator]:
    """Batched products and a stored score matrix; returns (inputs kept, core attention)."""
    scores = batch * heads * sequence * sequence
    tokens = batch * sequence
    flops = 4.0 * scores * head_dim
    operands = width * tokens * (2 * heads + 2 * kv_heads) * head_dim
    kept = scores * ((2 * width + 1) if dropout else width)
    inputs = Operator(
        "query, key, value",
        "memory",
        0.0,
        0.0,
        0.0,
        0.0,
        width * tokens * (heads + 2 * kv_heads) * head_dim,
    )
    core = Operator(
        "core attention",
        "attention",
        flops,
        operands + _SCORE_BYTES_FORWARD * scores * width / 2,
        2 * flops,
        2 * operands + _SCORE_BYTES_BACKWARD * scores * width / 2,
        kept,
        core=True,
    )
    return inputs, core
