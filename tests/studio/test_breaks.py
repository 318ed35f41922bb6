"""What fails on Plan comes out of a worker process."""

from __future__ import annotations

import pickle

import pytest

from nest_core.api import simulate as api
from nest_core.api.answer import answer
from nest_core.scenario import Scenario, scenario_document
from nest_core.studies.failures import break_elements
from nest_studio.jobs.tasks.plans import plan_draws, plan_failures


@pytest.fixture(scope="module")
def planned():
    scenario = Scenario(scenario_document("llama2-7b-64-h100")[0], {"fabric.routing": "ecmp"})
    return scenario, answer(scenario.values).best


def run(task, *args):
    return task(*args, progress=lambda *_: None, stop=lambda: False)


def test_a_picked_element_is_handed_over_with_both_losses(planned):
    scenario, best = planned
    chart = pickle.loads(pickle.dumps(run(plan_failures, scenario, best, ("leaf 1",), 0.0)))
    (row,) = chart.table()
    expected = break_elements(scenario.values, best.plan, ["leaf 1"], replan=True)
    assert (row["row"], row["loss"]) == ("leaf 1", expected.loss)
    assert row["replanned_loss"] <= expected.replanned_loss  # spare nodes stand in
    slow = run(plan_failures, scenario, best, ("device 3",), 0.25).table()
    assert 0 < slow[0]["loss"] < row["loss"]


def test_draws_are_said_as_simulate_says_them(planned):
    scenario, best = planned
    words = run(plan_draws, scenario, best)
    assert words == api.draws_in_words(api.simulate(scenario, best.plan).drawn_s)
    assert words.endswith("over 32 draws of the fabric's hash")
