"""A lesson's file in a browser without a network: it asks nobody, and its figure moves."""

from __future__ import annotations

import pytest

from nest_core.teaching.course.page import lesson_page
from nest_core.teaching.lessons import lesson

pytestmark = pytest.mark.browser


def test_a_lessons_file_runs_from_disk_without_a_network(browser, tmp_path):
    path = tmp_path / "bubble.html"
    path.write_text(lesson_page(lesson("bubble")).text, encoding="utf-8")
    context = browser.new_context(offline=True)
    page = context.new_page()
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    assert not page.locator("#reveal").is_visible()
    page.get_by_label("25 %").check()
    page.wait_for_selector(".plot .main-svg")
    assert page.locator("#verdict").inner_text().startswith("You said: 25 %. Computed: 42.9 %")
    title, bars = page.locator("figure h3"), page.locator(".plot .trace path")
    assert title.inner_text() == "1F1B: Stages wait 42.9 % of the time"
    before = bars.evaluate_all("all => all.map(bar => bar.getAttribute('d')).join()")
    page.get_by_label("8", exact=True).first.check()
    page.wait_for_function("() => document.querySelector('figure h3').innerText.includes('63.6 %')")
    assert bars.evaluate_all("all => all.map(bar => bar.getAttribute('d')).join()") != before
    assert said == []
    assert [url for url in asked if not url.startswith(("blob:", "data:"))] == [path.as_uri()]
    context.close()
