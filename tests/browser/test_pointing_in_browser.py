"""Pointing at a fabric's picture and at its cost matrix, by mouse and by keyboard."""

from __future__ import annotations

import pytest

from nest_core.api.answer import answer
from nest_core.costs.loads import link_loads
from nest_core.planner.baselines.cost_matrices import cost_matrices
from nest_core.report.picture import picture
from nest_core.report.picture.matrix import pointed_picture
from nest_core.scenario import load_scenario

pytestmark = pytest.mark.browser

START = """async ([code, data]) => {
  const source = "data:text/javascript;charset=utf-8," + encodeURIComponent(code);
  const { default: fabric } = await import(source);
  const show = (data) => fabric({ parentElement: document.body, data, setStateValue });
  const setStateValue = async (name, value) => show(await laidOut(value));
  show(data);
}"""
BRIGHT = """() => [...new Set([...document.querySelectorAll('.main [data-of] > .dimmable')]
  .filter(one => getComputedStyle(one).opacity === '1')
  .map(one => one.parentElement.dataset.of))].sort()"""
LIT = "selector => [...document.querySelectorAll(selector)].map(one => one.dataset.key)"
WIDE = "width => document.querySelector('.main svg').getAttribute('width') === String(width)"


def test_the_picture_and_its_matrix_light_each_other(page, root):
    scenario = load_scenario("llama2-7b-64-h100", ["search.tp=4", "search.pp=2"])
    problem, best = scenario.problem(), answer(scenario).result.best
    loads, read = link_loads(problem, best), cost_matrices(problem, best.plan)

    def laid_out(width):
        drawn = picture(scenario.fabric, best.plan, width=width)
        return pointed_picture(drawn, read, loads)

    complaints: list[str] = []
    page.on("console", lambda told: complaints.append(told.text) if told.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.expose_function("laidOut", laid_out)
    page.set_viewport_size({"width": 1280, "height": 900})
    data = laid_out(520.0)
    code = (root / "nest_studio/components/browser/assets/fabric.js").read_text("utf-8")
    page.set_content('<html lang="en"><body style="margin: 0"></body></html>')
    page.evaluate(START, [code, data])
    page.wait_for_function(WIDE, arg=960)  # of 1,280 beside a matrix of 278, in steps of 40

    both = ["links leaf", "links spine"]
    cell = '.side text[data-key="{} traffic at the {}"]'.format
    assert page.evaluate(BRIGHT) == both
    page.locator(cell("tensor", "leaf")).hover()
    assert page.evaluate(BRIGHT) == both[:1]
    page.locator(cell("data", "spine")).hover()
    assert page.evaluate(BRIGHT) == both
    assert page.locator(".tip").inner_text().startswith("Data, spine: ")

    page.locator('.main [data-of="links spine"] > .dimmable').first.hover(force=True)
    assert page.evaluate(BRIGHT) == both[1:]
    crossing = {key for key, classes in data["lights"].items() if "links spine" in classes}
    assert set(page.evaluate(LIT, ".side .lighted")) == crossing

    page.locator('.main :not(text)[data-key="leaf 0"]').first.hover(force=True)
    ends = page.evaluate(LIT, ".main [data-of] > .lighted")
    assert ends
    assert all("leaf 0" in key.split(" | ") for key in ends)
    tip = page.locator(".tip").inner_text()
    assert "32 down, 32 up each" in tip
    assert "of an iteration" in tip

    page.mouse.move(1, 899)
    page.locator(".side [tabindex='0']").focus()
    cells = page.evaluate(LIT, ".side :not(text)[data-key]")
    focused = "document.activeElement.dataset.key"
    for key, expected in (("ArrowRight", 1), ("ArrowLeft", 0), ("ArrowLeft", -1)):
        page.keyboard.press(key)
        assert page.evaluate(focused) == cells[expected]
    assert set(page.evaluate(BRIGHT)) == set(data["lights"][cells[-1]]) & set(both)

    page.set_viewport_size({"width": 900, "height": 900})
    page.wait_for_function(WIDE, arg=600)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert not complaints
