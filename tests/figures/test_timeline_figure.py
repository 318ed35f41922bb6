"""The timeline: bars are where things run and as long, however many there are."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from nest_core.costs import price
from nest_core.costs.parse import read_plan
from nest_core.documents.errors import InputError
from nest_core.report.explain.summary import bottleneck, fullest
from nest_core.report.figures import balance_figure, memory_figure, timeline_figure
from nest_core.report.figures.entries import OURS, MethodRow
from nest_core.report.figures.style import KIND_COLOURS, MARK, MUTED, TIME_COLOURS, axis_unit
from nest_core.report.figures.timeline import (
    MAX_SPANS,
    links_figure,
    rows_of_device,
    rows_of_stages,
)
from nest_core.scenario import load_scenario
from nest_core.simulator import simulate
from nest_core.simulator.activity import PARTS, slowest
from nest_core.simulator.link_use import busiest, link_use

PLANS = {
    "one stage": "dp=32,tp=2,zero=1",
    "zero 3": "dp=64,zero=3,recompute=full",
    "1f1b": "dp=8,tp=2,pp=4,sp=true,zero=2,stage_recompute=full-selective-none-none",
    "few micro-batches": "dp=16,pp=4,micro_batch=16",
    "interleaved": "dp=4,tp=4,pp=4,interleave=2,micro_batch=2",
    "gpipe": "dp=16,pp=4,schedule=gpipe,micro_batch=4,zero=1",
    "uneven": "dp=8,tp=2,pp=4,cuts=0-4-10-20-34,order=tp-cp-pp-dp",
    "zero bubble": "dp=16,pp=4,schedule=zb_2p,zero=1",
}
plans = pytest.mark.parametrize("case", PLANS)
COLOURS = {
    "compute": TIME_COLOURS["compute"],
    "optimizer": TIME_COLOURS["compute"],
    "recomputation": TIME_COLOURS["recomputation"],
    "kernel launches": MUTED,
    "copies to the host": MUTED,
    "tp": KIND_COLOURS["tensor"],
    "etp": KIND_COLOURS["tensor"],
    "cp": KIND_COLOURS["context"],
    "ep": KIND_COLOURS["expert"],
    "transfers": KIND_COLOURS["pipeline"],
    "data": KIND_COLOURS["data"],
    "expert_data": KIND_COLOURS["data"],
    "tied": KIND_COLOURS["data"],
    "waiting": TIME_COLOURS["idle"],
}
"""Written down anew: what is drawn in which colour."""


@lru_cache
def problem():
    return load_scenario("llama2-7b-64-h100").problem()


@lru_cache
def played(case):
    report = price(problem(), read_plan(PLANS[case], problem().layers, 64))
    iteration = simulate(problem(), report.plan)
    return report, iteration, slowest(iteration)


@lru_cache
def drawn(case):
    report, iteration, activities = played(case)
    return timeline_figure(iteration, report, rows_of_stages(iteration, activities))


def lengths(picture, rows):
    """Seconds of every colour by row, in units of the axis: of lines, and of a map's pixels."""
    total = {}
    for trace in picture.plot.data:
        if trace.type == "scatter" and trace.mode == "lines":
            x, y = np.asarray(trace.x, float).reshape(-1, 3), np.asarray(trace.y).reshape(-1, 3)
            assert np.isnan(x[:, 2]).all()
            of = total.setdefault(trace.line.color, np.zeros(rows))
            np.add.at(of, y[:, 0] - 1, x[:, 1] - x[:, 0])
        if trace.type == "heatmap":
            colours = [trace.colorscale[2 * k][1] for k in range(len(trace.colorscale) // 2)]
            z = np.asarray(trace.z).reshape(rows, -1, np.asarray(trace.z).shape[1])
            high = (z > 0).sum(axis=1).max()
            for k, colour in enumerate(colours):
                pixels = (z == k).sum(axis=(1, 2)) * trace.dx / high
                total[colour] = total.get(colour, 0.0) + pixels
    return total


@plans
def test_bars_are_as_long_as_what_they_stand_for(case):
    report, iteration, activities = played(case)
    picture = drawn(case)
    scale, unit = axis_unit(iteration.seconds, "s")
    assert unit in picture.plot.layout.xaxis.title.text
    is_exact = not any(trace.type == "heatmap" for trace in picture.plot.data)
    found = lengths(picture, report.plan.point.pp)
    for colour in set(COLOURS.values()):
        wanted = sum(
            np.array([each.seconds[PARTS.index(part)] for each in activities])
            for part in PARTS
            if COLOURS[part] == colour
        )
        exact = pytest.approx(wanted / scale, rel=1e-3, abs=1e-4)
        # Forward bars of a map are thinner; what is left of a pixel's height is rounded.
        rough = pytest.approx(wanted / scale, rel=0.45, abs=0.02 * iteration.seconds / scale)
        assert found.get(colour, 0 * wanted) == (exact if is_exact else rough)


def test_few_spans_are_lines_and_many_are_one_map():
    kinds = {case: {trace.type for trace in drawn(case).plot.data} for case in PLANS}
    assert "heatmap" not in kinds["few micro-batches"]
    assert "heatmap" in kinds["1f1b"]
    for case in PLANS:
        rows = rows_of_stages(*played(case)[1:])
        is_exact = all(len(row.look) <= MAX_SPANS for row in rows)
        assert is_exact == ("heatmap" not in kinds[case])


@plans
def test_a_row_goes_from_the_start_to_the_end_without_a_gap(case):
    _, iteration, activities = played(case)
    for row in rows_of_stages(iteration, activities):
        assert row.begins_s[1:] == pytest.approx(row.ends_s[:-1], rel=1e-12)
        assert row.ends_s[-1] - row.begins_s[0] == pytest.approx(iteration.seconds)
        shares = row.shares(np.linspace(row.begins_s[0], row.ends_s[-1], 50))
        assert shares.sum(axis=(0, 1)) == pytest.approx(1.0)


@plans
def test_the_words_state_both_times(case):
    report, iteration, _ = played(case)
    picture = drawn(case)
    assert not picture.title.endswith(".")
    assert len(picture.title) < 80
    assert (report.plan.point.pp == 1) == picture.title.startswith("One stage")
    difference = iteration.seconds / report.iteration_s - 1
    if abs(difference) > 5e-4:
        assert ("longer than" if difference > 0 else "less than") in picture.reading
    else:
        assert "as long as" in picture.reading


def test_a_time_axis_can_be_zoomed_and_the_stages_cannot():
    layout = drawn("1f1b").plot.layout
    assert layout.dragmode == "zoom"
    assert layout.xaxis.fixedrange is False
    assert layout.yaxis.fixedrange is True
    assert layout.yaxis.range[0] > layout.yaxis.range[1]


@lru_cache
def longest():
    """64 stages, 512 micro-batches."""
    asked = replace(load_scenario("llama3-70b-1024-h100").problem(), batch=4096)
    report = price(asked, read_plan("dp=8,tp=2,pp=64,micro_batch=1", asked.layers, 1024))
    iteration = simulate(asked, report.plan)
    return report, iteration, rows_of_stages(iteration, slowest(iteration))


@pytest.mark.slow
def test_a_long_pipeline_stays_small():
    report, iteration, rows = longest()
    picture = timeline_figure(iteration, report, rows)
    assert sum(len(row.look) for row in rows) > 100_000
    assert len(picture.plot.data) < 20
    assert len(picture.plot.to_json()) < 1_000_000


def test_a_devices_streams_show_what_hides_behind_its_compute():
    report, iteration, _ = played("1f1b")
    rows = rows_of_device(iteration, 17)
    assert rows[0].name == "device"
    assert {"layer", "data", "receive", "return"} <= {row.name for row in rows}
    title = timeline_figure(iteration, report, rows).title
    assert title.startswith("Device 17, of stage ")
    spent = [float((row.ends_s - row.begins_s).sum()) for row in rows]
    assert spent[0] == pytest.approx(iteration.seconds)
    assert 0 < max(spent[1:]) < iteration.seconds


def test_an_idle_device_has_none():
    asked = problem()
    plan = read_plan("dp=8,tp=2,pp=2", asked.layers, 64)
    assert rows_of_device(simulate(asked, plan), 63) == ()


def test_without_a_plan_nothing_is_drawn():
    for picture in (timeline_figure(None), links_figure(None, ())):
        assert picture.title == "There is no plan to play back"
        assert not picture.plot.data
    assert timeline_figure(None).plot.layout.height == drawn("gpipe").plot.layout.height


def test_a_batch_of_a_million_is_not_played_back():
    """Six gigabytes of the server went into pictures of which 2,400 passes are drawn."""
    asked = replace(problem(), batch=1_000_000)
    plan = read_plan("dp=1,tp=8,pp=8", asked.layers, 64)
    with pytest.raises(InputError, match="at most 1,000,000 passes of layers to be simulated, but"):
        simulate(asked, plan)
    assert timeline_figure(None, why="so many").title == "so many"


@plans
def test_links_are_drawn_as_busy_as_they_are(case):
    _, iteration, _ = played(case)
    links = busiest(iteration)
    picture = links_figure(iteration, links)
    (cells,) = picture.plot.data
    assert np.asarray(cells.z).mean(axis=1) == pytest.approx(
        [100 * link.utilisation * iteration.seconds / iteration.ends_s.max() for link in links],
        rel=0.02,
        abs=0.05,
    )
    assert len(picture.plot.layout.annotations) == len(links) <= 10
    edges = np.asarray(cells.x) * axis_unit(iteration.ends_s.max(), "s")[0]
    wanted = link_use(iteration, [link.link_group for link in links], edges)
    assert np.asarray(cells.z) == pytest.approx(100 * wanted, abs=0.06)


@plans
def test_one_mark_stands_at_the_stage_that_binds(case):
    report = played(case)[0]
    entry = MethodRow(OURS, report)
    number, excess = bottleneck(report)
    slow = [f"{MARK} {number + 1}"] if excess >= 0.005 else []
    ticks = drawn(case).plot.layout.yaxis.ticktext
    assert [text.strip() for text in ticks if MARK in text] == slow
    assert marked(balance_figure((entry,))) == slow
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
    asked = replace(load_scenario("llama3-70b-1024-h100").problem(), batch=4096)
    report = price(asked, read_plan("dp=8,tp=2,pp=64,micro_batch=1", asked.layers, 1024))
    picture = balance_figure((MethodRow(OURS, report),))
    (trace,) = [t for t in picture.plot.data if t.type == "scatter" and t.mode == "text"]
    assert list(trace.text) == [f"{MARK} {bottleneck(report)[0] + 1}"]
