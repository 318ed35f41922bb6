"""Errors, ranks and regret, against numbers worked out another way."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from benchmarks.validation.ranks import spearman
from benchmarks.validation.training.regions import group_scores, score
from nest_core.calibration.training import MeasuredOutcome
from nest_core.calibration.training.predict import Prediction


@pytest.fixture
def made(one):
    """``made((predicted, measured), ...)``: predictions of one configuration."""

    def make(*pairs, **changes):
        run = one().run
        degrees = {
            key: changes.pop(key) for key in ("dp", "tp", "pp", "micro_batch") & changes.keys()
        }
        run = replace(run, point=replace(run.point, **degrees), **changes)
        return [
            Prediction(run, MeasuredOutcome(measured), predicted, 1e9, True)
            for predicted, measured in pairs
        ]

    return make


def test_errors_by_hand(made):
    found = score("x", made((1.1, 1.0), (1.8, 2.0), (3.0, 3.0), (9.0, None)))
    assert found.n == 3
    assert found.mape == pytest.approx(0.2 / 3)
    assert found.bias == pytest.approx(0.0, abs=1e-12)
    assert found.worst in (pytest.approx(0.1), pytest.approx(-0.1))
    assert found.spearman == 1.0
    assert found.regret == 0.0


def test_regret_is_what_choosing_by_prediction_costs(made):
    """The row predicted fastest took 4 s; the fastest took 2 s."""
    assert score("x", made((1.0, 4.0), (3.0, 2.0), (5.0, 9.0))).regret == pytest.approx(1.0)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=3, max_size=12))
@settings(deadline=None)
def test_ranks_agree_with_scipy(pairs):
    first, second = np.array(pairs, dtype=float).T
    found = spearman(first, second)
    if first.std() == 0 or second.std() == 0:
        assert found is None
    else:
        assert found == pytest.approx(spearmanr(first, second).statistic, abs=1e-8)


def test_two_rows_have_no_rank(made):
    assert score("x", made((1.0, 2.0), (2.0, 1.0))).spearman is None


def test_groups_share_all_but_the_plan(made):
    plans = [made((1.0, 1.0), tp=tp, pp=8 // tp, micro_batch=mb)[0] for tp, mb in
             itertools.product((1, 2, 4, 8), (1, 2))]  # fmt: skip
    assert [group.n for group in group_scores(plans)] == [8]
    changes = [
        {"source": "b"},
        {"model": "b"},
        {"devices": 32, "dp": 4},
        {"batch": 128},
        {"sequence": 4096},
        {"precision_name": "bf16"},
        {"accelerator": "H100-80GB"},
    ]
    others = [made((1.0, 1.0), **change)[0] for change in changes]
    groups = group_scores([*plans, *others])
    assert [group.n for group in groups] == [8] + [1] * len(changes)
    assert len({group.name for group in groups}) == len(groups)


def test_rows_without_a_measured_time_are_in_no_group(made):
    assert group_scores(made((1.0, None), (2.0, None))) == []
    assert [group.n for group in group_scores(made((1.0, None), (2.0, 2.0)))] == [1]
