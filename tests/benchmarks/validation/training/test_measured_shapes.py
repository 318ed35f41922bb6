"""Which shapes measured runs had."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.validation.training.shapes import measured_shapes
from nest_core.calibration.training.predict import predict_rows


def test_runs_are_counted_by_what_they_ran(one):
    """Of quality C nothing is fitted, and nothing counted; nor what was not timed."""
    rows = [one(), one(), one(micro_batch=1), one(quality="C"), one(recompute="none")]
    untimed = replace(rows[0], outcome=replace(rows[0].outcome, seconds=None))
    predictions, left = predict_rows([*rows, untimed])
    assert not left
    found = measured_shapes(predictions)
    assert {shape.recompute: runs for *_, shape, runs in found} == {"full": 3, "none": 1}
    assert {(family, stack) for family, stack, *_ in found} == {("a100", rows[0].run.stack)}
