"""The fabric page as people meet it: navigation, keyboard, address, themes, widths."""

from __future__ import annotations

import pytest
from plan_cards import shown_figures

from nest_core.api.answer import answer
from nest_core.calibration.collectives.sweep import sweep
from nest_core.network import collapse
from nest_core.report.figures.collectives import bandwidth_figure
from nest_core.scenario import load_fabric, load_scenario

pytestmark = pytest.mark.browser

CHARTS = 4
PLOTS = ".stPlotlyChart .main-svg"
OUTSIDE = """() => [...document.querySelectorAll('.stPlotlyChart')].flatMap(chart => {
  const frame = chart.getBoundingClientRect();
  return [...chart.querySelectorAll('.main-svg text')].filter(text => {
    const box = text.getBoundingClientRect();
    return box.width && (box.left < frame.left - 2 || box.right > frame.right + 2
      || box.top < frame.top - 2 || box.bottom > frame.bottom + 2);
  }).map(text => text.textContent);
})"""


def title(name, **asked):
    network = collapse(load_fabric(name))
    return bandwidth_figure(sweep(network, "all_reduce", **({"size": 8} | asked))).title


def open_address(window, address):
    """Straight to the page."""
    window.go(f"design{address}", shown=PLOTS, count=CHARTS)


@pytest.mark.check
def test_another_group_has_another_finding(watched):
    window = watched()
    open_address(window, "")
    window.page.get_by_text(title("h100-spine-leaf-1024")).wait_for()
    field = window.page.get_by_role("spinbutton", name="Group size")
    field.fill("64")
    field.press("Enter")
    window.page.get_by_text(title("h100-spine-leaf-1024", size=64)).wait_for()
    assert "collective.devices=64" in window.page.url
    assert title("h100-spine-leaf-1024", size=64) != title("h100-spine-leaf-1024")


@pytest.mark.check
def test_the_address_restores_the_page(watched):
    window = watched()
    open_address(
        window, "?fabric=tpu-v4-4x4x4&collective.devices=16&collective.algorithm=multi+ring"
    )
    expected = title("tpu-v4-4x4x4", size=16, algorithm="multi_ring")
    window.page.get_by_text(expected).wait_for()
    window.shows_one(0, "64")
    assert "collective.algorithm=multi" in window.page.url


@pytest.mark.check
def test_a_slider_moved_by_keyboard_moves_the_bisection(watched):
    window = watched()
    open_address(window, "")
    window.shows_one(2, "25.6 TB/s")
    window.shows_one(3, "100 %")
    slider = window.page.get_by_role("slider", name="Leaf oversubscription")
    slider.focus()
    for _ in range(6):
        window.page.keyboard.press("ArrowRight")
    window.page.get_by_text("realised 4:1").wait_for()
    window.shows_one(2, "6.40 TB/s")
    window.shows_one(3, "25 %")


@pytest.mark.check
def test_the_fabric_goes_along_to_the_plan(watched):
    window = watched()
    open_address(window, "?scenario=llama2-7b-64-h100&tour=off")
    window.page.get_by_role("combobox", name="Fabric", exact=True).click()
    window.page.keyboard.type("mi300x-mesh-64")
    window.page.keyboard.press("Enter")
    window.page.wait_for_url("**fabric=mi300x-mesh-64**")
    window.stands(shown=PLOTS, count=CHARTS)
    window.page.get_by_role("link", name="Plan").click()
    window.page.get_by_text("Rests on").wait_for()
    window.settle()
    found = answer(load_scenario("llama2-7b-64-h100", ['fabric="mi300x-mesh-64"']))
    window.shows(shown_figures(found))
    window.page.get_by_role("link", name="Design").click()
    window.page.get_by_text("Collective explorer").wait_for()
    window.stands(shown=PLOTS, count=CHARTS)
    window.shows_one(0, "64")


@pytest.mark.parametrize(
    ("fabric", "width", "scheme"),
    [
        ("drawn-8", 1280, "dark"),
        pytest.param("tpu-v5p-16x16x24", 1280, "dark", marks=pytest.mark.check),
        pytest.param("drawn-8", 1920, "light", marks=pytest.mark.check),
        pytest.param("dgx-superpod-b200", 1280, "light", marks=pytest.mark.check),
        pytest.param("meta-3tier-7to1", 1920, "dark", marks=pytest.mark.check),
    ],
)
def test_nothing_is_cut_off(watched, fabric, width, scheme):
    window = watched(width, scheme)
    open_address(window, f"?fabric={fabric}")
    assert window.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert window.page.evaluate(OUTSIDE) == []
