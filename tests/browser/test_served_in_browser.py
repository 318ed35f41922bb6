"""The studio under a path of a proxy, and what a screen reader makes of its pages."""

from __future__ import annotations

import re
import sys

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from nest_studio.server.rail import page_names

pytestmark = pytest.mark.browser

SERIOUS = ("serious", "critical")


OURS = {"exclude": [["[data-testid=stStatusWidget]"], ["[data-testid=stBaseButton-header]"]]}
"""But for Streamlit's own Stop, which fades in wherever a page runs for longer."""


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.check)])
def test_no_page_has_a_serious_barrier(watched, scheme):
    """By axe-core: contrast, names, roles, order."""
    window = watched(1280, scheme)
    found, checked = [], 0
    window.open("?scenario=llama2-7b-64-h100&tour=off")
    for name, title in page_names():
        window.page.get_by_role("link", name=title, exact=True).click()
        expect(window.page).to_have_title(re.compile(f"^{title} · "), timeout=60_000)
        window.stands()
        answer = Axe().run(window.page).response
        checked += len(answer["passes"])
        found += [
            f"{name}: {entry['id']}, {entry['nodes'][0]['html'][:200]}"
            for entry in answer["violations"]
            if entry["impact"] in SERIOUS
        ]
    assert not found
    assert checked > 20 * len(page_names())


@pytest.mark.check
@pytest.mark.parametrize(("name", "title"), page_names())
def test_a_page_opens_by_its_address_without_a_complaint(watched, name, title):
    window = watched()
    window.go(f"{name}?scenario=llama2-7b-64-h100&tour=off")
    expect(window.page).to_have_title(re.compile(f"^{title} · "))
    assert "scenario=llama2-7b-64-h100" in window.page.url
    assert not window.page.get_by_role("dialog").count()


@pytest.mark.check
def test_the_studio_works_under_a_prefix(serve, browser, tmp_path):
    """Navigation, the drawing's assets and links stay below it; nothing else is asked amiss."""
    command = [sys.executable, "-m", "nest_studio"]
    with serve(command, tmp_path, tmp_path / "log.txt", "/nest/studio") as url:
        page = browser.new_page()
        page.set_default_timeout(60_000)
        left: list[str] = []
        missed: list[str] = []
        page.on(
            "request",
            lambda request: None if request.url.startswith(url) else left.append(request.url),
        )
        page.on(
            "response",
            lambda answer: missed.append(answer.url) if answer.status >= 400 else None,
        )
        page.goto(f"{url}/learn")
        page.get_by_text("esson 1 of 14").first.wait_for()
        page.goto(f"{url}/?scenario=llama2-7b-64-h100&tour=off")
        page.get_by_text("Rests on").wait_for()
        page.get_by_role("link", name="Design", exact=True).click()
        page.get_by_role("button", name="New drawing").click()
        page.locator(".nd-root").wait_for()
        assert page.url.startswith(f"{url}/design")
        assert not [one for one in left if one.startswith("http")]
        # At a page's address the front end asks there for its server first.
        sought = {f"{url}/learn/_stcore/{name}" for name in ("health", "host-config")}
        assert set(missed) <= sought
        page.close()
