"""How fluid the drawing canvas is with 1,024 devices: frame times while a mouse works on it.

``python benchmarks/canvas_fluid.py [--fabric NAME]`` starts the page of
``tests/browser/canvas_app.py`` and Debian's Chromium, opens drawings of 1,236 elements and of
2,260 (with NICs), compressed and with every group open, and prints the milliseconds between
frames (requestAnimationFrame) while it pans, zooms and drags. Chromium draws in software here.
"""

from __future__ import annotations

import argparse
import shutil
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Locator, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
HARNESS = ROOT / "tests" / "browser" / "canvas_app.py"
FABRICS = ("1024", "1024-nics")
STEPS = 60

RECORD = """root => {
  root.frames = [];
  let last = performance.now();
  const tick = now => {
    root.frames.push(now - last);
    last = now;
    root.ticking = requestAnimationFrame(tick);
  };
  root.ticking = requestAnimationFrame(tick);
}"""
STOP = "root => { cancelAnimationFrame(root.ticking); return root.frames.slice(2); }"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fabric", choices=FABRICS, action="append")
    arguments = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("Chromium is not installed (apt-get install chromium)")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", str(HARNESS)]
    command += ["--server.headless=true", f"--server.port={port}"]
    server = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_for(f"http://localhost:{port}/_stcore/health")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            print("fabric     shown       gesture  frames  median, ms  p95, ms  longest, ms")
            for fabric in arguments.fabric or FABRICS:
                page = browser.new_page(viewport={"width": 1280, "height": 900})
                page.goto(f"http://localhost:{port}/?fabric={fabric}")
                _measure(page, fabric)
                page.close()
            browser.close()
    finally:
        server.terminate()
        server.wait()


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    sys.exit("the page did not start")


def _measure(page: Page, fabric: str) -> None:
    root = page.locator(".nd-root[data-revision]")
    root.wait_for(timeout=60_000)
    for shown in ("compressed", "opened"):
        if shown == "opened":
            page.get_by_role("button", name="Open all groups").click()
            page.get_by_role("button", name="Fit").click()
        page.wait_for_timeout(1000)
        gestures = {"pan": _pan, "zoom": _zoom, "drag": _drag}
        for name, gesture in gestures.items():
            times = _recorded(root, lambda gesture=gesture: gesture(page, root))
            p95 = statistics.quantiles(times, n=20)[-1]
            print(
                f"{fabric:10} {shown:11} {name:8} {len(times):6}"
                f"  {statistics.median(times):10.1f}  {p95:7.1f}  {max(times):11.1f}"
            )
            page.wait_for_timeout(800)


def _recorded(root: Locator, gesture: Callable[[], None]) -> list[float]:
    root.evaluate(RECORD)
    gesture()
    return root.evaluate(STOP)


def _corner(page: Page) -> tuple[float, float]:
    """A place on the stage where nothing is drawn."""
    box = page.locator(".nd-stage").bounding_box()
    return box["x"] + 8, box["y"] + 8


def _pan(page: Page, root: Locator) -> None:
    x, y = _corner(page)
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(STEPS):
        page.mouse.move(x + 3 * min(step, STEPS - step), y + 2 * min(step, STEPS - step))
    page.mouse.up()


def _zoom(page: Page, root: Locator) -> None:
    x, y = _corner(page)
    page.mouse.click(x, y)
    box = page.locator(".nd-stage").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    for step in range(STEPS):
        page.mouse.wheel(0, -40 if step < STEPS / 2 else 40)
        page.wait_for_timeout(8)


def _drag(page: Page, root: Locator) -> None:
    box = page.locator(".nd-stage").bounding_box()
    at = root.evaluate(
        "root => root.__cy.nodes('.closed, .device').nodes()"
        ".toArray().find(node => !node.isParent()).renderedPosition()"
    )
    x, y = box["x"] + at["x"], box["y"] + at["y"]
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(STEPS):
        page.mouse.move(x + 2 * min(step, STEPS - step), y + min(step, STEPS - step))
    page.mouse.up()


if __name__ == "__main__":
    main()
