"""ZeRO over groups of the ranks that share weights: what is divided, what is sent, what is refused.

Prices are compared with whole plans over concrete devices in tests/planner.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from nest_core.costs import Plan, Point, Report, price
from nest_core.costs.parse import read_plan
from nest_core.documents.errors import InputError
from nest_core.planner import search
from nest_core.planner.space import as_raised
from nest_core.scenario import load_scenario

PLAIN = "dp=32,cp=2,tp=1,pp=1,zero={zero}"


@pytest.fixture(scope="module")
def problem():
    return load_scenario("llama2-7b-64-h100").problem()


def priced(problem, text: str) -> Report:
    return price(problem, read_plan(text, problem.layers, 64))


@pytest.mark.parametrize("zero", [1, 2, 3])
def test_a_group_of_all_is_no_group(problem, zero):
    text = PLAIN.format(zero=zero)
    assert priced(problem, f"{text},zero_group=64") == priced(problem, f"{text},zero_group=all")
    assert priced(problem, f"{text},zero_group=64") == priced(problem, text)


@pytest.mark.parametrize(("zero", "part"), [(1, "optimizer"), (2, "gradients"), (3, "weights")])
def test_what_is_sharded_is_divided_by_the_group(problem, zero, part):
    """And by nothing else: what a stage shards it shards over one instance."""
    held = {
        group: getattr(
            priced(problem, f"{PLAIN.format(zero=zero)},zero_group={group}").stages[0].memory, part
        )
        for group in (2, 8, 32)
    }
    assert held[2] == pytest.approx(4 * held[8]) == pytest.approx(16 * held[32])


def test_instances_are_slower_only_by_what_they_exchange(problem):
    """Without bytes of gradients there is nothing between them, and gathers stay near."""
    state = replace(problem.state, gradients=0.0)
    silent = replace(problem, state=state)
    text = "dp=64,tp=1,pp=1,zero=3,recompute=full"
    near = priced(silent, f"{text},zero_group=8").iteration_s
    assert near < priced(silent, text).iteration_s


def test_micro_batches_do_not_multiply_what_instances_exchange(problem):
    """ZeRO 3 in groups: the all-reduce comes once, whatever the number of micro-batches."""

    def between(micro: int) -> float:
        text = f"dp=64,tp=1,pp=1,zero=3,zero_group=8,micro_batch={micro},recompute=full"
        return priced(problem, text).stages[0].sync_s

    assert between(1) == pytest.approx(between(2), rel=0.2)


REFUSED = [
    ("dp=8,zero=1,zero_group=3", r"plan\.zero_group must divide dp x cp = 8, and be above 1, but"),
    ("dp=8,zero=1,zero_group=16", r"plan\.zero_group must divide dp x cp = 8, and be above 1, but"),
    ("dp=8,zero=1,zero_group=1", r"plan\.zero_group must divide dp x cp = 8, and be above 1, but"),
    ("dp=8,zero_group=4", r"plan\.zero_group must be all at ZeRO 0, which shards nothing, but is"),
    ("dp=8,zero=1,zero_group=some", r"plan\.zero_group must be all or a divisor of dp x cp = 8"),
    ("dp=8,ep=4,zero=1,zero_group=2",
     r"plan\.zero_group must leave instances, here 4, that divide the 2 ranks that hold"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text for text, _ in REFUSED])
def test_groups_that_do_not_divide_are_one_sentence(problem, text, message):
    with pytest.raises(InputError, match=message) as caught:
        priced(problem, text)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


SMALL = ("search.tp=1", "search.cp=1", "search.pp=[1,2]", 'search.schedule="1f1b"')


@pytest.mark.parametrize("asked", ["7", "[3, 5]", "1"])
def test_a_list_of_which_none_divides_is_refused(asked):
    scenario = load_scenario("llama2-7b-64-h100", (*SMALL, f"search.zero_group={asked}"))
    with pytest.raises(InputError, match=r"search\.zero_group must hold all, or a divisor of dp"):
        search(scenario.problem(), scenario.space)


def test_a_pinned_group_is_kept():
    """Numbers that divide nowhere are left out; with ZeRO pinned nothing else is left."""
    pins = (*SMALL, "search.zero=[1,3]", "search.zero_group=[3,8]", "search.dp=[16,32]")
    scenario = load_scenario("llama2-7b-64-h100", pins)
    result = search(scenario.problem(), scenario.space, top=20)
    points = [report.plan.point for report in (result.best, *result.alternatives)]
    assert {point.zero_group for point in points} == {8}
    assert {point.zero for point in points} == {1, 3}


def test_the_least_divided_state_comes_first():
    states = [(3, 0), (1, 0), (1, 8), (3, 8), (1, 2), (0, 0)]
    assert as_raised(states) == [(0, 0), (1, 2), (1, 8), (3, 8), (1, 0), (3, 0)]


def test_plans_are_read_back_with_their_groups(problem):
    point = Point(1, False, 16, 2, 1, 1, ("tp", "cp", "dp", "pp"), cp=2, zero_group=4)
    for chosen in (point, replace(point, zero_group=8), replace(point, zero_group=0)):
        plan = Plan(chosen, (0, 16, problem.layers), ("none", "none"))
        text = ",".join(
            f"{name}={'-'.join(map(str, value)) if isinstance(value, list) else value}"
            for name, value in plan.to_json().items()
            if name not in ("sp", "stage_recompute")
        )
        assert read_plan(text, problem.layers, 64) == plan


def test_groups_beat_all_and_nothing_behind_oversubscribed_spines():
    """Llama 3 8B on 1,024 H100 behind 4:1: gathers stay in a leaf, memory is still divided."""
    asked = (
        'workload.model="llama3-8b"',
        "workload.sequence_length_tokens=8192",
        "accelerator.memory_GiB=96",
    )
    problem = load_scenario("llama3-70b-1024-h100-4to1", asked).problem()

    def seconds(text: str) -> float:
        report = price(problem, read_plan(text, problem.layers, 1024))
        assert report.feasible
        return report.iteration_s

    whole = seconds("dp=1024,tp=1,pp=1,zero=2")
    nothing = seconds("dp=256,tp=4,pp=1,zero=0,sp=true,micro_batch=4")
    grouped = seconds("dp=1024,tp=1,pp=1,zero=2,zero_group=256")
    assert grouped < 0.995 * whole
    assert grouped < 0.9 * nothing
