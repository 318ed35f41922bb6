"""The plan page as people meet it: keyboard, address, themes, widths."""

from __future__ import annotations

import pytest
from plan_cards import shown_figures

from nest_core.api.answer import answer
from nest_core.documents.units import ceil_gib
from nest_core.scenario import load_scenario

pytestmark = pytest.mark.browser

RATIO = "fabric.clos.oversubscription.0"

HEIGHT = "document.querySelector('[data-testid=stMainBlockContainer]').scrollHeight"
WATCH_HEIGHT = f"""() => {{
  window.heights = [{HEIGHT}];
  new MutationObserver(() => window.heights.push({HEIGHT}))
    .observe(document.body, {{subtree: true, childList: true, attributes: true}});
}}"""
WATCH_PLACES = """() => {
  const main = document.querySelector('[data-testid=stMain]');
  main.scrollTop = main.scrollHeight;
  window.places = [];
  const look = () => {  // after a frame was painted
    window.places.push([main.scrollHeight, ...['', '-middle', '-methods'].map(
      part => document.querySelector(`.st-key-results${part}`).getBoundingClientRect().top)]);
    requestAnimationFrame(() => setTimeout(look));
  };
  look();
}"""
EMPTY_FOR_A_MOMENT = """() => {
  const parts = document.querySelectorAll('.st-key-drawn-fabric, .stTabs');
  const app = document.querySelector('[data-test-script-state]');
  const take = () => {
    if (app.dataset.testScriptState !== 'running') return requestAnimationFrame(take);
    for (const part of parts) part.style.display = 'none';
    setTimeout(() => parts.forEach(part => part.removeAttribute('style')), 100);
  };
  take();
}"""
OUTSIDE = """() => [...document.querySelectorAll('.stPlotlyChart')].flatMap(chart => {
  const frame = chart.getBoundingClientRect();
  return [...chart.querySelectorAll('.main-svg text')].filter(text => {
    const box = text.getBoundingClientRect();
    return box.width && (box.left < frame.left - 2 || box.right > frame.right + 2
      || box.top < frame.top - 2 || box.bottom > frame.bottom + 2);
  }).map(text => text.textContent);
})"""


SMALL = "llama2-7b-64-h100"


def expected(name, *settings):
    return shown_figures(answer(load_scenario(name, settings)))


def test_a_slider_moved_by_keyboard_moves_the_plan_and_nothing_else(watched):
    """The figures change where they stand: the page keeps its height, and where it is scrolled to.

    A failure: 2,366 pixels fell to 1,165, which were all that is seen, while the fabric was drawn.
    Here that is drawn too soon to leave a gap, so it is taken out for a tenth of a second.
    """
    window = watched()
    window.open(f"?scenario={SMALL}")
    before = window.values()
    assert before == expected(SMALL)
    window.unfold("fabric")
    slider = window.page.get_by_role("slider", name="Leaf oversubscription")
    slider.focus()
    window.page.evaluate(WATCH_PLACES)
    window.page.evaluate(EMPTY_FOR_A_MOMENT)
    for _ in range(6):
        window.page.keyboard.press("ArrowRight")
    window.page.get_by_text("realised 4:1").wait_for()
    window.settle()
    for place in zip(*window.page.evaluate("window.places"), strict=True):
        assert max(place) - min(place) <= 2
    after = expected(SMALL, "fabric.clos.oversubscription=[4.0]")
    window.shows(after)
    assert f"{RATIO}=4" in window.page.url
    window.page.reload()
    window.settle()
    window.shows(after)
    window.unfold("fabric")
    assert slider.input_value() == "4"


@pytest.mark.check
def test_a_preset_clears_the_address(watched):
    window = watched()
    window.open(f"?scenario={SMALL}&{RATIO}=4&accelerator.memory_GiB=60&search.zero=1+or+2")
    settings = (
        "fabric.clos.oversubscription=[4.0]",
        "accelerator.memory_GiB=60.0",
        "search.zero=[1, 2]",
    )
    window.shows(expected(SMALL, *settings))
    window.page.get_by_role("combobox", name="Scenario preset").click()
    window.page.get_by_role("option", name="llama2-7b-64-tpu-torus").click()
    window.page.wait_for_url("**/?scenario=llama2-7b-64-tpu-torus")
    window.settle()
    window.shows(expected("llama2-7b-64-tpu-torus"))


@pytest.mark.check
def test_who_passes_by_and_comes_back_finds_the_best_plan(watched):
    """A failure: what a search had found when the slider went on."""
    window = watched()
    window.open()
    window.unfold("fabric")
    slider = window.page.get_by_role("slider", name="Leaf oversubscription")
    slider.focus()
    for _ in range(3):
        window.page.keyboard.press("ArrowRight")
        window.page.wait_for_timeout(120)
    for _ in range(3):
        window.page.keyboard.press("ArrowLeft")
        window.page.wait_for_timeout(700)
        window.settle()
        line = window.page.locator(".nest-rests").inner_text()
        assert "Optimal within the model: none of 385,898 plans is faster" in line


@pytest.mark.check
def test_bad_input_stands_above_the_greyed_figures(watched):
    window = watched()
    before = expected("bert-large-64-v100")
    window.open("?scenario=bert-large-64-v100&workload.sequence_length_tokens=1024")
    notice = window.page.get_by_role("alert")
    assert "must not exceed the 512 positions" in notice.inner_text()
    window.shows(before)
    window.page.evaluate(WATCH_HEIGHT)
    window.unfold("workload")
    field = window.page.get_by_role("spinbutton", name="Sequence length")
    field.fill("512")
    field.press("Enter")
    notice.wait_for(state="detached")
    window.settle()
    heights = window.page.evaluate("window.heights")
    assert max(heights) - min(heights) <= 2
    field.fill("600")
    field.press("Enter")
    notice.wait_for()
    window.shows(before)
    opacity = window.page.locator(".st-key-results").evaluate("e => getComputedStyle(e).opacity")
    assert float(opacity) < 0.5


@pytest.mark.check
def test_an_infeasible_request_is_one_click_from_a_feasible_one(watched):
    window = watched()
    window.open(f"?scenario={SMALL}&accelerator.memory_GiB=2")
    assert set(window.values()) == {"–"}
    found = answer(load_scenario(SMALL, ["accelerator.memory_GiB=2.0"]))
    enough = ceil_gib(found.result.needed_bytes)
    remedy = window.page.get_by_role("button", name=f"Set memory to {enough} GiB")
    remedy.click()
    remedy.wait_for(state="detached")
    window.settle()
    window.shows(expected(SMALL, f"accelerator.memory_GiB={enough}"))


@pytest.mark.parametrize(
    ("scenario", "width", "scheme"),
    [
        (SMALL, 1280, "dark"),
        pytest.param("llama2-7b-64-tpu-torus", 1920, "light", marks=pytest.mark.check),
        pytest.param("llama3-70b-1024-h100", 1280, "light", marks=pytest.mark.check),
        pytest.param("gpt3-175b-64-h100", 1920, "light", marks=pytest.mark.check),
        pytest.param("bert-large-64-v100", 1920, "dark", marks=pytest.mark.check),
    ],
)
def test_nothing_is_cut_off(watched, scenario, width, scheme):
    window = watched(width, scheme)
    window.open(f"?scenario={scenario}")
    assert window.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert window.page.evaluate(OUTSIDE) == []
