"""Baselines: what others published, priced like our plan, within the same limits."""

from __future__ import annotations

import itertools
import random
import re
from dataclasses import replace

import pytest

from nest_core.answer import Answer, answer
from nest_core.baselines import NAMES, Baseline, evaluate_baselines
from nest_core.costs import Plan, Point, check_plan, price
from nest_core.costs.parse import even_cuts
from nest_core.errors import InputError
from nest_core.presets import load_toml, preset_names, preset_path
from nest_core.scenario import Scenario, load_scenario

SCENARIOS = preset_names("scenarios")


def evaluated(scenario: Scenario, *names: str) -> tuple[Baseline, ...]:
    return evaluate_baselines(
        scenario.problem(), scenario.space, scenario.model, names or tuple(NAMES), lambda: 0.0
    )


def check(found: Answer) -> None:
    """What holds for every answer: no baseline ahead, none outside the limits, all with reasons."""
    best, scenario = found.result.best, found.scenario
    space, devices = scenario.space, found.problem.network.devices
    for entry in found.baselines:
        assert entry.feasible == (not entry.reason)
        if entry.report is None:
            assert entry.reason
            continue
        point = entry.report.plan.point
        check_plan(found.problem, entry.report.plan)
        assert point.tp in space.tp
        assert point.pp in space.pp
        assert point.dp in space.dp
        assert point.sp in space.sp
        assert point.micro_batch in space.micro_batch
        assert point.order in space.orders
        assert point.zero in space.zero or point.dp == 1
        assert set(entry.report.plan.recompute) <= set(space.recompute)
        assert space.idle_devices or point.devices_used == devices
        assert entry.report == price(found.problem, entry.report.plan)
        if entry.feasible:
            assert entry.report.feasible
            assert best is not None
            assert best.iteration_s <= entry.report.iteration_s * (1 + 1e-12)


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_baseline_is_ahead_on_a_preset(name):
    """A failure: our plan is not the best, or a baseline plays by other rules."""
    check(answer(load_scenario(name)))


def settings(dice: random.Random) -> list[str]:
    """Fabric ratios, batch, memory and limits, each now and then."""
    ratio = dice.choice([1.0, 2.0, 3.0, 7.5, 16.0])
    everything = [
        f"workload.global_batch_sequences={dice.choice([96, 256, 720, 1000, 1024])}",
        f"accelerator.memory_GiB={dice.choice([8.0, 16.0, 24.0, 40.0, 192.0])}",
        f"search.zero={dice.choice(['0', '1', '[0, 2]', '3'])}",
        f"search.sp={dice.choice(['true', 'false'])}",
        f'search.recompute={dice.choice(["""["none"]""", """["full"]""", """["none", "full"]"""])}',
        f"search.idle_devices={dice.choice(['true', 'false'])}",
        f"search.micro_batch_sequences={dice.choice(['1', '[1, 4]', '{min=2, max=8}'])}",
        f"search.pp={dice.choice(['{max=4}', '8', '{min=2}'])}",
        f"search.dp={dice.choice(['{min=2}', '{max=16}', '[1, 4, 8]'])}",
    ]
    fabric = dice.choice(
        [f"fabric.clos.oversubscription=[{ratio}]", f"fabric.level.2.oversubscription={ratio}"]
    )
    return [*dice.sample(everything, dice.randint(1, 3)), fabric]


def test_no_baseline_is_ahead_under_random_settings():
    """Forty scenarios that nobody chose, some of which nothing fits."""
    dice = random.Random(5)
    presets = [name for name in SCENARIOS if "1024" not in name]
    done = infeasible = 0
    while done < 40:
        sets = settings(dice)
        try:
            scenario = load_scenario(dice.choice(presets), sets)
            found = answer(scenario)
        except InputError:  # no such key in this fabric, or nothing left to choose
            continue
        check(found)
        done += 1
        infeasible += found.result.best is None
    assert 0 < infeasible < 20


PAPER = {
    "bert-large-64-v100": "bert.toml",
    "gpt3-175b-512-a100": "gpt3.toml",
    "llama2-7b-64-h100": "llama2.toml",
    "llama3-70b-1024-h100": "llama3.toml",
    "mixtral-8x7b-256-tpuv4like": "mixtral.toml",
}


@pytest.mark.parametrize("name", PAPER)
def test_depth_and_width_are_those_published_for_that_many_devices(name):
    """Or for the nearest count below; data parallelism fills the fabric."""
    scenario = load_scenario(name)
    devices = scenario.fabric.devices
    cells = load_toml(preset_path("paper", PAPER[name]))["cell"]
    for entry in evaluated(scenario):
        rows = [c for c in cells if NAMES[entry.name] in c["baselines"] and c["devices"] <= devices]
        if not rows or entry.report is None:
            continue
        row = max(rows, key=lambda cell: cell["devices"])
        placement = row["baselines"][NAMES[entry.name]]
        point = entry.report.plan.point
        assert (point.pp, point.tp) == (placement["p"], placement["t"])
        assert f"published for {row['devices']:,} devices" in entry.origin
        room = devices // (point.pp * point.tp)
        assert point.dp == max(
            dp for dp in scenario.space.dp
            if dp <= room and scenario.batch % (dp * point.micro_batch) == 0
        )  # fmt: skip
        assert entry.report.plan.cuts == even_cuts(scenario.model.blocks + 2, point.pp)


@pytest.mark.parametrize(("memory", "mixed"), [(32.0, 0), (3.0, 2)])
def test_what_was_left_open_is_chosen_in_the_baselines_favour(memory, mixed):
    """Every micro-batch, ZeRO stage, sp, order and recomputation at that depth and width, priced.

    A failure: a baseline is shown slower than it could be, which flatters our plan.
    """
    sets = [
        f"accelerator.memory_GiB={memory}", "search.micro_batch_sequences=[2, 4]",
        "search.zero=1", 'search.recompute=["none", "full"]',
    ]  # fmt: skip
    scenario = load_scenario("bert-large-64-v100", sets)
    problem, space = scenario.problem(), scenario.space
    found_mixed = 0
    for entry in evaluated(scenario):
        assert entry.report is not None
        chosen = entry.report.plan
        pp, tp = chosen.point.pp, chosen.point.tp
        assert pp <= 8
        times = []
        for micro, sp, zero, order in itertools.product(
            space.micro_batch, space.sp, space.zero, space.orders
        ):
            if sp and tp == 1:
                continue
            fitting = [dp for dp in space.dp if dp * pp * tp <= 64 and 4096 % (dp * micro) == 0]
            point = Point(tp, sp, max(fitting), pp, micro, zero, order)
            for recompute in itertools.product(space.recompute, repeat=pp):
                priced = price(problem, Plan(point, chosen.cuts, recompute))
                times += [priced.iteration_s] if priced.feasible else []
        assert entry.feasible == bool(times)
        if times:
            assert entry.report.iteration_s == pytest.approx(min(times), rel=1e-12)
            found_mixed += len(set(chosen.recompute)) > 1
    assert found_mixed == mixed


REASONS = [
    (["search.tp=1"], "outside the search limits"),
    (["fabric.clos.devices=64"], "needs at least 128 devices, the fabric has 64"),
    (
        ["search.dp=[4]"],
        "no dp, micro-batch and sp in the search limits go with tp 4, pp 32",
    ),
    (["accelerator.memory_GiB=10.0"], "needs .* per device, .* more than the 10.0 GiB there are"),
]


@pytest.mark.parametrize(("sets", "reason"), REASONS, ids=[sets[0] for sets, _ in REASONS])
def test_an_infeasible_baseline_says_why(sets, reason):
    """The true reason: limits, devices or memory."""
    fabric = [
        'fabric="h100-spine-leaf-1024"', "fabric.clos.devices=256", 'accelerator="h100-80gb"',
    ]  # fmt: skip
    scenario = load_scenario("gpt3-175b-512-a100", [*fabric, *sets])
    (entry,) = evaluated(scenario, "manual")
    assert not entry.feasible
    assert re.search(reason, entry.reason), entry.reason


def test_idle_devices_are_for_all_or_for_nobody():
    """With idle_devices = false a baseline that cannot fill the fabric has no placement."""
    sets = ["fabric.torus.shape=[3,3,4]", "workload.global_batch_sequences=512"]
    free = load_scenario("llama2-7b-64-tpu-torus", sets)
    sets += ["search.idle_devices=false", "workload.global_batch_sequences=36"]
    filled = load_scenario("llama2-7b-64-tpu-torus", sets)
    assert any(entry.feasible for entry in evaluated(free))
    for entry in evaluated(filled):
        assert entry.report is None or entry.report.plan.point.devices_used == 36


def test_methods_that_are_not_evaluated_say_so():
    scenario = load_scenario("llama2-7b-64-h100")
    for entry in evaluated(scenario, "alpa_e", "mist"):
        assert (entry.feasible, entry.report) == (False, None)
        assert entry.reason == "evaluated are manual, mcmc, phaze"


def test_a_model_that_nobody_published_has_no_baseline():
    scenario = load_scenario("llama2-7b-64-h100")
    stranger = replace(scenario, model=replace(scenario.model, name="stranger"))
    (entry,) = evaluated(stranger, "manual")
    assert entry.reason == "no published placement of stranger"


def test_the_clock_is_passed_in():
    """Times come from outside, so that tests and replays need not wait."""
    ticks = itertools.count()
    scenario = load_scenario("llama2-7b-64-h100")
    (entry,) = evaluate_baselines(
        scenario.problem(), scenario.space, scenario.model, ("manual",), lambda: float(next(ticks))
    )
    assert entry.search_seconds == 1.0
