"""The estimator: two roofs, what kernels reach of them, and what tiles and waves cost."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nest_core.documents.errors import InputError
from nest_core.documents.presets import preset_names
from nest_core.hardware import (
    Family,
    backward_seconds,
    forward_seconds,
    least_seconds,
    load_accelerator,
    load_family,
    seconds,
)
from nest_core.workload import Kernel, Operator

FAMILY = replace(
    load_family("uncalibrated"), gemm_efficiency=0.8, wave_tail=1.0, depth_tail=32.0,
    memory_efficiency=0.9, attention_efficiency=0.5, biased_attention_efficiency=0.25,
)  # fmt: skip
DEVICE = replace(
    load_accelerator("h100-80gb"), name="round figures", family=FAMILY, matmul_flops=(),
    peak_flops=(
        ("bf16", 1000e12), ("fp8", 2000e12), ("nvfp4", 4000e12), ("int8", 2000e12), ("fp32", 50e12)
    ),
    memory_bandwidth_Bps=2e12, units=100, tile=(128, 128), profile=None,
)  # fmt: skip
PROPERTY = settings(max_examples=200, derandomize=True, database=None, deadline=None)
size = st.integers(1, 20_000)


def gemm(m: float, n: float, k: float, groups: float = 1, unit: Any = "gemm") -> Kernel:
    """A product in 16 bits, as operators make it."""
    traffic = 2.0 * groups * (m * k + k * n + m * n)
    return Kernel(unit, 2.0 * groups * m * n * k, traffic, (groups, m, n, k))


def time(kernel: Kernel, precision: str = "bf16", device: Any = DEVICE) -> float:
    return seconds(kernel, device, precision)


# Limits -----------------------------------------------------------------------------------------


def test_a_large_product_reaches_its_share_of_the_peak():
    """Waves and depth go to infinity: 2 m n k / (peak * 0.8)."""
    kernel = gemm(1280 * 100, 1280 * 100, 1e6)
    assert time(kernel) == pytest.approx(kernel.flops / (1000e12 * 0.8), rel=1e-3)
    assert time(kernel) > kernel.flops / (1000e12 * 0.8)


def test_a_thin_product_takes_its_traffic():
    """One row against a large matrix: its bytes over 0.9 of the bandwidth."""
    kernel = gemm(1, 128_000, 8_192, unit="batched")
    assert time(kernel) == pytest.approx(kernel.bytes / (2e12 * 0.9))


@pytest.mark.parametrize("precision", DEVICE.precisions)
def test_passes_over_memory_take_their_traffic(precision):
    assert time(Kernel("memory", 0.0, 2e12), precision) == pytest.approx(1 / 0.9)


@pytest.mark.parametrize(
    ("unit", "share"), [("attention", 0.5), ("biased_attention", 0.25)], ids=str
)
def test_attention_has_a_share_of_its_own(unit, share):
    """By its arithmetic, or its traffic; a per cent around the ridge decides."""
    shape = (1.0, 1.0, 1.0, 1.0)
    assert time(Kernel(unit, 1e15, 1.0, shape)) == pytest.approx(1 / share)
    assert time(Kernel(unit, 1.0, 2e12, shape)) == pytest.approx(1 / 0.9)
    ridge = 1000e12 * share / (2e12 * 0.9)
    at = time(Kernel(unit, ridge * 1e12, 1e12, shape))
    assert at == pytest.approx(1e12 / (2e12 * 0.9))
    assert time(Kernel(unit, 1.01 * ridge * 1e12, 1e12, shape)) == pytest.approx(1.01 * at)
    assert time(Kernel(unit, 0.99 * ridge * 1e12, 1e12, shape)) == pytest.approx(at)


def test_nothing_takes_no_time():
    assert time(Kernel("memory", 0.0, 0.0)) == 0.0
    assert time(Kernel("gemm", 0.0, 0.0, (0.0, 0.0, 5.0, 7.0))) == 0.0


# Tiles and waves --------------------------------------------------------------------------------


def by_hand(groups: float, m: float, n: float, k: float) -> float:
    """Tiles of 128 x 128 on 100 units: (tiles / 100 + 1) waves of (k + 32) steps each."""
    tiles = groups * math.ceil(m / 128) * math.ceil(n / 128)
    step = 2 * 128 * 128 * 100 / (1000e12 * 0.8)
    return step * (tiles / 100 + 1) * (k + 32) if tiles else 0.0


@PROPERTY
@given(size, size, size, st.integers(1, 64))
def test_a_product_runs_its_waves_or_moves_its_bytes(m, n, k, groups):
    kernel = gemm(m, n, k, groups)
    expected = max(by_hand(groups, m, n, k), kernel.bytes / (2e12 * 0.9))
    assert time(kernel) == pytest.approx(expected, rel=1e-9)


@PROPERTY
@given(size, size, size)
def test_rows_and_columns_are_rounded_up_to_tiles(m, n, k):
    """A row more than a whole tile costs a tile; up to the next one it costs nothing more."""
    rounded = [math.ceil(length / 128) * 128 for length in (m, n)]
    shape, whole = gemm(m, n, k).shape, gemm(*rounded, k).shape
    assert time(Kernel("gemm", 0, 0, shape)) == time(Kernel("gemm", 0, 0, whole))
    more = Kernel("gemm", 0, 0, (1, rounded[0] + 1, n, k))
    assert time(more) > time(Kernel("gemm", 0, 0, shape))


@PROPERTY
@given(size, size, size, st.integers(1, 64), st.integers(0, 3), st.integers(1, 5000))
def test_more_of_anything_is_never_faster(m, n, k, groups, which, more):
    shape = [groups, m, n, k]
    shape[which] += more
    groups_, m_, n_, k_ = shape
    for precision in ("bf16", "fp8"):
        before, after = gemm(m, n, k, groups), gemm(m_, n_, k_, groups_)
        assert time(after, precision) >= time(before, precision) * (1 - 1e-12)


@PROPERTY
@given(size, size, size, st.integers(1, 64), st.sampled_from(["gemm", "batched"]))
def test_nothing_runs_above_the_roofs(m, n, k, groups, unit):
    """Useful FLOP over time stay below the share of the peak, bytes below that of bandwidth."""
    kernel = gemm(m, n, k, groups, unit)
    for precision, peak in DEVICE.peak_flops:
        width = {"fp8": 1.0, "int8": 1.0, "nvfp4": 9 / 16}.get(precision, 2.0)
        if width < 2.0 and unit == "batched":
            width, peak = 2.0, 1000e12
        found = time(kernel, precision)
        assert found * peak * 0.8 >= kernel.flops
        assert found * 2e12 * 0.9 >= kernel.bytes * width / 2 * (1 - 1e-12)


def test_splitting_one_product_is_never_faster():
    """What tensor parallelism does to shapes: parts take at least their share."""
    for tp in (2, 4, 8):
        whole = time(gemm(4096, 8192, 8192))
        assert tp * time(gemm(4096, 8192 / tp, 8192)) >= whole
        assert tp * time(gemm(4096, 8192, 8192 / tp)) >= whole


@PROPERTY
@given(size, size, size, st.floats(1.0, 50.0))
def test_a_better_device_is_never_slower(m, n, k, better):
    kernel = gemm(m, n, k)
    peaks = tuple((name, better * peak) for name, peak in DEVICE.peak_flops)
    both = replace(
        DEVICE, peak_flops=peaks, memory_bandwidth_Bps=better * DEVICE.memory_bandwidth_Bps
    )
    for precision in ("bf16", "fp8"):
        before = time(kernel, precision)
        assert time(kernel, precision, both) == pytest.approx(before / better, rel=1e-9)
        for one in (
            replace(DEVICE, peak_flops=peaks),
            replace(DEVICE, memory_bandwidth_Bps=both.memory_bandwidth_Bps),
            replace(DEVICE, units=200),
        ):
            if one.units == 200:  # more units at the same peak are narrower ones
                continue
            assert time(kernel, precision, one) <= before * (1 + 1e-12)


@pytest.mark.parametrize(
    ("field", "worse"),
    [
        ("gemm_efficiency", 0.4), ("wave_tail", 2.0), ("depth_tail", 64.0),
        ("memory_efficiency", 0.45), ("attention_efficiency", 0.25),
        ("biased_attention_efficiency", 0.1),
    ],
)  # fmt: skip
def test_every_parameter_of_a_family_counts(field, worse):
    """A worse one slows some kernel and speeds none."""
    slow = replace(DEVICE, family=replace(FAMILY, **{field: worse}))
    shape = (4.0, 128.0, 128.0, 64.0)
    probes = [
        gemm(8192, 8192, 8192), Kernel("memory", 0.0, 1e9), Kernel("attention", 1e12, 1.0, shape),
        Kernel("biased_attention", 1e12, 1.0, shape),
    ]  # fmt: skip
    before = [time(probe) for probe in probes]
    after = [time(probe, device=slow) for probe in probes]
    assert all(x <= y for x, y in zip(before, after, strict=True))
    assert before != after


# Precision --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("precision", "times"), [("fp8", 2), ("int8", 2), ("nvfp4", 4)])
def test_narrow_precisions_speed_products_with_weights_only(precision, times):
    """Attention, products of activations and everything element-wise stay in 16 bits."""
    large = (16_384.0, 16_384.0, 16_384.0)
    assert time(gemm(*large), precision) == pytest.approx(time(gemm(*large)) / times)
    for kernel in (
        gemm(*large, unit="batched"), Kernel("memory", 0.0, 1e9),
        Kernel("attention", 1e15, 1.0, (1.0, 1.0, 1.0, 1.0)),
    ):  # fmt: skip
        assert time(kernel, precision) == time(kernel)


@PROPERTY
@given(st.integers(2048, 20_000), st.integers(2048, 20_000), st.integers(2048, 20_000))
def test_fp8_is_not_slower_for_large_products(m, n, k):
    """Casting included: what both passes of a projection cast."""
    plain, cast = gemm(m, n, k), replace(gemm(m, n, k), cast=m * k)
    assert time(plain, "fp8") <= time(cast, "fp8") <= time(plain)


@pytest.mark.parametrize(
    ("precision", "readings", "width"), [("fp8", 1, 1), ("int8", 2, 1), ("nvfp4", 2, 9 / 16)]
)
def test_narrow_precisions_cast_what_they_read(precision, readings, width):
    """Two bytes read, twice for a scale that must be found, and written along both sides."""
    plain = gemm(8192, 8192, 8192)
    extra = time(replace(plain, cast=8192.0**2), precision) - time(plain, precision)
    assert extra * 2e12 * 0.9 / 8192**2 == pytest.approx(2 * readings + 2 * width)
    assert time(replace(plain, cast=8192.0**2)) == time(plain)


def test_without_bf16_fp8_leaves_the_rest_to_fp16():
    device = replace(DEVICE, peak_flops=(("fp16", 500e12), ("fp8", 2000e12)))
    kernel = Kernel("attention", 1e15, 1.0, (1.0, 1.0, 1.0, 1.0))
    assert time(kernel, "fp8", device) == pytest.approx(1e15 / (500e12 * 0.5))


def test_a_precision_that_the_device_lacks_is_a_key_error():
    """Scenarios refuse it before; here it is a defect of the caller."""
    assert DEVICE.precisions == ("bf16", "fp8", "nvfp4", "int8", "fp32")
    with pytest.raises(KeyError):
        time(gemm(5, 5, 5), "fp16")


def test_products_are_measured_against_the_best_that_was():
    """700 of 1000 TFLOP/s measured in bf16: so much longer, and elsewhere by the same share."""
    device = replace(DEVICE, matmul_flops=(("bf16", 700e12),))
    kernel = gemm(16_384, 16_384, 16_384)
    for precision in ("bf16", "fp32"):
        assert time(kernel, precision, device) == pytest.approx(time(kernel, precision) / 0.7)
    assert time(kernel, "fp8", device) >= time(kernel, "fp8") / 0.7 * (1 - 1e-9)
    assert time(Kernel("memory", 0.0, 1e9), device=device) == time(Kernel("memory", 0.0, 1e9))


# Operators --------------------------------------------------------------------------------------


def test_an_operator_takes_its_kernels_one_after_another():
    forward, backward = (gemm(999, 77, 500),), (gemm(999, 500, 77), gemm(77, 500, 999))
    operator = Operator("p", "linear", forward, backward, (), 0.0, False)
    assert forward_seconds(operator, DEVICE, "bf16") == time(forward[0])
    assert backward_seconds(operator, DEVICE, "bf16") == sum(map(time, backward))


# Families ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", preset_names("estimators"))
def test_every_shipped_family_is_one(name):
    """Shares lie within their bounds, and the source says where they come from."""
    family = load_family(name)
    assert family.name == name
    assert family.source
    assert family.calibrated == (name in ("a100", "h100"))
    for field in ("memory_efficiency", "attention_efficiency", "biased_attention_efficiency"):
        assert 0 < getattr(family, field) <= 1
    assert 0 < family.gemm_efficiency < 1.5  # of the best product measured, where one was
    for field in ("overlap_tp", "overlap_dp"):
        assert 0 <= getattr(family, field) <= 1
    assert min(family.wave_tail, family.depth_tail) >= 0
    assert 0 <= family.host_s < 1e-3


@pytest.mark.parametrize("name", preset_names("accelerators"))
def test_every_shipped_accelerator_runs_below_its_peaks(name):
    device = load_accelerator(name)
    kernel = gemm(8192, 8192, 8192)
    for precision, peak in device.peak_flops:
        found = time(kernel, precision, device)
        assert 0.05 * peak < kernel.flops / found < peak


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        *(
            (
                name,
                value,
                f"estimator.{name} must lie above 0 and at most at 1, but is {value}: correct it.",
            )
            for name in ("memory_efficiency", "attention_efficiency", "biased_attention_efficiency")
            for value in (0.0, -0.5, 1.01, math.nan)
        ),
        *(
            (name, -1.0, f"estimator.{name} must not be negative, but is -1.0: correct it.")
            for name in ("wave_tail", "depth_tail", "host_s")
        ),
    ],
)
def test_families_out_of_range_are_refused(field, value, message):
    with pytest.raises(InputError) as caught:
        replace(FAMILY, **{field: value})
    assert str(caught.value) == message


@pytest.mark.parametrize("value", [0.0, -0.5])
def test_products_reach_something(value):
    with pytest.raises(InputError, match=r"^estimator\.gemm_efficiency must "):
        replace(FAMILY, gemm_efficiency=value)


def test_an_unknown_family_is_refused():
    with pytest.raises(InputError) as caught:
        load_family("abacus")
    assert str(caught.value) == (
        "accelerator.family must be one of the families, but is 'abacus': pick "
        + ", ".join(preset_names("estimators"))
        + "."
    )
    assert isinstance(FAMILY, Family)


def test_what_is_added_to_a_sum_is_moved_in_its_own_width():
    """Beside the product's own bytes, no narrower in fp8, and no faster with fewer tokens."""
    sums = 8.0 * 128 * 128
    thin = replace(gemm(128, 128, 1), added_bytes=sums)
    for precision, share in (("bf16", 1.0), ("fp8", 0.5), ("fp32", 1.0)):
        moved = share * thin.bytes + sums
        assert time(replace(thin, flops=0.0), precision) == pytest.approx(
            max(moved / (2e12 * 0.9), time(replace(thin, bytes=0.0, added_bytes=0.0), precision))
        )
    alone = Kernel("memory", 0.0, 0.0, added_bytes=1.8e9)
    assert time(alone) == pytest.approx(1e-3)
    assert least_seconds(alone, DEVICE, "bf16") == 0.0
    assert least_seconds(thin, DEVICE, "bf16") == least_seconds(gemm(128, 128, 1), DEVICE, "bf16")
