"""Nothing measured enters a prediction."""

from __future__ import annotations

import csv
import random
from dataclasses import fields

import pytest
from run_tables import MEASURED_COLUMNS, SUBSET, TABLES, as_csv

from nest_core.calibration.training import Run, read_runs
from nest_core.calibration.training.predict import predict_rows


def predicted(rows):
    """Seconds and bytes by row, and the rows without."""
    found, unread = read_runs(as_csv(*rows), "t.csv")
    predictions, without = predict_rows(found)
    numbers = {item.run.id: (item.seconds, item.memory_bytes) for item in predictions}
    return numbers, sorted((row.id, row.reason) for row in [*unread, *without]), predictions


@pytest.mark.parametrize(
    ("name", "every"),
    [(TABLES[0], 3), *(pytest.param(name, 1, marks=pytest.mark.check) for name in TABLES)],
)
@pytest.mark.check
def test_measured_cells_change_nothing(name, every):
    rows = list(csv.DictReader((SUBSET / name).read_text().splitlines()))[::every]
    measured = [column for column in MEASURED_COLUMNS if column in rows[0]]
    assert measured
    numbers, without, _ = predicted(rows)
    assert len(numbers) > 10
    draw = random.Random(1)
    blanked = [{**row, **dict.fromkeys(measured, "")} for row in rows]
    absurd = [{**row, **{c: str(draw.uniform(1, 1e6)) for c in measured}} for row in rows]
    broken = [{**row, **dict.fromkeys(measured, "not measured!")} for row in rows]
    for changed in (blanked, absurd, broken):
        assert predicted(changed)[:2] == (numbers, without)
    assert all(item.error is None for item in predicted(blanked)[2])
    assert all(item.error is not None for item in predicted(absurd)[2])


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.sampled(3)
def test_tables_without_measured_columns_are_predicted(name):
    rows = list(csv.DictReader((SUBSET / name).read_text().splitlines()))
    numbers, without, _ = predicted(rows)
    bare = [{c: text for c, text in row.items() if c not in MEASURED_COLUMNS} for row in rows]
    assert predicted(bare)[:2] == (numbers, without)


def test_rows_do_not_influence_one_another():
    rows = list(csv.DictReader((SUBSET / TABLES[0]).read_text().splitlines()))
    numbers, *_ = predicted(rows)
    backwards, *_ = predicted(rows[::-2])
    assert backwards
    assert all(numbers[name] == found for name, found in backwards.items())


@pytest.mark.check
def test_marks_and_names_of_rows_change_nothing():
    """Identity, quality and the mark of rows that may be fitted are labels; so is the source of a
    row that names its stack."""
    rows = list(csv.DictReader((SUBSET / TABLES[0]).read_text().splitlines()))
    numbers, _, predictions = predicted(rows)
    stacks = {item.run.id: item.run.stack for item in predictions}
    rows = [{**row, "stack": stacks.get(row["id"], "")} for row in rows]
    labels = {"quality": "C", "set": "calib15", "source": "elsewhere"}
    relabelled, *_ = predicted([{**row, **labels} for row in rows])
    assert relabelled == numbers


def test_a_run_has_no_place_for_outcomes():
    names = {field.name for field in fields(Run)}
    assert not names & {"seconds", "memory_bytes", "tokens_per_s", "tflops", "mfu"}
