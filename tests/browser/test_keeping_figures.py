"""What people keep: plans, data and pictures as files, and an address that restores the paint."""

from __future__ import annotations

import csv
import json

import pytest

from nest_core.api.answer import answer
from nest_core.report.figures import level_figure
from nest_core.scenario import load_scenario

pytestmark = pytest.mark.browser


def test_a_plan_and_a_figure_leave_as_data_and_as_pictures(watched):
    window = watched()
    window.open("?scenario=llama2-7b-64-h100&tab=Timeline")
    page = window.page
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Plan (JSON)").click()
    page.keyboard.press("Escape")
    with open(download.value.path(), encoding="utf-8") as file:
        plan = json.load(file)
    found = answer(load_scenario("llama2-7b-64-h100"))
    assert plan["plan"] == json.loads(json.dumps(found.result.best.plan.to_json()))
    methods = ["nest", "manual", "mcmc", "phaze", "alpa_e", "mist"]
    assert [entry["name"] for entry in plan["baselines"]] == methods
    menu = page.locator(".st-key-figure-menu-levels").get_by_role("button")
    menu.click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Data (CSV)").click()
    with open(download.value.path(), encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    shown = level_figure(load_scenario("llama2-7b-64-h100").problem().network)
    assert download.value.suggested_filename == "levels.csv"
    assert len(rows) == len(shown.rows())
    for kind, start in (("png", b"\x89PNG"), ("svg", b"<svg")):
        page.get_by_role("radio", name=kind.upper()).click()
        window.settle()
        page.keyboard.press("Escape")
        chart = page.locator(".st-key-plot-levels")
        chart.hover()
        with page.expect_download() as download:
            chart.locator(".modebar-btn").click()
        assert download.value.suggested_filename.endswith(f".{kind}")
        with open(download.value.path(), "rb") as file:
            assert file.read(4) == start
        menu.click()


@pytest.mark.check
def test_the_paint_is_in_the_address(watched):
    window = watched()
    window.open("?scenario=llama2-7b-64-h100")
    page = window.page
    stages = page.get_by_text("Colour: pipeline stage")
    stages.wait_for()
    page.get_by_role("radio", name="link load").click()
    stages.wait_for(state="detached")
    page.wait_for_url("**paint=link+load**")
    page.reload()
    window.settle()
    assert not stages.count()
    page.get_by_role("radio", name="stage", exact=True).click()
    stages.wait_for()
    window.settle()
    assert "paint" not in page.url
