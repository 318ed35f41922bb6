"""An architect's, a teacher's and an engineer's hour, as three newcomers would spend it.

What a person must see is asserted; how fast, and every figure, stand in the tests of their parts.
"""

from __future__ import annotations

import re

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.check]

BUSY = "[data-testid=stStatusWidget], .stProgress"
PINS = "search.tp=1&search.cp=1&search.micro_batch_sequences=1&search.zero=1"
SMALL = f"scenario=llama2-7b-64-h100&tour=off&{PINS}"
PATIENCE = 60_000


def stands(page, text=""):
    """Wait until a text is in sight and the page has been still for half a second."""
    if text:
        page.get_by_text(text).filter(visible=True).first.wait_for(timeout=PATIENCE)
    page.wait_for_function(
        """busy => {
          const still = !document.querySelector(busy)
            && document.querySelector('[data-test-script-state=notRunning]');
          window.stillSince = still ? window.stillSince ?? performance.now() : undefined;
          return still && performance.now() - window.stillSince > 500;
        }""",
        arg=BUSY,
        timeout=PATIENCE,
    )
    assert not page.get_by_test_id("stException").count()


def go(window, path, text):
    window.page.goto(f"{window.url}/{path}")
    stands(window.page, text)


def saved(page, button, path):
    """What a button hands over."""
    with page.expect_download(timeout=PATIENCE) as download:
        button.click()
    download.value.save_as(path)
    return path


def main(page):
    return page.get_by_test_id("stMain")


def pick(page, field, option):
    page.get_by_role("combobox", name=field, exact=True).click()
    page.keyboard.type(option)
    page.keyboard.press("Enter")


def test_an_architects_hour(watched, tmp_path):
    """2,048 H100: the ratio, what binds, the cables, an own drawing, its acceptance."""
    window = watched(1440)
    page = window.page
    go(window, f"?{SMALL}", "Rests on")
    page.get_by_role("button", name="Devices", exact=False).first.click()
    size = page.get_by_role("spinbutton", name="Size, devices").filter(visible=True).first
    size.fill("2048")
    size.press("Enter")
    stands(page, "2,048 H100")
    page.keyboard.press("Escape")
    window.settle()
    heading = page.locator("h1").inner_text()
    assert "2,048 H100" in heading
    assert "spine-leaf 1:1" in heading
    full = window.values()
    window.unfold("fabric")
    slider = page.get_by_role("slider", name="Leaf oversubscription")
    slider.focus()
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    stands(page, "realised 4.00 : 1")
    window.settle()
    assert "4:1" in page.locator("h1").inner_text()
    assert window.values()[0] != full[0], "throughput at 4:1"
    assert (
        main(page).get_by_text("32 leaves").count() or main(page).get_by_text("64 leaves").count()
    )

    page.get_by_role("link", name="Design", exact=True).click()
    stands(page, "Order, build, accept")
    sheet = saved(page, page.get_by_role("button", name="NetBox import (CSV)"), tmp_path / "c.csv")
    cables = int(
        re.search(r"([\d,]+) cables, one row each", main(page).inner_text())[1].replace(",", "")
    )
    assert sheet.read_text().count("\n") == cables + 1
