"""Few own runs move few parameters: towards the truth, no further, and never far without reason."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from nest_core.errors import InputError
from nest_core.hardware.stacks import load_stack, under
from nest_core.measured.training import Outcome, Row
from nest_core.measured.training.calibration import (
    FACTOR,
    FACTOR_SPREAD,
    NOISE,
    PRIORS,
    calibrated,
)
from nest_core.measured.training.machines import accelerator_of
from nest_core.measured.training.predict import predict
from nest_core.measured.training.stack_file import stack_toml

PLANS = (
    {"tp": "1", "pp": "1", "dp": "16", "micro_batch": "1"},
    {"tp": "2", "pp": "2", "dp": "4", "micro_batch": "2"},
    {"tp": "4", "pp": "2", "dp": "2", "micro_batch": "4"},
    {"tp": "8", "pp": "1", "dp": "2", "micro_batch": "1"},
    {"tp": "8", "pp": "2", "dp": "1", "micro_batch": "2"},
    {"tp": "4", "pp": "4", "dp": "1", "micro_batch": "8"},
)


@pytest.fixture(scope="module")
def runs(one):
    """Runs of one model under six plans."""
    return [one(id=str(at), recompute="none", **plan).run for at, plan in enumerate(PLANS)]


def rows_on(runs, factor=1.0, **parameters):
    """The runs with what they would take on a cluster with these parameters, times a factor."""
    rows = []
    for run in runs:
        device = accelerator_of(run.accelerator)
        family = replace(
            device.family,
            **{name: getattr(device.family, name) * by for name, by in parameters.items()},
        )
        seconds = predict(run, replace(device, family=family)).iteration_s
        rows.append(Row(run, Outcome(factor * seconds)))
    return rows


def value(found, name):
    return next(each.value for each in found.parameters if each.name == name)


def test_runs_that_are_predicted_exactly_move_nothing(runs):
    found = calibrated(rows_on(runs))
    for each in found.parameters:
        assert each.value == pytest.approx(each.prior, rel=1e-3)
        assert each.interval[0] < each.prior < each.interval[1]
    assert all(each.after == pytest.approx(each.before, rel=1e-3) for each in found.runs)


def test_a_slower_cluster_is_found_and_runs_left_out_are_predicted(runs):
    found = calibrated(rows_on(runs, gemm_efficiency=0.88, memory_efficiency=0.9))
    errors = {
        name: np.mean(
            [abs(getattr(each, name) / each.row.outcome.seconds - 1) for each in found.runs]
        )
        for name in ("before", "after", "left_out")
    }
    assert errors["before"] > 0.06
    assert errors["after"] < 0.01
    assert errors["after"] <= errors["left_out"] < 0.02


def test_what_slows_everything_is_taken_by_the_factor_and_what_it_is_like(runs):
    found = calibrated(rows_on(runs, factor=1.05))
    assert value(found, FACTOR) > 1.01
    assert all(
        each.after == pytest.approx(each.row.outcome.seconds, rel=0.01) for each in found.runs
    )


def test_more_runs_narrow_the_intervals(runs):
    rows = rows_on(runs, gemm_efficiency=0.9)
    widths = []
    for count in (1, 3, 6):
        found = calibrated(rows[:count])
        widths.append([each.interval[1] / each.interval[0] for each in found.parameters])
    for few, more in pairwise(widths):
        assert all(narrow <= wide * 1.05 for narrow, wide in zip(more, few, strict=True))


def test_left_out_is_what_a_fit_without_the_run_says(runs):
    """The identity of ridge regression beside fits that really lack each run."""
    rng = np.random.default_rng(7)
    rows = [
        Row(row.run, Outcome(row.outcome.seconds * float(np.exp(rng.normal(0, 0.08)))))
        for row in rows_on(runs, gemm_efficiency=0.92)
    ]
    found = calibrated(rows)
    for at, each in enumerate(found.runs[:2]):
        without = calibrated([*rows[:at], *rows[at + 1 :]])
        device = replace(accelerator_of(each.row.run.accelerator), family=without.family)
        really = without.factor * predict(each.row.run, device).iteration_s
        assert each.left_out == pytest.approx(really, rel=0.002)


def test_no_parameter_beside_the_point_is_more_probable(runs):
    rows = rows_on(runs[:3], factor=1.35, memory_efficiency=0.8)
    found = calibrated(rows)
    spreads = np.array([*PRIORS.values(), FACTOR_SPREAD])
    at = np.log([each.value / each.prior for each in found.parameters])

    def cost(point):
        parameters = dict(zip(PRIORS, np.exp(point[:-1]), strict=True))
        predicted = rows_on(runs[:3], factor=np.exp(point[-1]), **parameters)
        errors = [
            np.log(one.outcome.seconds / other.outcome.seconds)
            for one, other in zip(predicted, rows, strict=True)
        ]
        return np.sum(np.square(errors)) / NOISE**2 + np.sum((point / spreads) ** 2)

    for moved in np.vstack([np.eye(5), -np.eye(5)]) * 0.2 * spreads:
        assert cost(at) < cost(at + moved)


def test_one_run_has_none_to_be_left_out_of(runs):
    found = calibrated(rows_on(runs[:1], factor=1.1))
    assert found.runs[0].left_out is None


@pytest.mark.parametrize("factor", [1e3, 1e-3])
def test_times_in_another_unit_are_skipped_with_the_reason(runs, factor):
    strange = Row(runs[0], Outcome(rows_on(runs[:1])[0].outcome.seconds * factor))
    found = calibrated([strange, *rows_on(runs[1:])])
    assert [each.id for each in found.skipped] == [runs[0].id]
    assert "unit" in found.skipped[0].reason
    with pytest.raises(InputError, match="unit"):
        calibrated([strange])


def test_families_are_calibrated_apart(runs, one):
    other = one(id="h", accelerator="H100", recompute="none", precision="bf16")
    with pytest.raises(InputError, match="one family"):
        calibrated([*rows_on(runs[:1]), *rows_on([other.run])])


def test_the_file_is_a_stack_with_the_figures_that_were_fitted(runs, tmp_path):
    found = calibrated(rows_on(runs, gemm_efficiency=0.9, host_s=1.3))
    (tmp_path / "mine.toml").write_text(stack_toml(found, "mine"), encoding="utf-8")
    stack = load_stack("mine.toml", tmp_path)
    assert stack.families == (found.family.name,)
    device = accelerator_of("A100")
    own = under(device, stack, "fp16").family
    fitted = under(replace(device, family=found.family), load_stack(found.stack), "fp16").family
    for name in PRIORS:
        assert getattr(own, name) == pytest.approx(getattr(fitted, name), rel=1e-4)
    shipped = under(device, load_stack(found.stack), "fp16").family
    assert own.gemm_efficiency < shipped.gemm_efficiency
