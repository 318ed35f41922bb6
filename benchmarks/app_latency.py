"""How long the plan page takes from a key press on a slider to our plan, and to all figures.

``python benchmarks/app_latency.py [--address QUERY] [--steps N] [--build FOLDER ...]`` starts the
studio and Debian's Chromium, moves the first oversubscription slider step by step by keyboard, and
prints the milliseconds until the headline figures of our plan are painted and until the last change
of the page, baselines included, and the CPU seconds that the page's own process took per step,
workers not counted. Every step is a request that the studio has not seen before. The default page
plans 1,024 devices. Builds, each a checkout with its environment in ``.venv``, are measured one
after the other; without one this checkout is.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil
from playwright.sync_api import Page, sync_playwright

TARGET_MS = 500
"""For 95 of 100 changes, on 1,024 devices."""
SETTLED_MS = 4000
ROOT = Path(__file__).resolve().parents[1]

WATCH = """() => {
  const shown = () => ['.nest-card', '[data-testid=stAlert]'].flatMap(
    kind => [...document.querySelectorAll(kind)]).map(e => e.innerText).join();
  const before = shown(), began = performance.now(), times = {headline: null, all: null};
  new MutationObserver(() => {
    times.all = performance.now() - began;
    if (times.headline === null && shown() !== before)
      requestAnimationFrame(() => { times.headline ??= performance.now() - began; });
  }).observe(document.querySelector('[data-testid=stMainBlockContainer]'),
    {subtree: true, childList: true, characterData: true});
  window.times = times;
}"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--address", default="", help="query of the page, without the ?")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--key", default="ArrowRight", help="pressed on the slider")
    parser.add_argument("--build", type=Path, nargs="*", default=[ROOT])
    arguments = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("Chromium is not installed (apt-get install chromium)")
    for build in arguments.build:
        print(build.resolve().name)
        _measure(build.resolve(), chromium, arguments)


def _measure(build: Path, chromium: str, arguments: argparse.Namespace) -> None:
    port = free_port()
    python = str(build / ".venv/bin/python")
    server = subprocess.Popen(
        [python, "-m", "nest_studio", "app", "--headless", "--port", str(port)],
        cwd=build,
        env={**os.environ, "PYTHONPATH": str(build)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(f"http://localhost:{port}/_stcore/health")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            for what in ("first visit", "warm start"):
                began = time.monotonic()
                page.goto(f"http://localhost:{port}/?{arguments.address}")
                page.locator(".nest-card").first.wait_for(timeout=120_000)
                print(f"{what}: first figure after {1e3 * (time.monotonic() - began):.0f} ms")
            server_process = psutil.Process(server.pid)
            _report(_measured(page, arguments.steps, arguments.key, server_process))
            browser.close()
    finally:
        server.terminate()
        server.wait()


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(url: str, patience_s: float = 60.0) -> None:
    """Wait until an address answers."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:  # URLError, a refusal, a time-out
            time.sleep(0.1)
    sys.exit("the studio did not start")


def _measured(page: Page, steps: int, key: str, server: psutil.Process) -> list[dict[str, float]]:
    page.locator(".nest-fabric .main > svg").first.wait_for(timeout=60_000)
    page.wait_for_timeout(SETTLED_MS)
    page.locator(".st-key-fold-fabric summary").first.click()
    slider = page.get_by_role("slider").first
    slider.focus()
    rows = []
    for _ in range(steps):
        page.evaluate(WATCH)
        before = server.cpu_times()
        page.keyboard.press(key)
        page.wait_for_timeout(SETTLED_MS)
        times = page.evaluate("window.times")
        if times["headline"] is not None:
            after = server.cpu_times()
            cpu = 1e3 * (after.user + after.system - before.user - before.system)
            rows.append({"ratio": float(slider.input_value()), **times, "cpu": cpu})
    return rows


def _report(rows: list[dict[str, float]]) -> None:
    print("ratio  headline, ms  all figures, ms  CPU of the page, ms")
    for row in rows:
        columns = (row["headline"], row["all"], row["cpu"])
        print(f"{row['ratio']:5.1f}  {columns[0]:12.0f}  {columns[1]:15.0f}  {columns[2]:19.0f}")
    for name in ("headline", "all", "cpu"):
        values = sorted(row[name] for row in rows)
        p95 = statistics.quantiles(values, n=20, method="inclusive")[-1]
        print(
            f"{name}: median {statistics.median(values):.0f} ms, p95 {p95:.0f} ms, "
            f"largest {values[-1]:.0f} ms of {len(values)}"
        )
    late = sum(row["headline"] > TARGET_MS for row in rows)
    print(f"{late} of {len(rows)} headlines later than {TARGET_MS} ms")


if __name__ == "__main__":
    main()
