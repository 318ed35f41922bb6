"""``python -m benchmarks.validation`` on tables of training runs."""

from __future__ import annotations

import csv
import json

import pytest
from run_tables import PLAIN, SUBSET, TABLES, as_csv

from benchmarks.validation.__main__ import run

ROW = {"id", "measured_s", "predicted_s", "error"}
GROUP = {"name", "n", "mape", "bias", "spearman", "regret"}


def asked(capsys, target):
    assert run([str(target), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("name", "every"),
    [
        (TABLES[0], 4),
        pytest.param(TABLES[0], 1, marks=pytest.mark.check),
        *((t, 1) for t in TABLES[1:]),
    ],
)
@pytest.mark.sampled(3)
def test_a_table_is_validated(name, every, capsys, tmp_path):
    lines = list(csv.DictReader((SUBSET / name).read_text().splitlines()))[::every]
    path = tmp_path / name
    path.write_text(as_csv(*lines))
    fields = asked(capsys, path)
    assert len(fields["rows"]) + len(fields["skipped"]) == len(lines)
    assert all(set(row) >= ROW for row in fields["rows"])
    assert all(set(group) == GROUP for group in fields["groups"])
    assert all(set(row) == {"id", "reason"} for row in fields["skipped"])
    assert all(set(region) > GROUP for region in fields["regions"])
    measured = [row for row in fields["rows"] if row["measured_s"] is not None]
    assert sum(group["n"] for group in fields["groups"]) == len(measured) > 10
    for row in measured:
        assert row["error"] == pytest.approx(row["predicted_s"] / row["measured_s"] - 1)


def test_rows_without_a_time_are_predicted_all_the_same(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(as_csv({**PLAIN, "iter_time_s": ""}))
    fields = asked(capsys, path)
    assert fields["rows"][0]["predicted_s"] > 0
    assert fields["rows"][0]["measured_s"] is None
    assert fields["rows"][0]["error"] is None
    assert fields["groups"] == fields["regions"] == []


def test_nothing_to_predict_is_an_answer(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(as_csv({**PLAIN, "accelerator": "Abacus"}))
    fields = asked(capsys, path)
    assert fields["rows"] == []
    assert "accelerator must have a preset" in fields["skipped"][0]["reason"]
    assert run([str(path)]) == 0
    assert "0 runs predicted" in capsys.readouterr().out


@pytest.mark.check
def test_people_read_regions_groups_and_reasons(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(as_csv(*csv.DictReader((SUBSET / TABLES[0]).read_text().splitlines()[::4])))
    assert run([str(path)]) == 0
    text = capsys.readouterr().out
    assert "H100, dense, Megatron-LM" in text
    assert "mean error" in text


def test_a_file_that_is_neither_is_one_sentence(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("model,layers\nGPT,3\n")
    assert run([str(path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "must have the columns" in error
