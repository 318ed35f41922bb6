"""Runs are worth what they can change of a choice: nothing where they cannot, never less."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

from nest_core.documents.errors import InputError
from nest_core.scenario import load_scenario
from nest_core.studies.next_runs import Beliefs, chosen_runs, next_runs


def beliefs(seconds, sd, likeness=0.0):
    """Plans with equal spreads, as alike as is said."""
    alike = np.where(np.eye(len(seconds)), 1.0, likeness)
    return Beliefs(np.log(seconds), sd**2 * alike)


@pytest.fixture(scope="module")
def shape():
    """A covariance that no axis of it is plain of."""
    half = np.random.default_rng(5).normal(0, 0.05, (5, 5))
    return half @ half.T


def test_no_value_is_negative(shape):
    found = chosen_runs(Beliefs(np.log([5.0, 5.1, 5.2, 5.3, 5.4]), shape), 5)
    assert sorted(place for place, _ in found) == list(range(5))
    assert all(value >= 0 for _, value in found)
    assert sum(value for _, value in found) > 0


def test_nothing_is_worth_anything_where_all_is_known():
    assert [value for _, value in chosen_runs(beliefs([5.0, 5.0, 5.1], 0.0), 3)] == [0, 0, 0]


def test_a_run_that_cannot_change_the_choice_is_worth_nothing():
    far = Beliefs(np.log([5.0, 5.1, 50.0]), np.diag([1e-4, 4e-4, 4e-4]))
    assert far.regret_s([2], 0) == 0.0
    assert far.regret_s([1], 0) > 0.0
    together = beliefs([5.0, 5.1], 0.1, likeness=1.0)
    assert together.regret_s([0, 1], 0, noise=1e-3) == pytest.approx(0.0, abs=1e-6)


def test_two_plans_are_worth_what_a_formula_says():
    """E max(0, difference) of two normal times of equal mean, seen exactly: sd sqrt(2) / sqrt(2 pi)
    of a second, for small spreads."""
    found = beliefs([1.0, 1.0], 0.01).regret_s([0, 1], 0, noise=1e-5)
    assert found == pytest.approx(0.01 / np.sqrt(np.pi), rel=0.04)


def test_a_run_that_tells_more_comes_first(shape):
    unsure = Beliefs(np.log([5.0, 5.05, 5.05]), np.diag([1e-4, 1e-4, 25e-4]))
    assert chosen_runs(unsure, 1)[0][0] == 2


def test_runs_that_cannot_be_run_are_not_chosen(shape):
    found = chosen_runs(Beliefs(np.log([5.0] * 5), shape), 5, among=[1, 3])
    assert {place for place, _ in found} == {1, 3}


def test_a_scenario_has_its_optimum_among_the_candidates(monkeypatch):
    monkeypatch.setattr("nest_core.studies.next_runs.DRAWS", 3)
    hours = itertools.count(step=3600.0)
    monkeypatch.setattr(time, "perf_counter", hours.__next__)  # however busy the machine
    scenario = load_scenario(
        "llama2-7b-64-h100",
        ("search.pp=[1]", "search.tp=[1, 2, 4]", "search.micro_batch_sequences=[1, 2]"),
    )
    found = next_runs(scenario, 3)
    again = next_runs(scenario, 3)
    assert [run.report.plan for run in found.runs] == [run.report.plan for run in again.runs]
    assert len(found.runs) == 3 == found.draws <= found.candidates
    removed = sum(run.expected_regret_removed_s for run in found.runs)
    assert 0 < removed <= found.expected_regret_s * 1.05
    with pytest.raises(InputError, match="must lie between"):
        next_runs(scenario, 0)
