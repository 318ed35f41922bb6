"""Pictures of the studio for the README: ``SCREENSHOTS=1 pytest tests/browser``."""

from __future__ import annotations

import os

import pytest

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not os.environ.get("SCREENSHOTS"), reason="asked for with SCREENSHOTS=1"),
]

LARGEST_BYTES = 500_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 1920])
@pytest.mark.parametrize("name", ["plan", "fabric", "workload"])
def test_take(watched, root, name, width, scheme):
    window = watched(width, scheme)
    window.open("?fabric.clos.oversubscription.0=4")
    if name == "fabric":
        window.page.get_by_role("link", name="Design").click()
        window.page.get_by_text("Nothing to compare yet").wait_for()
        window.page.wait_for_timeout(3000)
    if name == "workload":
        window.page.get_by_role("link", name="Workload").click()
        window.page.get_by_text("Kept for backward").first.wait_for()
        window.page.wait_for_timeout(3000)
    height = window.page.evaluate(
        "document.querySelector('[data-testid=stMainBlockContainer]').scrollHeight"
    )
    window.page.set_viewport_size({"width": width, "height": int(height)})
    window.page.wait_for_timeout(800)
    folder = root / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{width}-{scheme}.png"
    window.page.screenshot(path=path)
    assert path.stat().st_size < LARGEST_BYTES
