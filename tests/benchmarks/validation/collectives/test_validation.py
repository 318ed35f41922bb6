"""What is promised about errors, on rows that no fit saw."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.validation.collectives.errors import SEED, summarise
from benchmarks.validation.collectives.tables import half, point_key
from benchmarks.validation.collectives.training import (
    UNSEEN,
    _samples,
    curve_name,
    fit_library,
    training_half,
)
from benchmarks.validation.collectives.validation import (
    compare,
    held_out,
    held_out_groups,
    predicted_seconds,
)
from nest_core.documents.presets import load_toml, preset_path
from nest_core.hardware.collectives.library import load_curve
from nest_core.hardware.collectives.measurements import Measurement

SUBSET = Path(__file__).resolve().parents[3] / "data" / "calibration"


def large(rows, library):
    compared, _ = compare(held_out(rows), library)
    return held_out_groups(compared)["In all"][0]


def test_errors_on_the_whole_data(whole, library):
    """The issue's thresholds."""
    group = large(whole, library)
    assert group.n > 400
    assert group.median < 0.08
    assert group.p90 < 0.25


def test_errors_on_the_subset(subset, library):
    group = large(subset, library)
    assert group.n > 50
    assert group.median < 0.08
    assert group.p90 < 0.25


@pytest.mark.check
def test_shipped_figures_are_those_of_the_training_half(whole, library):
    """Fitting again gives the presets, up to the last digits of another machine."""
    pytest.importorskip("scipy")
    again = fit_library(training_half(whole), library)
    for curve in again.curves:
        shipped = library[curve.name]
        if curve.link == "nvlink":
            for op in ("all_reduce", "all_to_all"):
                for size in (1e5, 1e7, 1e9):
                    time, kept = (c.seconds(op, 4, size, 3e11) for c in (curve, shipped))
                    assert time == pytest.approx(kept, rel=0.01)


def test_the_halves_share_nothing(whole):
    """No point is in both halves, repeated runs included; both are about a half."""
    fitted, tested = training_half(whole), held_out(whole)
    assert len(fitted) + len(tested) == len(whole)
    assert not {point_key(row) for row in fitted} & {point_key(row) for row in tested}
    assert 0.45 < len(fitted) / len(whole) < 0.55
    assert all(half(row, SEED) == half(replace(row, seconds=1.0, id="z"), SEED) for row in whole)


@pytest.mark.check
def test_a_fit_never_reads_the_other_half(subset, library):
    """Held-out times made absurd change nothing that is shipped; fitted ones would."""
    pytest.importorskip("scipy")
    held = {row.id for row in held_out(subset)}
    wild = [replace(row, seconds=row.seconds * 9) if row.id in held else row for row in subset]
    assert fit_library(training_half(wild), library) == fit_library(training_half(subset), library)
    assert not any(row.accelerator in UNSEEN for row in training_half(subset))


def test_a_family_left_out_contributes_nothing(subset, library):
    items = _samples(training_half(subset), library, "nvlink")
    own = [row for row in training_half(subset) if curve_name(row, library) == "h100-nvlink4"]
    assert sum(item.curve == "h100-nvlink4" for item in items) == len(own) > 0


def test_the_subset_is_part_of_the_whole(whole, subset):
    points = {(row.id, row.bytes, row.seconds) for row in whole}
    assert {(row.id, row.bytes, row.seconds) for row in subset} <= points
    assert "Apache-2.0" in (SUBSET / "README.md").read_text()


def test_figures_of_a_group(library, subset):
    compared, _ = compare(subset, library)
    exact = [replace(item, predicted_s=item.row.seconds * 1.1) for item in compared]
    group = summarise("x", exact)
    assert group.median == pytest.approx(0.1)
    assert group.bias == pytest.approx(0.1)
    assert group.spearman == 1.0


def test_presets_report_their_held_out_error(whole, library):
    """The error in a preset's provenance is the one found now."""
    compared, _ = compare(held_out(whole), library)
    tables = held_out_groups(compared)["By family and network (64 KiB and more)"]
    for group in tables:
        kept = load_toml(preset_path("collectives", f"{group.name}.toml"))["provenance"]
        assert kept["held_out_rows"] == group.n
        assert kept["held_out_median"] == pytest.approx(group.median, abs=0.005)


def test_unmeasured_networks_are_marked():
    document = load_toml(preset_path("collectives", "network-infiniband.toml"))
    assert "assumed" in document["provenance"]["status"]
    assert load_curve("network-infiniband").bandwidths


def test_what_has_no_prediction_says_why(library):
    row = Measurement("a", "all_reduce", "RTX 4090", 8, 1, 1e6, 1e-3)
    assert "link rate of RTX 4090" in predicted_seconds(row, library)
    row = Measurement("a", "all_reduce", "H100", 16, 2, 1e6, 1e-3, network="carrier pigeon")
    assert "rate per device" in predicted_seconds(row, library)
