"""What the lessons answer, computed here once more without their code."""

from __future__ import annotations

import csv
import itertools
import math
import tomllib
from pathlib import Path

import pytest

import nest_core as nest
from nest_core.planner import SearchSpace, search
from nest_core.planner.levelwise import PAPER_ORDER, levelwise
from nest_core.scenario import Scenario
from nest_core.teaching.lessons import lesson
from nest_core.teaching.lessons.groups import (
    crossing_bytes,
    expert_buffer_bytes,
    fastest_width,
    spread_experts,
    width_reports,
)
from nest_core.teaching.lessons.levels import cells, chosen_cuts
from nest_core.teaching.lessons.paper_table import leads
from nest_core.teaching.lessons.pipelines import idle_share, pipeline, played, replica, sent_bytes
from nest_core.teaching.lessons.program import SECONDS as PROGRAM_SECONDS
from nest_core.teaching.lessons.program import UNITS as PROGRAM_UNITS
from nest_core.teaching.lessons.program import chain, chosen, iteration, path, states

GIB = 2.0**30
PRESETS = Path(__file__).resolve().parents[2] / "presets"


def _right(key):
    question = lesson(key).brief().question
    return question.choices[question.right]


# Lesson 1 and 3: a pipeline in which every stage takes what is ready.


def _pipeline(schedule, stages, count):
    """End, share of waiting and micro-batches held, by ticks of one forward pass.

    1F1B by what it promises, not by its order: backward first, and never more than
    ``stages - s`` micro-batches in flight. GPipe: no backward pass before the last forward one.
    """
    room = [stages - s if schedule == "1f1b" else count for s in range(stages)]
    came = [[0] * count for _ in range(stages)]  # 0 not yet, 1 forward done, 2 backward done
    busy = [(0, None, None)] * stages
    most, work, now = [0] * stages, 0, 0
    while any(state != 2 for row in came for state in row):
        for s in range(stages):
            until, number, new = busy[s]
            if number is not None and until == now:
                came[s][number] = new
                busy[s] = (0, None, None)
        for s in range(stages):
            if busy[s][1] is not None:
                continue
            flying = sum(state == 1 for state in came[s])
            back = [
                k
                for k in range(count)
                if came[s][k] == 1 and (s == stages - 1 or came[s + 1][k] == 2)
            ]
            if schedule == "gpipe" and 0 in came[s]:
                back = []
            ready = [k for k in range(count) if came[s][k] == 0 and (s == 0 or came[s - 1][k] >= 1)]
            if back:
                busy[s] = (now + 2, back[0], 2)
                work += 2
            elif ready and flying < room[s]:
                busy[s] = (now + 1, ready[0], 1)
                work += 1
                most[s] = max(most[s], flying + 1)
        now += 1
    end = now - 1
    return end, 1 - work / (stages * end), most


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize(("stages", "count"), [(2, 1), (2, 8), (4, 4), (4, 2), (8, 16), (8, 4)])
def test_a_pipeline_that_takes_what_is_ready_does_the_same(schedule, stages, count):
    end, idle, held = _pipeline(schedule, stages, count)
    shown = played(schedule, stages, count)
    assert shown.iteration.seconds == pytest.approx(end)
    assert idle_share(shown) == pytest.approx(idle)
    if schedule == "1f1b":
        numbers = lesson("bubble").show({"pp": stages, "m": count}).formulas[-1].numbers
        assert numbers.endswith(f" = {held[0]}")


def test_the_bubbles_answer():
    _, idle, _ = _pipeline("1f1b", 4, 4)
    assert _right("bubble") == f"{100 * idle:.3g} %"


def test_the_stash_answer():
    _, _, held = _pipeline("1f1b", 8, 32)
    assert lesson("stash").brief().question.right == held[0]
    numbers = lesson("stash").reveal({}).formulas[0].numbers
    assert numbers == f"stage 1: {held[0]}, the last of 8 stages: {held[-1]}, of 32"


# Lesson 2: every plan of the blackboard, by hand.

SECONDS, UNITS = (6, 6, 3, 5), (0, 3, 2, 2, 0)
HOP = {"same": 0.5, "other": 1.0}
BETWEEN = {"012": ("same", "other"), "123": ("other", "same")}
LEVEL = {0: "same", 1: "other", None: None}


def _loads(cuts, first_stage, into_first, mapping):
    """Seconds of stages ``first_stage`` .. 2; the link into the first one is given."""
    links = {1: BETWEEN[mapping][0], 2: BETWEEN[mapping][1], first_stage: into_first}
    loads = []
    for place, (first, end) in enumerate(itertools.pairwise(cuts)):
        stage = first_stage + place
        load = sum(SECONDS[first:end])
        if stage > 0:
            load += HOP[links[stage]] * UNITS[first]
        if stage < 2:
            load += HOP[links[stage + 1] if stage + 1 != first_stage else 0] * UNITS[end]
        loads.append(load)
    return loads


@pytest.mark.parametrize("mapping", ["012", "123"])
@pytest.mark.parametrize(("objective", "judge"), [("sum", sum), ("slowest", max)])
def test_every_cell_is_the_least_of_all_plans_from_there(mapping, objective, judge):
    table = cells(mapping, objective)
    assert len(table) == 9
    for cell in table:
        stages = 3 - cell.stage
        every = {
            cuts: judge(_loads(cuts, cell.stage, LEVEL[cell.level], mapping))
            for inner in itertools.combinations(range(cell.first + 1, 4), stages - 1)
            for cuts in [(cell.first, *inner, 4)]
        }
        assert cell.best.total == min(every.values())
        for one in cell.candidates:
            assert one.total == min(v for cuts, v in every.items() if cuts[1] == one.end)


def test_cells_are_filled_backwards_and_stage_three_is_the_same_on_any_rank_mapping():
    table = cells("012", "sum")
    assert [cell.stage for cell in table] == sorted((c.stage for c in table), reverse=True)
    assert table[:4] == cells("123", "sum")[:4]


@pytest.mark.parametrize("mapping", ["012", "123"])
@pytest.mark.parametrize("objective", ["sum", "slowest"])
def test_the_finished_plan_is_priced_as_its_loads_say(mapping, objective):
    cuts = chosen_cuts(mapping, objective)
    loads = _loads(cuts, 0, None, mapping)
    reveal = lesson("levels").reveal({"step": 9, "seats": mapping, "held": objective})
    assert reveal.formulas[-1].numbers == (
        f"{sum(loads):g} + (4 - 1) {max(loads):g} = {sum(loads) + 3 * max(loads):g}"
    )


def test_the_levels_answer():
    """Devices of one node, of one leaf's four nodes, or neither."""
    kinds = {(a // 8 == b // 8, a // 256 == b // 256) for a, b in ((0, 1), (0, 8), (0, 1023))}
    assert _right("levels").startswith(f"{len(kinds)}: ")


# Lesson 3: the stash in bytes.


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
@pytest.mark.parametrize("recompute", ["none", "full"])
def test_the_stash_is_activations_times_those_in_flight_beside(schedule, recompute):
    _, _, held = _pipeline(schedule, 8, 32)
    for stage, count in zip(pipeline(schedule, recompute).stages, held, strict=True):
        assert stage.memory.stash == pytest.approx((count - 1) * stage.memory.activations)


def test_a_stage_of_five_blocks_weighs_what_its_sizes_say():
    """Llama 2 13B: hidden 5120, inner 13824, no biases; two norms per block."""
    memory = pipeline("1f1b", "full").stages[1].memory
    parameters = 5 * (4 * 5120**2 + 3 * 5120 * 13824 + 2 * 5120)
    assert memory.weights == pytest.approx(2 * parameters)
    assert memory.gradients == pytest.approx(4 * parameters)
    assert memory.optimizer == pytest.approx(12 * parameters / 8)
    assert memory.activations == pytest.approx(5 * 2 * 4096 * 5120)


# Lesson 4.

LLAMA2_7B = 6_738_415_616


@pytest.mark.parametrize("ranks", [4, 8, 64])
@pytest.mark.parametrize("count", [1, 4])
def test_zero_divides_and_sends_as_its_paper_says(ranks, count):
    w, g, o = 2, 4, 12
    held = [w + g + o, w + g + o / ranks, w + (g + o) / ranks, (w + g + o) / ranks]
    sent = [2 * g, g + w, count * g + w, count * (g + 2 * w)]
    for zero in range(4):
        memory = replica(zero, ranks, count).stages[0].memory
        states = memory.weights + memory.gradients + memory.optimizer
        assert states == pytest.approx(held[zero] * LLAMA2_7B)
        away = sent[zero] * LLAMA2_7B * (ranks - 1) / ranks
        assert sent_bytes(zero, ranks, count) == pytest.approx(away)


def test_the_zero_answer():
    assert lesson("zero").brief().question.right == pytest.approx(6 + 12 / 64)


# Lesson 5.


@pytest.mark.parametrize("devices", [4, 8, 16, 64, 256])
@pytest.mark.parametrize("latency_us", [1, 20])
def test_ring_and_tree_cross_where_both_closed_forms_do(devices, latency_us):
    latency, port = latency_us * 1e-6, 50e9
    saved_s = (2 * (devices - 1) - 2 * math.log2(devices)) * latency
    saved_s_per_byte = (2 - 2 * (devices - 1) / devices) / port
    where = crossing_bytes(devices, latency_us)
    assert where == pytest.approx(saved_s / saved_s_per_byte, rel=1e-6)


def test_the_collectives_answer():
    where = (2 * 15 - 2 * 4) * 2e-6 * 50e9 * 16 / 2
    assert _right("collectives") == f"From about {where / 2**20:.1f} MiB on"


# Lesson 6: the planner, which knows no lesson, chooses the width.


def _planned_width(ratio):
    level = {"uplink_per": "device", "oversubscription": 1.0}
    fabric = {
        "kind": "hierarchical",
        "level": [
            level | {"name": "node", "group_size": 8, "bandwidth_GBps": 450.0, "latency_us": 1.0},
            level
            | {
                "name": "spine", "group_size": 32, "bandwidth_GBps": 400.0, "latency_us": 5.0,
                "uplink_per": "child", "oversubscription": ratio,
            },
        ],
    }  # fmt: skip
    scenario = Scenario(
        {
            "schema": 1, "name": "lesson", "costs": "own", "fabric": fabric,
            "accelerator": "h100-80gb",
            "workload": {
                "model": "llama3.1-405b", "sequence_length_tokens": 8192,
                "global_batch_sequences": 512, "precision": "bf16",
            },
            "search": {
                "tp": [2, 4, 8, 16, 32], "pp": [4, 8, 16, 32], "micro_batch_sequences": 1, "cp": 1,
                "zero": [0, 1], "recompute": ["none", "full"], "idle_devices": False,
            },
        }
    ).values  # fmt: skip
    best = search(scenario.problem(), scenario.space).best
    assert best is not None
    return best.plan.point.tp


def test_the_planner_agrees_on_the_width_before_and_after():
    before, after = _planned_width(1.0), _planned_width(4.0)
    assert fastest_width(8, 1) == before > 8
    assert max(fastest_width(8, 4), after) <= 8  # which of them is left to the rank order
    assert _right("oversubscription") == "8 or less: inside the node"


@pytest.mark.parametrize("per_node", [4, 8])
@pytest.mark.sampled(2)
def test_thinner_uplinks_never_widen_and_never_speed_up(per_node):
    ratios = (1, 2, 3, 4, 8)
    best = [fastest_width(per_node, ratio) for ratio in ratios]
    assert best == sorted(best, reverse=True)
    assert best[-1] <= per_node < best[0]
    for before, after in itertools.pairwise(width_reports(per_node, ratio) for ratio in ratios):
        for tp, thick in before.items():
            thin = after[tp]
            assert (thick is None) == (thin is None)
            if thick is not None:
                assert thin.iteration_s >= thick.iteration_s * (1 - 1e-9)


# Lesson 7.


def test_the_experts_answer():
    pairs = [(device, expert) for device in range(8) for expert in range(8)]
    away = sum(device != expert for device, expert in pairs) / len(pairs)
    assert _right("experts") == f"{100 * away:.3g} %"


@pytest.mark.parametrize("imbalance", [1.0, 2.0])
def test_an_all_to_all_holds_every_copy(imbalance):
    for ep in (2, 4, 8):
        assert expert_buffer_bytes(ep, imbalance) == pytest.approx(imbalance * 2 * 4096 * 2 * 4096)


def test_spread_experts_weigh_their_share():
    """Mixtral 8x7B: 8 experts of three 4096 x 14336 matrices in each of eight blocks."""
    weights = [spread_experts(ep, 8, 1.0).stages[1].memory.weights for ep in (1, 2, 4, 8)]
    experts = 2 * 8 * 8 * 3 * 4096 * 14336
    for ep, found in zip((1, 2, 4, 8), weights, strict=True):
        assert weights[0] - found == pytest.approx(experts * (1 - 1 / ep))


# Lesson 8: the artifact's own runs.


def _time(row, column):
    return float(row[column]) if row[column] else None


@pytest.fixture(scope="module")
def artifact_runs(shared_data):
    with (shared_data / "nest_reference_runs.csv").open(newline="") as stream:
        return {row["instance"]: row for row in csv.DictReader(stream)}


@pytest.fixture(scope="module")
def printed_cells(shared_data):
    with (shared_data / "nest_published_relative_throughput.csv").open(newline="") as stream:
        return {
            (row["model"], int(row["devices"])): row
            for row in csv.DictReader(stream)
            if row["figure"] == "figure5"
        }


@pytest.mark.parametrize("model", ["bert", "llama2", "llama3", "mixtral", "gpt3"])
@pytest.mark.parametrize("devices", [64, 256, 1024])
def test_leads_are_those_of_the_artifacts_own_runs(artifact_runs, printed_cells, model, devices):
    run = artifact_runs[f"tpuv4_fatTree_{model}_d{devices}_mbs1"]
    cell = printed_cells[model, devices]
    ours = _time(run, "time_per_batch")
    for planner, (printed, published, right, _) in leads(model, devices).leads.items():
        theirs = _time(run, f"{planner}_as_published")
        assert (published is None) == (theirs is None)
        if theirs is not None:
            assert published == pytest.approx(theirs / ours, rel=1e-6)
        if cell[planner] and cell["nest"]:
            assert printed == pytest.approx(float(cell["nest"]) / float(cell[planner]))
        submitted = _time(run, "manual_correct_order")
        if planner == "manual" and submitted is not None:
            assert right == pytest.approx(submitted / ours, rel=1e-6)


def test_the_papers_answer(artifact_runs):
    run = artifact_runs["tpuv4_fatTree_llama2_d256_mbs1"]
    assert _time(run, "manual_as_published") / _time(run, "time_per_batch") > 1.2
    assert _time(run, "manual_correct_order") == pytest.approx(_time(run, "time_per_batch"))
    assert _right("table") == "Nothing: they are equally fast"


def test_one_unit_makes_transfers_a_thousand_times_longer():
    """BERT on 1,024 devices communicates; its leads move. Llama 2's do not."""
    moved = {
        model: max(
            abs(ratios[3] / ratios[2] - 1)
            for ratios in leads(model, 1024).leads.values()
            if ratios[2] is not None
        )
        for model in ("bert", "llama2")
    }
    assert moved["bert"] > 0.1
    assert moved["llama2"] < 0.01


# Lesson 9: every plan of stages two devices wide, with gaps, by hand.


def _program_plans(slots=4, layers=4):
    """Stages' places from the far end, last stage first, and cuts."""
    for stages in range(1, slots + 1):
        for taken in itertools.combinations(range(slots), stages):
            for inner in itertools.combinations(range(1, layers), stages - 1):
                yield taken, (0, *inner, layers)


def _program_loads(taken, cuts):
    """Nodes hold two places; a unit takes half a second inside one, two seconds between them."""
    places = taken[::-1]
    hops = [0.5 if here // 2 == there // 2 else 2.0 for here, there in itertools.pairwise(places)]
    loads = []
    for number, (first, end) in enumerate(itertools.pairwise(cuts)):
        load = sum(PROGRAM_SECONDS[first:end])
        load += hops[number - 1] * PROGRAM_UNITS[first] if number else 0.0
        load += hops[number] * PROGRAM_UNITS[end] if number < len(hops) else 0.0
        loads.append(load)
    return loads


def test_the_programs_lesson_answers_as_every_plan_and_as_the_program_itself():
    best, cuts = min(
        ((4 + len(taken) - 1) * max(_program_loads(taken, cuts)), cuts)
        for taken, cuts in _program_plans()
    )
    assert iteration(chosen()) == best
    assert (*(one.first for one in path(chosen())), 4) == cuts
    space = SearchSpace(
        tp=(2,), sp=(True,), dp=(1,), pp=(1, 2, 3, 4), micro_batch=(1,), zero=(0,),
        recompute=("none",), orders=(PAPER_ORDER,),
    )  # fmt: skip
    (promise,) = levelwise(chain(), space).best
    assert promise.seconds == pytest.approx(best)
    assert promise.plan.cuts == cuts


@pytest.mark.parametrize("state", states(), ids=lambda one: f"{one.stages}-{one.level}-{one.first}")
def test_every_state_is_the_least_of_all_suffixes(state):
    """Layers before the suffix stand for its producer, at its place."""
    every = []
    for taken, cuts in _program_plans():
        if state.level is None:
            if len(taken) == state.stages:
                every.append(max(_program_loads(taken, cuts)))
        elif len(taken) == state.stages + 1 and cuts[1] == state.first:
            far = taken[-1] // 2 != taken[-2] // 2
            if far == bool(state.level):
                every.append(max(_program_loads(taken, cuts)[1:]))
    assert state.best.total == min(every)


def test_the_programs_question():
    assert _right("program").startswith(f"{2 * chosen().stages}: ")


# Failures and neighbours: what the commands say of the same plan and of the same mix.


def test_the_failures_answer_is_that_of_goodput():
    """Llama 3 405B on 16,384: more than 90 % of 54 days were effective."""
    scenario = nest.load("llama3.1-405b-8192-h100", {"fabric": "meta-3tier-7to1"})
    result = nest.goodput(scenario, "dp=128,tp=8,pp=16,micro_batch=1,zero=1")
    share = result.estimate.shares.effective
    assert 0.90 < share < 0.93
    assert _right("failures") == f"{100 * share:.3g} %"
    assert f"{30 * share:.3g} of 30 days" in lesson("failures").brief().question.answer
    best = lesson("failures").reveal({}).content
    assert best.best_s == pytest.approx(result.estimate.interval_s)
    # No other interval that is drawn leaves more.
    assert max(of.effective for of in best.shares) <= best.best.effective * (1 + 1e-4)


def test_faster_recovery_and_fewer_devices_leave_more():
    left = [
        lesson("failures").reveal({"devices": devices, "faster": faster}).content.best.effective
        for devices, faster in ((16384, 1), (16384, 4), (1024, 4))
    ]
    assert left == sorted(left)


@pytest.mark.parametrize(("ratio", "zero"), [(4, 3), (8, 2), (1, 3)])
def test_the_neighbours_are_those_of_the_command(ratio, zero):
    fabric = tomllib.loads((PRESETS / "fabrics" / "h100-spine-leaf-64.toml").read_text("utf-8"))
    fabric["clos"]["oversubscription"] = [float(ratio)]
    job = {"scenario": "llama2-7b-64-h100", "devices": 32}
    job |= {"overrides": {"workload.global_batch_sequences": 128}}
    job |= {"plan": f"dp=32,tp=1,pp=1,micro_batch=1,zero={zero}"}
    file = {"schema": 1, "name": "m", "fabric": fabric, "placement": "spread"}
    expected = nest.mix(file | {"job": [{**job, "name": name} for name in "ab"]}).rows()[0]
    packed, spread = lesson("neighbours").reveal({"ratio": ratio, "zero": zero}).content.results
    assert spread.jobs[0].slowdown == pytest.approx(expected["slowdown"])
    assert packed.jobs[0].slowdown == 1.0
    if (ratio, zero) == (4, 3):
        assert _right("neighbours") == f"{100 * (expected['slowdown'] - 1):.3g} % longer"
