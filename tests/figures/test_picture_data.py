"""Figures as data: rows say what the plot draws, and nothing else."""

from __future__ import annotations

import csv
import io
import pickle

import numpy as np
import plotly.graph_objects as go
import pytest

from nest_core.report.figures import (
    Chart,
    balance_figure,
    entries,
    level_figure,
    memory_figure,
    throughput_figure,
)
from nest_core.report.figures.paper import iterations_picture, strategies_picture
from nest_core.report.figures.timeline import links_figure, rows_of_stages, timeline_figure
from nest_core.simulator import simulate
from nest_core.simulator.activity import slowest
from nest_core.simulator.link_use import busiest


def picture(*traces):
    return Chart("A title: 12.5 % <b>more</b>", "s", "words", go.Figure(data=list(traces)))


def test_bars_are_rows_with_their_labels():
    shown = picture(
        {
            "type": "bar",
            "name": "a",
            "x": [1.0, 2.0],
            "y": ["one", "<b>two</b>"],
            "base": [0.5, 0],
            "customdata": ["first<br>1 s", "second"],
        },
        {"type": "bar", "name": "b", "x": [3], "y": ["one"]},
    )
    assert shown.rows() == [
        {"series": "a", "x": 1.0, "y": "one", "from": 0.5, "label": "first; 1 s"},
        {"series": "a", "x": 2.0, "y": "two", "from": 0, "label": "second"},
        {"series": "b", "x": 3, "y": "one", "from": None, "label": None},
    ]


def test_maps_are_rows_by_cell_without_gaps():
    shown = picture(
        {"type": "heatmap", "x": [0, 1, 3], "y": [0.0, 2.0], "z": [[1.5, np.nan]],
         "text": [["<b>left</b>", ""]]},
        {"type": "heatmap", "x0": 4, "dx": 8, "z": np.array([[0, 1]], np.int16)},
    )  # fmt: skip
    assert shown.rows() == [
        {"x": 0.5, "y": 1.0, "z": 1.5, "label": "left"},
        {"x": 4, "y": 0, "z": 0, "label": None},
        {"x": 12, "y": 0, "z": 1, "label": None},
    ]


def test_points_are_rows_without_gaps_and_with_their_spread():
    shown = picture(
        {"type": "scatter", "mode": "lines", "name": "line", "x": [1, None, 2], "y": [3, 4, None]},
        {"type": "scatter", "mode": "markers", "name": "dots", "x": [1], "y": [2],
         "error_x": {"type": "data", "array": [0.25], "arrayminus": [0.5]}},
    )  # fmt: skip
    assert shown.rows() == [
        {"series": "line", "x": 1, "y": 3, "below": None, "above": None},
        {"series": "dots", "x": 1, "y": 2, "below": 0.5, "above": 0.25},
    ]


def test_rows_of_categories_are_named_from_the_outer_one():
    """The data of the paper's figures 2 and 10 could not be saved: zip() argument 2 is longer."""
    across = [["Llama", "Llama", "GPT-3"], ["tp 1", "tp 2", "tp 1"]]
    shown = picture({"type": "bar", "x": across, "y": [1.0, None, 3.0], "base": [0.0, 1.0, 2.0]})
    assert shown.rows() == [
        {"x": "Llama, tp 1", "y": 1.0, "from": 0.0},
        {"x": "GPT-3, tp 1", "y": 3.0, "from": 2.0},
    ]
    assert shown.to_csv().splitlines()[1] == '"Llama, tp 1",1.0,0.0'


@pytest.mark.parametrize("draw", [strategies_picture, iterations_picture])
def test_the_papers_iterations_have_rows(draw):
    row = {"model": "gpt3", "tp": 2, "devices": 8, "batch": 1, "iteration_time_s": 4.0}
    row |= {"compute_s": 2.0, "recompute_s": 0.0, "communication_s": 1.0, "idle_s": 1.0}
    row |= {"measured_communication_s": 1.5, "communication_share": 0.25, "difference": 0.1}
    row |= {"recompute": "none"}
    found = draw([row, row | {"recompute": "full", "batch": 2}]).rows()
    assert {entry["x"].rpartition(", ")[2] for entry in found} in (
        {"tp 2", "tp 2 rec."},
        {"batch 1", "batch 2"},
    )


def test_what_only_decorates_is_no_row():
    shown = picture(
        {"type": "scatter", "mode": "text", "x": [1], "y": [1], "text": ["3"]},
        {"type": "scatter", "mode": "markers", "x": [0], "y": [0], "opacity": 0},
        {"type": "bar", "x": [1], "y": [1], "visible": False},
    )
    assert shown.rows() == []
    assert shown.to_csv() == ""


def test_the_file_has_a_header_and_the_rows():
    shown = picture({"type": "bar", "name": 'a, "b"', "x": [0.1 + 0.2], "y": [1]})
    (row,) = csv.DictReader(io.StringIO(shown.to_csv()))
    assert row == {"series": 'a, "b"', "x": "0.3", "y": "1"}


def test_the_title_names_the_file():
    assert picture().file_name == "a-title-12.5-b-more-b"
    assert Chart("—", "", "", go.Figure()).file_name == "figure"
    assert len(Chart("word " * 40, "", "", go.Figure()).file_name) <= 60


def test_a_notebook_shows_the_plot_with_its_words():
    link_group = picture({"type": "bar", "x": [1], "y": [1]})._repr_mimebundle_()
    figure = link_group["application/vnd.plotly.v1+json"]
    assert figure["layout"]["title"]["text"] == "A title: 12.5 % <b>more</b>"
    assert figure["data"][0]["type"] == "bar"
    assert link_group["text/plain"].endswith("words")


@pytest.mark.check
def test_every_figure_of_the_plan_has_rows(answered):
    example = answered("llama3-70b-1024-h100")
    network, best = example.network, example.result.best
    iteration = simulate(example.scenario.problem(), best.plan)
    rows = entries(example.result, example.baselines)
    shown = (
        balance_figure(rows),
        memory_figure(rows, example.scenario.accelerator.memory_bytes),
        throughput_figure(rows, 1),
        level_figure(network),
        timeline_figure(iteration, best, rows_of_stages(iteration, slowest(iteration))),
        links_figure(iteration, busiest(iteration)),
    )
    for one in shown:
        found = one.rows()
        assert found
        assert all(list(row) == list(found[0]) for row in found)
        assert pickle.loads(pickle.dumps(one)).rows() == found
        assert len(list(csv.reader(io.StringIO(one.to_csv())))) == len(found) + 1


def test_rows_of_a_comparison_say_whose_bar_it_is(answered):
    example = answered("llama2-7b-64-h100")
    rows = balance_figure(entries(example.result, example.baselines)).rows()
    stages = example.result.best.stages
    mine = [row for row in rows if row["label"].startswith("Exact search (ours), stage 1,")]
    assert sum(row["y"] for row in mine) == pytest.approx(example.result.best.iteration_s, rel=1e-4)
    assert len({row["series"] for row in mine}) == len(mine)
    assert len(stages) == len(
        {row["label"].split(",")[1] for row in rows if "Exact search (ours)" in row["label"]}
    )


@pytest.mark.parametrize("name", ["=1+1", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1"])
def test_no_cell_of_a_figures_data_computes(name):
    """A failure: a name in a figure is a formula to whoever opens its data."""
    plot = go.Figure(go.Bar(x=[name, "b"], y=[-1.5, 2], name=name))
    head, *rows = csv.reader(io.StringIO(Chart("", "", "", plot).to_csv()))
    assert [float(row[head.index("y")]) for row in rows] == [-1.5, 2.0]
    for row in rows:
        for column, cell in zip(head, row, strict=True):
            assert column == "y" or not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
