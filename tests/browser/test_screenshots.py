"""Pictures of the studio for the README: ``SCREENSHOTS=1 pytest tests/browser``."""

from __future__ import annotations

import os

import pytest

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not os.environ.get("SCREENSHOTS"), reason="asked for with SCREENSHOTS=1"),
]

LARGEST_BYTES = 500_000
PLAN = "?fabric.clos.oversubscription.0=4&tour=off"
PAGES = {  # picture: where it begins, the link of the page, what stands there at the end
    "plan": (PLAN, "", ""),
    "fabric": (PLAN, "Design", "Nothing to compare yet"),
    "workload": (PLAN, "Workload", "Kept for backward"),
    "compare": ("compare?tour=off", "", "Whole bill per token against"),
    "explore": ("explore?scenario=llama2-7b-64-h100&tour=off", "", "Sweep parameters"),
    "learn": ("learn?tour=off", "", "esson 1 of 12"),
}
TAKEN = [
    *[("plan", width, scheme) for width in (1280, 1920) for scheme in ("light", "dark")],
    *[(name, 1280, scheme) for name in list(PAGES)[1:] for scheme in ("light", "dark")],
]


@pytest.mark.parametrize(("name", "width", "scheme"), TAKEN)
def test_take(watched, root, name, width, scheme):
    window = watched(width, scheme)
    page = window.page
    address, link, text = PAGES[name]
    page.goto(f"{window.url}/{address}")
    if address == PLAN:
        window.settle()
    if link:
        page.get_by_role("link", name=link, exact=True).click()
    if text:
        page.get_by_text(text).first.wait_for(timeout=60_000)
        page.wait_for_function(
            "() => !document.querySelector('[data-testid=stStatusWidget], .stProgress')",
            timeout=60_000,
        )
        page.wait_for_timeout(3000)
    height = page.evaluate(
        "document.querySelector('[data-testid=stMainBlockContainer]').scrollHeight"
    )
    page.set_viewport_size({"width": width, "height": int(height)})
    page.wait_for_timeout(800)
    folder = root / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{width}-{scheme}.png"
    page.screenshot(path=path)
    assert path.stat().st_size < LARGEST_BYTES
