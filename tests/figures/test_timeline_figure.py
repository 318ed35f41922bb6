"""The pipeline timeline: passes run when their schedule lets them, and bars are where they run.

The oracle is a graph of who waits for whom, whose longest paths networkx finds.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import networkx as nx
import numpy as np
import pytest

from nest_core.costs import REPLAYED, LayerTable, Plan, Point, Problem, StateBytes, price
from nest_core.costs.parse import read_plan
from nest_core.costs.timeline import PARTS, timeline
from nest_core.documents.errors import InputError
from nest_core.fabric import Hierarchical, Tier
from nest_core.network import collapse
from nest_core.report.explain.summary import bottleneck, fullest
from nest_core.report.figures import balance_figure, memory_figure
from nest_core.report.figures.entries import OURS, MethodRow
from nest_core.report.figures.style import MARK, TIME_COLOURS, axis_unit
from nest_core.report.figures.timeline import MAX_PASSES, timeline_figure
from nest_core.scenario import load_scenario

PLANS = {
    "one stage": "dp=32,tp=2,zero=1",
    "zero 3": "dp=64,zero=3,recompute=full",
    "1f1b": "dp=8,tp=2,pp=4,sp=true,zero=2,stage_recompute=full-selective-none-none",
    "few micro-batches": "dp=16,pp=4,micro_batch=16",
    "interleaved": "dp=4,tp=4,pp=4,interleave=2,micro_batch=2",
    "gpipe": "dp=16,pp=4,schedule=gpipe,micro_batch=4,zero=1",
    "uneven": "dp=8,tp=2,pp=4,cuts=0-4-10-20-34,order=tp-cp-pp-dp",
}
plans = pytest.mark.parametrize("case", PLANS)


@lru_cache
def problem():
    return load_scenario("llama2-7b-64-h100").problem()


@lru_cache
def played(case):
    asked = problem()
    return timeline(asked, price(asked, read_plan(PLANS[case], asked.layers, 64)))


def in_order(point, s, m):
    """(backward, micro-batch, virtual stage) of a stage's passes, written down one by one."""
    pp, v = point.pp, point.interleave
    if point.schedule == "gpipe":
        return [(False, k, 0) for k in range(m)] + [(True, k, 0) for k in range(m)]
    if point.schedule == "1f1b":
        there, back = [(k, 0) for k in range(m)], [(k, 0) for k in range(m)]
        ahead = pp - 1 - s
    else:
        there = [(g + k, c) for g in range(0, m, pp) for c in range(v) for k in range(pp)]
        back = [(g + k, v - 1 - c) for g in range(0, m, pp) for c in range(v) for k in range(pp)]
        ahead = 2 * (pp - 1 - s) + (v - 1) * pp
    order = [(False, *there.pop(0)) for _ in range(min(ahead, len(there)))]
    while there or back:
        if there:
            order.append((False, *there.pop(0)))
        order.append((True, *back.pop(0)))
    return order


def earliest(found):
    """Start of every pass by who waits for whom: longest paths through a graph."""
    point, m = found.report.plan.point, found.micro_batches
    pp, virtual_stages = point.pp, point.pp * point.interleave
    takes = found.parts_s.sum(axis=3)
    graph = nx.DiGraph()
    seconds = {}
    for s in range(pp):
        order = [(back, k, c * pp + s) for back, k, c in in_order(point, s, m)]
        for back, k, virtual_stage in order:
            seconds[back, k, virtual_stage] = takes[s, virtual_stage // pp, int(back)]
            before = (
                (True, k, virtual_stage + 1)
                if back and virtual_stage + 1 < virtual_stages
                else (False, k, virtual_stage)
            )
            if not back:
                before = (False, k, virtual_stage - 1)
            if back or virtual_stage:
                graph.add_edge(before, (back, k, virtual_stage))
        nx.add_path(graph, order)
    start = {}
    for node in nx.topological_sort(graph):
        start[node] = max((start[n] + seconds[n] for n in graph.predecessors(node)), default=0.0)
    return start


@plans
def test_passes_start_when_they_no_longer_wait(case):
    found = played(case)
    point = found.report.plan.point
    expected = earliest(found)
    assert found.start_s.size == len(expected)
    for s in range(point.pp):
        order = in_order(point, s, found.micro_batches)
        mine = zip(found.backward[s], found.micro_batch[s], found.virtual_stage[s], strict=True)
        assert [tuple(map(int, one)) for one in mine] == [tuple(map(int, one)) for one in order]
        wanted = [expected[back, k, c * point.pp + s] for back, k, c in order]
        assert found.start_s[s] == pytest.approx(wanted, rel=1e-12, abs=1e-12)


@plans
def test_the_parts_add_up_to_the_report(case):
    found = played(case)
    total = dict(zip(PARTS, np.moveaxis(found.pass_parts_s.sum(axis=1), 1, 0), strict=True))
    stages = found.report.stages
    assert (found.pass_parts_s >= 0).all()
    assert total["compute"] + found.update_s == pytest.approx([s.compute_s for s in stages])
    assert total["recomputation"] == pytest.approx([s.recompute_s for s in stages])
    assert total["communication"] + found.sync_s == pytest.approx(
        [s.communication_s for s in stages]
    )
    assert found.sync_s + found.update_s == pytest.approx([s.sync_s for s in stages])


def equal(schedule, pp, m, v):
    """Equal virtual stages of one layer each, which synchronise for as long; links take no time."""
    layers = pp * v
    none, ones = np.zeros((3, layers)), np.ones(layers)
    table = LayerTable(
        compute_s=3 * ones,
        forward_s=ones,
        weight_s=ones,
        replay_s=none,
        launch_s=none,
        calls={},
        parameters=ones,
        expert_parameters=0 * ones,
        tied_parameters=0.0,
        kept_bytes=none,
        working_bytes=none,
        boundary_bytes=np.zeros(layers + 1),
    )
    asked = Problem(
        network=collapse(Hierarchical("one", (Tier("node", pp, 1.0, 0.0),))),
        table=lambda tp, sp, micro_batch, cp, ep, etp: table, batch=m, tokens=1, memory_bytes=1e9,
        reserved_bytes=0.0, state=StateBytes(1.0, 1.0, 1.0), update_Bps=8.0, model_flops=1.0,
        peak_flops=1.0,
    )  # fmt: skip
    order = ("tp", "cp", "dp", "pp")
    point = Point(1, False, 1, pp, 1, 0, order, schedule=schedule, interleave=v)
    plan = Plan(point, tuple(range(layers + 1)), ("none",) * pp)
    return asked, price(asked, plan)


@pytest.mark.parametrize(
    ("schedule", "pp", "m", "v"),
    [
        ("gpipe", 3, 5, 1),
        ("1f1b", 4, 2, 1),
        ("1f1b", 4, 9, 1),
        ("interleaved", 4, 8, 3),
        ("zb_h1", 4, 3, 1),
        ("zb_1p", 4, 9, 1),
        ("zb_2p", 4, 9, 1),
        ("interleaved_zb", 4, 8, 2),
        ("zbv", 4, 9, 2),
        ("dualpipev", 4, 9, 2),
    ],
)
def test_equal_stages_end_when_the_closed_form_says(schedule, pp, m, v):
    asked, report = equal(schedule, pp, m, v)
    found = timeline(asked, report)
    assert found.seconds == pytest.approx(report.iteration_s, rel=1e-12)
    form = "replay" if schedule in REPLAYED else "closed form"
    assert f"as long as the {form}" in timeline_figure(found).reading


@plans
def test_the_words_state_both_times(case):
    found = played(case)
    picture = timeline_figure(found)
    assert not picture.title.endswith(".")
    assert len(picture.title) < 80
    assert (found.stages == 1) == picture.title.startswith("One stage")
    if abs(found.difference) > 5e-4:
        longer = found.seconds > found.report.iteration_s
        assert ("longer than" if longer else "less than") in picture.reading
    assert abs(found.difference) < 0.02


def lengths(picture, colour, stages):
    """Seconds of a colour's lines by stage, in units of the axis."""
    total = np.zeros(stages)
    for trace in picture.plot.data:
        if trace.type == "scatter" and trace.mode == "lines" and trace.line.color == colour:
            x, y = np.asarray(trace.x, float).reshape(-1, 3), np.asarray(trace.y).reshape(-1, 3)
            assert np.isnan(x[:, 2]).all()
            np.add.at(total, y[:, 0] - 1, x[:, 1] - x[:, 0])
    return total


@plans
def test_bars_are_as_long_as_what_they_stand_for(case):
    found = played(case)
    picture = timeline_figure(found)
    scale, unit = axis_unit(found.seconds, "s")
    assert unit in picture.plot.layout.xaxis.title.text
    spent = dict(zip(PARTS, np.moveaxis(found.pass_parts_s.sum(axis=1), 1, 0), strict=True))
    spent["communication"] = spent["communication"] + found.sync_s
    spent["compute"] = spent["compute"] + found.update_s
    for part, seconds in spent.items():
        drawn = lengths(picture, TIME_COLOURS[part], found.stages)
        assert drawn == pytest.approx(seconds / scale, rel=1e-3, abs=1e-4)
    idle = found.seconds - sum(spent.values())
    drawn = lengths(picture, TIME_COLOURS["idle"], found.stages)
    assert drawn == pytest.approx(idle / scale, rel=1e-3, abs=1e-4)


def test_a_time_axis_can_be_zoomed_and_the_stages_cannot():
    layout = timeline_figure(played("1f1b")).plot.layout
    assert layout.dragmode == "zoom"
    assert layout.xaxis.fixedrange is False
    assert layout.yaxis.fixedrange is True
    assert layout.yaxis.range[0] > layout.yaxis.range[1]


@lru_cache
def longest():
    """64 stages, 512 micro-batches."""
    asked = replace(load_scenario("llama3-70b-1024-h100").problem(), batch=4096)
    plan = read_plan("dp=8,tp=2,pp=64,micro_batch=1", asked.layers, 1024)
    return timeline(asked, price(asked, plan))


def test_a_long_pipeline_stays_small():
    found = longest()
    assert found.start_s.size == 64 * 1024
    picture = timeline_figure(found)
    assert len(picture.plot.data) < 20
    assert len(picture.plot.to_json()) < 2_000_000
    points = sum(len(t.x) for t in picture.plot.data if t.type == "scatter" and t.mode == "lines")
    assert points < 3 * 3 * 1.5 * MAX_PASSES


def test_of_a_long_pipeline_the_middle_is_divided_as_its_time_is():
    found = longest()
    picture = timeline_figure(found)
    scale, _ = axis_unit(found.seconds, "s")
    bars = [trace for trace in picture.plot.data if trace.type == "bar"]
    high = np.sum([bar.width for bar in bars], axis=0)
    assert high == pytest.approx(high[0])
    for part in PARTS:
        whole = found.pass_parts_s[..., PARTS.index(part)].sum(axis=1)
        whole = whole + {"communication": found.sync_s, "compute": found.update_s}.get(part, 0.0)
        drawn = lengths(picture, TIME_COLOURS[part], 64)
        for bar in bars:
            if bar.marker.color == TIME_COLOURS[part]:
                drawn = drawn + np.array(bar.x) * np.array(bar.width) / high
        assert drawn == pytest.approx(whole / scale, rel=1e-3, abs=1e-4)
    rows = np.sum([lengths(picture, colour, 64) for colour in TIME_COLOURS.values()], axis=0)
    span = np.array(bars[0].x)
    assert rows + span == pytest.approx(found.seconds / scale, rel=1e-3)
    assert "In the middle" in picture.reading


def test_without_a_plan_nothing_is_drawn():
    picture = timeline_figure(None)
    assert picture.title == "There is no plan to play back"
    assert not picture.plot.data
    assert picture.plot.layout.height == timeline_figure(played("gpipe")).plot.layout.height


def test_a_batch_of_a_million_is_not_played_back():
    """Six gigabytes of the server went into pictures of which 2,400 passes are drawn."""
    asked = replace(problem(), batch=1_000_000)
    report = price(asked, read_plan("dp=1,tp=8,pp=8", asked.layers, 64))
    with pytest.raises(InputError, match="at most 1,000,000 passes to be played back, but is 16"):
        timeline(asked, report)
    assert timeline_figure(None, "so many").title == "so many"


@plans
def test_one_mark_stands_at_the_stage_that_binds(case):
    report = played(case).report
    entry = MethodRow(OURS, report)
    number, excess = bottleneck(report)
    slowest = [f"{MARK} {number + 1}"] if excess >= 0.005 else []
    ticks = timeline_figure(played(case)).plot.layout.yaxis.ticktext
    assert [text.strip() for text in ticks if MARK in text] == slowest
    assert marked(balance_figure((entry,))) == slowest
    full = [f"{MARK} {fullest(report)[0] + 1}"] if len(report.stages) > 1 else []
    assert marked(memory_figure((entry,), 80e9)) == full


def marked(picture):
    """Texts with the mark."""
    texts = [
        text
        for t in picture.plot.data
        if t.type == "scatter" and t.mode == "text"
        for text in t.text
    ]
    return [text for text in texts if MARK in text]


def test_of_many_stages_the_marked_one_alone_has_its_number():
    report = longest().report
    picture = balance_figure((MethodRow(OURS, report),))
    (trace,) = [t for t in picture.plot.data if t.type == "scatter" and t.mode == "text"]
    assert list(trace.text) == [f"{MARK} {bottleneck(report)[0] + 1}"]
