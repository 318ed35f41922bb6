"""The roofline: an operator takes the longer of its arithmetic and its memory traffic.

Williams, Waterman and Patterson (2009), with each roof lowered to what large kernels reach.
"""

from __future__ import annotations

from nest_core.hardware.accelerators import Accelerator
from nest_core.workload.operators import Operator

__all__ = ["backward_seconds", "forward_seconds"]


def forward_seconds(operator: Operator, accelerator: Accelerator, precision: str) -> float:
    """Forward time of one operator, seconds."""
    return _seconds(operator.flops, operator.bytes, operator.unit, accelerator, precision)


def backward_seconds(operator: Operator, accelerator: Accelerator, precision: str) -> float:
    """Backward time of one operator, seconds."""
    return _seconds(
        operator.backward_flops, operator.backward_bytes, operator.unit, accelerator, precision
    )


def _seconds(
    flops: float, traffic: float, unit: str, accelerator: Accelerator, precision: str
) -> float:
    # fp8 speeds projections up; attention and element-wise work stay in 16 bits.
    if precision == "fp8" and unit != "matmul":
        precision = "bf16"
    efficiency = (
        accelerator.attention_efficiency if unit == "attention" else accelerator.matmul_efficiency
    )
    arithmetic = flops / (accelerator.peak(precision) * efficiency)
    return max(
        arithmetic, traffic / (accelerator.memory_bandwidth_Bps * accelerator.memory_efficiency)
    )
