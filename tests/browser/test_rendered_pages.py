"""No rendered page has text that is too small, cut off, or drawn over other text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nest_studio.server.rail import page_names

pytestmark = pytest.mark.browser

FAULTS = Path(__file__).with_name("rendered.js").read_text("utf-8")
SMALLEST_PX = 12
PROJECTED_PX = 14
WIDTHS = (900, 1280, 1440, 1920)
STANDS = """title => {
  const main = document.querySelector('[data-testid=stMainBlockContainer]');
  const drawn = document.title.includes(title) && main && main.innerText.length > 100
    && document.querySelector('[data-test-script-state=notRunning]')
    && !document.querySelector('.stProgress')
    && !document.querySelector('[data-testid=stStatusWidget], [data-testid=stSkeleton]');
  const now = drawn ? main.innerHTML.length : -1;
  if (window.stoodAs !== now) [window.stoodAs, window.stoodSince] = [now, performance.now()];
  return drawn && performance.now() - window.stoodSince > 2000;
}"""
"""Whether a page has been drawn and changed nothing for two seconds."""
PAGE = """
<p style="font-size: 16px; margin: 0">A line that is right</p>
<p style="font-size: 9px; margin: 0">A small one</p>
<div style="overflow: hidden; width: 60px; white-space: nowrap">A line that is cut off</div>
<svg width="300" height="40" viewBox="0 0 600 80"><text y="30" font-size="20">Shrunk</text></svg>
<div style="position: relative; height: 20px"><span style="position: absolute">One above</span>
<span style="position: absolute; left: 10px">another line</span></div>
<div style="overflow: auto; width: 60px; white-space: nowrap">A line that one can scroll to</div>
"""


def test_the_check_finds_each_fault_and_no_other(page):
    page.set_content(PAGE)
    faults = [re.sub(r"by \d+ px", "by some", one) for one in page.evaluate(FAULTS, SMALLEST_PX)]
    assert faults == [
        '9.0 px: "A small one"',
        'cut off by some: "A line that is cut off"',
        '10.0 px: "Shrunk"',
        'over each other: "One above" and "another line"',
    ]


@pytest.mark.check
@pytest.mark.parametrize(
    ("width", "scheme"),
    [*((width, "light") for width in WIDTHS), *((width, "dark") for width in WIDTHS[1:])],
)
def test_pages_are_legible(watched, width, scheme):
    window = watched(width, scheme)
    found = []
    for name, title in page_names():
        window.page.goto(f"{window.url}/{name}?scenario=llama2-7b-64-h100&tour=off")
        window.page.wait_for_function(STANDS, arg=title, polling=250)
        found += [f"{name}: {fault}" for fault in window.page.evaluate(FAULTS, SMALLEST_PX)]
    assert not found, "\n".join(found)


@pytest.mark.check
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_lesson_at_a_projector_is_legible(watched, scheme):
    window = watched(1280, scheme)
    window.page.set_viewport_size({"width": 1280, "height": 720})
    window.page.goto(f"{window.url}/learn?lesson=steps&present=on&tour=off")
    window.page.wait_for_function(STANDS, arg="Lessons", polling=250)
    assert window.page.evaluate(FAULTS, PROJECTED_PX) == []


SMALL = "?scenario=llama2-7b-64-h100&tour=off"
FOLDS = "all folds open"
STATES = {
    "a first visit": "",
    "no plan fits": f"{SMALL}&accelerator.memory_GiB=4",
    "refused": f"{SMALL}&search.tp=3&fabric.clos.radix=3",
    "a link to nothing": "?scenario=nope&fabric=nothing&tour=off",
    FOLDS: SMALL,
}


def bring(page, url, title, state):
    """Open a page in a state and wait until it stands."""
    page.goto(f"{url}{STATES[state]}")
    page.wait_for_function(STANDS, arg=title, polling=250)
    closed = page.locator("details:not([open]) > summary")
    while state == FOLDS and closed.count():
        closed.first.click()
        page.wait_for_function(STANDS, arg=title, polling=250)


def opened(browser, width, scheme):
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
        reduced_motion="reduce",
        bypass_csp=True,  # for axe
    )
    context.set_default_timeout(180_000)
    return context.new_page()


@pytest.mark.check
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1440, "dark"), (1920, "light")])
def test_every_state_is_legible(browser, studio_server, state, width, scheme):
    page, found = opened(browser, width, scheme), []
    for name, title in page_names():
        bring(page, f"{studio_server}/{name}", title, state)
        found += [f"{name}: {fault}" for fault in page.evaluate(FAULTS, SMALLEST_PX)]
    page.context.close()
    assert not found, "\n".join(found)


@pytest.mark.check
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1440, "dark"), (1920, "light")])
def test_a_page_is_legible_while_one_waits(browser, studio_server, width, scheme):
    """Looked at again and again while a plan of 1,024 devices is computed."""
    page, found = opened(browser, width, scheme), set()
    for name in ("", "compare", "explore", "design"):
        page.goto(f"{studio_server}/{name}?scenario=llama3-70b-1024-h100&tour=off")
        for _ in range(12):
            page.wait_for_timeout(500)
            found |= {f"{name}: {fault}" for fault in page.evaluate(FAULTS, SMALLEST_PX)}
    page.context.close()
    assert not found, "\n".join(sorted(found))
