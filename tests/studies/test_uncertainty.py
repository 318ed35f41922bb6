"""An interval says of a plan's time what draws of the same parameters say."""

from __future__ import annotations

import numpy as np
import pytest

from nest_core.costs import price
from nest_core.costs.parse import parse_plan
from nest_core.scenario import load_scenario
from nest_core.studies.uncertainty import interval_of, spread_of

HASHED = (
    'fabric="h100-spine-leaf-1024-4to1"', 'fabric.routing="ecmp"', 'search.recompute=["none"]',
    "fabric.clos.devices=128", "workload.global_batch_sequences=128",
)  # fmt: skip


@pytest.fixture(scope="module")
def crossing():
    """A plan whose exchanges cross hashed uplinks, four to one."""
    scenario = load_scenario("llama2-7b-64-h100", HASHED)
    problem = scenario.problem(("full",))
    plan = parse_plan({"dp": 128, "zero": 3, "micro_batch": 1, "recompute": "full"}, problem.layers)
    return scenario, problem, price(problem, plan)


def test_it_is_as_wide_as_the_draws_are_far_apart(crossing):
    scenario, problem, report = crossing
    spread = spread_of(scenario, problem)
    values, axes = np.linalg.eigh(np.cov(spread.rows(4000, 1).T))

    def seconds(row):
        return price(spread.draw(row).problem(scenario, problem.network), report.plan).iteration_s

    steps = (axes * np.sqrt(np.maximum(values, 0.0))).T / 4
    moved = [2 * np.log(seconds(step) / seconds(-step)) for step in steps]
    unsure = np.sum(np.square(moved)) + spread.run_sd**2 + spread.source_sd**2
    assert interval_of(scenario, problem, report).spread == pytest.approx(unsure**0.5, rel=0.05)


def test_uplinks_that_hash_unevenly_widen_it(crossing):
    """Uplinks were no parameter of it, though plan --draws drew them."""
    scenario, problem, report = crossing
    even = load_scenario("llama2-7b-64-h100", [line for line in HASHED if "routing" not in line])
    evenly = even.problem(("full",))
    apart = interval_of(scenario, problem, report).spread
    assert apart > 1.03 * interval_of(even, evenly, price(evenly, report.plan)).spread
