"""Manual follows its rules, whatever the problem: what it may choose, and what comes first."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from small_problems import every_point, small_problem

from nest_core.costs import Plan, price
from nest_core.costs.plan import REPLAYED, SCHEDULES
from nest_core.documents.presets import load_toml, preset_names, preset_path
from nest_core.planner.baselines import manual
from nest_core.planner.baselines.baseline import row_length
from nest_core.scenario import load_scenario
from nest_core.workload import Model

AXES = {
    "pp": (1, 2, 3, 4, 5, 6), "cp": (1, 2), "ep": (1, 2), "zero": (0, 1, 2, 3),
    "schedules": tuple(name for name in SCHEDULES if name not in REPLAYED),
    "interleave": (1, 2, 3),
}  # fmt: skip


@pytest.fixture(scope="module")
def stranger() -> Model:
    """A model that nobody published."""
    model = load_scenario("llama2-7b-64-h100").model
    return replace(model, name="stranger")


def plan_of(small, model) -> Plan:
    found = manual.find(small.problem, small.space, model)
    assert found.plan is not None
    fits = price(small.problem, found.plan).feasible
    assert ("is the least that fits" if fits else "nothing fits") in found.origin
    return found.plan


@pytest.mark.parametrize("seed", range(30))
def test_what_the_rules_fix(seed, stranger):
    """Widths in the node, even stages, one recomputation, sp with tp, ZeRO 1, Megatron's order."""
    small = small_problem(seed, experts=seed % 2 == 0, axes=AXES)
    plan, node = plan_of(small, stranger), row_length(small.problem.network)
    point, layers = plan.point, small.problem.layers
    assert point in set(every_point(small.problem, small.space))
    assert node % (point.tp * point.cp) == 0 or point.tp == 1
    assert point.sp == (point.tp > 1)
    assert point.zero == (1 if point.sharers > 1 else 0)
    assert (point.order, point.device_order) == (("tp", "cp", "dp", "pp"), "natural")
    assert len(set(plan.recompute)) == 1
    assert plan.strategies == ()
    sizes = [b - a for a, b in zip(plan.cuts, plan.cuts[1:], strict=False)]
    blocks = [size - (k == 0) - (k == len(sizes) - 1) for k, size in enumerate(sizes)]
    assert len(set(sizes)) == 1 or len(set(blocks)) == 1
    assert sum(sizes) == layers


@pytest.mark.parametrize("seed", range(30))
def test_data_parallelism_takes_all_that_is_left(seed, stranger):
    """No dp that goes with the micro-batch is larger."""
    small = small_problem(seed, axes=AXES)
    point = plan_of(small, stranger).point
    model_parallel = point.tp * point.cp * point.pp
    for dp in small.space.dp:
        if dp > point.dp and small.problem.batch % (dp * point.micro_batch) == 0:
            assert dp * model_parallel > small.problem.network.devices


@pytest.mark.parametrize("seed", range(30))
def test_experts_share_the_node_with_tensor_parallelism(seed, stranger):
    small = small_problem(seed, experts=True, axes={**AXES, "ep": (1, 2, 4)})
    point, node = plan_of(small, stranger).point, row_length(small.problem.network)
    inside = [ep for ep in (1, 2, 4) if point.sharers % ep == 0 and ep * point.tp <= node]
    assert point.ep == max(inside)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.sampled(5)
def test_less_model_parallelism_comes_first(seed, stranger):
    """Nothing that the rules allow at an earlier step fits: every plan there is priced."""
    small = small_problem(seed, axes={**AXES, "ep": (1,)})
    plan = plan_of(small, stranger)
    chosen = (plan.point.tp, plan.point.cp, plan.point.pp)
    fits = price(small.problem, plan).feasible
    for degrees in manual.steps(small.problem, small.space):
        if degrees == chosen and fits:
            return
        for point in every_point(small.problem, small.space):
            if (point.tp, point.cp, point.pp) != degrees or point.sp != (point.tp > 1):
                continue
            if point.zero != (point.sharers > 1) or point.order != plan.point.order:
                continue
            if point.schedule == "gpipe" or not largest(small, point):
                continue
            dividing = [v for v in (2, 3) if any(even(small.problem.layers, point.pp * v))]
            if point.interleave > 1 and point.interleave != dividing[(len(dividing) - 1) // 2]:
                continue
            for pattern in even(small.problem.layers, point.pp * point.interleave):
                for recompute in small.space.recompute:
                    earlier = Plan(point, pattern, (recompute,) * point.pp)
                    assert not price(small.problem, earlier).feasible
    assert not fits


def largest(small, point) -> bool:
    """Whether no more replicas go with the point."""
    width = point.devices_used // point.dp
    return not any(
        dp > point.dp
        and dp * width <= small.problem.network.devices
        and small.problem.batch % (dp * point.micro_batch) == 0
        for dp in small.space.dp
    )


def even(layers: int, virtual_stages: int):
    """Chunks of equally many layers, or blocks."""
    if layers % virtual_stages == 0:
        yield tuple(range(0, layers + 1, layers // virtual_stages))
    if (layers - 2) % virtual_stages == 0 and layers > 2:
        inner = [
            1 + virtual_stage * (layers - 2) // virtual_stages
            for virtual_stage in range(1, virtual_stages)
        ]
        yield (0, *inner, layers)


@pytest.mark.parametrize("seed", range(20))
def test_widths_grow_to_the_node_before_the_pipeline_and_contexts_come_last(seed):
    """The order of the steps, from the degrees alone."""
    small = small_problem(seed, axes=AXES)
    steps = list(manual.steps(small.problem, small.space))
    assert len(set(steps)) == len(steps)
    contexts = [cp for _, cp, _ in steps]
    assert contexts == sorted(contexts)
    for cp in set(contexts):
        own = [(tp, pp) for tp, width, pp in steps if width == cp]
        assert own == sorted(own, key=lambda pair: (pair[1], pair[0]))
        widest = max(tp for tp, _ in own)
        assert all(tp == widest for tp, pp in own if pp > 1)


def test_the_middle_number_of_virtual_stages():
    """Megatron Core's example: 24 layers in 4 stages may have 2, 3 or 6 virtual stages each."""
    assert manual.middle_interleave([2, 3, 6]) == 3
    assert manual.middle_interleave([2, 3, 4, 6]) == 3
    assert manual.middle_interleave([7]) == 7


def test_a_pipeline_is_interleaved_where_that_is_faster():
    """GPT-3 on 512 A100: two stages; interleaving shortens the bubble and still fits."""
    scenario = load_scenario("gpt3-175b-512-a100")
    problem, space = scenario.problem(), scenario.space
    with_virtual_stages = manual.find(problem, space, scenario.model).plan
    plain = replace(space, schedules=("1f1b",), interleave=(1,))
    without = manual.find(problem, plain, scenario.model).plan
    assert with_virtual_stages is not None
    assert without is not None
    assert with_virtual_stages.point.interleave > 1
    assert price(problem, with_virtual_stages).iteration_s < price(problem, without).iteration_s


PAPER = {
    "bert-large": ("bert.toml", 64, "bert-large-64-v100"),
    "llama2-7b": ("llama2.toml", 64, "llama2-7b-64-h100"),
    "llama3-70b": ("llama3.toml", 1024, "llama3-70b-1024-h100"),
    "gpt3-175b": ("gpt3.toml", 512, "gpt3-175b-512-a100"),
    "mixtral-8x7b": ("mixtral.toml", 256, "mixtral-8x7b-256-tpuv4like"),
}


@pytest.mark.parametrize("name", PAPER)
def test_the_paper_s_placement_is_known_for_its_models_and_sizes_only(name):
    file, devices, preset = PAPER[name]
    model = load_scenario(preset).model
    cells = {cell["devices"]: cell for cell in load_toml(preset_path("paper", file))["cell"]}
    placement = cells[devices]["baselines"]["Manual"]
    assert manual.published_degrees(model, devices) == (placement["p"], placement["t"])
    assert manual.published_degrees(model, devices + 1) is None
    assert manual.published_degrees(replace(model, name="other"), devices) is None


def test_the_paper_s_placement_is_taken_where_it_is_the_faster_one_and_named():
    """One replica of Llama 3 on 128 devices: 40 stages fit first, the paper's 80 are faster."""
    sets = [
        "fabric.clos.devices=128",
        "search.tp=1",
        "search.dp=1",
        "search.cp=1",
        'search.recompute=["full"]',
        "search.pp=[40,80]",
        'search.schedule="1f1b"',
    ]
    scenario = load_scenario("llama3-70b-1024-h100", sets)
    problem, space, model = scenario.problem(), scenario.space, scenario.model
    found = manual.find(problem, space, model)
    ruled = manual.find(problem, space, replace(model, name="stranger"))
    assert found.plan is not None
    assert ruled.plan is not None
    assert (found.plan.point.pp, found.plan.point.tp) == (80, 1)
    assert "published" in found.origin
    assert ruled.plan.point.pp == 40
    assert price(problem, found.plan).iteration_s < price(problem, ruled.plan).iteration_s


@pytest.mark.parametrize("name", preset_names("scenarios"))
def test_of_rules_and_print_the_faster_feasible_one_is_shown(name):
    """Each by itself: under a strange name only the rules are left."""
    scenario = load_scenario(name)
    problem, space, model = scenario.problem(), scenario.space, scenario.model
    both = manual.find(problem, space, model)
    rules = manual.find(problem, space, replace(model, name="stranger"))
    assert both.plan is not None
    assert rules.plan is not None
    shown, ruled = price(problem, both.plan), price(problem, rules.plan)
    if ruled.feasible:
        assert shown.feasible
        assert shown.iteration_s <= ruled.iteration_s * (1 + 1e-12)
    if "published" in both.origin:
        printed = manual.published_degrees(model, problem.network.devices)
        assert printed == (both.plan.point.pp, both.plan.point.tp)
    assert math.isfinite(shown.iteration_s)
