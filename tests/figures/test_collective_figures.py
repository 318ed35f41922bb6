"""Collective figures: every curve says what the sweep says; the finding follows from it."""

from __future__ import annotations

import numpy as np
import pytest

from nest_core.calibration.collectives.sweep import CollectiveSweep, Measured, load_measured, sweep
from nest_core.costs.software import Software
from nest_core.documents.presets import preset_names
from nest_core.hardware.collectives.library import load_library
from nest_core.network import collapse
from nest_core.report.explain.headlines import levels_table
from nest_core.report.figures.collectives import (
    bandwidth_figure,
    half_peak_bytes,
    size_label,
    time_figure,
)
from nest_core.scenario import load_fabric

NODES = collapse(load_fabric("h100-spine-leaf-64"))


def affine(alpha_s, bus_Bps, bound_Bps):
    """A collective of ``alpha + bytes / bandwidth`` between two devices (factor 1)."""
    size = 2.0 ** np.arange(12, 32.25, 0.5)
    return CollectiveSweep(
        "all_reduce", 2, 1, size, alpha_s + size / bus_Bps, ("ring",) * len(size), bound_Bps
    )


def test_the_curves_are_the_sweep():
    found = sweep(NODES, "all_reduce", 8)
    bound, ours = time_figure(found).plot.data
    assert np.array_equal(ours.x, found.size_bytes)
    assert np.array_equal(ours.y, found.seconds)
    assert np.array_equal(bound.y, found.bound_s)
    bound, ours = bandwidth_figure(found).plot.data
    assert np.allclose(ours.y, found.bus_Bps / 1e9)
    assert np.allclose(bound.y, 450.0)


def test_both_figures_share_the_message_axis():
    found = sweep(NODES, "all_gather", 64)
    one, other = (figure(found).plot.layout.xaxis for figure in (time_figure, bandwidth_figure))
    assert one == other
    assert one.type == "log"
    assert list(one.ticktext) == ["4 KiB", "64 KiB", "1 MiB", "16 MiB", "256 MiB", "4 GiB"]


def test_half_the_peak_is_where_latency_equals_transfer():
    found = affine(10e-6, 100e9, 100e9)
    half = half_peak_bytes(found)
    assert half == pytest.approx(10e-6 * 100e9, rel=0.01)
    title = bandwidth_figure(found).title
    assert title == f"Half of the peak bus bandwidth is reached at {size_label(half)}"


def test_a_slow_algorithm_never_gets_there():
    found = affine(1e-6, 20e9, 100e9)
    assert half_peak_bytes(found) is None
    assert bandwidth_figure(found).title == "Even 4 GiB reach only 20 % of the peak of 100 GB/s"


def test_without_latency_every_message_gets_there():
    title = bandwidth_figure(affine(0.0, 100e9, 100e9)).title
    assert title == "Messages of 4 KiB and more reach over half of 100 GB/s"


def test_measured_runs_are_points_on_both():
    found = sweep(NODES, "all_reduce", 8)
    points = load_measured("h100-nvlink4", "all_reduce", 8)
    shown = time_figure(found, points)
    assert np.array_equal(shown.plot.data[2].y, points.seconds)
    assert shown.title.startswith("Measured runs take ")
    shown = bandwidth_figure(found, points)
    expected = 2 * 7 / 8 * points.size_bytes / points.seconds / 1e9
    assert np.allclose(shown.plot.data[2].y, expected)
    assert shown.legend[-1][0] == "measured, NVIDIA H100 80GB HBM3"


def test_near_measurements_are_told_by_their_distance():
    found = affine(10e-6, 100e9, 100e9)
    size = np.array([2.0**16, 2.0**20, 2.0**24])
    measured = Measured("X", "somewhere", size, (10e-6 + size / 100e9) * [1.1, 1.2, 1.3])
    title = time_figure(found, measured).title
    assert title == "Measured runs differ by 20 % in the median, 30 % at worst"


def test_a_library_stays_near_what_it_was_fitted_to():
    speaks = Software(load_library()["h100-nvlink4"])
    found = sweep(NODES, "all_gather", 8, algorithm="library", software=speaks)
    points = load_measured("h100-nvlink4", "all_gather", 8)
    assert "in the median" in time_figure(found, points).title


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", preset_names("fabrics"))
@pytest.mark.parametrize("op", ["all_reduce", "all_to_all"])
def test_every_preset_has_figures(name, op):
    found = sweep(collapse(load_fabric(name)), op, 8)
    for shown in (time_figure(found), bandwidth_figure(found)):
        assert shown.title
        assert not shown.title.endswith(".")
        assert len(shown.title) < 80
        assert len(shown.plot.to_json()) < 100_000


@pytest.mark.parametrize("name", preset_names("fabrics"))
def test_the_level_table_says_what_the_levels_say(name):
    network = collapse(load_fabric(name))
    rows = levels_table(network).rows
    assert [row["level"] for row in rows] == [level.name for level in network.levels]
    for row, level in zip(rows, network.levels, strict=True):
        shown = float(row["all sending, GB/s per device"].replace(",", "").split()[0])
        scale = 1e3 if row["all sending, GB/s per device"].endswith("k") else 1.0
        assert shown * scale == pytest.approx(level.bandwidth_Bps / 1e9, rel=0.01)
        assert float(row["latency, µs"]) == pytest.approx(level.latency_s * 1e6, rel=0.01)
        assert ("groups" in row) == (network.torus is None)


@pytest.mark.parametrize(
    ("size", "label"), [(4096, "4 KiB"), (2**32, "4 GiB"), (3 * 2**19, "1.5 MiB"), (512, "512 B")]
)
def test_round_sizes_have_no_noughts(size, label):
    assert size_label(size) == label
