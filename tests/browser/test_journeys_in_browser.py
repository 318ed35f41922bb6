"""Journeys through several pages, as people make them; the rest stand with their pages.

First visit, oversubscription, bad input and links: ``test_plan_in_browser``; drawing and import of
a fabric: ``test_design_in_browser``.
"""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.browser

PLOT = ".stPlotlyChart .main-svg, .nest-fabric .main > svg"
SMALL = "scenario=llama2-7b-64-h100&tour=off"


def choose(window, name, option):
    window.page.get_by_role("combobox", name=name, exact=True).click()
    window.page.get_by_role("option", name=option).first.click()


def test_the_first_visit_takes_the_tour_and_meets_every_page(watched):
    window = watched()
    page = window.page
    window.go("", shown=PLOT)
    page.get_by_role("button", name="Next").click()
    page.get_by_text("2 of 5").wait_for()
    page.get_by_role("button", name="Skip").click()
    page.get_by_text("2 of 5").wait_for(state="detached")
    window.go(f"?{SMALL}", shown=PLOT)  # where each page has little to compute
    for title, text in (
        ("Design", "Collective explorer"),
        ("Workload", "operators"),
        ("Compare", "Compared"),
        ("Explore", "Sweep parameters"),
        ("Paper", "Figure, table, section or algorithm of the paper"),
        ("Lessons", "esson 1 of 14"),
        ("Notebook", "Notebooks"),
    ):
        page.get_by_role("link", name=title, exact=True).click()
        window.stands(text)


@pytest.mark.check
def test_three_fabrics_are_compared_and_the_link_brings_them_back(watched):
    window = watched(1920)
    page = window.page
    window.go("compare?compare.failures=false&tour=off", shown=".nest-apart")
    page.get_by_text("Other scenarios").click()
    choose(window, "Ready-made", "Switches, mesh, torus")
    page.locator(".nest-apart").get_by_text("Mesh in the node").wait_for()
    names = page.locator(".st-key-compare-rows").get_by_role("textbox")
    shown = [names.nth(place).input_value() for place in range(3)]
    assert len(set(shown)) == 3
    window.go(page.url.removeprefix(f"{window.url}/"), shown=".nest-apart")
    page.locator(".nest-apart").get_by_text("Mesh in the node").wait_for()
    assert [names.nth(place).input_value() for place in range(3)] == shown


@pytest.mark.check
def test_a_point_of_a_sweep_opens_on_the_plan_page(watched):
    window = watched()
    window.go(f"explore?{SMALL}", shown=PLOT, count=2, text="Sweep parameters")
    choose(window, "Point", "leaf oversubscription 4:1")
    window.stands(shown=PLOT, count=2)
    window.page.get_by_role("button", name="Open in Plan").click()
    window.page.get_by_text("Changed: oversubscription 4:1").wait_for()
    window.stands(shown=PLOT)


def test_a_plan_is_pinned_and_exported(watched, tmp_path):
    window = watched()
    page = window.page
    window.go(f"?{SMALL}", shown=PLOT)
    page.get_by_role("button", name="Pin", exact=True).click()
    page.get_by_role("textbox", name="Title").fill("Our baseline")
    page.get_by_role("button", name="Pin to the notebook").click()
    page.get_by_role("button", name="Open the notebook").click()
    window.stands(shown=PLOT)
    with page.expect_download() as download:
        page.get_by_role("button", name="Notebook (ipynb)").click()
    path = tmp_path / "notebook.ipynb"
    download.value.save_as(path)
    # The server is every test's: what others pinned before stands above.
    cells = json.loads(path.read_text())["cells"][-2:]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code"]
    assert cells[0]["source"] == ["## Our baseline"]
    assert "nest.plan(" in "".join(cells[1]["source"])
    assert len(cells[1]["outputs"]) == 4


@pytest.mark.check
def test_a_lesson_is_predicted_revealed_and_kept_in_the_link(watched):
    window = watched()
    page = window.page
    window.go("learn", text="esson 1 of 14")
    assert not page.locator(PLOT).count()
    page.get_by_test_id("stRadioGroup").get_by_text("25 %").click()
    window.stands(shown=PLOT)
    window.go(page.url.removeprefix(f"{window.url}/"), shown=PLOT)


@pytest.mark.check
def test_a_configuration_file_becomes_the_planned_model(watched, root):
    window = watched()
    page = window.page
    window.go(f"?{SMALL}", shown=PLOT)
    window.settle()
    before = window.values()
    window.unfold("workload")
    page.get_by_role("combobox", name="Model", exact=True).click()
    page.keyboard.type("My model")  # the last of a long list
    page.get_by_role("option", name="My model").click()
    window.settle()
    window.shows(before)  # it begins as a copy of the preset's
    page.get_by_role("button", name="Change my model").click()
    configs = root / "tests" / "data" / "configs"
    page.locator("input[type=file]").first.set_input_files(configs / "mistral-7b.json")
    page.wait_for_function(
        "before => document.querySelector('.nest-big').firstChild.textContent.trim() != before",
        arg=before[0],
    )
    window.settle()
    after = window.values()
    window.open(page.url.removeprefix(f"{window.url}/"))
    window.shows(after)


@pytest.mark.check
def test_what_a_link_sets_goes_along_to_other_pages(watched):
    """Also if the page of arrival ran only once, or not to its end; without it, defaults."""
    window = watched()
    page = window.page
    page.goto(f"{window.url}/?{SMALL}&fabric.clos.oversubscription.0=4")
    page.get_by_role("combobox", name="Scenario preset").wait_for()
    changed = "Changed: oversubscription 4:1"
    for title, text in (("Explore", "Llama 2 7B on 64 H100"), ("Design", "2 leaf, 1 spine")):
        page.get_by_role("link", name=title, exact=True).click()
        page.get_by_text(text).first.wait_for()
        page.get_by_text(changed).first.wait_for()
        assert "fabric.clos.oversubscription.0=4" in page.url
    page.get_by_role("link", name="Plan", exact=True).click()
    page.get_by_text("Rests on").wait_for()
    window.settle()
    assert "scenario=llama2-7b-64-h100" in page.url
    assert page.get_by_text(changed).count() == 1


@pytest.mark.check
def test_a_study_is_run_and_a_point_of_it_opens_on_the_plan_page(watched):
    window = watched()
    page = window.page
    window.go(f"explore?{SMALL}&search.tp=8&explore.asks=Studies", "Base:")
    choose(window, "Study", "this form's own")
    window.stands("4 points")
    page.get_by_role("button", name="Run", exact=True).click()
    window.stands("4 of 4 points in figures", shown=PLOT)
    page.get_by_role("button", name="Open in Plan").click()
    window.stands("ZeRO exactly")
    window.settle()
