"""Uneven layouts of virtual stages against every plan of small instances, over concrete devices."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from against_oracle import priced_as_over_devices, search_finds_the_best
from oracle import Oracle
from oracle_layouts import layouts
from planner_instances import any_choice, any_picks, any_stages, large_instance, random_instance

from nest_core.costs import (
    IDEAL_OVERLAP,
    LayerTable,
    Plan,
    Point,
    Problem,
    StateBytes,
)
from nest_core.costs.parse import read_plan
from nest_core.documents.errors import InputError
from nest_core.fabric import Hierarchical, Tier
from nest_core.interop.exporters.megatron_core import layout_string
from nest_core.network import collapse
from nest_core.planner import SearchSpace, search
from nest_core.planner.layouts import even_patterns, uneven_patterns


@pytest.mark.parametrize(("layers", "pp", "v"), [(9, 2, 2), (10, 2, 2), (13, 2, 3), (14, 3, 2)])
def test_the_layouts_are_those_that_the_documented_set_has(layers, pp, v):
    told = set(layouts(layers, pp * v)) - set(even_patterns(layers, pp, v))
    found = uneven_patterns(layers, pp, v)
    assert set(found) == told
    assert len(found) == len(told)
    for cuts in found:
        assert Plan(
            Point(1, False, 1, pp, 1, 0, (), schedule="interleaved", interleave=v), cuts, ()
        ).is_replayed


def test_what_people_write_by_hand_is_among_the_layouts():
    """DeepSeek-V3's 61 blocks in 32 virtual stages, the embedding with one of them and the loss
    alone; 126 blocks of Llama 3.1 405B with ends that are a block short; 80 blocks, three rounds
    of four, three and three on eight stages."""
    for blocks, pp, v, sizes in (
        (61, 16, 2, [*[2] * 31, 1]),
        (126, 8, 8, [2] * 64),
        (126, 16, 3, [3] * 32 + [2] * 16),
        (80, 8, 3, [5, *[4] * 7, *[3] * 15, 4]),
    ):
        cuts = (0, *np.cumsum(sizes).tolist())
        assert cuts in (*even_patterns(blocks + 2, pp, v), *uneven_patterns(blocks + 2, pp, v))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(24))
def test_any_layout_is_priced_as_over_concrete_devices(seed):
    """Any cuts at all, with transfers, recomputation and strategies from stage to stage."""
    instance, dice = large_instance(seed), np.random.default_rng([seed, 21])
    problem = replace(instance.problem, overlap=IDEAL_OVERLAP) if seed % 2 else instance.problem
    oracle = Oracle(instance.fabric, problem, instance.space)
    for _ in range(40):
        choice = any_choice(dice, instance)
        if choice.interleave > 1:
            break
    cuts, recompute = any_stages(dice, instance, choice)
    picks = any_picks(dice, choice) if seed % 4 == 3 else ()
    priced_as_over_devices(problem, oracle, choice, cuts, recompute, picks)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(2, 32))
def test_the_search_finds_the_best_of_every_layout(seed):
    """Its seconds are the oracle's minimum, and no bound excludes what is better."""
    instance = random_instance(seed)
    space = replace(
        instance.space,
        schedules=("interleaved",) if seed % 3 else ("1f1b", "interleaved"),
        interleave=(1, 2, 3),
        layouts="uneven",
    )
    search_finds_the_best(instance, space, seed)


def test_blocks_that_do_not_divide_may_be_interleaved():
    """A prime number of blocks, which no even virtual stages share."""
    instance = next(one for one in map(random_instance, range(40)) if one.problem.layers == 7)
    space = replace(instance.space, schedules=("interleaved",), interleave=(2,), pp=(2,))
    with pytest.raises(InputError, match=r'or set search\.layouts = "uneven"'):
        search(instance.problem, space)
    assert search(instance.problem, replace(space, layouts="uneven")).certificate.proven


def test_a_layout_is_read_back_from_flags_and_from_json():
    for cuts in uneven_patterns(26, 4, 3):
        layout = f"--pipeline-model-parallel-layout '{layout_string(cuts)}'"
        plan = read_plan(f"--pipeline-model-parallel-size 4 {layout}", 26, 4)
        assert (plan.cuts, plan.point.schedule, plan.point.interleave) == (cuts, "interleaved", 3)
        assert read_plan(json.dumps(plan.to_json()), 26, 4) == plan


def test_uneven_layouts_win_somewhere_and_in_just_the_memory_that_they_take():
    """The enumeration above is of instances that tell them from even ones."""
    won = 0
    for seed in (2, 3, 5, 6, 7, 8, 10, 11, 12, 13):
        instance = random_instance(seed)
        space = replace(
            instance.space, schedules=("interleaved",), interleave=(2, 3), layouts="uneven"
        )
        try:
            best = search(instance.problem, space).best
        except InputError:  # no pipeline that divides the micro-batches
            continue
        if best is not None and best.plan.is_replayed:
            won += 1
            fullest = max(stage.memory.total for stage in best.stages)
            problem = replace(instance.problem, memory_bytes=fullest * (1 + 1e-9))
            same = replace(space, recompute=tuple(set(best.plan.recompute)))
            tight = search(problem, same, within_s=best.iteration_s).best
            assert tight is not None, seed
            assert tight.iteration_s == best.iteration_s
    assert won > 2


def test_a_light_last_stage_ends_before_the_mean_load_says():
    """17 blocks on three stages, the last a block short: no bound may count the mean's fill."""
    fabric = Hierarchical("row", (Tier("node", 3, 1.0, 0.0),))
    load, nothing = np.array([0.0, *[1.0] * 17, 0.0]), np.zeros(19)
    table = LayerTable(
        compute_s=load,
        forward_s=load / 3,
        weight_s=nothing,
        replay_s=np.zeros((3, 19)),
        launch_s=np.zeros((3, 19)),
        calls={},
        parameters=nothing,
        expert_parameters=nothing,
        tied_parameters=0.0,
        kept_bytes=np.zeros((3, 19)),
        working_bytes=np.zeros((3, 19)),
        boundary_bytes=np.zeros(20),
    )
    problem = Problem(
        network=collapse(fabric),
        table=lambda *_: table,
        batch=3,
        tokens=1,
        memory_bytes=1.0,
        reserved_bytes=0.0,
        state=StateBytes(2.0, 4.0, 12.0),
        update_Bps=1.0,
        model_flops=1.0,
        peak_flops=1.0,
    )
    space = SearchSpace(
        (1,),
        (False,),
        (1,),
        (3,),
        (1,),
        (0,),
        ("none",),
        schedules=("interleaved",),
        interleave=(2,),
        layouts="uneven",
    )
    best = search(problem, space).best
    assert best.iteration_s == pytest.approx(21.0)
    assert best.iteration_s < 17 / 2 + (3 - 1 / 2) * 17 / 3
    assert search(problem, space, within_s=best.iteration_s).best is not None


def test_uneven_layouts_want_stages_alike():
    instance = random_instance(0)
    with pytest.raises(InputError, match=r"search\.layouts must be even where stages are mixed"):
        replace(instance.space, mixed=True, layouts="uneven")
