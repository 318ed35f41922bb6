"""A trace is what Perfetto reads: names, threads on which one thing runs at a time, counters.

The rules are the format's, as Perfetto's importer states them; `benchmarks/outside/perfetto.py`
asks its trace processor where it can be had.
"""

from __future__ import annotations

import json
from functools import lru_cache

import numpy as np
import pytest

import nest_core as nest
from nest_core.simulator.activity import entry_times
from nest_core.simulator.link_use import link_use

CASES = {
    "pipeline": ("llama2-7b-64-h100", "dp=8,tp=2,pp=4,sp=true,zero=2"),
    "data": ("llama2-7b-64-h100", "dp=64,zero=3"),
}
cases = pytest.mark.parametrize("case", CASES)


@lru_cache
def traced(case):
    result = nest.simulate(*CASES[case])
    return result, json.loads("\n".join(result.trace()))


def of_kind(trace, kind):
    return [event for event in trace["traceEvents"] if event["ph"] == kind]


@cases
def test_events_are_those_that_perfetto_reads(case):
    _, trace = traced(case)
    assert {event["ph"] for event in trace["traceEvents"]} == {"M", "X", "C"}
    for event in trace["traceEvents"]:
        assert event["pid"] > 0
        if event["ph"] != "C":
            assert event["tid"] > 0
        if event["ph"] != "M":
            assert event["ts"] >= 0
            assert round(event["ts"], 3) == event["ts"]
        if event["ph"] == "C":
            assert all(isinstance(value, float | int) for value in event["args"].values())
    for event in of_kind(trace, "X"):
        assert event["dur"] >= 0
        assert {"cat", "name", "args"} <= set(event)


@cases
def test_processes_and_threads_have_names_and_one_thing_runs_on_each_at_a_time(case):
    result, trace = traced(case)
    named = {(e["name"], e["pid"], e["tid"]) for e in of_kind(trace, "M")}
    lanes: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in of_kind(trace, "X"):
        lanes.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["dur"]))
    for (process, thread), spans in lanes.items():
        assert ("thread_name", process, thread) in named
        assert ("process_name", process, 1) in named
        spans.sort()
        begins, taken = np.array(spans).T
        assert (begins[1:] >= (begins + taken)[:-1] - 2e-3).all()
    processes = {process for process, _ in lanes}
    assert processes == set(range(1, result.report.plan.point.pp + 1))


@cases
def test_every_task_of_the_device_is_there_to_the_nanosecond(case):
    result, trace = traced(case)
    for each in result.activities:
        begins, ends = entry_times(result.iteration, each.stage, each.device)
        runs = ends > begins
        mine = [event for event in of_kind(trace, "X") if event["pid"] == each.stage + 1]
        assert len(mine) == runs.sum()
        assert [e["ts"] for e in mine] == pytest.approx(1e6 * begins[runs], abs=5.1e-4)
        assert [e["ts"] + e["dur"] for e in mine] == pytest.approx(1e6 * ends[runs], abs=1.1e-3)


@cases
def test_counters_are_how_busy_links_are(case):
    result, trace = traced(case)
    series: dict[str, list[float]] = {}
    for event in of_kind(trace, "C"):
        series.setdefault(event["name"], []).append(event["args"]["%"])
    edges = np.linspace(0, result.iteration.ends_s.max(), 1001)
    wanted = link_use(result.iteration, [link.link_group for link in result.links], edges)
    assert list(series) == [link.in_words for link in result.links]
    for values, shares in zip(series.values(), wanted, strict=True):
        assert values == pytest.approx(100 * shares, abs=6e-4)
