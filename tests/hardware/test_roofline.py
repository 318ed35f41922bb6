"""The roofline: either arithmetic or memory traffic, each below its roof."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nest_core.hardware import Accelerator, backward_seconds, forward_seconds
from nest_core.workload import Operator

DEVICE = Accelerator(
    name="round figures",
    peak_flops=(("bf16", 1000e12), ("fp8", 2000e12), ("fp32", 50e12)),
    memory_bytes=80e9,
    memory_bandwidth_Bps=2e12,
    matmul_efficiency=0.8,
    attention_efficiency=0.5,
    memory_efficiency=0.9,
    reserved_bytes=0.0,
    source="test",
)
UNITS: list[Literal["matmul", "attention", "memory"]] = ["matmul", "attention", "memory"]


def operator(flops: float, size: float, unit: Literal["matmul", "attention", "memory"]) -> Operator:
    return Operator("o", unit, flops, size, 2 * flops, 3 * size, 0.0)


@pytest.mark.parametrize(
    ("unit", "efficiency"), [("matmul", 0.8), ("attention", 0.5)], ids=["matmul", "attention"]
)
def test_heavy_work_takes_its_arithmetic(unit, efficiency):
    """1e15 FLOP at 1e15 FLOP/s times the kernel's share; a byte of traffic is hidden."""
    found = forward_seconds(operator(1e15, 1.0, unit), DEVICE, "bf16")
    assert found == pytest.approx(1 / efficiency)


@pytest.mark.parametrize("unit", UNITS)
def test_light_work_takes_its_traffic(unit):
    """2e12 bytes at 2e12 B/s times 0.9, whatever the kernel and the precision."""
    for precision in DEVICE.precisions:
        found = forward_seconds(operator(1.0, 2e12, unit), DEVICE, precision)
        assert found == pytest.approx(1 / 0.9)


def test_the_ridge_is_where_both_roofs_meet():
    """At peak * 0.8 / (bandwidth * 0.9) FLOP per byte both take as long; a per cent decides."""
    ridge = 1000e12 * 0.8 / (2e12 * 0.9)
    at = forward_seconds(operator(ridge * 1e12, 1e12, "matmul"), DEVICE, "bf16")
    assert at == pytest.approx(1e12 / (2e12 * 0.9))
    more = forward_seconds(operator(1.01 * ridge * 1e12, 1e12, "matmul"), DEVICE, "bf16")
    assert more == pytest.approx(1.01 * at)
    less = forward_seconds(operator(0.99 * ridge * 1e12, 1e12, "matmul"), DEVICE, "bf16")
    assert less == pytest.approx(at)


def test_fp8_speeds_projections_only():
    """Attention and everything element-wise stay in 16 bits."""
    for unit, gain in (("matmul", 2.0), ("attention", 1.0), ("memory", 1.0)):
        work = operator(1e15, 1.0, unit)
        ratio = forward_seconds(work, DEVICE, "bf16") / forward_seconds(work, DEVICE, "fp8")
        assert ratio == pytest.approx(gain)


def test_backward_reads_its_own_figures():
    """Twice the FLOP, three times the bytes here."""
    assert backward_seconds(operator(1e15, 1.0, "matmul"), DEVICE, "bf16") == pytest.approx(2 / 0.8)
    assert backward_seconds(operator(1.0, 2e12, "memory"), DEVICE, "bf16") == pytest.approx(3 / 0.9)


def test_nothing_takes_no_time():
    assert forward_seconds(operator(0.0, 0.0, "memory"), DEVICE, "bf16") == 0.0


work = st.floats(0, 1e18, allow_nan=False)


@settings(max_examples=100, derandomize=True, database=None, deadline=None)
@given(work, work, st.sampled_from(UNITS), st.floats(1.0, 100.0))
def test_time_is_at_least_each_roof_and_falls_with_the_hardware(flops, size, unit, better):
    """A failure: something runs faster than the peak, or slower on a faster device."""
    found = forward_seconds(operator(flops, size, unit), DEVICE, "bf16")
    assert found >= flops / 1000e12
    assert found >= size / 2e12
    faster = replace(
        DEVICE,
        peak_flops=tuple((name, peak * better) for name, peak in DEVICE.peak_flops),
        memory_bandwidth_Bps=DEVICE.memory_bandwidth_Bps * better,
    )
    quicker = forward_seconds(operator(flops, size, unit), faster, "bf16")
    assert quicker == pytest.approx(found / better, rel=1e-12)


def test_a_precision_that_the_device_lacks_is_a_key_error():
    """Scenarios refuse it before; here it is a defect of the caller."""
    assert DEVICE.precisions == ("bf16", "fp8", "fp32")
    with pytest.raises(KeyError):
        DEVICE.peak("fp16")
