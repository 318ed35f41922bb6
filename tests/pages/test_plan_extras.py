"""What stands around the comparison: the timeline, the painted fabric, and ways to keep figures."""

from __future__ import annotations

import html
import json

import pytest
from page_parts import fabrics
from streamlit.testing.v1 import AppTest

from nest_core.costs.loads import link_loads
from nest_core.planner import search
from nest_core.report.figures.levels import linkload_figure
from nest_core.report.figures.timeline import rows_of_device, rows_of_stages, timeline_figure
from nest_core.report.picture import picture, to_svg, untitled
from nest_core.scenario import load_scenario
from nest_core.simulator import simulate
from nest_core.simulator.activity import slowest
from nest_studio.components.show import USUAL_PX
from nest_studio.plan.view import PAINTS

PIPELINE = "gpt3-175b-64-h100"


def script(name: str, settings: list[str]) -> None:
    """The parts of the plan page without its form."""
    import streamlit as st

    from nest_core.documents.overrides import setting
    from nest_core.scenario import Scenario, scenario_document
    from nest_studio.plan.state import answer_of
    from nest_studio.plan.tabs import timeline_part
    from nest_studio.plan.view import middle

    scenario = Scenario(scenario_document(name)[0], dict(map(setting, settings)))
    answer = answer_of(scenario)
    middle(answer, scenario)
    timeline_part(answer, scenario)
    st.caption("end")


def opened(name: str = PIPELINE, *settings: str) -> AppTest:
    return AppTest.from_function(script, default_timeout=120, args=(name, list(settings))).run()


def planned(name: str = PIPELINE, *settings: str):
    scenario = load_scenario(name, settings)
    problem = scenario.problem()
    return problem, search(problem, scenario.space).best


def text_of(page):
    return html.unescape(" ".join(element.proto.body for element in page.get("html")))


def charts(page):
    return page.get("plotly_chart")


def paint_of(page):
    return next(group for group in page.button_group if group.key == "paint")


def test_the_timeline_is_the_plans():
    page = opened()
    assert not page.exception
    problem, best = planned()
    iteration = simulate(problem, best.plan)
    expected = timeline_figure(iteration, best, rows_of_stages(iteration, slowest(iteration)))
    assert expected.title in text_of(page)
    assert expected.reading in text_of(page)
    spec = json.loads(charts(page)[0].proto.spec)
    assert spec["layout"]["dragmode"] == "zoom"
    assert len(spec["data"]) == len(expected.plot.data)


def test_a_device_has_a_timeline_of_its_own():
    page = opened()
    (field,) = (one for one in page.number_input if one.label == "Device")
    field.set_value(9).run()
    assert not page.exception
    problem, best = planned()
    iteration = simulate(problem, best.plan)
    expected = timeline_figure(iteration, best, rows_of_device(iteration, 9))
    assert expected.title in text_of(page)
    assert "Device 9, of stage 2, waits" in expected.title


@pytest.mark.parametrize("paint", PAINTS)
def test_the_fabric_is_painted_with_what_is_chosen(paint):
    page = opened()
    paint_of(page).set_value(paint).run()
    assert not page.exception
    problem, best = planned()
    loads = link_loads(problem, best)
    drawn = picture(
        load_scenario(PIPELINE).fabric,
        best.plan,
        width=USUAL_PX,
        loads=loads if paint == "link load" else None,
    )
    (fabric,) = fabrics(page)
    assert (fabric["title"], fabric["svg"]) == (drawn.title, to_svg(untitled(drawn)))
    assert any(
        "the busiest link is busy" in line for tip in fabric["tips"].values() for line in tip
    )
    shown = text_of(page)
    assert (linkload_figure(loads).title in shown) == (paint == "link load")
    assert ("Bandwidth per device" in shown) == (paint != "link load")
    assert len(charts(page)) == 3


def test_the_address_brings_the_paint_back(plan_page):
    page = plan_page(scenario=PIPELINE, paint="link load", tab="Timeline")
    assert not page.exception
    assert "Load per link" in text_of(page)


def test_without_a_plan_the_fabric_rests_and_nothing_plays():
    page = opened("llama2-7b-64-h100", "accelerator.memory_GiB=2.0")
    assert not page.exception
    assert paint_of(page).disabled
    assert "There is no plan to play back" in text_of(page)
    (fabric,) = fabrics(page)
    drawn = picture(load_scenario("llama2-7b-64-h100").fabric, width=USUAL_PX)
    assert (fabric["title"], fabric["svg"]) == (drawn.title, to_svg(untitled(drawn)))
    assert not fabric["matrix"]


def test_a_batch_of_a_million_is_planned_without_its_timeline(plan_page):
    page = plan_page(
        **{
            "scenario": PIPELINE,
            "workload.global_batch_sequences": "1000000",
            "search.micro_batch_sequences": "1",
            "tab": "Timeline",
        }
    )
    assert not page.exception
    assert "passes of layers to be simulated" in text_of(page)


def test_every_figure_has_a_quiet_menu():
    page = opened()
    labels = [button.proto.label for button in page.get("download_button")]
    assert labels == ["Data (CSV)"] * len(charts(page))
    formats = [group for group in page.button_group if group.label == "Picture"]
    assert len(formats) == len(charts(page))
    assert {group.value for group in formats} == {"PNG"}


def test_a_camera_saves_what_is_chosen():
    page = opened()
    config = [json.loads(chart.proto.config) for chart in charts(page)]
    assert all(one["modeBarButtons"] == [["toImage"]] for one in config)
    assert {one["toImageButtonOptions"]["format"] for one in config} == {"png"}
    assert {one["toImageButtonOptions"]["scale"] for one in config} == {2}
    names = {one["toImageButtonOptions"]["filename"] for one in config}
    assert len(names) == len(config)
    choice = next(group for group in page.button_group if group.key == "figure-format-timeline")
    choice.set_value("SVG").run()
    config = [json.loads(chart.proto.config) for chart in charts(page)]
    formats = [one["toImageButtonOptions"]["format"] for one in config]
    assert formats == ["svg", "png", "png"]
