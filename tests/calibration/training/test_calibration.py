"""Few own runs move few parameters: towards the truth, no further, and never far without reason."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from nest_core.calibration.training import MeasuredOutcome, MeasuredRow
from nest_core.calibration.training.calibration import calibrated, stack_toml
from nest_core.calibration.training.machines import accelerator_of
from nest_core.calibration.training.predict import predict
from nest_core.documents.errors import InputError
from nest_core.hardware.posterior import PARAMETERS, RUN_FACTOR, adjusted
from nest_core.hardware.stacks import known_of, load_stack, under

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
        rows.append(MeasuredRow(run, MeasuredOutcome(factor * seconds)))
    return rows


def value(found, name):
    return next(each.value for each in found.parameters if each.name == name)


def before(found, name):
    return next(each.prior for each in found.parameters if each.name == name)


def factors_of(found):
    """Of the family's figures, as the fit left them; none over 1 where those are shares."""
    known = known_of(accelerator_of("A100"), load_stack(found.stack))
    shipped = adjusted(accelerator_of("A100"), known.factors(known.centre))
    plain = accelerator_of("A100").family
    factors = {
        name: getattr(shipped.family, name) / getattr(plain, name) for name in PARAMETERS[:-1]
    }
    factors |= {"network": known.factors(known.centre)["network"], RUN_FACTOR: 1.0}
    return {
        name: factor * value(found, name) / before(found, name) for name, factor in factors.items()
    }


def test_runs_that_are_predicted_exactly_move_nothing(runs):
    found = calibrated(rows_on(runs))
    for each in found.parameters:
        assert each.value == pytest.approx(each.prior, rel=1e-3)
        assert each.interval[0] <= each.prior <= each.interval[1]
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
    assert value(found, RUN_FACTOR) > 1.01
    assert all(
        each.after == pytest.approx(each.row.outcome.seconds, rel=0.01) for each in found.runs
    )


@pytest.mark.check
def test_more_runs_narrow_the_intervals(runs):
    rows = rows_on(runs, gemm_efficiency=0.9)
    widths = []
    for count in (1, 3, 6):
        found = calibrated(rows[:count])
        widths.append([each.interval[1] / each.interval[0] for each in found.parameters])
    for few, more in pairwise(widths):
        assert all(narrow <= wide * 1.05 for narrow, wide in zip(more, few, strict=True))


@pytest.mark.check
def test_left_out_is_what_a_fit_without_the_run_says(runs):
    """The identity of ridge regression beside fits that really lack each run."""
    rng = np.random.default_rng(7)
    rows = [
        MeasuredRow(
            row.run, MeasuredOutcome(row.outcome.seconds * float(np.exp(rng.normal(0, 0.08))))
        )
        for row in rows_on(runs, gemm_efficiency=0.92)
    ]
    found = calibrated(rows)
    for at, each in enumerate(found.runs[:2]):
        without = calibrated([*rows[:at], *rows[at + 1 :]])
        really = predict(each.row.run, factors=factors_of(without)).iteration_s
        assert each.left_out == pytest.approx(really, rel=0.002)


def test_no_parameter_beside_the_point_is_more_probable(runs):
    rows = rows_on(runs[:3], factor=1.35, memory_efficiency=0.8)
    found = calibrated(rows)
    known = known_of(accelerator_of("A100"), load_stack(found.stack))
    names = [*PARAMETERS, RUN_FACTOR]
    prior = np.zeros((7, 7))
    prior[:6, :6], prior[6, 6] = known.covariance, known.source_sd**2
    at = np.array([np.log(value(found, name) / before(found, name)) for name in names])

    def cost(point):
        factors = dict(zip(names, np.exp(point + np.append(known.centre, 0.0)), strict=True))
        errors = [
            np.log(predict(row.run, factors=factors).iteration_s / row.outcome.seconds)
            for row in rows
        ]
        return np.sum(np.square(errors)) / known.run_sd**2 + point @ np.linalg.solve(prior, point)

    for moved in np.vstack([np.eye(7), -np.eye(7)]) * 0.2 * np.sqrt(np.diag(prior)):
        assert cost(at) < cost(at + moved)


def test_what_is_known_exactly_stays(runs, monkeypatch):
    """A family that nobody measured has parameters without a spread."""
    nothing = np.zeros((6, 6))
    known = replace(known_of(accelerator_of("A100"), load_stack(runs[0].stack)), covariance=nothing)
    monkeypatch.setattr("nest_core.calibration.training.calibration.known_of", lambda *_: known)
    found = calibrated(rows_on(runs, factor=1.2))
    assert all(each.value == each.prior for each in found.parameters[:-1])
    assert value(found, RUN_FACTOR) > 1.1


def test_one_run_has_none_to_be_left_out_of(runs):
    found = calibrated(rows_on(runs[:1], factor=1.1))
    assert found.runs[0].left_out is None


@pytest.mark.parametrize("factor", [1e3, 1e-3])
def test_times_in_another_unit_are_skipped_with_the_reason(runs, factor):
    strange = MeasuredRow(runs[0], MeasuredOutcome(rows_on(runs[:1])[0].outcome.seconds * factor))
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
    assert stack.families == (found.family,)
    device = accelerator_of("A100")
    own, fitted = (
        under(device, stack, "fp16"),
        under(device, load_stack(found.stack), "fp16", factors_of(found)),
    )
    for name in PARAMETERS[:-1]:
        assert getattr(own.family, name) == pytest.approx(getattr(fitted.family, name), rel=1e-4)
    assert own.links_reach == pytest.approx(fitted.links_reach, rel=1e-4)
    assert own.network_reach == pytest.approx(fitted.network_reach, rel=1e-4)
    shipped = under(device, load_stack(found.stack), "fp16").family
    assert own.family.gemm_efficiency < shipped.gemm_efficiency


def test_own_runs_narrow_what_is_known(runs, tmp_path):
    found = calibrated(rows_on(runs, factor=1.1))
    (tmp_path / "mine.toml").write_text(stack_toml(found, "mine"), encoding="utf-8")
    device = accelerator_of("A100")
    shipped = known_of(device, load_stack(found.stack))
    own = known_of(device, load_stack("mine.toml", tmp_path))
    assert own.source_sd == 0.0
    assert own.covariance[-1, -1] < shipped.source_sd**2 / 2
    assert np.all(np.diag(own.covariance)[:-1] <= np.diag(shipped.covariance) * 1.001)


def test_a_factor_on_whole_runs_is_one_on_their_time(runs):
    for run in runs:
        plain, slow = (predict(run, factors={RUN_FACTOR: by}).iteration_s for by in (1.0, 1.1))
        assert 1.085 < slow / plain < 1.1001
    device = accelerator_of("A100")
    assert adjusted(device, {RUN_FACTOR: 1.0}) == device


@pytest.mark.parametrize(
    ("rows", "sentence"), [([[1.0]], "7 rows"), (np.diag([-1.0] * 7).tolist(), "variance")]
)
def test_a_covariance_that_is_none_is_refused(runs, tmp_path, rows, sentence):
    text = stack_toml(calibrated(rows_on(runs[:1])), "mine")
    lines = [f"covariance = {rows}" if one.startswith("cov") else one for one in text.split("\n")]
    (tmp_path / "mine.toml").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InputError, match=sentence):
        load_stack("mine.toml", tmp_path)
