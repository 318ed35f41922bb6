"""Under a pipeline ZeRO 2 is ZeRO 1: gradients are added up whole and reduced once.

Where software reduces them after every micro-batch, ZeRO 2 is itself there too.

docs/decisions/zero-2-in-a-pipeline.md says which software does what.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from nest_core.costs import NO_OVERLAP, StageStrategy, price
from nest_core.costs.parse import read_plan
from nest_core.planner import search
from nest_core.report.explain.axes import next_best
from nest_core.scenario import load_scenario
from nest_studio.cli import run

SMALL = "llama2-7b-64-h100"
OPEN = (
    "search.tp=[1,2]",
    "search.micro_batch_sequences=1",
    "search.cp=1",
    "search.sp=false",
    'search.schedule=["1f1b"]',
    "search.dp=[8,16]",
)


@pytest.fixture(scope="module")
def problem():
    return load_scenario(SMALL).problem()


def both(problem, text):
    """The same plan with ZeRO 1 and 2."""
    plans = (f"{text},zero={zero}" for zero in (1, 2))
    return [price(problem, read_plan(plan, problem.layers, 64)) for plan in plans]


@pytest.mark.parametrize("recompute", ["none", "full"])
@pytest.mark.parametrize(
    "degrees",
    [
        "dp=32,pp=2",
        "dp=8,pp=8",
        "dp=8,tp=4,pp=2,sp=true",
        "dp=4,cp=4,pp=4",
        "dp=16,pp=4,schedule=gpipe",
        "dp=16,pp=4,schedule=interleaved,interleave=2",
    ],
)
def test_it_takes_and_holds_as_much(problem, degrees, recompute):
    one, two = both(problem, f"{degrees},micro_batch=1,recompute={recompute}")
    assert two.iteration_s == one.iteration_s
    assert two.stages == one.stages
    assert two.plan.point.zero == 2


def test_without_a_pipeline_it_sends_for_every_micro_batch_and_holds_a_shard(problem):
    one, two = both(problem, "dp=64,pp=1,micro_batch=1,recompute=full")
    assert two.stages[0].micro_batch_s > one.stages[0].micro_batch_s
    assert two.stages[0].memory.gradients == pytest.approx(one.stages[0].memory.gradients / 64)


def test_stages_that_differ_in_it_alone_take_as_long(problem):
    plan = read_plan("dp=32,pp=2,micro_batch=1,recompute=full,zero=1", problem.layers, 64)
    times = set()
    for zeros in ((1, 1), (1, 2), (2, 2)):
        named = tuple(replace(plan.point, zero=zero) for zero in zeros)
        strategies = tuple(StageStrategy.of(point) for point in named)
        times.add(price(problem, replace(plan, strategies=strategies)).iteration_s)
    assert len(times) == 1


@pytest.mark.parametrize("interleave", [1, 2])
def test_software_that_shards_gradients_reduces_them_for_every_micro_batch(problem, interleave):
    """A shard of the gradients and a layer's whole are held; m times the traffic is sent."""
    sharding = replace(problem, sharded_gradients=True)
    text = f"dp=16,pp=4,micro_batch=1,recompute=full,interleave={interleave}"
    one, two = both(sharding, text)
    assert one.stages == both(problem, text)[0].stages
    gradients, ranks = problem.state.gradients, 16
    blocks = problem.table(1, False, 1, 1, 1, 1).parameters[1:-1]
    for whole, shard in zip(one.stages, two.stages, strict=True):
        assert shard.memory.gradients == pytest.approx(whole.memory.gradients / ranks)
        assert shard.memory.weights == whole.memory.weights
        assert shard.memory.optimizer == whole.memory.optimizer
        more = shard.memory.whole - whole.memory.whole
        assert more >= gradients * blocks.min()
    one, two = both(replace(sharding, overlap=NO_OVERLAP), text)
    inner, same = two.stages[1], one.stages[1]
    assert inner.micro_batch_s > same.micro_batch_s
    m = two.plan.point.micro_batches(problem.batch)
    sent = problem.state.gradients * blocks[0] * 8 * (1 - 1 / ranks)
    assert inner.micro_batch_s - same.micro_batch_s > sent / 450e9  # no port carries more
    assert two.iteration_s - one.iteration_s > (m - 1) * sent / 450e9


@pytest.mark.parametrize("mixed", [False, True])
def test_the_planner_lists_the_two_once(mixed):
    """As many points with both as with the smaller, and no plan beside its twin."""
    counts = {}
    for zeros in ("[1,2]", "[1]", "[2]"):
        scenario = load_scenario(SMALL, [*OPEN, "search.pp=[2,4]", f"search.zero={zeros}"])
        space = replace(scenario.space, mixed=mixed)
        result = search(scenario.problem(), space, top=4)
        counts[zeros] = result.certificate.points, result.best.iteration_s
        used = {result.best.plan.stage_point(s).zero for s in range(result.best.plan.point.pp)}
        assert used == {2 if zeros == "[2]" else 1}
        found = [replace(entry.plan.point, zero=0) for entry in result.alternatives]
        assert len(set(found)) == len(found)
    assert len(set(counts.values())) == 1


def test_under_a_stack_that_shards_gradients_the_planner_lists_both():
    """Leaner than ZeRO 1, so memory may ask for it; more points, and no plan is lost."""
    found = {}
    for stack in ("megatron-core-2026", "megatron-zero2-2026"):
        sets = [*OPEN, "search.pp=[2,4]", "search.zero=[1,2]", f'stack="{stack}"']
        scenario = load_scenario(SMALL, sets)
        assert scenario.space.sharded_gradients == scenario.problem().sharded_gradients
        result = search(scenario.problem(), scenario.space)
        found[stack] = result.certificate.points, result.best.iteration_s
    (alike, slow), (apart, fast) = found["megatron-core-2026"], found["megatron-zero2-2026"]
    assert apart == 2 * alike
    assert fast <= slow
    scarce = [*sets, "accelerator.memory_GiB=28"]
    scenario = load_scenario(SMALL, scarce)
    result = search(scenario.problem(), scenario.space)
    assert result.best is not None
    assert result.best.plan.point.zero == 2


def test_leaving_one_leaves_the_other_too():
    """What comes next on the axis of ZeRO is another stage, not the same plan by another name."""
    sets = [*OPEN, "search.pp=[2,4]", "search.zero=[0,1,2]", "accelerator.memory_GiB=40"]
    scenario = load_scenario(SMALL, sets)
    problem = scenario.problem()
    best = search(problem, scenario.space).best
    assert best.plan.point.zero == 1
    (zero,) = (entry for entry in next_best(problem, scenario.space, best) if entry.axis == "zero")
    assert zero.report is None or zero.report.plan.point.zero == 0


def test_the_command_line_says_the_same(capsys):
    times = []
    for zero in (1, 2):
        assert (
            run(["price", SMALL, "--plan", f"dp=8,pp=8,micro_batch=1,zero={zero}", "--json"]) == 0
        )
        times.append(json.loads(capsys.readouterr().out)["iteration_time_s"])
    assert times[0] == times[1]
