"""The fit recovers what it is shown, leaves what it is not, and is the same every time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nest_core.calibration.collectives.fit import _Model, fit_curve, local_sample
from nest_core.documents.errors import InputError
from nest_core.hardware.collectives.library import load_curve
from nest_core.hardware.collectives.measurements import Measurement

pytest.importorskip("scipy")
RATE = 300e9
SIZES = [2.0**power for power in range(10, 32)]


def rows_of(curve, op="all_reduce", devices=(2, 4, 8), sizes=SIZES, times=1.0):
    return [
        Measurement(
            "x", op, "A100", n, 1, size, times * float(curve.seconds(op, n, size, RATE)), system="s"
        )
        for n in devices
        for size in sizes
    ]


def samples_of(rows, curve):
    return [local_sample(row, curve, RATE) for row in rows]


@pytest.mark.parametrize("name", ["a100-nvlink3", "h100-nvlink4", "v100-nvlink2"])
def test_samples_predict_what_curves_predict(name):
    """The fit's arithmetic is the curve's."""
    curve = load_curve(name)
    rows = [row for op in ("all_reduce", "all_to_all") for row in rows_of(curve, op)]
    model = _Model(samples_of(rows, curve), curve)
    x = np.zeros(model.size)
    x[model.bounds[-2] :] = -50.0  # no floor of the host
    np.testing.assert_allclose(model.observed(x, np.inf, 40.0), model.measured, rtol=1e-9)


def test_a_slower_cluster_is_recovered():
    """Times of a curve whose links reach three quarters: large messages show it."""
    prior = load_curve("a100-nvlink3")
    slow = replace(
        prior,
        regimes=tuple(
            replace(regime, efficiency=tuple(0.75 * share for share in regime.efficiency))
            for regime in prior.regimes
        ),
    )
    fitted = fit_curve(samples_of(rows_of(slow), prior), prior)
    for op in ("all_reduce", "all_gather"):  # what was not measured moves along
        ratio = fitted.seconds(op, 8, 2.0**30, RATE) / slow.seconds(op, 8, 2.0**30, RATE)
        assert abs(ratio - 1) < 0.06
    assert fit_curve(samples_of(rows_of(slow), prior), prior) == fitted


def test_a_perfect_prior_stays():
    prior = load_curve("a100-nvlink3")
    fitted = fit_curve(samples_of(rows_of(prior), prior), prior)
    size = np.array(SIZES)
    ratio = fitted.seconds("all_reduce", 8, size, RATE) / prior.seconds("all_reduce", 8, size, RATE)
    assert np.abs(ratio - 1).max() < 0.02


@pytest.mark.parametrize("count", [1, 3])
def test_a_handful_of_points_does_not_derail(count):
    """One point moves the curve a little; far from it the prior stands."""
    prior = load_curve("a100-nvlink3")
    rows = rows_of(prior, devices=(8,), sizes=SIZES[-count:], times=1.2)
    fitted = fit_curve(samples_of(rows, prior), prior)
    small = fitted.seconds("all_reduce", 8, 1024, RATE) / prior.seconds("all_reduce", 8, 1024, RATE)
    large = fitted.seconds("all_reduce", 8, SIZES[-1], RATE) / rows[-1].seconds
    assert abs(small - 1) < 0.02
    assert 1 / 1.2 < large < 1.02


def test_slow_hosts_do_not_bend_the_curve():
    """A floor of 100 µs under short messages is the host's, and is dropped."""
    prior = load_curve("a100-nvlink3")
    rows = [replace(row, seconds=max(row.seconds, 1e-4)) for row in rows_of(prior)]
    fitted = fit_curve(samples_of(rows, prior), prior)
    small = fitted.seconds("all_reduce", 8, 65536, RATE)
    assert small < 1.5 * prior.seconds("all_reduce", 8, 65536, RATE)


def test_nothing_to_fit_is_refused():
    with pytest.raises(InputError, match="measurements must hold a row to fit"):
        fit_curve([], load_curve("start"))
