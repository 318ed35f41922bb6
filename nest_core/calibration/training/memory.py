"""How sources count the memory of a measured run."""

from __future__ import annotations

from nest_core.costs import Memory

__all__ = ["KINDS", "counted_bytes"]

KINDS = {
    "allocated": "what tensors held",
    "unstated": "not stated; compared with what tensors hold",
    "reserved": "what PyTorch's allocator held",
    "device": "what the driver showed",
}
"""How sources count memory, by `Outcome.memory_kind`."""


def counted_bytes(memory: Memory, kind: str) -> float:
    """Return a stage's bytes as a source counts them.

    Parameters
    ----------
    memory : Memory
    kind : str
        One of `KINDS`.
    """
    if kind == "device":
        return memory.total
    return memory.reserved if kind == "reserved" else memory.tensors
