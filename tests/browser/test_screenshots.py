"""Pictures of the studio for the documentation: ``make screenshots``.

Whole pages at 1280, and windows as people have them: 1440 x 900 and 1920 x 1080 in both schemes, a
lesson in presentation mode at 1280 x 720. ``docs/look.md`` holds them against their targets.
"""

from __future__ import annotations

import os
import re

import pytest
from picture_files import content_end
from PIL import Image

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not os.environ.get("SCREENSHOTS"), reason="asked for with SCREENSHOTS=1"),
]

COLOURS = 128
LARGEST_BYTES = 300_000
PLAN = "?fabric.clos.oversubscription.0=4&tour=off"
SMALL = "scenario=llama2-7b-64-h100&tour=off"
STEPS = 5
PAGES = {  # picture: where it begins, the link of the page, what stands there at the end
    "plan": ("?tour=off", "", ""),
    "fabric": (PLAN, "Design", "Nothing was measured yet"),
    "workload": (PLAN, "Workload", "Kept for backward"),
    "compare": ("compare?tour=off", "", "Whole bill per token against"),
    "explore": (f"explore?{SMALL}", "", "Sweep parameters"),
    "learn": ("learn?tour=off", "", "esson 1 of 14"),
    "lesson": ("learn?lesson=steps&present=on&tour=off", "", "How much leaves each node?"),
    "measure": (f"measure?{SMALL}", "", "Drop what your jobs printed"),
}
HEIGHTS = {1280: 0, 1440: 900, 1920: 1080}
"""Of a window by its width; 0: the whole page."""
TAKEN = [
    *[("lesson", 1280, scheme) for scheme in ("light", "dark")],
    *[(name, 1440, "light") for name in ("plan", "fabric", "compare", "measure")],
    *[(name, 1440, "dark") for name in ("plan", "compare")],
    ("plan", 1920, "light"),
    *[(name, 1280, "light") for name in PAGES if name not in ("lesson", "measure")],
]


@pytest.mark.parametrize(("name", "width", "scheme"), TAKEN)
def test_take(watched, root, name, width, scheme):
    window = watched(width, scheme)
    page = window.page
    address, link, text = PAGES[name]
    height = 720 if name == "lesson" else HEIGHTS[width]
    if height:
        page.set_viewport_size({"width": width, "height": height})
    page.goto(f"{window.url}/{address}")
    if address.startswith("?"):
        window.settle()
    if link:
        page.get_by_role("link", name=link, exact=True).click()
    if text:
        window.stands(text)
        page.wait_for_timeout(3000)
    if name == "lesson":
        _hands_and_steps(page)
    if name == "measure":
        _log(page, root)
    if not height:
        parts = "[data-testid=stMainBlockContainer], [data-testid=stSidebarContent]"
        tall = page.locator(parts).evaluate_all("all => Math.max(...all.map(e => e.scrollHeight))")
        page.set_viewport_size({"width": width, "height": int(tall)})
    page.wait_for_timeout(1500)
    folder = root / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{width}-{scheme}.png"
    page.screenshot(path=path)
    image = Image.open(path).convert("RGB")
    if not height:
        # Containers keep the height of what they no longer show.
        image = image.crop((0, 0, image.width, content_end(image)))
    image.quantize(COLOURS).save(path, optimize=True)
    assert path.stat().st_size < LARGEST_BYTES


def _hands_and_steps(page):
    for letter, hands in (("A", 3), ("B", 12), ("C", 7), ("D", 5)):
        page.get_by_label(f"Hands for {letter}").fill(str(hands))
        page.keyboard.press("Tab")
    page.get_by_text("27 hands").wait_for()
    page.locator(".wall-ask").click()
    for _ in range(1 + STEPS):
        page.keyboard.press("ArrowRight")
    page.get_by_text(f"Step {STEPS} of 14").first.wait_for()


def _log(page, root):
    import sys

    sys.path.append(str(root / "tests" / "calibration" / "logs"))
    from printed_logs import megatron, text

    page.get_by_role("combobox", name="Accelerator", exact=True).click()
    page.keyboard.type("h100-80gb")
    page.keyboard.press("Enter")
    log = {"name": "night.log", "mimeType": "text/plain"}
    log["buffer"] = text(megatron([9.0, 8.0, 7.0, *[5.4] * 5])).encode()
    page.locator("input[type=file]").first.set_input_files(log)
    page.get_by_text(re.compile("the plan stays|another plan is the best")).first.wait_for()
