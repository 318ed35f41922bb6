"""The picture of predicted against measured iterations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nest_core.errors import InputError
from nest_core.fidelity import Outcome
from nest_core.fidelity.predict import Prediction
from nest_core.figures.validation import agreement_figure


@pytest.fixture
def runs(one):
    run = one().run
    times = [(1.1, 1.0), (1.8, 2.0), (30.0, 20.0), (4.0, None)]
    found = [Prediction(run, Outcome(measured), time, 1e9, True) for time, measured in times]
    return [replace(found[0], run=replace(run, subset="calib15")), *found[1:]]


def test_every_measured_run_is_a_dot(runs):
    picture = agreement_figure(runs)
    dots = {trace.name: trace for trace in picture.plot.data if trace.mode == "markers"}
    assert list(dots["may be fitted"].x) == [1.0]
    assert list(dots["not fitted"].x) == [2.0, 20.0]
    assert list(dots["not fitted"].y) == [1.8, 30.0]
    assert "+50%" in dots["not fitted"].text[1]
    assert picture.plot.layout.xaxis.range == picture.plot.layout.yaxis.range
    lines = [trace for trace in picture.plot.data if trace.mode == "lines"]
    assert [line.y[0] / line.x[0] for line in lines] == pytest.approx([1.0, 1.2, 1 / 1.2])


def test_the_title_is_the_finding(runs):
    assert agreement_figure(runs).title == (
        "Predictions are 23 % off in the mean, 17 % too slow on balance"
    )


def test_nothing_measured_is_refused(runs):
    with pytest.raises(InputError, match="must hold a measured time"):
        agreement_figure(runs[-1:])
