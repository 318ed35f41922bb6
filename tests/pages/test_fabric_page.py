"""The fabric page: every preset, every control, every state."""

from __future__ import annotations

import html
import json
from dataclasses import replace

import pytest
from page_parts import components, fabrics, grey_parts

from nest_core.calibration.collectives.sweep import sweep
from nest_core.documents.units import humanise_rate
from nest_core.network import collapse
from nest_core.network.bisection import bisection_Bps
from nest_core.report.figures.collectives import bandwidth_figure, time_figure
from nest_core.report.picture import picture
from nest_core.scenario import load_fabric
from nest_core.scenario.document import fabric_title
from nest_studio.components.show import USUAL_PX
from nest_studio.form.fabric import DEFAULT_FABRIC
from nest_studio.jobs import waiting as jobs
from nest_studio.jobs.tasks.fabrics import fabric_drawn, fabric_sweep
from nest_studio.jobs.tasks.plans import level_matrices

CHARTS = 4

# One preset of every kind, and what is peculiar among them; `tests/figures` draws them all.
KINDS = (
    "a100-fat-tree-512",
    "dgx-superpod-h100-as-built",
    "dgx1-v100-64",
    "dragonfly-1056",
    "drawn-8",
    "hpn-dual-plane",
    "meta-3tier-7to1",
    "mi300x-mesh-64",
    "rail-only-1024",
    "torus-16x16",
    "tpu-v4-4x4x8-twisted",
    "unequal-racks-88",
)


def values(page):
    return {metric.label: metric.value for metric in page.metric}


def text_of(page):
    return html.unescape(" ".join(element.proto.body for element in page.get("html")))


def charts(page):
    return [json.loads(chart.proto.spec) for chart in page.get("plotly_chart")]


def widget(page, key):
    kinds = ("selectbox", "slider", "number_input")
    return next(w for kind in kinds for w in getattr(page, kind) if w.key == key)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_shows_its_fabric(fabric_page, name):
    page = fabric_page(fabric=name)
    assert not page.exception
    assert not page.error
    assert not page.info
    fabric = load_fabric(name)
    network = collapse(fabric)
    shown = values(page)
    assert shown["Devices"] == f"{network.devices:,}"
    assert shown["Levels"] == str(len(network.levels))
    assert shown["Bisection"] == humanise_rate(bisection_Bps(fabric, network))
    assert len(charts(page)) == CHARTS
    (drawn,) = fabrics(page)
    assert drawn["title"] == picture(fabric, width=USUAL_PX).title
    assert drawn["svg"]
    assert bandwidth_figure(sweep(network, "all_reduce", 8)).title in text_of(page)
    assert fabric_title(fabric) in text_of(page)


def test_a_slider_narrows_the_bisection(fabric_page):
    page = fabric_page()
    assert values(page)["Of full bisection"] == "100 %"
    widget(page, "fabric.clos.oversubscription.0").set_value(4.0).run()
    assert values(page)["Of full bisection"] == "25 %"
    assert values(page)["Bisection"] == "6.40 TB/s"
    assert "Changed: oversubscription 4:1" in text_of(page)


def test_the_canvas_is_called_as_the_page_calls_the_fabric(fabric_page):
    """It said "1,024 H100" of 512: a preset's name does not follow the form."""
    page = fabric_page()
    (drawn,) = components(page, "nest-studio.drawing")
    preset = load_fabric(DEFAULT_FABRIC)
    assert drawn["name"] == preset.name
    widget(page, "fabric.clos.devices").set_value(512).run()
    (drawn,) = components(page, "nest-studio.drawing")
    assert drawn["name"] == fabric_title(replace(preset, devices=512))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("key", "value", "asked"),
    [
        ("collective.op", "all-to-all", {"op": "all_to_all"}),
        ("collective.devices", 32, {"size": 32}),
        ("collective.stride", 8, {"stride": 8}),
        ("collective.groups", "all", {"concurrent": "all"}),
        ("collective.algorithm", "ring", {"algorithm": "ring"}),
        ("collective.algorithm", "fastest", {"algorithm": "fastest"}),
        ("collective.algorithm", "double binary tree", {"algorithm": "double_binary_tree"}),
    ],
)
def test_every_control_is_priced(fabric_page, key, value, asked):
    page = fabric_page(fabric="dgx-superpod-h100")
    widget(page, key).set_value(value).run()
    assert not page.exception
    network = collapse(load_fabric("dgx-superpod-h100"))
    plain = {"op": "all_reduce", "size": 8, "algorithm": "library"}
    expected = sweep(network, **(plain | asked))
    assert bandwidth_figure(expected).title in text_of(page)
    assert time_figure(expected).subtitle in text_of(page)


def test_measured_runs_stand_beside_the_accelerator_that_was_measured(fabric_page):
    page = fabric_page(fabric="h100-spine-leaf-64")
    assert "measured, NVIDIA H100 80GB HBM3" in text_of(page)
    widget(page, "collective.devices").set_value(16).run()
    assert "There are no measured runs of this group." in text_of(page)


def test_a_library_brings_its_provenance(fabric_page):
    page = fabric_page(fabric="a100-fat-tree-512")
    assert widget(page, "collective.algorithm").value == "as plans"
    widget(page, "collective.library").set_value("a100-nvlink3").run()
    assert "measured runs, " in text_of(page)
    assert "assumed and not fitted" in text_of(page)


def test_another_operation_drops_an_algorithm_that_it_lacks(fabric_page):
    page = fabric_page()
    widget(page, "collective.algorithm").set_value("multi rail").run()
    widget(page, "collective.op").set_value("all-to-all").run()
    assert not page.exception
    assert widget(page, "collective.algorithm").value == "as plans"


@pytest.mark.parametrize(
    ("fabric", "changes", "sentence"),
    [
        (
            "h100-spine-leaf-64",
            {"collective.devices": 65},
            "group size must lie between 2 and 64, but is 65",
        ),
        ("h100-spine-leaf-64", {"collective.stride": 64}, "stride must keep a group of 8"),
        ("tpu-v5e-8x8", {"collective.algorithm": "multi rail"}, "multi_rail must run on a fabric"),
    ],
)
def test_what_cannot_be_priced_is_one_sentence(fabric_page, fabric, changes, sentence):
    page = fabric_page(fabric=fabric)
    for key, value in changes.items():
        widget(page, key).set_value(value)
    page.run()
    assert not page.exception
    assert not page.error
    (notice,) = page.info
    assert notice.value.startswith("No times for this choice: ")
    assert sentence in notice.value
    assert len(charts(page)) == CHARTS - 2
    assert values(page)["Levels"]


def test_a_fabric_that_cannot_be_keeps_the_last_figures(fabric_page):
    page = fabric_page(fabric="h100-spine-leaf-1024")
    before, drawn = values(page), charts(page)
    widget(page, "fabric.clos.devices").set_value(131_072).run()
    assert not page.exception
    (notice,) = page.error
    assert "must" in notice.value
    assert values(page) == before
    assert charts(page) == drawn
    assert grey_parts(page) >= {"results", "results-picture", "results-below"}


def test_charts_stay_in_grey_while_others_are_awaited(fabric_page, monkeypatch):
    page = fabric_page(fabric="h100-spine-leaf-64")
    ask, drawn = jobs.JobQueue.ask, charts(page)

    def asked(job_queue, key, function, *args, **rest):
        if function is fabric_sweep:
            return jobs.WorkerJob(key)
        return ask(job_queue, key, function, *args, **rest)

    monkeypatch.setattr(jobs.JobQueue, "ask", asked)
    monkeypatch.setattr(jobs, "MOMENT_S", 2.0)
    widget(page, "collective.devices").set_value(16).run()
    assert not page.exception
    assert charts(page) == drawn
    assert grey_parts(page) == {"swept"}


def test_a_large_fabric_is_no_matrix(fabric_page):
    page = fabric_page(fabric="hpn-dual-plane")
    widget(page, "collective.devices").set_value(15_360).run()
    assert not page.exception
    assert len(charts(page)) == CHARTS
    assert all(len(json.dumps(chart)) < 1_000_000 for chart in charts(page))


def test_no_job_is_planned_before_its_cost_matrix_is_asked_for(fabric_page, monkeypatch):
    """An import cost 49 s of a core, for the matrix of a job that nobody had asked about."""
    ask, tasks = jobs.JobQueue.ask, []

    def counted(job_queue, key, function, *args, **rest):
        tasks.append(function)
        return ask(job_queue, key, function, *args, **rest)

    monkeypatch.setattr(jobs.JobQueue, "ask", counted)
    page = fabric_page(fabric="h100-spine-leaf-64")
    widget(page, "fabric").set_value("torus-16x16").run()
    assert not page.exception
    assert fabric_drawn in tasks
    assert level_matrices not in tasks
    assert not fabrics(page)[0]["matrix"]
    page.toggle(key="level costs").set_value(True).run()
    assert tasks.count(level_matrices) == 1
    assert fabrics(page)[0]["matrix"]
    assert "Job: Llama 2 7B" in text_of(page)


def test_labels_carry_units_and_help_a_range(fabric_page):
    page = fabric_page()
    for control in (*page.number_input, *page.slider):
        assert "," in control.label, control.label
        assert " to " in control.help
    for control in page.selectbox:
        assert control.help
