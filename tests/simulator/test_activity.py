"""What devices do adds up, is where its tasks are, and what is exposed is no more than runs."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from nest_core.costs import IDEAL_OVERLAP, NO_OVERLAP, price
from nest_core.costs.parse import read_plan
from nest_core.scenario import load_scenario
from nest_core.simulator import simulate, stages_of
from nest_core.simulator.activity import PARTS, activity, entry_times, slowest, stage_terms
from nest_core.simulator.entries import COMPUTE, WORK
from nest_core.simulator.link_use import busiest, link_use

CASES = {
    "data": ("llama2-7b-64-h100", "dp=64,zero=3"),
    "pipeline": ("llama2-7b-64-h100", "dp=8,tp=2,pp=4,sp=true,zero=2,recompute=full"),
    "interleaved": ("llama2-7b-64-h100", "dp=4,tp=4,pp=4,interleave=2,micro_batch=2"),
    "zero bubble": ("llama2-7b-64-h100", "dp=16,pp=4,schedule=zb_2p,zero=1"),
    "tied": ("gpt3-175b-64-h100", "dp=1,tp=8,pp=8,sp=true,micro_batch=16"),
    "v": ("llama2-7b-64-h100", "dp=16,pp=4,schedule=dualpipev,interleave=2,micro_batch=2"),
}
OVERLAPS = {"none": NO_OVERLAP, "ideal": IDEAL_OVERLAP}
cases = pytest.mark.parametrize("case", CASES)
overlaps = pytest.mark.parametrize("overlap", [*OVERLAPS, "own"])


@lru_cache
def problem(scenario, overlap):
    asked = load_scenario(scenario).problem()
    return replace(asked, overlap=OVERLAPS[overlap]) if overlap in OVERLAPS else asked


@lru_cache
def simulated(case, overlap):
    scenario, words = CASES[case]
    asked = problem(scenario, overlap)
    plan = read_plan(words, asked.layers, asked.network.devices)
    return asked, price(asked, plan), simulate(asked, plan)


@cases
@overlaps
def test_parts_add_up_to_the_iteration(case, overlap):
    asked, report, iteration = simulated(case, overlap)
    activities = slowest(iteration)
    assert [each.stage for each in activities] == list(range(report.plan.point.pp))
    for each in activities:
        assert each.seconds.sum() == pytest.approx(iteration.seconds, rel=1e-9)
        assert (each.ends_s >= each.begins_s).all()
        assert each.begins_s[1:] == pytest.approx(each.ends_s[:-1], rel=1e-12)
    for terms in stage_terms(asked, report, activities):
        planned, played = map(sum, zip(*terms.terms.values(), strict=True))
        assert played == pytest.approx(iteration.seconds, rel=1e-9)
        assert planned == pytest.approx(report.iteration_s, rel=1e-9)


@cases
@overlaps
def test_work_is_what_the_stage_has_and_communication_no_more_than_its_calls_run(case, overlap):
    """Counted anew, task by task."""
    _, _, iteration = simulated(case, overlap)
    for each in slowest(iteration):
        program = iteration.programs[each.stage]
        begins, ends = entry_times(iteration, each.stage, each.device)
        taken = dict.fromkeys(WORK, 0.0)
        runs = {}
        for place, row in enumerate(program.row):
            entry = program.rows[row]
            if entry.kind:
                taken[entry.kind] += ends[place] - begins[place]
            elif entry.call is not None:
                axis = {"receive": "transfers", "return": "transfers"}.get(
                    entry.call.axis, entry.call.axis
                )
                runs[axis] = runs.get(axis, 0.0) + ends[place] - begins[place]
        spent = dict(zip(PARTS, each.seconds.tolist(), strict=True))
        work = taken["forward"] + taken["backward"] + taken["gradients of weights"]
        assert spent["compute"] == pytest.approx(work)
        assert spent["recomputation"] == pytest.approx(taken["recomputation"])
        assert spent["optimizer"] == pytest.approx(taken["update"])
        assert spent["kernel launches"] <= taken["launch"] + 1e-9
        for name in ("tp", "data", "transfers"):
            assert spent[name] <= runs.get(name, 0.0) * (1 + 1e-9) + 1e-12
            if overlap == "none" and each.stage:  # nothing hides, so all that runs is exposed
                assert spent[name] == pytest.approx(runs.get(name, 0.0), rel=1e-6, abs=1e-9)


@cases
def test_both_ends_of_a_pipeline_wait_for_the_sum_of_tied_weights(case):
    _, _, iteration = simulated(case, "own")
    tied = [each.seconds[PARTS.index("tied")] for each in slowest(iteration)]
    assert (tied[0] > 0) == (case == "tied")
    assert len(tied) == 1 or tied[-1] == pytest.approx(tied[0])
    assert not any(tied[1:-1])


@cases
def test_the_slowest_class_waits_least(case):
    _, report, iteration = simulated(case, "own")
    stages, waiting = stages_of(iteration.problem, report.plan), PARTS.index("waiting")
    for each in slowest(iteration):
        devices = np.flatnonzero(stages == each.stage)
        others = [activity(iteration, each.stage, int(device)) for device in devices]
        least = min(one.seconds[waiting] for one in others)
        assert each.seconds[waiting] == pytest.approx(least, abs=1e-9)
        mine = iteration.classes.device[devices] == iteration.classes.device[each.device]
        assert each.alike == mine.sum()


@cases
@overlaps
def test_what_links_carry_over_time_is_what_they_carry_in_all(case, overlap):
    _, _, iteration = simulated(case, overlap)
    links, loads = busiest(iteration), iteration.loads
    assert 0 < len(links) <= 10
    edges = np.linspace(0.0, iteration.ends_s.max(), 37)
    use = link_use(iteration, [link.link_group for link in links], edges)
    capacity = iteration.problem.network.link_map.capacity_Bps
    for link, shares in zip(links, use, strict=True):
        total = sum(load[link.link_group] for load in loads.bytes.values())
        assert link.load_bytes == pytest.approx(total)
        carried = (shares * np.diff(edges)).sum() * capacity[link.link_group]
        assert carried == pytest.approx(total, rel=1e-6)
        assert sum(link.users.values()) == pytest.approx(link.utilisation)
    assert [link.utilisation for link in links] == sorted(
        (link.utilisation for link in links), reverse=True
    )


def test_a_links_bytes_are_there_while_its_call_runs():
    """ZeRO 0: gradients are reduced at the end alone."""
    asked = problem("llama2-7b-64-h100", "none")
    iteration = simulate(asked, read_plan("dp=64,zero=0", asked.layers, 64))
    calls = np.flatnonzero(
        [iteration.programs[0].rows[iteration.programs[0].row[k]].call is not None
         for k in iteration.entry]
    )  # fmt: skip
    first = iteration.begins_s[calls].min()
    edges = np.array([0.0, first * 0.999, iteration.ends_s.max()])
    use = link_use(iteration, [link.link_group for link in busiest(iteration)], edges)
    assert not use[:, 0].any()
    assert (use[:, 1] > 0).all()
    stream = [row.stream for row in iteration.programs[0].rows]
    assert {stream[iteration.programs[0].row[k]] for k in iteration.entry[calls]} == {COMPUTE}
