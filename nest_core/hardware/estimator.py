"""How long kernels take: the roofline with what real kernels reach of either roof.

A product of ``g`` times ``m x n x k`` is cut into tiles of the accelerator's size (rows and
columns rounded up to whole tiles), which ``units`` work through in waves. Filling and draining
the pipelines of a unit costs as much as ``wave_tail`` waves more per product, and ``depth_tail``
elements more per tile along ``k``:

    w = g ceil(m / tile_m) ceil(n / tile_n) / units
    t = max(2 g m' n' k / (best e) (1 + wave_tail / w) (1 + depth_tail / k), bytes / (bandwidth h))

where ``bytes`` count the sum that a gradient of weights is added to (`Kernel.added_bytes`), and
with ``best`` the largest rate measured on the device (its peak where none was), and ``e`` and
``h`` what large products and copies reach of it and of the memory bandwidth. Fused
attention reaches a share of the peak of its own; everything else moves bytes. In 8 and 4 bits
only products with weights run at the narrow rate, and their operands are converted on the way.

Few parameters, one set per family of accelerators (`Family`), fitted where the rules of
``docs/method.md``, "Calibration", allow; ``presets/estimators`` says to what.

Kernels that the accelerator's profile measured (`nest_core.hardware.profiles`) take the measured
time instead.

References
----------
Williams, Waterman and Patterson 2009, the roofline; NVIDIA, "Matrix Multiplication Background
User's Guide", tile and wave quantisation.

Kernels' times in words: the estimator's formulas with the numbers filled in.

What bounds a kernel is asked of the estimator itself: a kernel is bound by memory if it would
take less time with nothing to move.
"""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from nest_core.documents.units import humanise, humanise_rate, humanise_seconds, three_digits
from nest_core.hardware.accelerators import NARROW, Accelerator, narrow_product
from nest_core.hardware.profiles import Direction
from nest_core.workload import Kernel, Operator, number

__all__ = [
    "Bound",
    "backward_seconds",
    "bound",
    "compute_precision",
    "forward_seconds",
    "least_seconds",
    "measured_share",
    "reached",
    "seconds",
    "time_in_words",
]

_SIXTEEN_BITS = ("bf16", "fp16")


def seconds(
    kernel: Kernel,
    accelerator: Accelerator,
    precision: str,
    op: str = "",
    direction: Direction = "forward",
) -> float:
    """Time of one kernel on a device: what its profile measured, else the estimate.

    Parameters
    ----------
    precision : str
        Of the training run: products with weights run in it; beside 8 and 4 bits the rest runs
        in 16.
    op, direction : str
        Of the operator and the pass that it belongs to, where they are known: a profile tells
        kernels apart by them.
    """
    profile = accelerator.profile
    measured = profile.seconds(kernel, precision, op, direction) if profile else None
    if measured is not None:
        return measured
    family, traffic = accelerator.family, kernel.bytes
    memory_Bps = accelerator.memory_bandwidth_Bps * family.memory_efficiency
    if kernel.unit == "memory":
        return (traffic + kernel.added_bytes) / memory_Bps
    narrow = narrow_product(kernel.unit, precision)
    best = accelerator.matmul_peak(compute_precision(kernel, accelerator, precision))
    cast = 0.0
    if kernel.unit in ATTENTION_UNITS:
        arithmetic = kernel.flops / (best * reached(kernel, accelerator))
    else:
        arithmetic = _product_seconds(kernel, best, accelerator)
        if narrow:
            traffic *= narrow.element_bytes / 2.0
            cast = narrow.cast_bytes * kernel.cast
    return max(arithmetic, (traffic + kernel.added_bytes) / memory_Bps) + cast / memory_Bps


def least_seconds(kernel: Kernel, accelerator: Accelerator, precision: str) -> float:
    """Return what a kernel takes at least, for each time its rows are repeated.

    Whole tiles, waves, operands that all rows share and sums of gradients are left out: a
    micro-batch of ``b`` sequences takes at least ``b`` times this. Not for devices with a profile.
    """
    memory_Bps = accelerator.memory_bandwidth_Bps * accelerator.family.memory_efficiency
    if kernel.unit == "memory":
        return kernel.bytes / memory_Bps
    narrow = narrow_product(kernel.unit, precision)
    best = accelerator.matmul_peak(compute_precision(kernel, accelerator, precision))
    cast = narrow.cast_bytes * kernel.cast / memory_Bps if narrow else 0.0
    return kernel.flops / (best * reached(kernel, accelerator)) + cast


def forward_seconds(operator: Operator, accelerator: Accelerator, precision: str) -> float:
    """Device time of an operator's forward pass, seconds."""
    return sum(
        seconds(kernel, accelerator, precision, operator.op, "forward")
        for kernel in operator.forward
    )


def backward_seconds(operator: Operator, accelerator: Accelerator, precision: str) -> float:
    """Device time of an operator's backward pass, seconds."""
    return sum(
        seconds(kernel, accelerator, precision, operator.op, "backward")
        for kernel in operator.backward
    )


def measured_share(
    runs: Iterable[tuple[Operator, int]], accelerator: Accelerator, precision: str
) -> float:
    """Share of the time of operators, each so many times, that the profile measured; 0 without."""
    profile = accelerator.profile
    if profile is None:
        return 0.0
    timed = [
        (
            times * (profile.seconds(kernel, precision, operator.op, direction) or 0.0),
            times * seconds(kernel, accelerator, precision, operator.op, direction),
        )
        for operator, times in runs
        for direction, kernels in _passes(operator)
        for kernel in kernels
    ]
    total = sum(kernel_s for _, kernel_s in timed)
    return sum(measured_s for measured_s, _ in timed) / total if total else 0.0


def _passes(operator: Operator) -> tuple[tuple[Direction, tuple[Kernel, ...]], ...]:
    return ("forward", operator.forward), ("backward", operator.backward)


def _waves(
    groups: float, m: float, n: float, k: float, accelerator: Accelerator
) -> tuple[int, int, float, float]:
    """Return tiles across and down, waves over all units, and the FLOP of whole tiles."""
    rows, columns = accelerator.tile
    across, down = math.ceil(m / rows), math.ceil(n / columns)
    waves = groups * across * down / accelerator.units
    return across, down, waves, 2.0 * groups * across * rows * down * columns * k


def _product_seconds(kernel: Kernel, peak: float, accelerator: Accelerator) -> float:
    family = accelerator.family
    groups, m, n, k = kernel.shape
    _, _, waves, padded = _waves(groups, m, n, k, accelerator)
    if not waves:
        return 0.0
    waves *= min(1.0, kernel.at_once / groups)
    fill = (1.0 + family.wave_tail / waves) * (1.0 + family.depth_tail / k)
    return padded / (peak * family.gemm_efficiency) * fill


Bound = Literal["arithmetic", "memory"]

ATTENTION_UNITS = ("attention", "biased_attention")

_ROUNDING = 1e-9


def bound(kernel: Kernel, accelerator: Accelerator, precision: str) -> Bound:
    """Which roof a kernel touches."""
    if kernel.unit == "memory":
        return "memory"
    accelerator = replace(accelerator, profile=None)
    both = seconds(kernel, accelerator, precision)
    alone = seconds(replace(kernel, bytes=0.0, added_bytes=0.0), accelerator, precision)
    return "memory" if both > alone * (1.0 + _ROUNDING) else "arithmetic"


def compute_precision(kernel: Kernel, accelerator: Accelerator, precision: str) -> str:
    """Return the precision whose peak a kernel is held against: 8 and 4 bits are for weights'
    products.
    """
    return (
        precision
        if precision not in NARROW or kernel.unit == "gemm"
        else next((name for name in _SIXTEEN_BITS if name in accelerator.precisions), precision)
    )


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
        moved = kernel.bytes + kernel.added_bytes
        lines = [f"time: {_traffic(moved, accelerator)}, bound by memory bandwidth"]
        return (*lines, *measured)
    peak = accelerator.matmul_peak(compute_precision(kernel, accelerator, precision))
    rate = humanise(peak, "FLOP/s")
    alone = humanise_seconds(
        seconds(replace(kernel, bytes=0.0, added_bytes=0.0), accelerator, precision)
    )
    verdict = (
        "arithmetic"
        if bound(kernel, accelerator, precision) == "arithmetic"
        else "memory bandwidth"
    )
    arithmetic = (
        (
            f"arithmetic: {humanise(kernel.flops, 'FLOP')} / ({rate} · "
            f"{reached(kernel, accelerator):.3g}) = {alone}",
        )
        if kernel.unit in ATTENTION_UNITS
        else _product(kernel, accelerator, rate, alone)
    )
    narrow = narrow_product(kernel.unit, precision)
    moved = kernel.bytes * (narrow.element_bytes / 2.0 if narrow else 1.0) + kernel.added_bytes
    cast = f", with the conversion to {precision}" if narrow else ""
    return (
        *arithmetic,
        f"memory: {_traffic(moved, accelerator)}",
        f"time: the longer, {longer}{cast}; bound by {verdict}",
        *measured,
    )


def _traffic(moved: float, accelerator: Accelerator) -> str:
    share = accelerator.family.memory_efficiency
    took = moved / (accelerator.memory_bandwidth_Bps * share)
    rate = humanise_rate(accelerator.memory_bandwidth_Bps)
    return f"{humanise(moved, 'B')} / ({rate} · {share:.3g}) = {humanise_seconds(took)}"


def _product(kernel: Kernel, accelerator: Accelerator, rate: str, alone: str) -> tuple[str, str]:
    family = accelerator.family
    groups, m, n, k = kernel.shape
    rows, columns = accelerator.tile
    across, down, waves, padded = _waves(groups, m, n, k, accelerator)
    filled = "" if math.isclose(padded, kernel.flops) else " in whole tiles"
    many = f"{number(groups)} · " if groups != 1.0 else ""
    return (
        f"tiles of {rows} x {columns}: {many}{across:,} · {down:,} over {accelerator.units:,} "
        f"units = {three_digits(waves)} waves",
        f"arithmetic: {humanise(padded, 'FLOP')}{filled} / ({rate} · "
        f"{family.gemm_efficiency:.3g}) · (1 + {family.wave_tail:.3g} / {three_digits(waves)}) · "
        f"(1 + {family.depth_tail:.3g} / {number(k)}) = {alone}",
    )
