"""A lesson at a projector: nothing scrolls at 1280 x 720, hands are counted, keys step."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from nest_core.teaching.lessons import LESSONS

pytestmark = pytest.mark.browser

CHROME = ".stSidebar, .stAppHeader"


def test_a_show_of_hands_then_arrows_to_the_fifth_step(watched):
    window = watched()
    page = window.page
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(f"{window.url}/learn?lesson=steps&present=on&tour=off")
    page.get_by_text("How much leaves each node?").wait_for()
    for letter, hands in (("A", 3), ("B", 12), ("C", 7)):
        page.get_by_label(f"Hands for {letter}").fill(str(hands))
        page.keyboard.press("Tab")
    page.get_by_text("22 hands").wait_for()
    assert not page.get_by_text("✓").count()
    window.press(*["ArrowRight"] * 6)  # the reveal, then five steps: none is lost
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
    window.press("ArrowLeft")
    page.get_by_text("Step 4 of 14").first.wait_for()
    window.press("Escape")
    page.get_by_role("button", name="Present").wait_for()
    assert page.locator(".stSidebar").is_visible()


def _stands(window):
    """Wait until the lesson is at rest; return what its address says."""
    window.stands("Leave (Esc)")
    assert window.page.locator(".wall-ask").is_visible()
    return {key: texts[-1] for key, texts in parse_qs(urlsplit(window.page.url).query).items()}


def _walked(shown):
    """The control that arrows walk through, and all it can be."""
    control = next((one for one in shown.controls if one.stepped), shown.controls[0])
    return f"{shown.key}.{control.key}", control, control.offered(shown.standard)


def _clicks(page):
    """Everything that a teacher may click on the way: a number for hands, a control, the figure."""
    hands = page.get_by_label("Hands for B")
    hands.click()
    page.keyboard.type("3")
    yield
    hands.click()
    page.keyboard.type("12")
    page.keyboard.press("Enter")
    yield
    controls = page.locator(".st-key-wall-controls button").filter(visible=True)
    if controls.count():
        controls.last.click()
        yield
    page.locator(".st-key-wall-figure").click(position={"x": 300, "y": 150})
    yield
    page.locator(".wall-ask").click()
    yield


@pytest.mark.parametrize("shown", LESSONS, ids=lambda shown: shown.key)
def test_a_lesson_runs_by_keys_from_its_first_step_to_its_last_and_back(watched, shown):
    window = watched()
    page, (name, control, offered) = window.page, _walked(shown)
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(f"{window.url}/learn?lesson={shown.key}&present=on&tour=off")
    page.get_by_text("Reveal (Enter)").wait_for()
    window.press("Enter")
    page.get_by_text("Ask again").wait_for()
    window.press(*["ArrowRight"] * len(offered[offered.index(control.standard) :]))
    standard = control.name(control.standard)  # which no address says
    assert _stands(window).get(name, standard) == control.name(offered[-1])
    window.press(*["ArrowLeft"] * len(offered))
    page.get_by_text("Reveal (Enter)").wait_for()
    assert f"{shown.key}.show" not in _stands(window)


@pytest.mark.parametrize("shown", LESSONS, ids=lambda shown: shown.key)
def test_keys_work_after_any_click(watched, shown):
    window = watched()
    page, (name, control, offered) = window.page, _walked(shown)
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(f"{window.url}/learn?lesson={shown.key}&present=on&tour=off&{shown.key}.show=true")
    before = _stands(window).get(name, control.name(control.standard))
    for _ in _clicks(page):
        _stands(window)
        key = "ArrowLeft" if before == control.name(offered[-1]) else "ArrowRight"
        window.press("Enter", key)  # the first takes no button's place, and closes nothing
        address = _stands(window)
        assert address[f"{shown.key}.show"] == "true"
        after = address.get(name, control.name(control.standard))
        assert after != before
        before = after
    assert address[f"{shown.key}.hands.b"] == "12"
    window.press("Escape")
    page.get_by_role("button", name="Present").wait_for()


def test_the_next_lessons_come_by_one_key_however_fast(watched):
    window = watched()
    page = window.page
    window.go("learn?lesson=bubble&present=on&tour=off", "Leave (Esc)")
    page.get_by_label("Hands for A").click()
    page.keyboard.type("4")
    window.press(*"nnnp")
    page.get_by_text(LESSONS[2].brief().question.text[-40:]).wait_for()
    assert _stands(window)["lesson"] == LESSONS[2].key
