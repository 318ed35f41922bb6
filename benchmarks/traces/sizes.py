"""The sizes that a family's modules are built with."""

from collections.abc import Mapping
from types import SimpleNamespace

__all__ = ["PRIMES", "Sizes"]


class Sizes(SimpleNamespace):
    """One number for every symbol of a trace that a module names, as an attribute.

    Symbols are `nest_core.workload.graph.SYMBOLS`. ``slots`` is how many tokens one expert takes;
    the rest of it are the field names of `nest_core.workload.models.Model` and the two sizes of a
    micro-batch.
    """

    @property
    def symbols(self) -> Mapping[str, int]:
        """Return the sizes by symbol."""
        return vars(self)


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
    linear_key_heads=3,
    linear_value_heads=3 * 17,
    linear_key_dim=53,
    linear_value_dim=59,
    index_heads=61,
    index_dim=2 * 67,
)
"""Sizes to trace at: each has a prime factor of its own, so that a product of them names its
factors. What modules must divide is divisible (heads by key-value heads, rotated widths by 2)."""
