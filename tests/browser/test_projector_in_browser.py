"""A lesson at a projector: nothing scrolls at 1280 x 720, hands are counted, keys step."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser

CHROME = ".stSidebar, .stAppHeader"


def test_a_show_of_hands_then_arrows_to_the_fifth_step(watched):
    window = watched()
    page = window.page
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(f"{window.url}/learn?lesson=All-reduce&present=on&tour=off")
    page.get_by_text("How much leaves each node?").wait_for()
    for letter, hands in (("A", 3), ("B", 12), ("C", 7)):
        page.get_by_label(f"Hands for {letter}").fill(str(hands))
        page.keyboard.press("Tab")
    page.get_by_text("22 hands").wait_for()
    assert not page.get_by_text("✓").count()
    page.locator(".wall-ask").click()  # out of the fields
    for _ in range(6):
        page.keyboard.press("ArrowRight")  # the reveal, then five steps: none is lost
    page.get_by_text("Step 5 of 14: NVLink has waited 89 % of the time for the NICs").wait_for()
    assert page.get_by_text("1.75 GB ✓").is_visible()
    bars = page.locator(".wall-option i")
    assert [round(bars.nth(at).bounding_box()["width"]) for at in range(3)] == [38, 152, 89]
    assert page.locator(".nest-svg svg text").filter(has_text="12.5 ms").is_visible()
    assert not page.locator(CHROME).filter(visible=True).count()
    scrolls = page.evaluate(
        "[...document.querySelectorAll('.stMain, html')].map(e => e.scrollHeight - e.clientHeight)"
    )
    assert max(scrolls) <= 0
    page.keyboard.press("ArrowLeft")
    page.get_by_text("Step 4 of 14").first.wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Present").wait_for()
    assert page.locator(".stSidebar").is_visible()
