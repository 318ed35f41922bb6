"""Evaluating baselines by name: results, reasons and refusals."""

from __future__ import annotations

import itertools
import re

import pytest

from nest_core.costs import price
from nest_core.planner import search
from nest_core.planner.baselines import NAMES, evaluate_baselines
from nest_core.scenario import ScenarioValues, load_scenario

RIVALS = tuple(name for name in NAMES if name != "nest")


def evaluated(scenario: ScenarioValues, *names: str, **keywords):
    return evaluate_baselines(
        scenario.problem(), scenario.space, scenario.model, names or RIVALS, **keywords
    )


def test_all_five_are_answered_in_the_order_asked():
    scenario = load_scenario("llama2-7b-64-h100")
    names = ("mist", "manual", "alpa_e", "phaze", "mcmc")
    found = evaluated(scenario, *names)
    assert tuple(entry.name for entry in found) == names
    assert [entry.label for entry in found] == [NAMES[name] for name in names]
    for entry in found:
        assert entry.feasible
        assert entry.report is not None
        assert entry.report == price(scenario.problem(), entry.report.plan)


def test_an_unknown_name_says_which_there_are():
    (entry,) = evaluated(load_scenario("llama2-7b-64-h100"), "tofu")
    assert (entry.feasible, entry.report) == (False, None)
    assert entry.reason == "evaluated are nest, manual, mcmc, phaze, alpa_e, mist"


def test_schedules_that_others_do_not_choose_from_are_named_as_they_were_asked():
    """Whoever had asked for ZB-V alone read of two others too."""
    scenario = load_scenario("llama2-7b-64-h100", ["search.schedule=['zbv']", "search.pp=4"])
    for entry in evaluated(scenario, "manual", "mist"):
        assert entry.report is None
        assert "but is ['zbv']: add 1f1b" in entry.reason


REASONS = [
    (
        "gpt3-175b-64-h100",
        "needs .* per device.*, .* more than the .* that fit into 3.00 GiB with 95 % certainty",
        ("manual", "mcmc", "alpa_e"),
    ),
    ("llama2-7b-64-h100", "no plan fits into memory", ("phaze", "mist")),
]


@pytest.mark.parametrize(("name", "reason", "names"), REASONS)
def test_an_infeasible_baseline_says_why(name, reason, names):
    """What lacks memory has a report of what it would take, or the planner's sentence."""
    sets = ["accelerator.memory_GiB=3.0", "search.pp={max=2}", "search.tp={max=2}"]
    for entry in evaluated(load_scenario(name, sets), *names):
        assert not entry.feasible
        assert re.search(reason, entry.reason), entry.reason


def test_limits_that_leave_a_method_nothing_are_its_reason_alone():
    """Interleaving over two stages with a context parallelism that must be 2."""
    sets = ["search.cp=2", 'search.schedule="interleaved"', "search.pp=2"]
    found = evaluated(load_scenario("llama2-7b-64-h100", sets))
    for entry in found:
        assert entry.feasible, (entry.name, entry.reason)
        assert entry.report is not None
        assert entry.report.plan.point.cp == 2
        assert entry.report.plan.point.schedule == "interleaved"


def test_a_point_that_no_rule_allows_is_said_so():
    """Idle devices forbidden and no width that fills: nobody has a plan, each says why."""
    sets = [
        "fabric.torus.shape=[3,3,4]",
        "workload.global_batch_sequences=36",
        "search.idle_devices=false",
        "search.tp=1",
        "search.cp=1",
        "search.pp=[5,7]",
    ]
    for entry in evaluated(load_scenario("llama2-7b-64-tpu-torus", sets)):
        assert entry.report is None
        assert entry.reason


def test_idle_devices_are_for_all_or_for_nobody():
    sets = [
        "fabric.torus.shape=[3,3,4]",
        "search.idle_devices=false",
        "workload.global_batch_sequences=36",
    ]
    for entry in evaluated(load_scenario("llama2-7b-64-tpu-torus", sets)):
        assert entry.report is None or entry.report.plan.point.devices_used == 36


def test_the_clock_is_passed_in():
    """Times come from outside, so that tests and replays need not wait."""
    ticks = itertools.count()
    (entry,) = evaluated(
        load_scenario("llama2-7b-64-h100"), "manual", clock=lambda: float(next(ticks))
    )
    assert entry.search_seconds == 1.0


def test_the_seed_reaches_the_walk():
    scenario = load_scenario("llama2-7b-64-h100")
    (entry,) = evaluated(scenario, "mcmc", seed=11)
    assert "seed 11" in entry.origin
    assert entry.report == evaluated(scenario, "mcmc", seed=11)[0].report


@pytest.mark.parametrize("name", ["phaze", "mist"])
def test_a_time_limit_is_a_reason_and_not_an_error(name):
    """No time at all: no plan, said so."""
    (entry,) = evaluated(load_scenario("llama3-70b-1024-h100"), name, time_limit_s=0.0)
    assert entry.report is None
    assert "time limit" in entry.reason


def test_what_nest_promised_and_loses_adds_up():
    """The waterfall's terms are the difference to the exact search, to the last bit of rounding."""
    scenario = load_scenario("bert-large-64-v100", ["search.micro_batch_sequences=[8,16]"])
    problem = scenario.problem()
    (entry,) = evaluated(scenario, "nest")
    ours = search(problem, scenario.space).best
    assert ours is not None
    assert entry.label == "NEST, level-wise program (paper)"
    assert entry.report == price(problem, entry.report.plan)
    assert entry.report.iteration_s <= entry.promised_s * (1 + 1e-9)
    lost = entry.report.iteration_s - ours.iteration_s
    assert entry.waterfall.total == pytest.approx(lost, abs=1e-9 * ours.iteration_s)
    assert min(entry.waterfall.schedule, entry.waterfall.memory_rule) >= 0.0
    assert entry.waterfall.levels >= -1e-9


@pytest.mark.check
def test_the_waterfall_on_a_torus_without_a_chip():
    """Levels have no rows and no curves; their seatings were priced by name on the torus."""
    changed = ["fabric.missing=['device 9']", "search.device_order=['natural','snake']"]
    changed += ["fabric.torus.shape=[4, 4, 1]", "search.tp=[1, 2]"]
    changed += ["workload.global_batch_sequences=12", "search.pp=[1, 2, 3]"]
    scenario = load_scenario("llama2-7b-64-tpu-torus", changed)
    problem = scenario.problem()
    (found,) = evaluate_baselines(problem, scenario.space, scenario.model, ("nest",))
    best = search(problem, scenario.space).best
    assert found.feasible
    assert found.waterfall.total == pytest.approx(found.report.iteration_s - best.iteration_s)
