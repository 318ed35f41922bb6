"""Kinds of runs, and the band that a scenario's figure gets from runs like it."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import pytest
from run_tables import SUBSET, TABLES

from benchmarks.validation.training.bands import FEWEST, bands_toml, measured_bands
from benchmarks.validation.training.regions import REPORTED, cell_of, cells, fitted, region_scores
from nest_core.calibration.training import MeasuredOutcome, read_runs
from nest_core.calibration.training.bands import ErrorBand, band_of, load_bands, read_bands
from nest_core.calibration.training.machines import accelerator_of, model_of
from nest_core.calibration.training.predict import Prediction, plan_of, predict_rows
from nest_core.costs import Plan, Point


@pytest.fixture(scope="module")
def predictions():
    found = []
    for name in TABLES:
        rows, _ = read_runs((SUBSET / name).read_text(), name, f"{name} ")
        found += predict_rows(rows)[0]
    return found


def names(prediction):
    return {region.name for region in REPORTED if region.holds(prediction)}


def made(one, **cells):
    return Prediction(one(**cells).run, MeasuredOutcome(1.0), 1.1, 1e9, True)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"source": "VIA-Research/vTrain"}, {"Megatron-LM, several nodes of A100"}),
        (
            {"source": "VIA-Research/vTrain", "gpus": "8", "dp": "1"},
            {"Megatron-LM, one node of A100"},
        ),
        ({"source": "NVIDIA/Megatron-LM README"}, {"A100 in NVIDIA's own clusters"}),
        ({"source": "arXiv:2104.04473 Table 1"}, {"A100 in NVIDIA's own clusters"}),
        ({"source": "elsewhere"}, {"A100 in other clusters, Megatron-LM"}),
        ({"dist_opt_or_zero": "fsdp(zero3)", "pp": "1", "dp": "4"}, {"A100, FSDP and ZeRO 3"}),
        ({"accelerator": "H100-80GB", "precision": "bf16"}, {"H100, dense, Megatron-LM"}),
        (
            {"accelerator": "H100-80GB", "precision": "bf16", "dist_opt_or_zero": "fsdp2(zero3)"},
            {"H100, dense, FSDP"},
        ),
    ],
)
def test_kinds_of_runs(one, cells, expected):
    assert names(made(one, **cells)) == expected


def test_mixtures_and_devices_without_calibration_stand_apart(one):
    moe = made(one, accelerator="H100-80GB", precision="bf16", experts="8", topk="2", ep="2")
    assert names(moe) == {
        "Mixtures of experts, calibrated devices",
        "Mixtures of experts, every device",
    }
    other = replace(moe, calibrated=False)
    assert names(other) == {"Mixtures of experts, every device", "Devices without calibration"}


def test_what_may_be_fitted(one):
    assert fitted(made(one, set="calib15"))
    assert fitted(made(one, source="VIA-Research/vTrain", gpus="8", dp="1"))
    assert not fitted(made(one, source="VIA-Research/vTrain"))
    assert not fitted(made(one))


@pytest.mark.check
def test_regions_count_their_rows(predictions):
    scores = region_scores(predictions)
    assert len(scores) >= 10
    for found in scores:
        own = [p for p in predictions if found.region.holds(p) and p.outcome.seconds is not None]
        assert found.every.n == len(own)
        mean = sum(abs(p.seconds / p.outcome.seconds - 1) for p in own) / len(own)
        assert found.every.mape == pytest.approx(mean)
        if found.unseen is not None:
            assert found.unseen.n == sum(not fitted(p) for p in own)


def test_cells_do_not_overlap(predictions):
    parts = cells(predictions)
    measured = [item for item in predictions if item.outcome.seconds is not None]
    assert sum(map(len, parts.values())) == len(measured)
    assert all(cell_of(item) == cell for cell, items in parts.items() for item in items)


def test_bands_are_quantiles_and_are_read_back(predictions):
    bands = measured_bands(predictions)
    assert bands
    parts = cells(predictions)
    for band in bands:
        errors = sorted(p.seconds / p.outcome.seconds - 1 for p in parts[band.cell])
        assert band.n == len(errors) >= FEWEST
        inside = sum(band.p10 - 1e-4 <= error <= band.p90 + 1e-4 for error in errors)
        assert inside >= 0.6 * band.n
        assert errors[0] - 1e-4 <= band.p10 <= band.p90 <= errors[-1] + 1e-4
    again = list(read_bands(tomllib.loads(bands_toml(bands))))
    for band, copy in zip(bands, again, strict=True):
        assert copy.parameters == pytest.approx(band.parameters, rel=1e-3)
        assert replace(copy, parameters=band.parameters) == band


def test_every_measured_run_finds_its_own_band(predictions):
    """Asked as a scenario: by the accelerator's name and the plan that it was priced with."""
    bands = measured_bands(predictions)
    by_cell = {band.cell: band for band in bands}
    checked = set()
    for item in predictions:
        run, cell = item.run, cell_of(item)
        if item.outcome.seconds is None or run.per_node not in (0, 8, 72):
            continue
        plan = plan_of(run, run.layers + 2, "none")
        name = accelerator_of(run.accelerator).name
        found = band_of(name, model_of(run), plan, run.precision, run.sequence, run.devices, bands)
        assert found == by_cell.get(cell), run.id
        checked.add(cell[-1])
    assert checked == {"one node", "several nodes"}


def test_shipped_bands_are_whole():
    bands = load_bands()
    assert len(bands) >= 8
    assert all(-1 < band.p10 <= band.p90 and band.n >= FEWEST for band in bands)
    assert len({band.cell for band in bands}) == len(bands)


def band(**changes):
    made = ErrorBand(
        "A100", ("A100", "model parallel", "dense", "16 bits", "several nodes"), 9, -0.1, 0.05,
        0.06, (64, 512), (3.6e9, 175e9), (2048, 2048),
    )  # fmt: skip
    return replace(made, **changes)


def asked(one, devices=64, precision="bf16", tokens=2048, accelerator="A100 SXM 80 GB", **point):
    given = {"tp": 4, "sp": False, "dp": 8, "pp": 2, "micro_batch": 1, "zero": 1} | point
    plan = Plan(Point(**given, order=("tp", "cp", "dp", "pp")), (0, 1, 38), ("none", "none"))
    return band_of(accelerator, model_of(one().run), plan, precision, tokens, devices, [band()])


def test_a_scenario_gets_the_band_of_its_kind(one):
    found = asked(one)
    assert found == band()
    assert found.to_json() == {"region": "A100", "n": 9, "p10": -0.1, "p90": 0.05}


@pytest.mark.parametrize(
    "outside",
    [
        {"devices": 2048},
        {"devices": 8},
        {"precision": "fp8"},
        {"tokens": 16_384},
        {"accelerator": "H100 SXM 80 GB"},
        {"accelerator": "Abacus"},
        {"zero": 3, "pp": 1},
    ],
)
def test_outside_everything_measured_there_is_no_band(one, outside):
    assert asked(one, **outside) is None


def test_sizes_may_be_a_factor_of_two_away(one):
    assert asked(one, devices=1024) == asked(one, devices=32) == band()
    assert asked(one, devices=1025) is None


def test_degrees_far_beyond_the_measured_ones_are_outside():
    """A pipeline of 40 stages is not validated by runs of at most 16."""
    band = ErrorBand("r", ("a",), 9, -0.1, 0.1, 0.05, (8.0, 64.0), (1e9, 1e10), (2048.0, 4096.0),
                tp=(1.0, 8.0), pp=(2.0, 16.0))  # fmt: skip
    asked = {"devices": 32, "parameters": 2e9, "tokens": 2048}
    assert band.holds(**asked, tp=16, pp=32)
    assert not band.holds(**asked, tp=17, pp=16)
    assert not band.holds(**asked, tp=8, pp=40)
