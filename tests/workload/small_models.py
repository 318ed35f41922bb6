"""One small model per traced family; every size is its own, and four ranks divide it."""

from __future__ import annotations

from typing import Any

from nest_core.workload import Model, load_trace
from nest_core.workload.graph import families

__all__ = ["DENSE", "FAMILIES", "KINDS", "MIXTURES", "small"]

_SIZES: dict[str, int] = {
    "ffn": 12, "positions": 32, "expert_ffn": 20, "shared_ffn": 28, "q_rank": 6, "kv_rank": 10,
    "rope_dim": 2, "value_dim": 6, "linear_key_heads": 4, "linear_value_heads": 8,
    "linear_key_dim": 3, "linear_value_dim": 5, "index_heads": 2, "index_dim": 4,
}  # fmt: skip

FAMILIES = families()
MIXTURES = tuple(name for name in FAMILIES if "moe_block" in load_trace(name))
DENSE = tuple(name for name in FAMILIES if "block" in load_trace(name))
KINDS = [
    (family, kind)
    for number, family in enumerate(FAMILIES)
    for kind, graph in load_trace(family).items()
    if all(load_trace(earlier).get(kind) != graph for earlier in FAMILIES[:number])
]
"""All traced layers that differ."""


def small(family: str, **changes: Any) -> Model:
    """A model of a family with sizes for what its trace knows."""
    trace = load_trace(family)
    known = {
        part
        for graph in trace.values()
        for node in graph.nodes
        for shape in (node.shape, *node.weights)
        for dim in shape
        for part in dim
    }
    given: dict[str, Any] = {name: size for name, size in _SIZES.items() if name in known}
    if "moe_block" in trace:
        given |= {"experts": 4, "top_k": 2}
        given["dense_blocks"] = 1 if "block" in trace else 0
    given.setdefault("ffn", 0)
    given["full_every"] = 2 if any(kind.startswith("local") for kind in trace) else 0
    given |= {
        "name": family, "family": family, "blocks": 3, "hidden": 8, "heads": 4,
        "kv_heads": 4 if "kv_rank" in known else 2, "head_dim": 4, "vocabulary": 24,
    }  # fmt: skip
    return Model(**given | changes)
