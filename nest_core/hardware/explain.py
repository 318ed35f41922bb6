"""Kernels' times in words: the estimator's formulas with the numbers filled in.

What bounds a kernel is asked of the estimator itself: a kernel is bound by memory if it would
take less time with nothing to move.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

from nest_core.documents.units import humanise, humanise_rate, humanise_seconds, three_digits
from nest_core.hardware.accelerators import Accelerator
from nest_core.hardware.estimator import seconds
from nest_core.hardware.precisions import NARROW, narrow_product
from nest_core.hardware.profiles import Direction
from nest_core.workload import Kernel
from nest_core.workload.explain import number

__all__ = ["Bound", "bound", "compute_precision", "reached", "time_in_words"]

Bound = Literal["arithmetic", "memory"]

ATTENTION_UNITS = ("attention", "biased_attention")

_ROUNDING = 1e-9


def bound(kernel: Kernel, accelerator: Accelerator, precision: str) -> Bound:
    """Which roof a kernel touches."""
    if kernel.unit == "memory":
        return "memory"
    accelerator = replace(accelerator, profile=None)
    both = seconds(kernel, accelerator, precision)
    alone = seconds(replace(kernel, bytes=0.0), accelerator, precision)
    return "memory" if both > alone * (1.0 + _ROUNDING) else "arithmetic"


def compute_precision(kernel: Kernel, accelerator: Accelerator, precision: str) -> str:
    """The precision whose peak a kernel is held against: 8 and 4 bits are for weights' products."""
    if precision not in NARROW or kernel.unit == "gemm":
        return precision
    return "bf16" if "bf16" in accelerator.precisions else "fp16"


def reached(kernel: Kernel, accelerator: Accelerator) -> float:
    """Share of the device's best rate that large kernels of a unit reach."""
    family = accelerator.family
    shares = {
        "attention": family.attention_efficiency,
        "biased_attention": family.biased_attention_efficiency,
    }
    return shares.get(kernel.unit, family.gemm_efficiency)


def time_in_words(
    kernel: Kernel,
    accelerator: Accelerator,
    precision: str,
    op: str = "",
    direction: Direction = "forward",
) -> tuple[str, ...]:
    """How long a kernel takes, and why.

    Parameters
    ----------
    op, direction : str
        Of its operator and pass, by which a profile tells kernels apart.

    Returns
    -------
    tuple of str
        A line for the arithmetic, one for the bytes, and which of the two is longer.
    """
    taken = seconds(kernel, accelerator, precision, op, direction)
    accelerator = replace(accelerator, profile=None)
    estimated = seconds(kernel, accelerator, precision)
    longer = humanise_seconds(estimated)
    measured = (
        (f"measured on such a device: {humanise_seconds(taken)}, which goes before",)
        if taken != estimated
        else ()
    )
    if kernel.unit == "memory":
        lines = [f"time: {_traffic(kernel.bytes, accelerator)}, bound by memory bandwidth"]
        return (*lines, *measured)
    peak = accelerator.matmul_peak(compute_precision(kernel, accelerator, precision))
    rate = humanise(peak, "FLOP/s")
    alone = humanise_seconds(seconds(replace(kernel, bytes=0.0), accelerator, precision))
    which = bound(kernel, accelerator, precision)
    verdict = "arithmetic" if which == "arithmetic" else "memory bandwidth"
    if kernel.unit in ATTENTION_UNITS:
        lines = [
            f"arithmetic: {humanise(kernel.flops, 'FLOP')} / ({rate} · "
            f"{reached(kernel, accelerator):.3g}) = {alone}"
        ]
    else:
        lines = [*_product(kernel, accelerator, rate, alone)]
    narrow = narrow_product(kernel.unit, precision)
    moved = kernel.bytes * (narrow.element_bytes / 2.0 if narrow else 1.0)
    lines.append(f"memory: {_traffic(moved, accelerator)}")
    cast = f", with the conversion to {precision}" if narrow else ""
    return (*lines, f"time: the longer, {longer}{cast}; bound by {verdict}", *measured)


def _traffic(moved: float, accelerator: Accelerator) -> str:
    share = accelerator.family.memory_efficiency
    took = moved / (accelerator.memory_bandwidth_Bps * share)
    rate = humanise_rate(accelerator.memory_bandwidth_Bps)
    return f"{humanise(moved, 'B')} / ({rate} · {share:.3g}) = {humanise_seconds(took)}"


def _product(kernel: Kernel, accelerator: Accelerator, rate: str, alone: str) -> tuple[str, str]:
    family = accelerator.family
    groups, m, n, k = kernel.shape
    rows, columns = accelerator.tile
    across, down = math.ceil(m / rows), math.ceil(n / columns)
    waves = groups * across * down / accelerator.units
    padded = 2.0 * groups * across * rows * down * columns * k
    filled = "" if math.isclose(padded, kernel.flops) else " in whole tiles"
    many = f"{number(groups)} · " if groups != 1.0 else ""
    return (
        f"tiles of {rows} x {columns}: {many}{across:,} · {down:,} over {accelerator.units:,} "
        f"units = {three_digits(waves)} waves",
        f"arithmetic: {humanise(padded, 'FLOP')}{filled} / ({rate} · "
        f"{family.gemm_efficiency:.3g}) · (1 + {family.wave_tail:.3g} / {three_digits(waves)}) · "
        f"(1 + {family.depth_tail:.3g} / {number(k)}) = {alone}",
    )
