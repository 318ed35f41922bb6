"""No baseline is ever ahead of the planner on the true costs, nor outside the planner's space."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from benchmarks.proof_times import drawn_mixture
from nest_core.costs import check_plan, price
from nest_core.documents.errors import InputError
from nest_core.documents.presets import preset_names
from nest_core.planner import search
from nest_core.planner.baselines import NAMES, Baseline, evaluate_baselines, mcmc
from nest_core.planner.space import even_patterns
from nest_core.scenario import ScenarioValues, load_scenario

SCENARIOS = preset_names("scenarios")
SMALL = [name for name in SCENARIOS if "-64-" in name]
TIE = 1 + 1e-12
SCHEDULES = ('"1f1b"', '"interleaved"', '["gpipe", "interleaved"]')


def check(scenario: ScenarioValues, seed: int = 0) -> dict[str, Baseline]:
    """Our best, of mixed stages where a baseline mixes, is at most every baseline's time."""
    problem, space = scenario.problem(), scenario.space
    ours = search(problem, space)
    assert ours.certificate.proven
    least = ours.best.iteration_s if ours.best else math.inf
    rivals = tuple(name for name in NAMES if name != "nest")  # it may leave gaps
    found = evaluate_baselines(problem, space, scenario.model, rivals, seed=seed)
    for entry in found:
        assert entry.feasible == (not entry.reason)
        if entry.report is None:
            assert entry.reason
            continue
        belongs(scenario, entry)
        check_plan(problem, entry.report.plan)
        assert entry.report == price(problem, entry.report.plan)
        assert entry.origin
        if not entry.feasible:
            continue
        assert entry.report.feasible
        if entry.report.plan.strategies:
            mixed = search(problem, replace(space, mixed=True), time_limit_s=120.0)
            assert mixed.best is not None
            assert mixed.best.iteration_s <= entry.report.iteration_s * TIE
        else:
            assert least <= entry.report.iteration_s * TIE, entry.name
    return {entry.name: entry for entry in found}


def belongs(scenario: ScenarioValues, entry: Baseline) -> None:
    """The plan keeps to the search limits."""
    space, plan = scenario.space, entry.report.plan
    point, devices = plan.point, scenario.fabric.devices
    for s in range(point.pp):
        at = plan.stage_point(s)
        assert at.tp in space.tp
        assert at.sp in space.sp
        assert at.cp in space.cp
        assert at.ep in space.ep
        assert at.zero in space.zero or (at.sharers == 1 and at.zero == 0)
        assert not at.zero or at.zero_group in space.groups_among(at.sharers, at.expert_sharers)
    assert point.pp in space.pp
    assert point.dp in space.dp
    assert point.micro_batch in space.micro_batch
    assert point.order in space.orders
    assert point.device_order in space.seated_on(scenario.problem().network).device_orders
    assert point.schedule in space.schedules
    assert set(plan.recompute) <= set(space.recompute)
    assert space.idle_devices or point.devices_used == devices
    assert entry.name == "mist" or not plan.strategies
    if point.interleave > 1:
        assert point.interleave in space.interleave
        assert plan.cuts in even_patterns(scenario.model.blocks + 2, point.pp, point.interleave)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", SMALL)
def test_no_baseline_is_ahead_on_a_small_preset(name):
    """A failure: our plan is not the best, or a baseline plays by other rules."""
    found = check(load_scenario(name))
    assert all(entry.report is not None for entry in found.values())


def test_no_baseline_leaves_the_groups_that_zero_may_have():
    pins = ("search.zero=[1,3]", "search.zero_group=[4,8]", "search.tp=[1,2]", "search.pp=[1,2]")
    scenario = load_scenario("llama2-7b-64-h100", (*pins, "search.dp={min=16}", "search.cp=1"))
    found = check(scenario)
    met = {
        name: entry.report.plan.point.zero_group for name, entry in found.items() if entry.report
    }
    assert set(met) == set(NAMES) - {"nest"}
    promised = evaluate_baselines(scenario.problem(), scenario.space, scenario.model, ("nest",))
    groups = {*met.values(), promised[0].report.plan.point.zero_group}
    assert groups <= {4, 8}


@pytest.mark.check
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", SCENARIOS)
def test_no_baseline_is_ahead_on_any_preset(name, seed):
    check(load_scenario(name), seed)


@pytest.mark.parametrize(
    ("number", "prices"),
    [(1, 500), (33, 500), *(pytest.param(n, 10_000, marks=pytest.mark.check) for n in range(40))],
)
def test_no_walk_is_ahead_on_random_mixtures(number, prices):
    """Racks of 8 to 72, the last one part filled or not: ahead of a proven best, a wrong bound."""
    scenario = load_scenario("llama2-7b-64-h100", drawn_mixture(0, number)[1])
    problem, ours = scenario.problem(), search(scenario.problem(), scenario.space)
    space = scenario.space.seated_on(problem.network)
    walked = mcmc.find(problem, space, number, budget=prices).plan
    assert ours.certificate.proven
    assert ours.best is not None
    assert walked is not None
    report = price(problem, walked)
    assert not report.feasible or ours.best.iteration_s <= report.iteration_s * TIE


@pytest.mark.check
@pytest.mark.parametrize("number", range(40))
def test_no_baseline_is_ahead_on_random_mixtures(number):
    check(load_scenario("llama2-7b-64-h100", drawn_mixture(0, number)[1]))


def settings(dice: random.Random) -> list[str]:
    """Fabric ratios, batch, memory and limits, each now and then."""
    ratio = dice.choice([1.0, 2.0, 3.0, 7.5, 16.0])
    everything = [
        f"workload.global_batch_sequences={dice.choice([96, 256, 720, 1000, 1024])}",
        f"accelerator.memory_GiB={dice.choice([8.0, 16.0, 24.0, 40.0, 192.0])}",
        f"search.zero={dice.choice(['0', '1', '[0, 2]', '3'])}",
        "search.zero_group=" + dice.choice(["8", "[2, 4, 8]", '["all", 2, 16]']),
        f"search.sp={dice.choice(['true', 'false'])}",
        f'search.recompute={dice.choice(["""["none"]""", """["full"]""", """["none", "full"]"""])}',
        f"search.idle_devices={dice.choice(['true', 'false'])}",
        f"search.micro_batch_sequences={dice.choice(['1', '[1, 4]', '{min=2, max=8}'])}",
        f"search.pp={dice.choice(['{max=4}', '8', '{min=2}'])}",
        f"search.dp={dice.choice(['{min=2}', '{max=16}', '[1, 4, 8]'])}",
        "search.schedule=" + dice.choice(SCHEDULES),
        f"search.cp={dice.choice(['1', '[1, 2]', '2'])}",
    ]
    fabric = dice.choice(
        [f"fabric.clos.oversubscription=[{ratio}]", f"fabric.level.2.oversubscription={ratio}"]
    )
    return [*dice.sample(everything, dice.randint(1, 3)), fabric]


def under_random_settings(names: list[str], count: int, seed: int) -> None:
    """Scenarios that nobody chose, some of which nothing fits."""
    dice = random.Random(seed)
    done = infeasible = 0
    while done < count:
        sets = settings(dice)
        try:
            scenario = load_scenario(dice.choice(names), sets)
            found = check(scenario, seed)
        except InputError:  # no such key in this fabric, or nothing left to choose
            continue
        done += 1
        infeasible += not any(entry.feasible for entry in found.values())
    assert infeasible < count / 2
    assert infeasible or count < 20


@pytest.mark.check
def test_no_baseline_is_ahead_under_some_random_settings():
    under_random_settings([name for name in SMALL if not name.startswith("gpt3")], 3, 5)


@pytest.mark.check
def test_no_baseline_is_ahead_under_many_random_settings():
    under_random_settings(SMALL, 80, seed=6)


def test_the_planner_does_not_look_at_baselines():
    """Its answer is the same whether or not they were evaluated before."""
    scenario = load_scenario("llama2-7b-64-h100")
    problem = scenario.problem()
    before = search(problem, scenario.space).best
    evaluate_baselines(problem, scenario.space, scenario.model, tuple(NAMES)[1:])
    assert search(problem, scenario.space).best == before
