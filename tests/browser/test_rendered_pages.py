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
  const drawn = document.title.includes(title) && main && main.innerText.length > 200
    && document.querySelector('[data-test-script-state=notRunning]')
    && !document.querySelector('[data-testid=stStatusWidget], .stProgress, .stSkeleton');
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
    ("width", "scheme"), [*((width, "light") for width in WIDTHS), (1280, "dark")]
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
    window.page.goto(f"{window.url}/learn?lesson=All-reduce&present=on&tour=off")
    window.page.wait_for_function(STANDS, arg="Lessons", polling=250)
    assert window.page.evaluate(FAULTS, PROJECTED_PX) == []
