"""Accelerators: peak rates, memory, and how much of either real kernels reach."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PRECISIONS", "Accelerator"]

PRECISIONS = ("fp32", "tf32", "bf16", "fp16", "fp8")


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One device.

    Parameters
    ----------
    name : str
    peak_flops : tuple of (str, float)
        Dense FLOP/s by precision, for those that it has.
    memory_bytes : float
    memory_bandwidth_Bps : float
    matmul_efficiency, attention_efficiency, memory_efficiency : float
        Share of the peak that large kernels reach, in (0, 1].
    reserved_bytes : float
        Taken by driver, communication buffers and allocator before the first tensor.
    source : str
    links, network : str
        Curves in ``presets/collectives`` of its own links and of the network between nodes;
        empty: wires as they are.
    """

    name: str
    peak_flops: tuple[tuple[str, float], ...]
    memory_bytes: float
    memory_bandwidth_Bps: float
    matmul_efficiency: float
    attention_efficiency: float
    memory_efficiency: float
    reserved_bytes: float
    source: str
    links: str = ""
    network: str = ""

    def peak(self, precision: str) -> float:
        """Dense FLOP/s at a precision; KeyError where the device lacks it."""
        return dict(self.peak_flops)[precision]

    @property
    def precisions(self) -> tuple[str, ...]:
        """Precisions that the device computes in."""
        return tuple(name for name, _ in self.peak_flops)
