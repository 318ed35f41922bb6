"""The sizes that a family's modules are built with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

__all__ = ["PRIMES", "Sizes"]


@dataclass(frozen=True, slots=True)
class Sizes:
    """One number for every symbol of a trace (`nest_core.workload.graph.SYMBOLS`).

    ``slots`` is how many tokens one expert takes; the rest of it are the field names of
    `nest_core.workload.models.Model` and the two sizes of a micro-batch.
    """

    micro_batch: int = 1
    sequence: int = 1
    hidden: int = 1
    heads: int = 1
    kv_heads: int = 1
    head_dim: int = 2
    ffn: int = 1
    vocabulary: int = 1
    positions: int = 1
    experts: int = 1
    top_k: int = 1
    slots: int = 1
    expert_ffn: int = 1
    shared_ffn: int = 1
    q_rank: int = 1
    kv_rank: int = 1
    rope_dim: int = 2
    value_dim: int = 1

    @property
    def symbols(self) -> Mapping[str, int]:
        """Size by symbol."""
        return asdict(self)


PRIMES = Sizes(
    micro_batch=5,
    sequence=101,
    hidden=103,
    heads=7 * 11,
    kv_heads=7,
    head_dim=2 * 13,
    ffn=107,
    vocabulary=109,
    positions=113,
    experts=31,
    top_k=19,
    slots=127,
    expert_ffn=131,
    shared_ffn=137,
    q_rank=139,
    kv_rank=149,
    rope_dim=2 * 23,
    value_dim=29,
)
"""Sizes to trace at: each has a prime factor of its own, so that a product of them names its
factors. What modules must divide is divisible (heads by key-value heads, rotated widths by 2)."""
