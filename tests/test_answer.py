"""Answers: what stands beside the plan follows from the plans."""

from __future__ import annotations

import re
import sys
from dataclasses import asdict

import pytest

from nest_core.api.answer import Answer, answer
from nest_core.documents.units import GIB
from nest_core.scenario import load_scenario

SMALL = "llama2-7b-64-h100"

# Scenarios that nothing fits, by what keeps them from fitting.
TIGHT = {
    "a deep pipeline": [SMALL, "accelerator.memory_GiB=2.0", "search.zero=0", "search.pp=4"],
    "no recomputation": [SMALL, "accelerator.memory_GiB=3.0", 'search.recompute="none"'],
    "one wide stage": [SMALL, "accelerator.memory_GiB=3.0", "search.pp=1", "search.tp=1"],
    "tied ends": ["gpt3-175b-64-h100", "accelerator.memory_GiB=6.0", "search.tp=1"],
    "experts": ["mixtral-8x7b-256-tpuv4like", "accelerator.memory_GiB=3.0", "search.zero=0"],
}


def answered(entries: list[str], *more: str) -> Answer:
    preset, *sets = entries
    return answer(load_scenario(preset, [*sets, *more]))


def test_the_best_baseline_is_the_fastest_that_fits():
    found = answered(["bert-large-64-v100"])
    best = found.best_baseline
    assert best is not None
    assert best.report is not None
    times = [
        entry.report.iteration_s for entry in found.baselines if entry.feasible and entry.report
    ]
    assert best.report.iteration_s == min(times)
    assert found.result.best is not None
    assert found.speedup == best.report.iteration_s / found.result.best.iteration_s >= 1


def test_without_baselines_there_is_no_speedup():
    found = answered([SMALL], "baselines.names=[]")
    assert (found.baselines, found.best_baseline, found.speedup) == ((), None, None)
    assert found.advice == ""


TOO_MUCH = pytest.mark.xfail(
    strict=True, reason="without recomputation more than 2 % too much memory is advised"
)
MARKS = {
    "no recomputation": TOO_MUCH,
    "tied ends": pytest.mark.check,
    "experts": pytest.mark.check,
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=MARKS.get(name, ())) for name in TIGHT],
)
def test_the_memory_that_is_said_to_be_needed_is_needed_and_suffices(name):
    """The advised figure suffices as it is printed; 2 % less than what is needed does not.

    (The relaxation behind it may differ by a tied copy, hence not exactly.) A failure: the
    studio advises a person to buy too much, or too little.
    """
    found = answered(TIGHT[name], "baselines.names=[]")
    assert found.result.best is None
    needed = found.result.needed_bytes / GIB
    advised = re.search(r"to ([0-9.]+) GiB", found.advice)
    assert advised is not None
    assert needed <= float(advised[1]) <= needed + 0.1
    assert found.to_json()["advice"] == found.advice
    for memory, fits in ((0.98 * needed, False), (float(advised[1]), True)):
        memory_GiB = f"accelerator.memory_GiB={memory}"
        again = answered(TIGHT[name], "baselines.names=[]", memory_GiB)
        assert (again.result.best is not None) == fits


@pytest.mark.parametrize("more", [(), ("accelerator.memory_GiB=3.0", "search.pp=[1, 4, 16]")])
@pytest.mark.sampled(2)
def test_the_order_in_which_schedules_are_listed_changes_nothing(more):
    """A failure: whoever names GPipe first is told to buy ten times the memory."""
    named = [
        answered([SMALL], f"search.schedule={names}", "baselines.names=[]", *more).result
        for names in ('["gpipe", "1f1b"]', '["1f1b", "gpipe"]')
    ]
    first, second = named
    assert first.needed_bytes == second.needed_bytes
    assert (first.best is None) == (second.best is None) == bool(more)
    if first.best is not None and second.best is not None:
        assert first.best.plan == second.best.plan


def test_a_time_limit_is_a_reason_without_advice():
    """More memory would not help a search that had no time, nor a method to ask instead."""
    with_methods = answered([SMALL], "search.time_limit_s=1e-9")
    chosen = min(entry.report.iteration_s for entry in with_methods.baselines if entry.feasible)
    assert with_methods.result.best.iteration_s == chosen
    found = answered([SMALL], "search.time_limit_s=1e-9", "baselines.names=[]")
    assert found.result.best is None
    assert found.result.reason == (
        "the time limit was over before any plan was found: raise time_limit_s"
    )
    assert found.advice == ""


@pytest.mark.parametrize("name", ["nest", "manual", "phaze"])
def test_a_search_without_work_is_not_behind_the_method_beside_it(monkeypatch, name):
    """NEST's program among them; its waterfall then ends at the plan that is taken."""
    monkeypatch.setattr(sys.modules["nest_core.planner.search"], "_WORK", 0.0)
    found = answered([SMALL], f"baselines.names=['{name}']")
    (entry,) = found.baselines
    if not entry.feasible:  # as a method that searches itself
        assert name == "phaze"
        return
    assert not found.result.certificate.proven
    assert found.result.certificate.ended == "after its share of work"
    assert found.result.best.iteration_s <= entry.report.iteration_s
    if entry.waterfall:
        lost = sum(asdict(entry.waterfall).values())
        assert lost == pytest.approx(
            entry.report.iteration_s - found.result.best.iteration_s, abs=1e-9
        )


def test_alternatives_are_further_plans_in_order_of_time():
    """All of them proven: none beats the one before it, and each is another point."""
    found = answered([SMALL], "search.top=5", "baselines.names=[]")
    reports = [found.result.best, *found.result.alternatives]
    assert len(reports) == 5
    times = [report.iteration_s for report in reports if report is not None]
    assert times == sorted(times)
    assert len({report.plan.point for report in reports if report is not None}) == 5
