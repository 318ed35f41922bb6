"""Expert degrees chosen beside those that were run: never behind a plan at hand, and said why."""

from __future__ import annotations

import pytest
from run_tables import SUBSET

from benchmarks.validation import regenerate, validate_mixtures
from benchmarks.validation.__main__ import run
from benchmarks.validation.training.document import MIXTURES_MARK
from benchmarks.validation.training.optima import groups
from nest_core.calibration.training import read_runs
from nest_core.calibration.training.predict import predict, predict_rows


@pytest.fixture(scope="module")
def mixture():
    """A published mixture that its recipe ran with 8 experts a rank."""
    rows = read_runs((SUBSET / "train_measurements.csv").read_text(), "t.csv")[0]
    predictions, _ = predict_rows(row for row in rows if row.run.experts > 1)
    fitting = (group for group in groups(predictions) if predict(group.best.run).feasible)
    return next(group for group in fitting if group.best.run.framework == "megatron")


def rows_of(monkeypatch, group, effort):
    monkeypatch.setattr(validate_mixtures.validate_training, "SHARED", SUBSET)
    monkeypatch.setattr(validate_mixtures, "EFFORT", effort)
    monkeypatch.setattr(validate_mixtures, "SCENARIOS", ())
    monkeypatch.setattr(validate_mixtures, "groups", lambda _: [group])
    return validate_mixtures.mixtures()


def test_a_search_without_time_has_the_plan_that_was_run(monkeypatch, mixture):
    (row,) = rows_of(monkeypatch, mixture, 1e-9)["rows"]
    assert row["ran_lacks_GiB"] == 0
    assert row["chosen_s"] <= row["ran_predicted_s"] == predict(mixture.best.run).iteration_s
    assert not row["proven"]
    assert row["least_s"] < row["chosen_s"]


def test_another_degree_is_explained_by_terms(monkeypatch, mixture):
    fields = rows_of(monkeypatch, mixture, 0.2)
    (row,) = fields["rows"]
    assert row["chosen_s"] <= row["ran_predicted_s"]
    if row["chosen"]["ep"] == row["ran"]["ep"]:
        assert "alike_s" not in row
    else:
        assert row["chosen_s"] <= row["alike_s"] <= row["ran_predicted_s"]
        assert next(iter(row["more"].values())) > 0
    assert "0 chosen plans are priced above the run's, 0 of" in validate_mixtures.as_text(fields)


def test_regenerating_leaves_other_parts_alone(monkeypatch, tmp_path, mixture):
    rows_of(monkeypatch, mixture, 1e-9)
    document = tmp_path / "validation.md"
    document.write_text("# Validation\n\nOf others.\n")
    monkeypatch.setattr(regenerate, "DOCUMENT", document)
    monkeypatch.setattr(regenerate.validate_training, "SHARED", SUBSET)
    assert run(["regenerate", "mixtures"]) == 0
    begins = f"# Validation\n\nOf others.\n\n{MIXTURES_MARK}\n\n## Expert degrees"
    assert document.read_text().startswith(begins)
    assert run(["regenerate", "mixtures", "--fit"]) == 2
    monkeypatch.setattr(regenerate.validate_training, "SHARED", tmp_path)
    assert run(["regenerate", "mixtures"]) == 2
