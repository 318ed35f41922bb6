"""Sources left out: scores of intervals, and that a source's own runs say nothing of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from run_tables import SUBSET

from benchmarks.validation.training.blind import left_out_section, regional, scored
from benchmarks.validation.training.posterior import evidence, source_name
from nest_core.calibration.training import read_runs
from nest_core.calibration.training.predict import predict_rows
from nest_core.hardware.posterior import load_posterior


@pytest.fixture(scope="module")
def rows():
    return read_runs((SUBSET / "mlperf_dev.csv").read_text(), "m.csv")[0]


def test_an_interval_pays_for_its_width_and_tenfold_for_what_it_misses():
    measured = np.array([0.0, 0.3, -0.5])
    found = scored(measured, np.zeros(3), np.full(3, -0.2), np.full(3, 0.2))
    assert found.inside == pytest.approx(1 / 3)
    assert found.score == pytest.approx(0.4 + 10 * (0.1 + 0.3) / 3)
    assert found.error == pytest.approx(np.mean([0.0, 1 - np.exp(-0.3), np.exp(0.5) - 1]))


def test_a_region_without_its_source_knows_nothing_of_its_errors(rows):
    predictions, _ = predict_rows(rows)
    assert regional(predictions) == {}  # all of one source
    other = [replace(item, run=replace(item.run, source="elsewhere/x")) for item in predictions]
    known = regional([*predictions[:4], *other[4:]])
    slower = [
        replace(item, outcome=replace(item.outcome, seconds=9.0 * item.outcome.seconds))
        for item in predictions[:4]
    ]
    moved = regional([*slower, *other[4:]])
    mine = [item.run.id for item in predictions[:4]]
    assert [moved[name] for name in mine] == [known[name] for name in mine]
    assert moved != known


@pytest.mark.check
def test_every_source_and_stack_has_its_line(rows):
    train, _ = read_runs((SUBSET / "train_measurements.csv").read_text(), "t.csv")
    chosen = [*train[::6], *rows]
    known = load_posterior()
    found = [item for row in chosen if (item := evidence(row, known)) is not None]
    lines = left_out_section(found, predict_rows(chosen)[0])
    text = "\n".join(lines)
    assert all(f"| {source_name(item.run.source)} |" in text for item in found)
    assert f"| all runs but single nodes of A100 | {len(found)} |" in text
    assert "| the model, of the same |" in text
