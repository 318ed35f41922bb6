"""Figures that people keep: data and pictures as files, and an address that restores the paint."""

from __future__ import annotations

import csv

import pytest

from nest_core.figures import level_figure
from nest_core.scenario import load_scenario

pytestmark = pytest.mark.browser


def test_a_figure_leaves_as_data_and_as_a_picture(watched):
    window = watched()
    window.open("?scenario=llama2-7b-64-h100")
    page = window.page
    menu = page.locator(".st-key-figure-menu-levels").get_by_role("button")
    menu.click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Data (CSV)").click()
    with open(download.value.path(), encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    shown = level_figure(load_scenario("llama2-7b-64-h100").problem().network)
    assert download.value.suggested_filename == "levels.csv"
    assert len(rows) == len(shown.rows())
    page.get_by_role("radio", name="SVG").click()
    window.settle()
    page.keyboard.press("Escape")
    chart = page.locator(".st-key-plot-levels")
    chart.hover()
    with page.expect_download() as download:
        chart.locator(".modebar-btn").click()
    assert download.value.suggested_filename.endswith(".svg")
    with open(download.value.path(), encoding="utf-8") as file:
        assert file.read(4) == "<svg"


@pytest.mark.check
def test_the_paint_is_in_the_address(watched):
    window = watched()
    window.open("?scenario=llama2-7b-64-h100")
    page = window.page
    page.get_by_role("radio", name="link load").click()
    page.locator(".st-key-plot-loads .main-svg").first.wait_for()
    page.wait_for_url("**paint=link+load**")
    page.reload()
    page.locator(".st-key-plot-loads .main-svg").first.wait_for()
    page.get_by_role("radio", name="stage", exact=True).click()
    page.locator(".st-key-plot-levels .main-svg").first.wait_for()
    window.settle()
    assert "paint" not in page.url
